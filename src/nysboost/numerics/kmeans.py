"""k-means twice: of points, scikit-learn's, and on a matrix of squared distances, our own.

A centre is the mean of its group, so that its squared distance to any point is a mean of
entries of that matrix, less a constant: no coordinates are needed, and a round costs n²
operations, whatever the number of coordinates and of groups.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.sparse import csc_array, csr_matrix, issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nysboost.numerics.arrays import Array, Floats, Indices, like, to_host
from nysboost.numerics.tolerances import EPS, cutoff

MAX_ITER = 300

TRIALS = 10
"""Points drawn for each seed. scikit-learn draws 6 for 120 groups; 16 are too greedy for J."""


def kmeans(squared: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Group n points round k centres: greedy k-means++, then Lloyd's rounds to their end.

    Parameters
    ----------
    squared : array of shape (n, n)
        Squared Euclidean distances; symmetric, not negative, with zero diagonal.
    k : int
        Number of groups, at most n.
    rng : numpy.random.Generator
        Source of all randomness.

    Returns
    -------
    array of shape (k, n)
        Squared distances of the points from the centres. Where fewer than k points are
        distinct, some centres coincide.
    """
    to_centres = squared[seeds(squared, k, rng)]
    owner = np.full(len(squared), -1)
    for _ in range(MAX_ITER):
        nearest = np.argmin(to_centres, axis=0)
        if np.array_equal(nearest, owner):
            break
        owner = nearest
        to_centres = _moved(squared, owner, to_centres)
    return to_centres


def seeds(squared: Floats, k: int, rng: np.random.Generator) -> Indices:
    """Return k points by greedy k-means++ (Arthur and Vassilvitskii 2007).

    Each is the best of `TRIALS` points that are drawn with probability proportional to
    the squared distance from the nearest of those before it. Two points that are each other's
    neighbour are as good: the first of them, on every machine.
    """
    n = len(squared)
    rounding = n * cutoff(n, EPS) * float(squared.max())
    chosen = np.empty(k, dtype=np.intp)
    chosen[0] = rng.integers(n)
    nearest, ones = squared[chosen[0]], np.ones(n)
    for i, uniform in enumerate(rng.random((k - 1, TRIALS)), start=1):
        mass = nearest.cumsum()
        drawn = mass.searchsorted(uniform * mass[-1], side="right")
        np.minimum(drawn, n - 1, out=drawn)  # no mass is left where few points are distinct
        closer = squared[drawn]
        np.minimum(closer, nearest, out=closer)
        loss = closer @ ones
        best = np.where(loss <= loss.min() + rounding, drawn, n).argmin()
        chosen[i], nearest = drawn[best], closer[best]
    return chosen


def _moved(squared: Floats, owner: Indices, before: Floats) -> Floats:
    """Return the squared distances from the groups' means; an empty group stays where it is.

    With h_j the uniform distribution on group j they are (h_j D)_i − ½ h_j D h_jᵀ.
    """
    k, n = before.shape
    sizes = np.bincount(owner, minlength=k)
    members = csc_array((1 / sizes[owner], owner, np.arange(n + 1)), shape=(k, n))
    moved: Floats = members @ squared
    own = moved[owner, np.arange(n)] / sizes[owner]
    moved -= np.bincount(owner, own, minlength=k)[:, None] / 2
    moved[sizes == 0] = before[sizes == 0]
    return moved


def centroids(
    points: Array,
    c: int,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    max_iter: int = 300,
) -> Array:
    """Return the c centroids of k-means on (weighted) points, shape (c, d)."""
    return clusters(points, c, rng, weights=weights, max_iter=max_iter)[0]


def clusters(
    points: Array,
    c: int,
    rng: np.random.Generator,
    *,
    weights: Floats | None = None,
    max_iter: int = 300,
) -> tuple[Array, Indices]:
    """Return the c centroids of k-means on (weighted) points, and the cluster of each point."""
    host = points if issparse(points) else to_host(points)
    clustering = KMeans(c, n_init=1, max_iter=max_iter, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than centroids
        found = clustering.fit(host, sample_weight=weights)
    centres = found.cluster_centers_
    centres = csr_matrix(centres) if issparse(points) else like(centres, points)
    return centres, found.labels_.astype(np.intp)
