"""Cluster centres as landmarks: plain, weighted by cluster size, or with a basis per cluster."""

from __future__ import annotations

from dataclasses import dataclass
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
from nysboost.methods.adaptive import equal_parts
from nysboost.methods.method_constants import CLUSTERS, KMEANS_ROWS, LINK_ROWS
from nysboost.numerics.arrays import Array, Indices, like, take, to_host
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

    points = require_points(gram).rows.take(rows)
    centroids, cluster = clusters(points, c, rng)
    centres = Landmarks(None, centroids)
    return ClusteredRows(centres, rows, cluster)


def kmeans(gram: Gram, c: int, rng: Generator) -> Landmarks:
    """Take the c centroids of k-means on the rows (Zhang, Tsang and Kwok 2008)."""
    found = cluster_rows(gram, c, rng)
    return found.centres


def density_weighted(gram: Gram, c: int, rng: Generator, rank: int | None = None) -> FeatureMap:
    """Return C D^½ (D^½ W D^½)_k⁺ D^½ Cᵀ on k-means centres, with D the clusters' sizes.

    Zhang and Kwok (2009). At full rank D cancels, and this is "kmeans".
    """
    found = cluster_rows(gram, c, rng)

    # D
    sizes = np.bincount(found.cluster, minlength=c)
    weights = sizes.astype(np.float64)
    return fit_learner(gram, found.centres, rank or c, weights)


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
        """Return x ↦ k(x, z) for the landmarks z of the cluster of x."""
        parts: list[slice] = []
        evaluators: dict[int, Evaluator] = {}
        start = 0
        for s, size in enumerate(self.sizes):
            stop = start + size
            part = slice(start, stop)
            parts.append(part)
            if size:
                landmarks = take(Y, part)
                evaluators[s] = self.kernel.against(landmarks)
            start = stop
        return ClusteredEvaluator(self, tuple(parts), evaluators)

    def cluster_of(self, X: Array) -> Indices:
        """Return the number of the nearest centre, for each row."""
        distances = to_host(squared_distances(X, self.centres))
        nearest: Indices = np.argmin(distances, axis=1)
        return nearest


@dataclass(frozen=True, eq=False)
class ClusteredEvaluator:
    """x ↦ k(x, Z) for landmarks Z ordered by cluster.

    `parts` holds the landmarks of each cluster, and `evaluators` their x ↦ k(x, z), for clusters
    with landmarks.
    """

    kernel: Clustered
    parts: tuple[slice, ...]
    evaluators: dict[int, Evaluator]

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the kernel values, shape (n, c)."""
        n = X.shape[0]
        c = self.parts[-1].stop
        zeros = np.zeros((n, c))
        values = like(zeros, X)

        # cluster after cluster, because not every library writes to scattered rows
        cluster = self.kernel.cluster_of(X)
        order = np.argsort(cluster, kind="stable")
        start = 0
        for s, part in enumerate(self.parts):
            is_member = cluster == s
            stop = start + int(is_member.sum())
            if stop > start and s in self.evaluators:
                evaluate = self.evaluators[s]
                members = take(X, order[start:stop])
                values[start:stop, part] = evaluate(members)
            start = stop

        # and in their own order again
        back = np.argsort(order)
        return take(values, back)


def meka(gram: Gram, c: int, rng: Generator) -> FeatureMap:
    """Return B L Bᵀ, with a block-diagonal basis B and links L (Si, Hsieh and Dhillon 2014).

    Each of five k-means clusters has c/5 of its rows as columns. With rows v drawn from all
    clusters L = B[v]⁺ G[v, v] B[v]⁺ᵀ, the least-squares fit of each block. Unlike the paper's,
    blocks on the diagonal are fitted too: K̂ is positive semidefinite.
    """
    kernel = require_points(gram).kernel
    n_clusters = min(CLUSTERS, c)
    found = cluster_rows(gram, n_clusters, rng)
    Z = found.centres.Z

    # rows by the nearest centre, as new rows will be, in random order
    nearest = Clustered(kernel, Z, ())
    seen = gram.rows.take(found.rows)
    cluster = nearest.cluster_of(seen)
    drawn: list[Indices] = []
    for s in range(n_clusters):
        members = found.rows[cluster == s]
        drawn.append(rng.permutation(members))

    # the columns of each cluster, for B, and the rows v, for L
    sizes = [len(members) for members in drawn]
    shares = _share_landmarks(c, sizes)
    columns: list[Indices] = []
    v: list[Indices] = []
    for members, m in zip(drawn, shares, strict=True):
        n_links = LINK_ROWS * m
        columns.append(members[:m])
        v.append(members[:n_links])
    landmarks = gram.landmarks(np.concatenate(columns))
    sample = Sample.of(gram, np.concatenate(v))

    # B[v]
    basis = Clustered(kernel, Z, tuple(shares))
    B = features_of(sample.gram, FeatureMap(basis, landmarks))

    # L = B[v]⁺ G[v, v] B[v]⁺ᵀ
    times_gram = partial(times, sample.matrix)
    core = optimal_core(B, times_gram)
    projection = like(core.projection, B)
    return FeatureMap(basis, landmarks, projection)


def _share_landmarks(c: int, sizes: list[int]) -> list[int]:
    """Split c landmarks evenly between clusters, with at most as many as a cluster has rows."""
    shares = [0] * len(sizes)
    left = min(c, sum(sizes))
    while left > 0:
        # what is left, evenly among the clusters that have rows left
        roomy = [s for s, size in enumerate(sizes) if size > shares[s]]
        parts = equal_parts(left, len(roomy))
        for s, part in zip(roomy, parts, strict=False):
            room = sizes[s] - shares[s]
            taken = min(part, room)
            shares[s] += taken
            left -= taken
    return shares
