"""The flagship: boosted landmarks, refined by gradient, combined in one joint core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import issparse

from nysboost.arrays import Array, Floats, Indices, namespace, range_basis, to_host
from nysboost.boosting import boost
from nysboost.core import JointCore, core_projection, fit_core
from nysboost.gram import Gram, KernelGram, Landmarks, pooled
from nysboost.learner import Learner
from nysboost.methods.baselines import centroids
from nysboost.refinement import refine
from nysboost.selection import KMeansSelector
from nysboost.settings import Settings

STAGES = 2
"""Learners of centroids to start from; the refinement evens out what more would bring."""

ROUNDS, ITERATIONS = 2, 16
"""L-BFGS runs in rounds, each on fresh rows where there are enough, checked in between."""

ANCHOR = 0.3
"""Weight of the landmarks in the core's sample: 1 costs accuracy there, 0.1 binds too little."""

HELD_OUT = 512
KMEANS_ITERATIONS = 25
ROWS_PER_LANDMARK = 4
COLUMNS_PER_LEARNER = 60


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Learner:
    """Return K̂ = C M Cᵀ with c landmarks that have moved to where they serve best.

    1. Boosted centroids: k-means on a sample of rows, then k-means weighted by what the
       joint approximation on the first ones misses.
    2. Refinement: all landmarks go down the gradient of the joint approximation's error
       on a sample, in two rounds. A round counts only if the rows that judge gain: rows held
       out of it, except that with fewer than row_cap + 512 rows the last round sees all.
    3. The joint core, fitted on a sample.

    Kernels without derivative, precomputed matrices and CSR data keep to columns, which
    boosting with joint cores finds (JJB-mean).

    Parameters
    ----------
    gram : Gram
        G.
    c : int
        Number of landmarks.
    row_cap : int
        Size of the samples; at least four rows per landmark are taken. Beyond it the cost
        does not depend on n. A sample's Gram matrix is held: 8·row_cap² bytes.
    rng : numpy.random.Generator
        Source of all randomness.
    """
    row_cap = max(row_cap, ROWS_PER_LANDMARK * c)
    held_out, rounds = _split(gram.n, row_cap, rng)
    sample = np.unique(np.concatenate([held_out, rounds[-1]]))
    distinct = _distinct(gram, sample)
    if c >= len(distinct):
        landmarks = gram.landmarks(distinct)
    elif isinstance(gram, KernelGram) and _can_move(gram):
        landmarks = Landmarks(None, _moved_points(gram, c, held_out, rounds, rng))
    else:
        columns = _boosted_columns(gram, c, row_cap, rng)
        landmarks, sample = gram.landmarks(columns), np.union1d(sample, columns)
    return fit_core(gram, landmarks, sample, ANCHOR if landmarks.indices is None else 0.0)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Points and their Gram matrix, in float64: all that the search for landmarks sees."""

    rows: Indices
    X: Array
    G: Array

    @classmethod
    def of(cls, gram: KernelGram, rows: Indices) -> _Sample:
        points = gram.rows.take(rows)
        xp = namespace(points)
        points = xp.astype(points, xp.float64)
        return cls(rows, points, gram.between(points, points))

    def projection(self, gram: KernelGram, Z: Array) -> Array:
        """Return the joint core's projection, fitted here."""
        A, W = gram.between(self.X, Z), gram.between(Z, Z)
        return core_projection(A, W, lambda Q: self.G @ Q, ANCHOR)

    def error(self, gram: KernelGram, Z: Array, projection: Array) -> float:
        """Return the relative error of an approximation here."""
        F = gram.between(self.X, Z) @ projection
        xp = namespace(F)
        return float(xp.linalg.vector_norm(self.G - F @ F.T) / xp.linalg.vector_norm(self.G))

    def missed(self, gram: KernelGram, Z: Array) -> Floats:
        """Return the norm of each row of the joint approximation's residual."""
        Q, _ = range_basis(gram.between(self.X, Z))
        residual = self.G - (Q @ (Q.T @ (self.G @ Q))) @ Q.T
        return to_host(namespace(Q).linalg.vector_norm(residual, axis=1))


def _split(n: int, row_cap: int, rng: np.random.Generator) -> tuple[Indices, list[Indices]]:
    """Return rows held out, and the rows of each round.

    Each round has fresh rows as far as there are any. With few rows the last round has all
    of them: those held out have judged the rounds before, and join.
    """
    if n < row_cap + HELD_OUT:
        order, held = rng.permutation(n), max(1, n // 8)
        return order[:held], [order[held:]] * (ROUNDS - 1) + [order]
    order = rng.choice(n, size=min(n, HELD_OUT + ROUNDS * row_cap), replace=False)
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    starts = np.linspace(0, len(rest) - row_cap, ROUNDS).astype(int)
    return held_out, [rest[begin : begin + row_cap] for begin in starts]


def _distinct(gram: Gram, sample: Indices) -> Indices:
    """Return those rows of the sample that are not repetitions of others."""
    rows = gram.rows.take(sample)
    if issparse(rows):
        return sample
    return np.sort(sample[np.unique(to_host(rows), axis=0, return_index=True)[1]])


def _can_move(gram: KernelGram) -> bool:
    """Whether landmarks may be points: dense data and a kernel with a derivative."""
    return gram.kernel.differentiable and not issparse(gram.rows.take(slice(0, 1)))


def _moved_points(
    gram: KernelGram, c: int, held_out: Indices, rounds: list[Indices], rng: np.random.Generator
) -> Array:
    """Return c points: boosted centroids, moved by each round that the held-out rows confirm."""
    judge, sample = _Sample.of(gram, held_out), _Sample.of(gram, rounds[0])
    Z = _boosted_centroids(gram, sample, c, rng)
    best = judge.error(gram, Z, sample.projection(gram, Z))
    for rows in rounds:
        if not np.array_equal(rows, sample.rows):
            sample = _Sample.of(gram, rows)
        moved, evaluations = refine(gram.kernel, Z, sample.X, sample.G, ITERATIONS)
        gram.entries_evaluated += evaluations * len(rows) * c
        error = judge.error(gram, moved, sample.projection(gram, moved))
        if error < best:
            Z, best = moved, error
    xp = namespace(Z)
    return xp.astype(Z, getattr(xp, gram.dtype.name))


def _boosted_centroids(
    gram: KernelGram, sample: _Sample, c: int, rng: np.random.Generator
) -> Array:
    """Return c centroids, each stage's weighted by what the stages before it miss."""
    xp = namespace(sample.X)
    sizes = [len(part) for part in np.array_split(np.arange(c), min(STAGES, c))]
    Z = centroids(sample.X, sizes[0], rng, max_iter=KMEANS_ITERATIONS)
    for size in sizes[1:]:
        missed = sample.missed(gram, Z)
        more = centroids(sample.X, size, rng, weights=missed, max_iter=KMEANS_ITERATIONS)
        Z = xp.concat([Z, more])
    return Z


def _boosted_columns(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Indices:
    """Return c columns by boosting with J in the boosting step, k-means as clustering."""
    p = max(1, round(c / COLUMNS_PER_LEARNER))
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return rng.choice(gram.n, size=c, replace=False)
    settings = Settings(n_learners=p, n_columns=m, n_fit=1, n_tune=1, row_cap=row_cap)
    run = boost(gram, settings, JointCore(), KMeansSelector(), rng)
    columns = pooled([learner.landmarks for learner in run.learners]).indices
    assert columns is not None
    return columns[:c]
