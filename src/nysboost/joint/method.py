"""The method `joint`: landmarks by k-means, exchange and refinement, with one joint core."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.algorithm import boost
from nysboost.boosting.rules import JointCore
from nysboost.boosting.selectors import kmeans_columns
from nysboost.features.feature_map import FeatureMap
from nysboost.gram import Gram, KernelGram, Landmarks, Sample, pool, take_sample
from nysboost.joint.core import ROWS_PER_LANDMARK, fit_core, fit_landmarks, select_best
from nysboost.joint.exchange import exchange_landmarks, find_missed_rows
from nysboost.joint.refinement import refine
from nysboost.kernels.distances import squared_norms
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices, to_host
from nysboost.numerics.blocks import row_blocks
from nysboost.numerics.devices import block_bytes
from nysboost.numerics.kmeans import FEW_ITER, clusters
from nysboost.numerics.threads import threads_of_samples, usable_threads
from nysboost.numerics.tolerances import NEAR_ROUNDING, SINGLE
from nysboost.rows.driver import in_order
from nysboost.settings import DEFAULT_LEARNERS, Settings

WHOLE_DIAGONAL = 2**17
"""Largest n for which the residual's diagonal is evaluated on all rows, n·c kernel values; beyond
it the sample is used alone, so that the cost of a fit does not grow with n."""

FAR = 32
"""The sample gains one row in FAR from those farthest from the mean: error 1.4e-2 instead of 3.9e-2
on outlying rows of Covertype, and 0 to 4 % more on uniform ones."""


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> FeatureMap:
    """Return K̂ = C M Cᵀ with c landmarks: k-means, exchange, refinement and the joint core.

    Landmarks are restored where the error on the sample has not fallen. The sample has `row_cap`
    rows, at least 4 c; its Gram matrix takes 8·row_cap² bytes. Kernels without derivative,
    precomputed matrices and CSR data keep to columns: JJB-mean and the exchange.
    """
    size = 8 * gram.n * gram.rows.numbers_per_row
    if gram.n <= WHOLE_DIAGONAL and size <= gram.budget.bytes // 2:
        gram = Sample.of(gram, np.arange(gram.n)).gram  # reads rows from disk once
    with threads_of_samples(gram.budget):
        sample = take_sample(gram, max(row_cap, ROWS_PER_LANDMARK * c), rng)
        distinct = _distinct(sample.gram)
        if c < len(distinct):
            start = sample.lift_to_rows(_start(sample.gram, c, row_cap, rng))
            sample = _add_missed_rows(gram, start, sample)
            learner = _improve(sample, sample.locate(start))
        else:
            learner = fit_core(sample, sample.gram.landmarks(distinct))
    return learner.lift(sample)


def _start(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return k-means centroids or, where landmarks must be columns, those of boosting."""
    points, p = _movable_points(gram), min(c, DEFAULT_LEARNERS)
    if points is not None:
        found, _ = clusters(points, c, rng, max_iter=FEW_ITER, rough=True)
        return Landmarks(None, arrays.like(found, points))
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return gram.landmarks(rng.choice(gram.n, size=c, replace=False))
    settings = Settings.fast(n_learners=p, n_columns=m, n_fit=1, n_tune=1, row_cap=row_cap)
    run = boost(gram, settings, JointCore(), kmeans_columns, rng)
    return pool([learner.landmarks for learner in run.learners]).take(np.arange(c))


def _add_missed_rows(gram: Gram, start: Landmarks, sample: Sample) -> Sample:
    """Add the rows with the largest residual, and those farthest from the mean, to the sample."""
    if not (len(sample) < gram.n <= WHOLE_DIAGONAL and gram.rows.in_memory):
        return sample
    rows, _ = find_missed_rows(gram, start)
    X = _movable_points(gram)
    if X is not None:
        centre = arrays.namespace(X).mean(X, axis=0)
        blocks = row_blocks(gram.n, 8 * X.shape[1], block_bytes(X))
        threads = usable_threads(gram.budget) if arrays.is_numpy(X) else 1
        away = np.concatenate(
            [*in_order(lambda at: to_host(squared_norms(X[at, :] - centre)), blocks, threads)]
        )
        rows = np.append(rows, np.argsort(-away, kind="stable")[: len(sample) // FAR])
    return Sample.of(gram, np.append(sample.indices, rows))


def _improve(sample: Sample, start: Landmarks) -> FeatureMap:
    """Exchange landmarks, then refine them; return the better one on the sample."""
    exchanged, core = exchange_landmarks(sample, start)
    fits = [exchanged]
    if _movable_points(sample.gram) is not None and exchanged.error > NEAR_ROUNDING:
        refined = refine(sample, exchanged, core)
        fits.append(fit_landmarks(sample, refined, single=exchanged.error > SINGLE))
    return select_best(sample, *fits)


def _distinct(gram: Gram) -> Indices:
    """Return the first of each set of equal rows."""
    points = gram.rows.take(slice(None))
    if arrays.is_sparse(points):
        return np.arange(gram.n)
    rows = to_host(points) + 0.0  # −0 is 0
    first = {rows[i].tobytes(): i for i in reversed(range(gram.n))}
    return np.array(sorted(first.values()), dtype=np.intp)


def _movable_points(gram: Gram) -> Array | None:
    """Return the rows if landmarks may be any points (dense data, a kernel with a derivative)."""
    if not isinstance(gram, KernelGram) or not gram.kernel.differentiable:
        return None
    X = gram.rows.take(slice(None))
    return None if arrays.is_sparse(X) else X
