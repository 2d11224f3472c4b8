"""The two ends of the scale, and the strongest simple peer: uniform, optimal, k-means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from nysboost.boosting.learner import Learner
from nysboost.gram import Gram, KernelGram, Landmarks
from nysboost.numerics.arrays import Indices, like, to_host
from nysboost.numerics.kmeans import clusters
from nysboost.numerics.tolerances import cutoff

OPTIMAL_ROWS = 10_000
KMEANS_ROWS = 2**16
"""k-means sees all rows up to this many and a uniform sample of this many beyond it."""


def uniform(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    return gram.landmarks(rng.choice(gram.n, size=c, replace=False))


def kmeans(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Take the c centroids of k-means on the rows (Zhang, Tsang and Kwok 2008)."""
    return cluster_rows(gram, c, rng, "kmeans").centres


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows, the cluster of each of them, and the clusters' centres as landmarks."""

    rows: Indices
    labels: Indices
    centres: Landmarks


def cluster_rows(gram: Gram, c: int, rng: np.random.Generator, name: str) -> Clusters:
    """Cluster the rows, or a uniform sample of them, by k-means."""
    if not isinstance(gram, KernelGram):
        msg = f'A precomputed kernel has no points, so "{name}" has no centroids: try "rpcholesky".'
        raise ValueError(msg)
    rows = np.arange(gram.n)
    if gram.n > KMEANS_ROWS:
        rows = np.sort(rng.choice(gram.n, size=KMEANS_ROWS, replace=False))
    centres, labels = clusters(gram.rows.take(rows), c, rng)
    return Clusters(rows, labels, Landmarks(None, centres))


def optimal(gram: Gram, c: int, rng: np.random.Generator) -> Learner:  # noqa: ARG001
    """Return the truncated eigendecomposition, the best that rank c allows, for small n.

    With G = U Λ Uᵀ it has the common form too: all rows are landmarks, and the
    projection is U_c Λ_c^(−1/2), for then C P = U_c Λ_c^(1/2).
    """
    if gram.n > OPTIMAL_ROWS:
        msg = (
            f'"optimal" decomposes the whole n×n matrix, which is meant for n ≤ {OPTIMAL_ROWS}, '
            f"but n_samples = {gram.n} were given. Pass a sample of the rows."
        )
        raise ValueError(msg)
    everything = np.arange(gram.n)
    G = gram.block(everything, everything)
    host = to_host(G).astype(np.float64)
    eigenvalues, U = eigh((host + host.T) / 2, subset_by_index=(gram.n - c, gram.n - 1))
    kept = eigenvalues > cutoff(gram.n, gram.eps) * eigenvalues[-1]
    return Learner(gram.landmarks(everything), like(U[:, kept] / np.sqrt(eigenvalues[kept]), G))
