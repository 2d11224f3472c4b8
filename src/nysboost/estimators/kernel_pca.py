"""Kernel principal components on the features of any method, for any number of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted

from nysboost.estimators.estimator import all_or_nothing, fit_method, with_usual_errors
from nysboost.estimators.transformers import FeatureBasedEstimator, Nystroem
from nysboost.features.factor import Factor
from nysboost.kernels import Gaussian
from nysboost.numerics.arrays import Array, Floats, TableLike, dense, floats_on_host, gather, like
from nysboost.numerics.checks import require_positive, to_table
from nysboost.numerics.linalg import fix_signs
from nysboost.numerics.tolerances import EPS, TINY
from nysboost.rows.driver import BlockTask
from nysboost.settings import DEFAULT_COMPONENTS


def _learns_pre_images(pca: KernelPCA) -> bool:
    if not pca.fit_inverse_transform:
        msg = "inverse_transform needs fit_inverse_transform=True: set it and fit again."
        raise AttributeError(msg)
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FeatureBasedEstimator):
    """Kernel principal component analysis of K̂ = F Fᵀ (Schölkopf, Smola and Müller 1998).

    The components are the leading eigenvectors of the covariance (F − μ)ᵀ(F − μ) / n of the
    features, an r×r matrix. It takes one pass over the rows, and no n×n matrix is formed. New rows
    are centred with the same μ.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_components : int or None
        Number of components; None keeps all that are not zero.
    kernel, gamma, coef0, degree, kernel_params
        As in `Nystroem`.
    method : str
        The method that approximates the kernel: one of `nysboost.METHODS` with features.
    n_landmarks : int or None
        Number of landmarks; None is 240, or the number of rows if that is smaller.
    fit_inverse_transform : bool
        Whether to learn pre-images, by ridge regression from the components to X.
    alpha : float
        The penalty of that regression, in the units of scikit-learn's `KernelPCA`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components,)
        The largest eigenvalues of the centred kernel matrix, as in scikit-learn.
    explained_variance_ : array of shape (n_components,)
        The variance along each component.
    explained_variance_ratio_ : array of shape (n_components,)
        Its share of the total variance in the feature space of the kernel. An approximation
        contains only a part of this variance, so the sum is below one even with all components.
    components_ : array of shape (n_components, r)
        The components in the space of the features.
    mean_ : array of shape (r,)
        μ, the mean of the features.

    See Also
    --------
    sklearn.decomposition.KernelPCA : exact, with an n×n matrix.
    SpectralClustering : clusters in a similar embedding.

    References
    ----------
    .. [1] B. Schölkopf, A. Smola and K.-R. Müller (1998). Nonlinear component analysis as a
          kernel eigenvalue problem. Neural Computation 10.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 5))
    >>> pca = nb.KernelPCA(n_components=2, gamma=0.1, n_landmarks=50, random_state=0).fit(X)
    >>> pca.transform(X[:4]).shape
    (4, 2)
    """

    n_components: int | None = field(default=None, kw_only=False)
    fit_inverse_transform: bool = False
    alpha: float = 1e-5

    @fit_method
    def fit(self, X: TableLike, y: object = None) -> KernelPCA:  # noqa: ARG002
        """Find the principal components of the rows of X, as in `Nystroem.fit`; y is ignored."""
        require_positive("alpha", self.alpha)
        features = self._fit_features(X)
        n = features.shape[0]

        # the covariance of the features, FᵀF / n − μ μᵀ
        means = features.fold(_sum_and_products) / n
        self.mean_ = means[0]
        second_moments = means[1:]
        covariance = second_moments - np.outer(self.mean_, self.mean_)

        # its eigenvectors with variance beyond rounding, largest first
        variances, vectors = np.linalg.eigh(covariance)
        variances = np.flip(variances)
        vectors = np.flip(vectors, axis=1)
        k = self._count_components(variances)
        self._n_features_out = k
        leading = fix_signs(vectors[:, :k])
        self.components_ = leading.T
        self.eigenvalues_ = n * np.maximum(variances[:k], 0)
        self.explained_variance_ = self.eigenvalues_ / max(1, n - 1)

        # all the variance there is: the mean of k(x, x), less ‖μ‖²
        diagonal = features.gram.host_diag()
        total = float(diagonal.mean() - self.mean_ @ self.mean_)
        shares = self.eigenvalues_ / max(total, TINY)
        self.explained_variance_ratio_ = shares / n

        if self.fit_inverse_transform:
            self._learn_pre_images(features)
        return self

    def _count_components(self, variances: Floats) -> int:
        """Return the number of components: as asked, without those at the rounding level."""
        r = len(variances)
        floor = r * EPS * max(variances[0], 0.0)
        n_nonzero = int(np.count_nonzero(variances > floor))
        return min(self.n_components or r, max(1, n_nonzero))

    @all_or_nothing
    def fit_transform(self, X: TableLike, y: object = None) -> Array:
        """Fit to X and return the components of X; the parameters are those of `fit`."""
        return self.fit(X, y).transform(X)

    @with_usual_errors
    def transform(self, X: TableLike | Iterator[TableLike]) -> Array:
        """Return the components of rows, as in `Nystroem.transform`, centred as in fit: (n, k)."""
        check_is_fitted(self)
        F: Array = self.features_.transform(X)

        # (F − μ) Vᵀ, without a copy of F
        components = like(self.components_.T, F)
        mean = like(self.mean_ @ self.components_.T, F)
        return F @ components - mean

    @available_if(_learns_pre_images)  # type: ignore[untyped-decorator,unused-ignore]
    @with_usual_errors
    def inverse_transform(self, X: TableLike) -> Floats:
        """Return pre-images, shape (n, d): rows whose components are about X (n, k)."""
        check_is_fitted(self, "pre_images_")
        T = check_array(to_table(X), dtype=[np.float64, np.float32])
        Phi = self._pre_image_features(T)
        return np.asarray(Phi @ self.pre_images_ + self._centre)

    def _learn_pre_images(self, features: Factor) -> None:
        """Fit X ≈ X̄ + Φ(T) B by ridge regression, with Φ the features of the components T.

        Φ consists of features of a Gaussian kernel, with uniformly sampled landmarks and a
        bandwidth of the typical distance of components, and of the components themselves.
        """
        # T, the components of all rows, and landmarks among them
        axes = (self.mean_, self.components_)
        projected = features.map(_project, axes, len(self.components_))
        T = floats_on_host(gather(projected))
        n_landmarks = self.n_landmarks or DEFAULT_COMPONENTS
        pre_map = Nystroem(
            Gaussian(sigma="median"),
            method="uniform",
            n_components=min(len(T), n_landmarks),
            max_memory=self.max_memory,
            random_state=self.random_state,
        )
        self._pre_map = pre_map.set_output(transform="default").fit(T)

        # ΦᵀΦ and ΦᵀX in one pass; the last column of Φ is one, and its products are sums of rows
        task = BlockTask("pre-images", _products_with_rows, self._pre_image_features)
        products = features.rows.fold(task, np.add, T)
        width = len(products)
        normal = products[:, :width]
        right = products[:, width:]

        # (ΦᵀΦ + αI) B = Φᵀ(X − X̄)
        sums_of_rows = right[-1]
        self._centre = sums_of_rows / len(T)
        right -= np.outer(normal[-1], self._centre)
        ridge = self.alpha * np.eye(width)
        self.pre_images_ = np.linalg.solve(normal + ridge, right)

    def _pre_image_features(self, T: Floats) -> Floats:
        """Return Φ, the features of the linear model of pre-images, (n, landmarks + k + 1)."""
        mapped = floats_on_host(self._pre_map.transform(T))
        variance = np.maximum(self.explained_variance_, TINY)
        scale = np.sqrt(variance)
        linear = np.asarray(T) / scale
        ones = np.ones((len(T), 1))
        return np.hstack([mapped, linear, ones])


# What passes do to a block of features: plain functions, which can be pickled for workers


def _sum_and_products(_: None, F: Array) -> Floats:
    """Return Σf, stacked on Σffᵀ."""
    F = floats_on_host(F)
    total = F.sum(axis=0)
    products = F.T @ F
    return np.vstack([total, products])


def _project(shared: tuple[Floats, Floats], F: Array) -> Floats:
    """Return the components of a block of features, shape (b, k)."""
    mean, components = shared
    centred = floats_on_host(F) - mean
    return np.asarray(centred @ components.T)


def _products_with_rows(features: Callable[[Floats], Floats], X: Array, T: Floats) -> Floats:
    """Return Φ(T)ᵀΦ(T) and Φ(T)ᵀX side by side."""
    Phi = features(T)
    X = floats_on_host(dense(X))
    return Phi.T @ np.hstack([Phi, X])
