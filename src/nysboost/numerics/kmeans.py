"""k-means of points, dense or CSR, on the host or a device."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    dense,
    in_float64,
    is_sparse,
    like,
    namespace,
    row_blocks,
    take,
    to_host,
)
from nysboost.numerics.linalg import memberships, unit_of

FEW_ITER = 5  # rounds, where centres are a start: joint on MNIST, 12: the same error to 0.1 %
MAX_ITER = 300  # rounds at most, as in scikit-learn; few runs come near
STILL = 1e-4  # a move by less of the variance is the last, as in scikit-learn
TRIALS = 10  # points drawn for a seed; scikit-learn: 6 for 120 groups; 16 are too greedy for J
AT_ONCE = 4  # seeds of one draw in float32: a third of the time, errors 1.005
TRIALS_AT_ONCE = 20  # points drawn for them


def clusters(
    X: Array,
    c: int,
    rng: np.random.Generator,
    *,
    max_iter: int = MAX_ITER,
    rough: bool = False,
) -> tuple[Array, Indices]:
    """Return c centroids, (c, d), of k-means on points X (n, d), and the points' clusters.

    It uses matrix products on the points' device, because scikit-learn's OpenMP threads do not
    survive a fork. With `rough`, centred points are in float32, which costs half.
    """
    # points in units in which squares are in range, and the first centroids among them
    unit = unit_of(X)
    cloud = _Cloud(X / unit, rough)
    seeds = _seeds_among(cloud, c, rng)
    Z = cloud.take(seeds)

    # Lloyd's rounds, until points stay where they are, or centroids move by little of the variance
    d = X.shape[1]
    mean_half = namespace(Z).mean(cloud.half_norms)
    mean_square = 2 * float(mean_half)
    least = STILL * mean_square / d
    owner = np.full(cloud.n, -1)
    for _ in range(max_iter):
        nearest, squared = cloud.nearest(Z)
        if np.array_equal(nearest, owner):
            break
        owner = nearest

        before = Z
        Z = cloud.means(owner, squared, before)
        step = Z - before
        moved = float(namespace(Z).sum(step**2))
        if moved <= least:
            break

    # in the units and about the origin of X again
    owner, _ = cloud.nearest(Z)
    Z = (Z + cloud.centre) * unit
    if is_sparse(X):
        Z = csr_matrix(Z)
    return Z, owner


class _Cloud:
    """Points, centred if they are dense, so that products are accurate.

    `half_norms` are ½‖x‖² in float64, shape (n,), where the points are.
    """

    def __init__(self, points: Array, rough: bool) -> None:
        self.n = int(points.shape[0])
        self.rough = rough and not is_sparse(points)
        self.centre: Array | float = 0.0
        if is_sparse(points):
            self.X = points.tocsr()
            squares = self.X.multiply(self.X)
            sums = np.asarray(squares.sum(axis=1))
            norms = sums.ravel()
        else:
            xp = namespace(points)
            self.centre = xp.mean(points, axis=0)
            self.X = points - self.centre
            norms = xp.sum(self.X * self.X, axis=1)
            if rough:
                self.X = xp.astype(self.X, xp.float32)
        self.half_norms = in_float64(norms) / 2

    def take(self, indices: Indices | Array) -> Array:
        """Return points at `indices`, which may be where the points are, dense."""
        return dense(take(self.X, indices))

    def scores(self, Z: Array, rows: slice) -> Array:
        """Return ½‖x − z‖² less ½‖x‖², for the points at `rows`, shape (len(rows), c)."""
        half = namespace(Z).sum(Z * Z, axis=1) / 2
        points = take(self.X, rows)
        return half - points @ Z.T

    def squared_distances(self, Z: Array) -> Array:
        """Return ‖x − z‖² for all points in float64, shape (c, n)."""
        everything = slice(0, self.n)
        scores = in_float64(self.scores(Z, everything))
        squared = 2 * (scores.T + self.half_norms)
        return namespace(squared).clip(squared, min=0.0)

    def nearest(self, Z: Array) -> tuple[Indices, Floats]:
        """Return the nearest centroid of each point, and its squared distance."""
        owner = np.empty(self.n, dtype=np.intp)
        squared = np.empty(self.n)
        row_bytes = 8 * Z.shape[0]
        held = block_bytes(self.X)
        for rows in row_blocks(self.n, row_bytes, held):
            scores = self.scores(Z, rows)
            xp = namespace(scores)
            owner[rows] = to_host(xp.argmin(scores, axis=1))

            # ‖x − z‖² = 2 (½‖x‖² + score)
            lowest = xp.min(scores, axis=1)
            half = self.half_norms[rows] + lowest
            squared[rows] = 2 * to_host(half)
        return owner, np.maximum(squared, 0.0)

    def means(self, owner: Indices, squared: Floats, before: Array) -> Array:
        """Return the means of the groups; an empty group gets the farthest point."""
        c = before.shape[0]
        sizes = np.bincount(owner, minlength=c)
        empty = np.flatnonzero(sizes == 0)
        if len(empty):
            farthest = np.argsort(-squared, kind="stable")
            owner = owner.copy()
            owner[farthest[: len(empty)]] = empty
            sizes = np.bincount(owner, minlength=c)

        # where a group lost its only point to an empty one, its centroid stays
        shares = 1 / sizes[owner]
        means = _sums(self.X, owner, shares, c)
        has_points = (sizes > 0).astype(np.float64)
        share = like(has_points[:, None], before)
        return means * share + before * (1 - share)


def _sums(X: Array, owner: Indices, weight: Floats, c: int) -> Array:
    """Return Σ weight_i x_i over each group, shape (c, d)."""
    if is_sparse(X) or isinstance(X, np.ndarray):
        members = memberships(owner, weight.astype(X.dtype), c)
        return dense(members @ X)
    members = memberships(owner, weight, c)
    return like(members.toarray(), X) @ X


def _seeds_among(cloud: _Cloud, c: int, rng: np.random.Generator) -> Indices:
    """Return c points by greedy k-means++, on the points' device, without waiting for a GPU.

    Points are drawn in proportion to their squared distance from the nearest seed. Of those drawn
    together, the ones that lower the loss most become seeds.
    """
    together = 1
    trials = 2 + int(np.log(c))
    if cloud.rough:
        together = AT_ONCE
        trials = TRIALS_AT_ONCE

    # the first seed is any point
    equal = np.full(cloud.n, 1 / cloud.n)
    first = rng.choice(cloud.n, size=1, p=equal)
    Z = cloud.take(first)
    nearest = cloud.squared_distances(Z)[0, :]
    xp = namespace(nearest)
    ones = xp.ones_like(nearest)
    seeds = [like(first, Z, xp.int64)]

    # all random numbers are there before the first is used
    draws = -(-(c - 1) // together)
    numbers = rng.random((draws, trials))
    uniform = like(numbers, nearest)
    for i in range(draws):
        # no distance is left if few points are distinct: then it is the last point
        summed = xp.cumulative_sum(nearest)
        marks = uniform[i, :] * summed[-1]
        drawn = xp.searchsorted(summed, marks, side="right")
        drawn = xp.clip(drawn, max=cloud.n - 1)

        # the distances of all points from their nearest seed, if a drawn point were one
        candidates = cloud.take(drawn)
        closer = cloud.squared_distances(candidates)
        left = c - len(seeds)
        for _ in range(min(together, left)):
            closer = xp.minimum(closer, nearest)
            losses = closer @ ones
            best = xp.reshape(xp.argmin(losses), (1,))
            nearest = xp.take(closer, best, axis=0)[0, :]
            seeds.append(xp.take(drawn, best))

    found = to_host(xp.concat(seeds))
    return found.astype(np.intp)
