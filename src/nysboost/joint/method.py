"""The method `joint`: landmarks by k-means, exchange and refinement, with one joint core."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.boosting.algorithm import boost, uniform
from nysboost.boosting.selectors import kmeans_columns
from nysboost.features.feature_map import FeatureMap
from nysboost.gram import Gram, KernelGram, Landmarks, Sample, pool, take_sample
from nysboost.joint.core import fit_core, fit_landmarks, select_best
from nysboost.joint.exchange import exchange_landmarks, find_missed_rows
from nysboost.joint.joint_constants import FAR, ROWS_PER_LANDMARK, WHOLE_DIAGONAL
from nysboost.joint.refinement import refine
from nysboost.joint.rule import JointCore
from nysboost.kernels.distances import squared_norms
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, block_bytes, row_blocks, to_host
from nysboost.numerics.kmeans import FEW_ITER, clusters
from nysboost.numerics.threads import threads_of_samples
from nysboost.numerics.tolerances import NEAR_ROUNDING, SINGLE
from nysboost.settings import DEFAULT_LEARNERS, Settings


def joint(gram: Gram, c: int, rng: Generator, row_cap: int) -> FeatureMap:
    """Return K̂ = C M Cᵀ with c landmarks: k-means, exchange, refinement and the joint core.

    A step is undone if the error on the sample has not fallen. The sample has `row_cap` rows, at
    least 4 c; its Gram matrix takes 8·row_cap² bytes. For kernels without a derivative, precomputed
    matrices and CSR data, landmarks are columns, found by JJB-mean and the exchange.
    """
    # where the rows fit in memory they are read once
    row_bytes = 8 * gram.rows.numbers_per_row
    fits = gram.n * row_bytes <= gram.budget.bytes // 2
    if fits and gram.n <= WHOLE_DIAGONAL:
        everything = np.arange(gram.n)
        gram = Sample.of(gram, everything).gram

    with threads_of_samples(gram.budget):
        n_rows = max(row_cap, ROWS_PER_LANDMARK * c)
        sample = take_sample(gram, n_rows, rng)

        # no more landmarks than distinct rows
        distinct = _find_distinct_rows(sample.gram)
        if c >= len(distinct):
            landmarks = sample.gram.landmarks(distinct)
            return fit_core(sample, landmarks).lift(sample)

        # k-means, exchange, refinement
        found = _start(sample.gram, c, row_cap, rng)
        start = sample.lift_to_rows(found)
        sample = _add_missed_rows(gram, start, sample)
        best = _improve(sample, sample.locate(start))
        return best.lift(sample)


def _start(gram: Gram, c: int, row_cap: int, rng: Generator) -> Landmarks:
    """Return k-means centroids or, if landmarks must be columns, those of boosting."""
    points = _movable_points(gram)
    if points is not None:
        centroids, _ = clusters(points, c, rng, max_iter=FEW_ITER, rough=True)
        return Landmarks(None, arrays.like(centroids, points))

    # p·m ≥ c columns, and two for validation
    p = min(c, DEFAULT_LEARNERS)
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return gram.landmarks(uniform(gram, c, rng))

    settings = Settings.fast(
        n_learners=p,
        n_columns=m,
        n_fit=1,
        n_tune=1,
        row_cap=row_cap,
    )
    rule = JointCore()
    run = boost(gram, settings, rule, kmeans_columns, rule, rng)
    pooled = pool([learner.landmarks for learner in run.learners])
    return pooled.take(np.arange(c))


def _add_missed_rows(gram: Gram, start: Landmarks, sample: Sample) -> Sample:
    """Add the rows with the largest residual, and those farthest from the mean, to the sample."""
    sees_all = len(sample) == gram.n
    too_many = gram.n > WHOLE_DIAGONAL
    if sees_all or too_many or not gram.rows.in_memory:
        return sample

    missed, _ = find_missed_rows(gram, start)
    rows = np.append(sample.indices, missed)
    X = _movable_points(gram)
    if X is not None:
        distances = _distances_from_mean(X)
        order = np.argsort(-distances, kind="stable")
        count = len(sample) // FAR
        rows = np.append(rows, order[:count])
    return Sample.of(gram, rows)


def _distances_from_mean(X: Array) -> Floats:
    """Return ‖x − x̄‖² of each row, block by block."""
    mean = arrays.namespace(X).mean(X, axis=0)
    n, d = X.shape
    distances = []
    for block in row_blocks(n, 8 * d, block_bytes(X)):
        centred = X[block, :] - mean
        distances.append(to_host(squared_norms(centred)))
    return np.concatenate(distances)


def _improve(sample: Sample, start: Landmarks) -> FeatureMap:
    """Exchange landmarks, then refine them; return the better result on the sample."""
    exchanged, core = exchange_landmarks(sample, start)
    is_movable = _movable_points(sample.gram) is not None
    if not is_movable or exchanged.error <= NEAR_ROUNDING:
        return select_best(sample, exchanged)

    landmarks = refine(sample, exchanged, core)
    single = exchanged.error > SINGLE
    refined = fit_landmarks(sample, landmarks, single=single)
    return select_best(sample, exchanged, refined)


def _find_distinct_rows(gram: Gram) -> Indices:
    """Return the first of each set of equal rows."""
    points = gram.rows.take(slice(None))
    if arrays.is_sparse(points):
        return np.arange(gram.n)

    rows = to_host(points) + 0.0  # −0 is 0
    first: dict[bytes, int] = {}
    for i, row in enumerate(rows):
        first.setdefault(row.tobytes(), i)
    distinct = list(first.values())
    return np.array(distinct, dtype=np.intp)


def _movable_points(gram: Gram) -> Array | None:
    """Return the rows if landmarks may be any points (dense data, a kernel with a derivative)."""
    if not isinstance(gram, KernelGram) or not gram.kernel.differentiable:
        return None
    X = gram.rows.take(slice(None))
    if arrays.is_sparse(X):
        return None
    return X
