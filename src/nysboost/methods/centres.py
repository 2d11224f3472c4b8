"""Cluster centres as landmarks: plain, weighted by cluster size, or with a basis per cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from nysboost.boosting.algorithm import sample_rows
from nysboost.features.feature_map import FeatureMap, features_of, fit_learner
from nysboost.gram import Gram, Landmarks, Sample, require_points
from nysboost.joint.core import optimal_core
from nysboost.kernels import Evaluator, Kernel
from nysboost.kernels.distances import squared_distances
from nysboost.methods.adaptive import split_evenly
from nysboost.methods.method_constants import CLUSTERS, KMEANS_ROWS, LINK_ROWS
from nysboost.numerics.arrays import Array, Indices, like, to_host
from nysboost.numerics.kmeans import clusters
from nysboost.numerics.linalg import times


class ClusteredRows(NamedTuple):
    """The centres of k-means, the rows that it saw, all or a sample, and the cluster of each."""

    centres: Landmarks
    rows: Indices
    cluster: Indices


def cluster_rows(gram: Gram, c: int, rng: Generator) -> ClusteredRows:
    """Run k-means with c clusters on the rows, or on a sample of them."""
    everything = np.arange(gram.n)
    rows = sample_rows(everything, KMEANS_ROWS, rng)
    table = require_points(gram).rows
    points = table.take(rows)
    centroids, cluster = clusters(points, c, rng)
    centres = Landmarks(None, centroids)
    return ClusteredRows(centres, rows, cluster)


def kmeans(gram: Gram, c: int, rng: Generator) -> Landmarks:
    """Take the c centroids of k-means on the rows (Zhang, Tsang and Kwok 2008)."""
    return cluster_rows(gram, c, rng).centres


def density_weighted(gram: Gram, c: int, rng: Generator, rank: int | None = None) -> FeatureMap:
    """Return C D^½ (D^½ W D^½)_k⁺ D^½ Cᵀ on k-means centres, with D the clusters' sizes.

    Zhang and Kwok (2009). At full rank D cancels, and this is "kmeans".
    """
    centres, _, cluster = cluster_rows(gram, c, rng)
    sizes = np.bincount(cluster, minlength=c)
    D = sizes.astype(np.float64)
    return fit_learner(gram, centres, rank or c, D)


@dataclass(frozen=True, eq=False)
class Clustered(Kernel):
    """k(x, z) if z belongs to the cluster of x, else zero.

    A point belongs to the nearest of `centres`, shape (s, d). `sizes` counts the landmarks of each.
    """

    kernel: Kernel
    centres: Array
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parallel", self.kernel.parallel)

    def _against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, z), or 0 for the landmarks z of other clusters than that of x."""
        numbers = np.arange(len(self.sizes))
        cluster_of_z = np.repeat(numbers, self.sizes)
        evaluate = self.kernel.against(Y)
        return ClusteredEvaluator(self, evaluate, cluster_of_z)

    def cluster_of(self, X: Array) -> Indices:
        """Return the number of the nearest centre, for each row."""
        distances = to_host(squared_distances(X, self.centres))
        nearest = distances.argmin(axis=1)
        return np.asarray(nearest)


@dataclass(frozen=True, eq=False)
class ClusteredEvaluator:
    """x ↦ k(x, Z), where the cluster of x is that of z, else 0; z belongs to `cluster_of_z`."""

    kernel: Clustered
    evaluate: Evaluator
    cluster_of_z: Indices

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return the kernel values, shape (n, c)."""
        values = self.evaluate(X, out)
        cluster_of_x = self.kernel.cluster_of(X)
        is_same = np.equal.outer(cluster_of_x, self.cluster_of_z)
        return values * like(is_same, values)


def meka(gram: Gram, c: int, rng: Generator) -> FeatureMap:
    """Return B L Bᵀ, with a block-diagonal basis B and links L (Si, Hsieh and Dhillon 2014).

    Each of five k-means clusters has c/5 of its rows as columns. With rows v drawn from all
    clusters L = B[v]⁺ G[v, v] B[v]⁺ᵀ, the least-squares fit of each block. Unlike the paper's,
    blocks on the diagonal are fitted too: K̂ is positive semidefinite.
    """
    n_clusters = min(CLUSTERS, c)
    centres, rows, _ = cluster_rows(gram, n_clusters, rng)
    kernel = require_points(gram).kernel
    partition = Clustered(kernel, centres.Z, ())
    members = _shuffled_members(gram, partition, rows, rng)

    # of each cluster some columns, for B, and rows v, for L
    counts = [len(mine) for mine in members]
    sizes = _share_landmarks(c, counts)
    columns = []
    v = []
    for mine, m in zip(members, sizes, strict=True):
        columns.append(mine[:m])
        v.append(mine[: LINK_ROWS * m])

    all_columns = np.concatenate(columns)
    all_v = np.concatenate(v)

    # B[v]
    landmarks = gram.landmarks(all_columns)
    basis = replace(partition, sizes=tuple(sizes))
    to_B = FeatureMap(basis, landmarks)
    sample = Sample.of(gram, all_v)
    B = features_of(sample.gram, to_B)

    # L = B[v]⁺ G[v, v] B[v]⁺ᵀ
    times_gram = partial(times, sample.matrix)
    core = optimal_core(B, times_gram)
    projection = like(core.projection, B)
    return FeatureMap(basis, landmarks, projection)


def _shuffled_members(
    gram: Gram,
    partition: Clustered,
    rows: Indices,
    rng: Generator,
) -> list[Indices]:
    """Return the rows of each cluster in random order; the nearest centre counts, as for new rows.

    The clusters of k-means may differ from these by rounding.
    """
    points = gram.rows.take(rows)
    cluster = partition.cluster_of(points)
    members = []
    for s in range(partition.centres.shape[0]):
        mine = rows[cluster == s]
        members.append(rng.permutation(mine))
    return members


def _share_landmarks(c: int, sizes: list[int]) -> list[int]:
    """Split c landmarks evenly between clusters, with at most as many as a cluster has rows."""
    shares = [0] * len(sizes)
    left = min(c, sum(sizes))
    while left > 0:
        # what is left, evenly among the clusters that have rows left: there may be fewer
        # landmarks than clusters
        roomy = [s for s, size in enumerate(sizes) if size > shares[s]]
        parts = split_evenly(left, len(roomy))
        for s, part in zip(roomy, parts, strict=False):
            room = sizes[s] - shares[s]
            taken = min(part, room)
            shares[s] += taken
            left -= taken
    return shares
