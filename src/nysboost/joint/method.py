"""The flagship: landmarks that start well, change places, move, and share one joint core."""

from __future__ import annotations

import numpy as np
from scipy.sparse import issparse

from nysboost.boosting.algorithm import boost
from nysboost.boosting.core import JointCore, fit_core
from nysboost.boosting.learner import Learner, fit_learner
from nysboost.boosting.residual import WHOLE_DIAGONAL
from nysboost.boosting.selectors import KMeansSelector
from nysboost.boosting.trajectory import sample_rows
from nysboost.gram import Gram, KernelGram, Landmarks, pooled
from nysboost.joint.exchange import exchange, missed
from nysboost.joint.refinement import refine
from nysboost.joint.sample import Sample
from nysboost.numerics.arrays import Indices, like, namespace, to_host
from nysboost.numerics.kmeans import centroids
from nysboost.settings import Settings

ITERATIONS = 30
"""Of L-BFGS, at most."""

CANDIDATES = 0.5
"""Rows that may change places with landmarks, as a share of these."""

ROWS_PER_LANDMARK = 4
KMEANS_ITERATIONS = 25
COLUMNS_PER_LEARNER = 60


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Learner:
    """Return K̂ = C M Cᵀ with c landmarks that have moved to where they serve best.

    1. A start on a sample of rows: the centroids of k-means.
    2. An exchange: rows that the start misses, wherever they are, take the place of the
       landmarks that serve least. So rows far from all others are seen.
    3. Refinement: all landmarks go down the gradient of the joint approximation's error
       on the sample, which the rows that were missed have joined.
    4. The joint core, fitted on the sample.

    Each step leaves the error on the sample as it was, or smaller.

    Kernels without derivative, precomputed matrices and CSR data keep to columns, which
    boosting with joint cores finds (JJB-mean) and the exchange improves.

    Parameters
    ----------
    gram : Gram
        G.
    c : int
        Number of landmarks.
    row_cap : int
        Size of the sample; at least four rows per landmark are taken. Its Gram matrix is
        held: 12·row_cap² bytes. Beyond it the cost of all but the look at the residual's
        diagonal does not depend on n, and that is left out beyond 131,072 rows.
    rng : numpy.random.Generator
        Source of all randomness.
    """
    rows = sample_rows(np.arange(gram.n), max(row_cap, ROWS_PER_LANDMARK * c), rng)
    distinct = _distinct(gram, rows)
    if c >= len(distinct):
        return fit_core(gram, gram.landmarks(distinct), rows)
    movable = isinstance(gram, KernelGram) and _can_move(gram)
    if movable:
        points = centroids(gram.rows.take(rows), c, rng, max_iter=KMEANS_ITERATIONS)
        start = Landmarks(None, points)
    else:
        start = _boosted_columns(gram, c, row_cap, rng)
    landmarks, sample = _exchanged(gram, start, rows, rng)
    if isinstance(gram, KernelGram) and movable:
        landmarks = _moved(gram, landmarks, sample)
    return sample.fit(landmarks)


def _exchanged(
    gram: Gram, start: Landmarks, rows: Indices, rng: np.random.Generator
) -> tuple[Landmarks, Sample]:
    """Return landmarks that cover what the start misses, and a sample that knows of it."""
    plain = fit_learner(gram, start, len(start))
    everywhere = np.arange(gram.n) if gram.n <= WHOLE_DIAGONAL else rows
    beyond = missed(gram, plain, everywhere, max(1, round(CANDIDATES * len(start))), rng)
    known = rows if start.indices is None else np.union1d(rows, start.indices)
    sample = Sample.of(np.union1d(known, beyond), gram, plain)
    return exchange(sample, start, beyond), sample


def _moved(gram: KernelGram, landmarks: Landmarks, sample: Sample) -> Landmarks:
    """Return the landmarks where the descent of the sample's loss takes them."""
    X = gram.rows.take(sample.rows)
    xp = namespace(X)
    start, points = (xp.astype(part, xp.float64) for part in (landmarks.points, X))
    moved, evaluations = refine(gram.kernel, start, points, sample.matrix, ITERATIONS)
    gram.entries_evaluated += evaluations * len(sample.rows) * len(landmarks)
    return Landmarks(None, like(moved, X))


def _distinct(gram: Gram, rows: Indices) -> Indices:
    """Return those rows that are not repetitions of others."""
    points = gram.rows.take(rows)
    if issparse(points):
        return rows
    return np.sort(rows[np.unique(to_host(points), axis=0, return_index=True)[1]])


def _can_move(gram: KernelGram) -> bool:
    """Whether landmarks may be points: dense data and a kernel with a derivative."""
    return gram.kernel.differentiable and not issparse(gram.rows.take(slice(0, 1)))


def _boosted_columns(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return c columns by boosting with J in the boosting step, k-means as clustering."""
    p = max(1, round(c / COLUMNS_PER_LEARNER))
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return gram.landmarks(rng.choice(gram.n, size=c, replace=False))
    settings = Settings(n_learners=p, n_columns=m, n_fit=1, n_tune=1, row_cap=row_cap)
    run = boost(gram, settings, JointCore(), KMeansSelector(), rng)
    return pooled([learner.landmarks for learner in run.learners]).take(np.arange(c))
