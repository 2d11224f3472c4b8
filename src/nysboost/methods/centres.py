"""Cluster centres as landmarks: k-means, weighed by the clusters' sizes, and a basis in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from nysboost.boosting.algorithm import sample_rows
from nysboost.features.feature_map import FeatureMap, features_of, fit_learner
from nysboost.gram import Gram, Landmarks, Sample
from nysboost.joint.core import optimal_core
from nysboost.kernels import Evaluator, Kernel
from nysboost.kernels.distances import squared_distances
from nysboost.methods import require_points
from nysboost.methods.adaptive import equal_parts
from nysboost.methods.method_constants import CLUSTERS, KMEANS_ROWS, LINK_ROWS
from nysboost.numerics.arrays import Array, Indices, like, take, to_host
from nysboost.numerics.kmeans import clusters
from nysboost.numerics.linalg import times


def kmeans(gram: Gram, c: int, rng: Generator) -> Landmarks:
    """Take the c centroids of k-means on the rows (Zhang, Tsang and Kwok 2008)."""
    return cluster_rows(gram, c, rng)[0]


def cluster_rows(gram: Gram, c: int, rng: Generator) -> tuple[Landmarks, Indices, Indices]:
    """Return the centres of k-means, the rows it saw, all or a sample, and their clusters."""
    everything = np.arange(gram.n)
    rows = sample_rows(everything, KMEANS_ROWS, rng)

    points = require_points(gram).rows.take(rows)
    centres, labels = clusters(points, c, rng)
    return Landmarks(None, centres), rows, labels


def density_weighted(gram: Gram, c: int, rng: Generator, rank: int | None = None) -> FeatureMap:
    """Return C D^½ (D^½ W D^½)_k⁺ D^½ Cᵀ on k-means centres, with D the clusters' sizes.

    Zhang and Kwok (2009). At full rank D cancels, and this is "kmeans".
    """
    centres, _, labels = cluster_rows(gram, c, rng)

    # D
    sizes = np.bincount(labels, minlength=c)
    weights = sizes.astype(np.float64)
    return fit_learner(gram, centres, rank or c, weights)


@dataclass(frozen=True, eq=False)
class Clustered(Kernel):
    """k(x, z) where z belongs to the cluster of x, and zero elsewhere.

    A point belongs to the nearest of `centres`, shape (s, d); `sizes` counts each one's landmarks.
    """

    kernel: Kernel
    centres: Array
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parallel", self.kernel.parallel)

    def _against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, z) for the landmarks z of the cluster of x."""
        parts: list[slice] = []
        evaluators: dict[int, Evaluator] = {}
        end = 0
        for s, size in enumerate(self.sizes):
            part = slice(end, end + size)
            end = part.stop
            parts.append(part)
            if size:
                landmarks = take(Y, part)
                evaluators[s] = self.kernel.against(landmarks)
        return ClusteredEvaluator(self, tuple(parts), evaluators)

    def cluster_of(self, X: Array) -> Indices:
        """Return the number of the nearest centre, for each row."""
        distances = to_host(squared_distances(X, self.centres))
        nearest: Indices = np.argmin(distances, axis=1)
        return nearest


@dataclass(frozen=True, eq=False)
class ClusteredEvaluator:
    """x ↦ k(x, Z) for landmarks Z that stand cluster after cluster.

    `parts` has the landmarks of each cluster, and `evaluators` x ↦ k(x, z) for those of each
    cluster that has any.
    """

    kernel: Clustered
    parts: tuple[slice, ...]
    evaluators: dict[int, Evaluator]

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the kernel values, shape (n, c)."""
        cluster = self.kernel.cluster_of(X)
        c = self.parts[-1].stop
        zeros = np.zeros((X.shape[0], c))
        values = like(zeros, X)

        # cluster after cluster, because not every library writes to scattered rows
        order = np.argsort(cluster, kind="stable")
        start = 0
        for s, part in enumerate(self.parts):
            end = start + int(np.sum(cluster == s))
            if end > start and s in self.evaluators:
                evaluate = self.evaluators[s]
                members = take(X, order[start:end])
                values[start:end, part] = evaluate(members)
            start = end
        back = np.argsort(order)
        return take(values, back)


def meka(gram: Gram, c: int, rng: Generator) -> FeatureMap:
    """Return B L Bᵀ, with a block-diagonal basis B and links L (Si, Hsieh and Dhillon 2014).

    Each of five k-means clusters has c/5 of its rows as columns. With rows v drawn from all
    clusters L = B[v]⁺ G[v, v] B[v]⁺ᵀ, the least-squares fit of each block. Unlike the paper's,
    blocks on the diagonal are fitted too: K̂ is positive semidefinite.
    """
    kernel = require_points(gram).kernel
    centres, seen, _ = cluster_rows(gram, min(CLUSTERS, c), rng)

    # rows by the nearest centre, as new rows will be
    nearest = Clustered(kernel, centres.Z, ())
    cluster = nearest.cluster_of(gram.rows.take(seen))
    drawn: list[Indices] = []
    for s in range(len(centres)):
        members = seen[cluster == s]
        drawn.append(rng.permutation(members))
    shares = _share_landmarks(c, [len(rows) for rows in drawn])

    # the columns of each cluster, for B, and the rows v, for L
    columns: list[Indices] = []
    v: list[Indices] = []
    for rows, m in zip(drawn, shares, strict=True):
        columns.append(rows[:m])
        v.append(rows[: LINK_ROWS * m])
    landmarks = gram.landmarks(np.concatenate(columns))
    basis = Clustered(kernel, centres.Z, tuple(shares))

    # L = B[v]⁺ G[v, v] B[v]⁺ᵀ
    sample = Sample.of(gram, np.concatenate(v))
    B = features_of(sample.gram, FeatureMap(basis, landmarks))
    core = optimal_core(B, lambda Q: times(sample.matrix, Q))
    projection = like(core.projection, B)
    return FeatureMap(basis, landmarks, projection)


def _share_landmarks(c: int, sizes: list[int]) -> list[int]:
    """Split c landmarks evenly between clusters, none getting more than it has rows."""
    rows = np.array(sizes)
    shares = np.zeros(len(sizes), dtype=int)
    while shares.sum() < min(c, rows.sum()):
        # what is left, evenly among the clusters that have rows left
        roomy = np.flatnonzero(rows > shares)
        left = c - int(shares.sum())
        parts = equal_parts(left, len(roomy))
        for s, part in zip(roomy, parts, strict=False):
            room = rows[s] - shares[s]
            shares[s] += min(part, room)
    return [int(share) for share in shares]
