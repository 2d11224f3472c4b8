"""Spectral clustering with an approximate kernel matrix, for any number of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.linalg import qr, svd
from scipy.spatial.distance import cdist
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from nysboost.estimators.estimator import fit_method, with_usual_errors
from nysboost.estimators.transformers import FeatureBasedEstimator
from nysboost.features.factor import Factor
from nysboost.kernels import parameter_names
from nysboost.kernels.distances import directions
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, TableLike, gather, spaced_indices
from nysboost.numerics.checks import make_rng, require_count
from nysboost.numerics.kmeans import clusters
from nysboost.numerics.messages import unknown
from nysboost.numerics.tolerances import TINY

QR_ROWS = 2**14
"""Number of rows from which the QR rule learns its rotation; with more rows, they are evenly
spaced."""

NAMED_GAMMA = 1.0
"""gamma of a kernel given by name, as in scikit-learn's spectral clustering."""

LABEL_RULES = ("kmeans", "cluster_qr")


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralClustering(ClusterMixin, FeatureBasedEstimator):
    """Spectral clustering on the normalised Laplacian of K̂ (Fowlkes et al. 2004).

    With K̂ = F Fᵀ the degrees are d = F (Fᵀ1), and the leading eigenvectors of D^(−½) K̂ D^(−½)
    are H V for H = D^(−½) F and the eigenvectors V of HᵀH, an r×r matrix. This takes two passes
    over the rows, and no n×n matrix is formed.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    kernel, coef0, degree, kernel_params
        As in `Nystroem`.
    gamma : float, "scale", "median" or None
        As in `Nystroem`. None is 1 for a kernel given by name, as in scikit-learn's spectral
        clustering.
    n_components : int or None
        Number of eigenvectors used; None is `n_clusters`.
    assign_labels : "kmeans" or "cluster_qr"
        How to compute labels from the eigenvectors: k-means on their rows, each divided by its
        length (Ng, Jordan and Weiss 2001), or pivoted QR (Damle, Minden and Ying 2019), which has
        no parameters and no random start.
    n_init : int
        Number of random starts of k-means.
    method : str
        The method that finds the landmarks. "auto" is "kmeans", or "rpcholesky" for a precomputed
        matrix, which has no points.
    n_landmarks, max_memory, n_jobs, verbose, random_state
        As in `KernelPCA`.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        The cluster of each row.
    embedding_ : array of shape (n_samples, n_components)
        The eigenvectors, divided by the roots of the degrees.
    eigenvalues_ : array of shape (n_components,)
        The eigenvalues of D^(−½) K̂ D^(−½), the largest first; the first is 1.
    cluster_centers_ : array of shape (n_clusters, n_components)
        The mean direction of each cluster in the embedding.

    See Also
    --------
    sklearn.cluster.SpectralClustering : exact, with an n×n matrix.
    KernelPCA : components instead of clusters.

    References
    ----------
    .. [1] C. Fowlkes, S. Belongie, F. Chung and J. Malik (2004). Spectral grouping using the
          Nyström method. IEEE PAMI 26.

    Examples
    --------
    >>> import nysboost as nb
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(500, factor=0.4, noise=0.05, random_state=0)
    >>> labels = nb.SpectralClustering(2, gamma=20, random_state=0).fit_predict(X)
    >>> int(abs((labels == y).sum() - 250))
    250
    """

    n_clusters: int = field(default=8, kw_only=False)
    method: str = "auto"
    n_components: int | None = None
    assign_labels: Literal["kmeans", "cluster_qr"] = "kmeans"
    n_init: int = 10

    @fit_method
    def fit(self, X: TableLike, y: object = None) -> SpectralClustering:  # noqa: ARG002
        """Cluster the rows of X, as in `Nystroem.fit`; y is ignored."""
        require_count("n_clusters", self.n_clusters)
        require_count("n_init", self.n_init)
        if self.assign_labels not in LABEL_RULES:
            raise ValueError(unknown("label rule", self.assign_labels, LABEL_RULES))

        gamma = self._choose_gamma()
        method = self._choose_method()
        features = self._fit_features(X, gamma=gamma, method=method)
        n, r = features.shape
        if n < self.n_clusters:
            raise ValueError(f"n_samples={n} should be >= n_clusters={self.n_clusters}.")

        k = min(self.n_components or self.n_clusters, r)
        self.embedding_ = self._find_embedding(features, k)

        # assign labels by the directions of the embedded rows
        points = directions(self.embedding_)
        if self.assign_labels == "kmeans":
            self.labels_ = self._label_by_kmeans(points)
        else:
            self.labels_ = self._label_by_qr()

        # the mean direction of each cluster; a cluster without rows is far from all
        shape = (self.n_clusters, k)
        self.cluster_centers_ = np.full(shape, np.inf)
        for label in np.unique(self.labels_):
            members = points[self.labels_ == label]
            self.cluster_centers_[label] = members.mean(axis=0)
        return self

    def _find_embedding(self, features: Factor, k: int) -> Floats:
        """Return the k leading eigenvectors, divided by the roots of the degrees, shape (n, k).

        With H = D^(−½) F and HᵀH = V Λ Vᵀ, those of D^(−½) F Fᵀ D^(−½) are H V Λ^(−½).
        """
        # the degrees d = F (Fᵀ1)
        diagonal = features.gram.host_diag()[:, None]
        self._degrees = features.total()

        # Λ and V, the largest first
        products = features.fold(_normalised_products, self._degrees, diagonal)
        eigenvalues, V = np.linalg.eigh(products)
        leading = slice(None, -k - 1, -1)
        self.eigenvalues_ = np.maximum(eigenvalues[leading], TINY)
        self._vectors = V[:, leading] / np.sqrt(self.eigenvalues_)

        # compute H V Λ^(−½) where the rows are, then gather it
        shared = (self._degrees, self._vectors)
        embedding = features.map(_embed, shared, k, diagonal)
        return arrays.floats_on_host(gather(embedding))

    def _choose_gamma(self) -> float | str | None:
        """Return gamma, or its default if the kernel is a name without parameters."""
        # some kernels have no width, and it may be given in `kernel_params`
        has_gamma = isinstance(self.kernel, str) and "gamma" in parameter_names(self.kernel)
        given = {"gamma", "sigma"}.intersection(self.kernel_params or {})
        if has_gamma and self.gamma is None and not given:
            return NAMED_GAMMA
        return self.gamma

    def _choose_method(self) -> str:
        """Return the method that finds the landmarks; "rpcholesky" can miss a small cluster."""
        if self.method != "auto":
            return self.method
        if self._precomputed():
            return "rpcholesky"
        return "kmeans"

    def _label_by_kmeans(self, points: Array) -> Indices:
        """Return the labels of the best of `n_init` runs of k-means."""
        rng = make_rng(self.random_state)
        k = self.n_clusters
        runs = [clusters(points, k, rng) for _ in range(self.n_init)]

        losses = []
        for centres, owner in runs:
            from_centre = points - centres[owner]
            losses.append((from_centre**2).sum())
        _, labels = runs[np.argmin(losses)]
        return labels

    def _label_by_qr(self) -> Indices:
        """Return the labels of the pivoted QR rule: the largest entry after a rotation."""
        rows = self.embedding_
        sample = rows[spaced_indices(len(rows), QR_ROWS)]

        # the rotation is the orthogonal factor of the polar decomposition of the pivot rows
        _, _, pivots = qr(sample.T, pivoting=True, mode="economic")
        of_clusters = sample[pivots[: self.n_clusters]]
        U, _, Vt = svd(of_clusters.T, full_matrices=False)
        rotation = U @ Vt

        rotated = np.abs(rows @ rotation)
        return np.asarray(rotated.argmax(axis=1))

    @with_usual_errors
    def predict(self, X: TableLike) -> Indices:
        """Return the clusters of rows, (n,): those of the nearest centres in the embedding."""
        check_is_fitted(self)
        F = arrays.floats_on_host(self.features_.transform(X))
        diagonal = (F * F).sum(axis=1, keepdims=True)

        # embed new rows like those of the fit
        shared = (self._degrees, self._vectors)
        embedded = _embed(shared, F, diagonal)
        points = directions(embedded)
        distances = cdist(points, self.cluster_centers_)
        return np.asarray(distances.argmin(axis=1))


# What passes do to a block of features: plain functions, which can be pickled for workers


def _roots(degrees: Floats, F: Floats, diagonal: Floats) -> Floats:
    """Return the square roots of the degrees, shape (b, 1).

    A degree is at least the row's own k(x, x).
    """
    of_rows = (F @ degrees)[:, None]
    least = np.maximum(diagonal, TINY)
    bounded = np.maximum(of_rows, least)
    return np.asarray(np.sqrt(bounded))


def _normalised_products(degrees: Floats, F: Array, diagonal: Floats) -> Floats:
    """Return HᵀH for H = D^(−½) F."""
    F = arrays.floats_on_host(F)
    H = F / _roots(degrees, F, diagonal)
    return H.T @ H


def _embed(shared: tuple[Floats, Floats], F: Array, diagonal: Floats) -> Floats:
    """Return D^(−½) times the eigenvectors D^(−½) F V Λ^(−½), as scikit-learn does."""
    degrees, vectors = shared
    F = arrays.floats_on_host(F)
    roots = _roots(degrees, F, diagonal)
    return np.asarray((F / roots) @ vectors / roots)
