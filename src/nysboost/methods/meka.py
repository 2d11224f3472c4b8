"""Memory-efficient kernel approximation: a basis in each cluster, and links between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.boosting.core import fit_core
from nysboost.boosting.learner import Learner
from nysboost.gram import Gram, Landmarks, Sample
from nysboost.kernels import Evaluator, Kernel
from nysboost.kernels.distances import squared_distances
from nysboost.methods.adaptive import equal_parts
from nysboost.methods.baselines import cluster_rows
from nysboost.numerics.arrays import Array, Indices, like, take, to_host

CLUSTERS = 5
"""As in most of the paper's experiments."""

ROWS_PER_LANDMARK = 4
"""Rows on which the links are fitted, for each landmark; the paper has two, and four vary less."""


@dataclass(frozen=True, eq=False)
class Clustered(Kernel):
    """k(x, z) where z belongs to the cluster of x, and zero elsewhere.

    Parameters
    ----------
    kernel : Kernel
        k.
    centres : array or CSR matrix of shape (s, d)
        A point belongs to the cluster of the nearest centre.
    sizes : tuple of int
        How many landmarks each cluster has; they are in the order of the clusters.
    """

    kernel: Kernel
    centres: Array
    sizes: tuple[int, ...]

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the values, shape (n, m): each row has those of its own cluster."""
        return self.against(Y)(X)

    def against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y) cut to clusters, with what depends on Y alone prepared once."""
        ends = np.cumsum(self.sizes)
        parts = [slice(end - size, end) for end, size in zip(ends, self.sizes, strict=True)]
        filled = [s for s, size in enumerate(self.sizes) if size]
        own = {s: self.kernel.against(take(Y, parts[s])) for s in filled}

        def evaluate(X: Array, _: Array | None = None) -> Array:
            cluster = self.cluster_of(X)
            values = like(np.zeros((X.shape[0], int(ends[-1]))), X)
            # cluster after cluster, because not every library writes to scattered rows
            order, end = np.argsort(cluster, kind="stable"), 0
            for s, part in enumerate(parts):
                start, end = end, end + int(np.sum(cluster == s))
                if end > start and s in own:
                    values[start:end, part] = own[s](take(X, order[start:end]))
            return take(values, np.argsort(order))

        return evaluate

    def cluster_of(self, X: Array) -> Indices:
        """Return the number of the nearest centre, for each row."""
        squared = to_host(squared_distances(X, self.centres))
        nearest: Indices = np.argmin(squared, axis=1)
        return nearest


def meka(gram: Gram, c: int, rng: np.random.Generator) -> Learner:
    """Return B L Bᵀ, with a block-diagonal basis B and links L between all clusters.

    Si, Hsieh and Dhillon (2014), "Memory efficient kernel approximation". The rows fall into five
    clusters by k-means. The basis of a cluster is its kernel columns at c/5 of its rows, so
    that a row has c/5 values that are not zero. With rows v drawn from all clusters,

        L = B[v]⁺ G[v, v] B[v]⁺ᵀ,

    which is the least-squares fit of each block G[v_s, v_t] by B_s L_st B_tᵀ, because the
    pseudoinverse of a block-diagonal matrix is block-diagonal. The paper takes Nyström's own
    core for the blocks on the diagonal; fitted like the others, K̂ is positive semidefinite.
    """
    found = cluster_rows(gram, min(CLUSTERS, c), rng, "meka")
    kernel = gram.kernel  # type: ignore[attr-defined]  # cluster_rows has seen to it
    members = _members(gram, found.centres, found.rows)
    shares = _shares(c, [len(rows) for rows in members])
    drawn = [rng.permutation(rows) for rows in members]
    columns = np.concatenate([rows[:m] for rows, m in zip(drawn, shares, strict=True)])
    sample = [rows[: ROWS_PER_LANDMARK * m] for rows, m in zip(drawn, shares, strict=True)]
    points = gram.landmarks(columns).points
    basis = Clustered(kernel, found.centres.Z, tuple(shares))
    rows = Sample.of(gram, np.concatenate(sample))
    return fit_core(rows, Landmarks(columns, points, basis))


def _members(gram: Gram, centres: Landmarks, rows: Indices) -> list[Indices]:
    """Return the rows of each cluster, by the rule that new rows will meet too."""
    cluster = Clustered(gram.kernel, centres.Z, ()).cluster_of(gram.rows.take(rows))  # type: ignore[attr-defined]
    return [rows[cluster == s] for s in range(len(centres))]


def _shares(c: int, sizes: list[int]) -> list[int]:
    """Split c landmarks evenly between clusters, none getting more than it has rows."""
    shares, rows = np.zeros(len(sizes), dtype=int), np.array(sizes)
    while shares.sum() < min(c, rows.sum()):
        roomy = np.flatnonzero(rows > shares)
        for s, part in zip(roomy, equal_parts(c - int(shares.sum()), len(roomy)), strict=False):
            shares[s] += min(part, rows[s] - shares[s])
    return [int(share) for share in shares]
