"""The flagship: landmarks that start well, change places, move, and share one joint core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nysboost.boosting.algorithm import boost
from nysboost.boosting.core import ROWS_PER_LANDMARK, fit_core, fit_landmarks, select_best
from nysboost.boosting.exchange import count_candidates, exchange_landmarks, find_missed_rows
from nysboost.boosting.rules import JointCore
from nysboost.boosting.selectors import kmeans_columns
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, KernelGram, Landmarks, Sample, pool, take_sample
from nysboost.joint.refinement import low_rank_factor, refine
from nysboost.numerics.arrays import (
    Indices,
    block_bytes,
    is_sparse,
    like,
    namespace,
    row_blocks,
    to_host,
)
from nysboost.numerics.kmeans import clusters
from nysboost.numerics.resources import threads_on_few_cores
from nysboost.numerics.tolerances import NEAR_ROUNDING, SINGLE
from nysboost.settings import DEFAULT_LEARNERS, Settings

WHOLE_DIAGONAL = 2**17
"""Up to so many rows the method looks at the residual's diagonal in full, which takes n·c kernel
values; beyond that on its sample, so that the cost of a fit does not grow with n."""

FAR = 32
"""One row in so many of the sample is one of those farthest from the mean: 1.4e-2 against 3.9e-2
on far rows of Covertype, and 0 to 4 % more on uniform ones."""

KMEANS_ITERATIONS = 5
"""With 12 the error after refinement is the same to 0.1 % (MNIST, c = 240), in 3 % more time."""


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> FeatureMap:
    """Return K̂ = C M Cᵀ with c landmarks: k-means, exchange, refinement and the joint core.

    Landmarks are restored where the error on the sample has not fallen. The sample has `row_cap`
    rows, at least 4 c; its Gram matrix takes 8·row_cap² bytes. Kernels without derivative,
    precomputed matrices and CSR data keep to columns: JJB-mean and the exchange.
    """
    with threads_on_few_cores(gram.budget):
        return _fit(_held(gram), c, row_cap, rng)


def _fit(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> FeatureMap:
    sample = take_sample(gram, max(row_cap, ROWS_PER_LANDMARK * c), rng)
    distinct = _distinct(sample.gram)
    if c >= len(distinct):
        learner = fit_core(sample, sample.gram.landmarks(distinct))
        return replace(learner, landmarks=sample.lift_to_rows(learner.landmarks))
    start = sample.lift_to_rows(_start(sample.gram, c, row_cap, rng))
    sample = _add_missed_rows(gram, start, sample)
    exchanged, core = exchange_landmarks(sample, sample.locate(start))
    fits = [exchanged]
    if _can_move(gram) and exchanged.error > NEAR_ROUNDING:
        single = exchanged.error > SINGLE
        G = sample.single if single else sample.matrix
        refined = refine(sample, exchanged, G, low_rank_factor(G, core, c))
        fits.append(fit_landmarks(sample, refined, single=single))
    learner = select_best(sample, *fits)
    return replace(learner, landmarks=sample.lift_to_rows(learner.landmarks))


def _held(gram: Gram) -> Gram:
    """Return the Gram with rows in memory where all of them may be looked at, and fit."""
    size = 8 * gram.n * gram.rows.numbers_per_row
    if gram.rows.in_memory or gram.n > WHOLE_DIAGONAL or size > gram.budget.bytes // 2:
        return gram
    return Sample.of(gram, np.arange(gram.n)).gram


def _start(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return the centroids of k-means or, where points cannot be landmarks, boosted columns."""
    if _can_move(gram):
        points = gram.rows.take(slice(None))
        found, _ = clusters(points, c, rng, max_iter=KMEANS_ITERATIONS, rough=True)
        return Landmarks(None, like(found, points))
    return _boosted_columns(gram, c, row_cap, rng)


def _add_missed_rows(gram: Gram, start: Landmarks, sample: Sample) -> Sample:
    """Return the sample with rows that the start misses most, and those farthest out."""
    if not (len(sample) < gram.n <= WHOLE_DIAGONAL and gram.rows.in_memory):
        return sample
    missed, _ = find_missed_rows(gram, start, count_candidates(start))
    farthest = _farthest(gram, len(sample) // FAR)
    return Sample.of(gram, np.concatenate([sample.indices, missed, farthest]))


def _farthest(gram: Gram, size: int) -> Indices:
    """Return the rows farthest from the mean of all: none where rows are not points."""
    if not _can_move(gram):
        return np.arange(0)
    X = gram.rows.take(slice(None))
    xp = namespace(X)
    centre = xp.mean(X, axis=0)
    blocks = row_blocks(gram.n, 8 * X.shape[1], block_bytes(X))
    away = np.concatenate([to_host(xp.sum((X[rows, :] - centre) ** 2, axis=1)) for rows in blocks])
    return np.argsort(-away, kind="stable")[:size]


def _distinct(gram: Gram) -> Indices:
    """Return those rows that are not repetitions of others."""
    points = gram.rows.take(slice(None))
    if is_sparse(points):
        return np.arange(gram.n)
    first: dict[bytes, int] = {}
    for i, row in enumerate(to_host(points) + 0.0):  # −0 is 0
        first.setdefault(row.tobytes(), i)
    return np.array(sorted(first.values()), dtype=np.intp)


def _can_move(gram: Gram) -> bool:
    """Whether landmarks may be points: dense data and a kernel with a derivative."""
    if not isinstance(gram, KernelGram) or not gram.kernel.differentiable:
        return False
    return not is_sparse(gram.rows.take(slice(0, 1)))


def _boosted_columns(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return c columns by boosting with J in the boosting step, k-means as clustering."""
    p = min(c, DEFAULT_LEARNERS)
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return gram.landmarks(rng.choice(gram.n, size=c, replace=False))
    settings = Settings(n_learners=p, n_columns=m, n_fit=1, n_tune=1, row_cap=row_cap)
    run = boost(gram, settings, JointCore(), kmeans_columns, rng)
    return pool([learner.landmarks for learner in run.learners]).take(np.arange(c))
