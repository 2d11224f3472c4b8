"""The flagship: boosted landmarks, refined by gradient, combined in one joint core."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.boosting.algorithm import boost
from nysboost.boosting.core import ANCHOR, ROWS_PER_LANDMARK, JointCore, core_projection, fit_core
from nysboost.boosting.learner import Learner
from nysboost.boosting.selectors import KMeansSelector
from nysboost.gram import Gram, KernelGram, Landmarks, Sample, pooled
from nysboost.joint.refinement import refine
from nysboost.kernels.distances import squared_distances
from nysboost.numerics.arrays import Array, Floats, Indices, is_sparse, like, namespace, to_host
from nysboost.numerics.kmeans import centroids
from nysboost.numerics.linalg import norms, range_basis, times
from nysboost.numerics.tolerances import REPEATED
from nysboost.settings import Settings

STAGES = 2
"""Learners of centroids to start from; the refinement evens out what more would bring."""

ITERATIONS = 18
"""Of L-BFGS, in each of two rounds, on fresh rows where there are enough, checked in between."""


HELD_OUT = 512
KMEANS_ITERATIONS = 25
FIRST_ROWS_PER_LANDMARK = 8
COLUMNS_PER_LEARNER = 60


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Learner:
    """Return K̂ = C M Cᵀ with c landmarks that have moved to where they serve best.

    1. Boosted centroids: k-means on a sample of rows, then k-means weighted by what the
       joint approximation on the first ones misses.
    2. Refinement: all landmarks go down the gradient of the joint approximation's error
       on a sample, in two rounds. A round counts only if the rows that judge gain: rows held
       out of it, except that with fewer than row_cap + 512 rows the last round sees all.
    3. The joint core, fitted on the last sample.

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
    held_out, rounds = _split(gram.n, c, row_cap, rng)
    sample = Sample.of(gram, np.concatenate([held_out, *rounds]))
    held_out, rounds = sample.positions(held_out), [sample.positions(rows) for rows in rounds]
    judged = np.union1d(held_out, rounds[-1])
    distinct = _distinct(sample.gram, judged)
    if c >= len(distinct):
        learner = _on_columns(sample, distinct, judged)
    elif isinstance(sample.gram, KernelGram) and _can_move(sample.gram):
        learner = _moved_landmarks(sample.gram, c, held_out, rounds, rng)
    else:
        learner = _on_columns(sample, _boosted_columns(sample.gram, c, row_cap, rng), judged)
    return replace(learner, landmarks=sample.lifted(learner.landmarks))


def _on_columns(sample: Sample, columns: Indices, rows: Indices) -> Learner:
    """Return the joint approximation on columns, its core fitted on these rows and theirs."""
    part = Sample.of(sample.gram, np.union1d(rows, columns))
    learner = fit_core(part, part.gram.landmarks(part.positions(columns)))
    return replace(learner, landmarks=part.lifted(learner.landmarks))


@dataclass(frozen=True, eq=False)
class _Sample:
    """Points and their Gram matrix: all that the search for landmarks sees."""

    rows: Indices
    X: Array
    G: Array

    @classmethod
    def of(cls, gram: KernelGram, rows: Indices) -> _Sample:
        points = gram.rows.take(rows)
        return cls(rows, points, gram.between(points, points))

    def fit(self, gram: KernelGram, Z: Array) -> Learner:
        """Return the joint approximation on landmarks Z, its core fitted here."""
        Z = like(Z, self.X)
        A, W = gram.between(self.X, Z), gram.between(Z, Z)
        projection = core_projection(A, W, lambda Q: times(self.G, Q), ANCHOR)
        return Learner(Landmarks(None, Z), like(projection, A))

    def error(self, gram: KernelGram, learner: Learner) -> float:
        """Return the relative error of an approximation here."""
        xp = namespace(self.X)
        C = gram.between(self.X, learner.landmarks.points)
        F = xp.astype(C @ learner.projection, xp.float64)
        return float(norms(self.G - F @ F.T) / norms(self.G))

    def missed(self, gram: KernelGram, Z: Array) -> Floats:
        """Return the norm of each row of the joint approximation's residual, relative to G."""
        xp = namespace(self.X)
        Q, _ = range_basis(gram.between(self.X, Z))
        B, Q = (xp.astype(part, self.G.dtype) for part in (Q @ (Q.T @ times(self.G, Q)), Q))
        residual = self.G - B @ Q.T
        return to_host(norms(residual, axis=1) / norms(self.G))


def _split(n: int, c: int, row_cap: int, rng: np.random.Generator) -> tuple[Indices, list[Indices]]:
    """Return rows held out, and the rows of each of two rounds.

    The rounds have different rows as far as there are any, and the first, which only has to
    find the way, half as many. With few rows the last round has all of them: those held out
    have judged the first, and join.
    """
    if n < row_cap + HELD_OUT:
        order, held = rng.permutation(n), max(1, n // 8)
        return order[:held], [order[held:], order]
    first = min(row_cap, max(row_cap // 2, FIRST_ROWS_PER_LANDMARK * c))
    order = rng.choice(n, size=min(n, HELD_OUT + first + row_cap), replace=False)
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    return held_out, [rest[:first], rest[-row_cap:]]


def _distinct(gram: Gram, sample: Indices) -> Indices:
    """Return those rows of the sample that are not repetitions of others."""
    rows = gram.rows.take(sample)
    if is_sparse(rows):
        return sample
    return np.sort(sample[np.unique(to_host(rows), axis=0, return_index=True)[1]])


def _can_move(gram: KernelGram) -> bool:
    """Whether landmarks may be points: dense data and a kernel with a derivative."""
    return gram.kernel.differentiable and not is_sparse(gram.rows.take(slice(0, 1)))


def _moved_landmarks(
    gram: KernelGram, c: int, held_out: Indices, rounds: list[Indices], rng: np.random.Generator
) -> Learner:
    """Return the joint approximation on boosted centroids, moved by each confirmed round."""
    judge, sample = _Sample.of(gram, held_out), _Sample.of(gram, rounds[0])
    xp = namespace(sample.X)
    Z = _boosted_centroids(gram, sample, c, rng)
    latest = best = sample.fit(gram, Z)
    error = judge.error(gram, best)
    for rows in rounds:
        if not np.array_equal(rows, sample.rows):
            sample = _Sample.of(gram, rows)
        start, X = (xp.astype(part, xp.float64) for part in (best.landmarks.points, sample.X))
        moved, evaluations = refine(gram.kernel, start, X, sample.G, ITERATIONS)
        gram.tally.count += evaluations * len(rows) * c
        latest = sample.fit(gram, moved)
        if (reached := judge.error(gram, latest)) < error:
            best, error = latest, reached
    return best if best is latest else sample.fit(gram, best.landmarks.points)


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
        Z = _apart(xp.concat([Z, more]), sample.X, missed)
    return Z


def _apart(Z: Array, X: Array, missed: Floats) -> Array:
    """Return Z with rows of X, those missed most, in the place of repetitions.

    Each stage gives the rows that lie far out a centroid of their own. Two landmarks in one
    place do the work of one, and as soon as they part a little their gradient hides all others.
    """
    points, rows = np.array(to_host(Z)), to_host(X).astype(np.float64)
    limit = REPEATED**2 * float(rows.var(axis=0).sum())
    repeated = np.tril(squared_distances(points, points) < limit, -1).any(axis=1)
    if repeated.any():
        free = squared_distances(rows, points).min(axis=1) >= limit
        points[repeated] = rows[np.argsort(-missed * free)[: repeated.sum()]]
    return like(points, X)


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
