"""k-means twice: of points, and on a matrix of squared distances, at n² operations a round."""

from __future__ import annotations

from typing import cast

import numpy as np
from scipy.sparse import csc_array, csr_matrix

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    dense,
    dtype_name,
    epsilon,
    in_float64,
    is_sparse,
    like,
    namespace,
    row_blocks,
    take,
    to_host,
)
from nysboost.numerics.linalg import max_abs, unit_of
from nysboost.numerics.tolerances import EPS, SUMMED

FEW_ITER = 5  # rounds, where centres are a start: joint on MNIST, 12: the same error to 0.1 %
MAX_ITER = 300  # rounds at most, as in scikit-learn; few runs come near
STILL = 1e-4  # a move by less of the variance is the last, as in scikit-learn
TRIALS = 10  # points drawn for a seed; scikit-learn: 6 for 120 groups; 16 are too greedy for J
AT_ONCE = 4  # seeds of one draw in float32: a third of the time, errors 1.005
TRIALS_AT_ONCE = 20  # points drawn for them


def kmeans(squared: Floats, k: int, rng: np.random.Generator) -> Floats:
    """Group n points round k centres: greedy k-means++, then Lloyd's rounds to their end.

    The squared distances (n, n), rough if in float32, give those from the centres, (k, n).
    """
    to_centres = squared[seeds(squared, k, rng)]
    owner = np.full(len(squared), -1)
    for _ in range(MAX_ITER):
        nearest = np.argmin(to_centres, axis=0)
        if np.array_equal(nearest, owner):
            break
        owner = nearest
        to_centres = _distances_from_means(squared, owner, to_centres)
    return to_centres


def seeds(squared: Floats, k: int, rng: np.random.Generator) -> Indices:
    """Return k points by greedy k-means++ (Arthur, Vassilvitskii 2007), each the best of `TRIALS`.

    Of equally good points the first is taken; of rough distances `AT_ONCE` seeds share one draw.
    """
    n = len(squared)
    together, trials = _size_of_draw(squared.dtype == np.float32, TRIALS)

    # losses that differ by less are equal
    summed = max(n * EPS, SUMMED * epsilon(squared))
    rounding = n * summed * float(squared.max())

    chosen = np.empty(k, dtype=np.intp)
    chosen[0] = rng.integers(n)
    nearest = squared[chosen[0]]
    ones = np.ones(n, squared.dtype)

    for first in range(1, k, together):
        # points are drawn in proportion to their squared distance from the seeds
        mass = nearest.cumsum()
        drawn = mass.searchsorted(rng.random(trials) * mass[-1], side="right")
        np.minimum(drawn, n - 1, out=drawn)  # no mass is left if few points are distinct
        drawn.sort()

        # and those that lower the loss most become seeds
        closer = squared[drawn]
        for i in range(first, min(first + together, k)):
            np.minimum(closer, nearest, out=closer)
            loss = closer @ ones
            least = loss[loss.argmin()]
            best = (loss <= least + rounding).argmax()
            chosen[i] = drawn[best]
            nearest = closer[best].copy()
    return chosen


def _size_of_draw(rough: bool, trials: int) -> tuple[int, int]:
    """Return how many seeds share a draw, and how many points it has: `trials` for one seed."""
    if rough:
        return AT_ONCE, TRIALS_AT_ONCE
    return 1, trials


def _distances_from_means(squared: Floats, owner: Indices, before: Floats) -> Floats:
    """Return the squared distances from the groups' means, (h_j D)_i − ½ h_j D h_jᵀ."""
    k, n = before.shape
    sizes = np.bincount(owner, minlength=k)

    # h_j D: the mean of the distances from the points of each group
    shares = (1 / sizes[owner]).astype(squared.dtype)
    moved: Floats = memberships(owner, shares, k) @ squared

    # ½ h_j D h_jᵀ
    own = moved[owner, np.arange(n)] / sizes[owner]
    half = np.bincount(owner, own, minlength=k) / 2
    moved -= half.astype(moved.dtype)[:, None]

    moved[sizes == 0] = before[sizes == 0]
    return moved


def memberships(owner: Indices, weights: Floats, k: int) -> csc_array:
    """Return the (k, n) matrix with weights[i] at (owner[i], i), which adds up points by groups."""
    n = len(owner)
    return csc_array((weights, owner, np.arange(n + 1)), shape=(k, n))


def clusters(
    X: Array, c: int, rng: np.random.Generator, *, max_iter: int = MAX_ITER, rough: bool = False
) -> tuple[Array, Indices]:
    """Return c centroids, (c, d), of k-means on points X (n, d), and the points' clusters.

    Matrix products on the points' device: scikit-learn's OpenMP threads do not survive a fork.
    `rough`: seven digits of the points, as seen from their mean, are enough, and cost half.
    """
    unit = _unit_for_squares(X, rough)
    points = X
    if unit != 1:
        points = X / unit
    cloud = _Cloud(points, rough)
    Z = cloud.take(_seeds_among(cloud, c, rng))

    # the mean variance of a feature
    variance = 2 * float(cloud.half_norms.mean()) / X.shape[1]
    owner = np.full(cloud.n, -1)
    for _ in range(max_iter):
        nearest, squared = cloud.nearest(Z)
        if np.array_equal(nearest, owner):
            break
        owner = nearest

        before = Z
        Z = cloud.means(owner, squared, before)
        moved = float(namespace(Z).sum((Z - before) ** 2))
        if moved <= STILL * variance:
            break

    # in the units and about the origin of X again
    owner, _ = cloud.nearest(Z)
    Z = (Z + cloud.centre) * unit
    if is_sparse(X):
        Z = csr_matrix(Z)
    return Z, owner


def _unit_for_squares(X: Array, rough: bool) -> float:
    """Return 1, or the unit in which squares of the entries are in the range of their dtype."""
    dtype = dtype_name(X)
    if rough:
        dtype = "float32"
    far = float(np.finfo(dtype).max) ** 0.25

    largest = max_abs(X)
    if largest == 0 or 1 / far < largest < far:
        return 1.0
    return unit_of(X)


class _Cloud:
    """Points, centred where they are dense so that their products keep their digits."""

    def __init__(self, points: Array, rough: bool) -> None:
        self.n = int(points.shape[0])
        self.rough = rough and not is_sparse(points)
        self.centre: Array | float = 0.0
        if is_sparse(points):
            self.X = points.tocsr()
            squares = points.multiply(points).sum(axis=1)
        else:
            xp = namespace(points)
            self.centre = xp.mean(points, axis=0)
            self.X = points - self.centre
            squares = to_host(xp.sum(self.X * self.X, axis=1))
            if rough:
                self.X = xp.astype(self.X, xp.float32)

        norms = np.asarray(squares).ravel()
        self.half_norms = norms.astype(np.float64) / 2

    def take(self, indices: Indices | Array) -> Array:
        """Return points at `indices`, which may be where the points are, dense."""
        return dense(take(self.X, cast(Indices, indices)))

    def scores(self, Z: Array, rows: slice) -> Array:
        """Return ½‖x − z‖² less ½‖x‖², for the points at `rows`, shape (len(rows), c)."""
        half = namespace(Z).sum(Z * Z, axis=1) / 2
        products = take(self.X, rows) @ Z.T
        return half - products

    def squared_distances(self, Z: Array, half_norms: Array) -> Array:
        """Return ‖x − z‖² of all points, whose ½‖x‖² are where they are, float64 (c, n)."""
        scores = in_float64(self.scores(Z, slice(0, self.n)))
        return namespace(scores).clip(2 * (scores.T + half_norms), min=0.0)

    def nearest(self, Z: Array) -> tuple[Indices, Floats]:
        """Return the nearest centroid of each point, and its squared distance."""
        owner = np.empty(self.n, dtype=np.intp)
        squared = np.empty(self.n)
        row_bytes = 8 * Z.shape[0]
        for rows in row_blocks(self.n, row_bytes, block_bytes(self.X)):
            scores = self.scores(Z, rows)
            xp = namespace(scores)
            owner[rows] = to_host(xp.argmin(scores, axis=1))
            lowest = to_host(xp.min(scores, axis=1))
            squared[rows] = 2 * (self.half_norms[rows] + lowest)
        return owner, np.maximum(squared, 0.0)

    def means(self, owner: Indices, squared: Floats, before: Array) -> Array:
        """Return the groups' means; an empty group gets the point that lies farthest out."""
        c = before.shape[0]
        sizes = np.bincount(owner, minlength=c)
        empty = np.flatnonzero(sizes == 0)
        if len(empty):
            farthest = np.argsort(-squared, kind="stable")[: len(empty)]
            owner = owner.copy()
            owner[farthest] = empty
            sizes = np.bincount(owner, minlength=c)

        # where a group lost its only point to an empty one, its centroid stays
        means = _sums(self.X, owner, 1 / sizes[owner], c)
        kept = (sizes > 0).astype(np.float64)
        has_points = like(kept[:, None], before)
        return means * has_points + before * (1 - has_points)


def _sums(X: Array, owner: Indices, weight: Floats, c: int) -> Array:
    """Return Σ weight_i x_i over each group, shape (c, d)."""
    if is_sparse(X) or isinstance(X, np.ndarray):
        members = memberships(owner, weight.astype(X.dtype), c)
        return dense(members @ X)
    members = memberships(owner, weight, c)
    return like(members.toarray(), X) @ X


def _seeds_among(cloud: _Cloud, c: int, rng: np.random.Generator) -> Indices:
    """Return c points by greedy k-means++, on the points' device, without waiting for a GPU."""
    together, trials = _size_of_draw(cloud.rough, 2 + int(np.log(c)))

    # the first seed is any point
    everyone = np.full(cloud.n, 1 / cloud.n)
    first = np.array([rng.choice(cloud.n, p=everyone)])
    Z = cloud.take(first)
    xp = namespace(Z)
    chosen = [like(first, Z, xp.int64)]

    half_norms = like(cloud.half_norms, Z, xp.float64)
    nearest = cloud.squared_distances(Z, half_norms)[0, :]
    ones = xp.ones_like(nearest)

    # all random numbers are there before the first is used
    draws = -(-(c - 1) // together)
    uniform = like(rng.random((draws, trials)), Z, xp.float64)
    for i in range(draws):
        # of the points drawn those that lower the loss most become seeds
        drawn = _draw_in_proportion(nearest, uniform[i, :])
        closer = cloud.squared_distances(cloud.take(drawn), half_norms)
        for _ in range(min(together, c - len(chosen))):
            closer = xp.minimum(closer, nearest)
            loss = closer @ ones
            best = xp.reshape(xp.argmin(loss), (1,))
            nearest = xp.take(closer, best, axis=0)[0, :]
            chosen.append(xp.take(drawn, best))

    found = to_host(xp.concat(chosen))
    return found.astype(np.intp)


def _draw_in_proportion(mass: Array, uniform: Array) -> Array:
    """Return the points that uniform numbers on [0, 1) fall on, each with a share as its mass."""
    xp = namespace(mass)
    summed = xp.cumulative_sum(mass)
    drawn = xp.searchsorted(summed, uniform * summed[-1], side="right")
    return xp.clip(drawn, max=mass.shape[0] - 1)  # no mass is left if few points are distinct
