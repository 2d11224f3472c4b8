"""The flagship: landmarks that start well, change places, move, and share one joint core."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from nysboost.boosting.algorithm import boost
from nysboost.boosting.core import ROWS_PER_LANDMARK, fit_core
from nysboost.boosting.exchange import candidates, exchanged, missed
from nysboost.boosting.joint_rule import JointCore
from nysboost.boosting.judge import Judge
from nysboost.boosting.learner import Learner
from nysboost.boosting.residual import WHOLE_DIAGONAL
from nysboost.boosting.selectors import KMeansSelector
from nysboost.gram import Gram, KernelGram, Landmarks, Sample, pooled, take_sample
from nysboost.joint.pivots import NOVEL, enough, from_pivots, novelty, rehearsed
from nysboost.joint.refinement import Ground, refine
from nysboost.numerics.arrays import (
    Indices,
    block_bytes,
    is_sparse,
    like,
    namespace,
    row_blocks,
    take,
    to_host,
)
from nysboost.numerics.kmeans import centroids
from nysboost.numerics.tolerances import NEAR_ROUNDING
from nysboost.settings import Settings

FIRST_STEPS = 9
"""Of L-BFGS, in the first of two rounds. Seven more there cost as much as three to four in the
second, and gain no more (eleven tables, c = 240 and 480)."""

FEWEST, MOST_STEPS, STEPS_OF_ALL = 12, 22, 6800
"""In the second round: a landmark's steps times the number of landmarks, within limits, since a
step costs the more the more there are; half as many again as long as they are worth it. On MNIST
that is what 1.04 of the optimum's error takes (c = 240)."""

FIRST_ROWS_PER_LANDMARK = 4
"""The first round, which only finds the way, has half of the sample or so many rows. With six for
each a fit with n/8 landmarks takes 6 to 12 % longer, for 0.2 % of the error (MNIST, Covertype,
bike and pol)."""

FAR = 32
"""One row in so many of the sample is one of those farthest from the mean. Judged on 4000 of 50,000
rows, the hundred farthest among them (Covertype, a kernel of half the median distance, c = 240)
joint has 1.4e-2 so and 3.9e-2 without, k-means 1.9e-2; on uniform rows it costs 0 to 4 %."""

KMEANS_ITERATIONS = 12
COLUMNS_PER_LEARNER, CANDIDATES_PER_COLUMN = 60, 5


def joint(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Learner:
    """Return K̂ = C M Cᵀ with c landmarks that have moved to where they serve best.

    1. A start on a sample of rows: the centroids of k-means.
    2. An exchange: rows that the start misses, wherever they are, take the place of the
       landmarks that serve least. So rows far from all others are seen.
    3. Refinement: all landmarks go down the gradient of the joint approximation's error
       on the sample, which the rows that were missed have joined.
    4. The joint core, fitted on the sample, which has the last word: landmarks that moved
       to no avail go back.

    Where landmarks serve single rows, far from all others, rows to come may lie farther out still:
    half of the rows then say whether landmarks near the outermost rows serve the other half
    better (see `pivots`).

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
    gram = _held(gram)
    sample = take_sample(gram, max(row_cap, ROWS_PER_LANDMARK * c), rng)
    distinct = _distinct(sample.gram)
    if c >= len(distinct):
        learner = fit_core(sample, sample.gram.landmarks(distinct))
        return replace(learner, landmarks=sample.lifted(learner.landmarks))
    start = sample.lifted(_start(sample.gram, c, row_cap, rng))
    landmarks, judge = _exchanged(gram, start, sample)
    stood = judge.fit(landmarks)
    if isinstance(gram, KernelGram) and _can_move(gram):
        # near rounding, where nothing can be gained, what has not been touched is as good as any
        before = [judge.fit(start)] if stood[1] < NEAR_ROUNDING else []
        learner = _pivoted(judge, stood, start, rng) or judge.best(
            judge.fit(_moved(gram, landmarks, judge)), stood, *before
        )
    else:
        learner = judge.best(stood)
    return replace(learner, landmarks=judge.sample.lifted(learner.landmarks))


def _pivoted(
    judge: Judge, stood: tuple[Learner, float], start: Landmarks, rng: np.random.Generator
) -> Learner | None:
    """Return the approximation near the outermost rows, where rows to come are served better so."""
    if novelty(judge, *stood) < NOVEL:
        return None
    if not rehearsed(judge.sample, len(start), partial(_descended, rng=rng), rng):
        return None
    return from_pivots(judge, len(start), enough(judge, start, rng))


def _descended(
    sample: Sample, c: int, rng: np.random.Generator
) -> tuple[Learner, Judge, Landmarks]:
    """Return the approximation by descent, on a sample alone, with its judge and its start."""
    gram = sample.gram
    assert isinstance(gram, KernelGram)
    start = _start(gram, c, len(sample), rng)
    landmarks, judge = exchanged(sample, start)
    return judge.best(judge.fit(_moved(gram, landmarks, judge)), judge.fit(landmarks)), judge, start


def _held(gram: Gram) -> Gram:
    """Return the Gram with rows in memory where all of them may be looked at, and fit.

    A store is then read once, and gives the landmarks of the array that it holds.
    """
    size = 8 * gram.n * gram.rows.numbers_per_row
    if gram.rows.in_memory or gram.n > WHOLE_DIAGONAL or size > gram.budget.bytes // 2:
        return gram
    return Sample.of(gram, np.arange(gram.n)).gram


def _start(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return the centroids of k-means or, where points cannot be landmarks, boosted columns."""
    if isinstance(gram, KernelGram) and _can_move(gram):
        points = gram.rows.take(slice(None))
        found = centroids(points, c, rng, max_iter=KMEANS_ITERATIONS, rough=True)
        return Landmarks(None, like(found, points))
    return _boosted_columns(gram, c, row_cap, rng)


def _exchanged(gram: Gram, start: Landmarks, sample: Sample) -> tuple[Landmarks, Judge]:
    """Return landmarks that cover what the start misses, and a judge that knows of it.

    Of more rows than the sample has, those that are missed most join it, and those that are
    farthest out: a row that is far from all others is hardly ever in a uniform sample.
    """
    if len(sample) < gram.n <= WHOLE_DIAGONAL and gram.rows.in_memory:
        joining = missed(gram, start, candidates(start)), _farthest(gram, len(sample) // FAR)
        sample = Sample.of(gram, np.concatenate([sample.indices, *joining]))
    return exchanged(sample, _within(sample, start))


def _farthest(gram: Gram, size: int) -> Indices:
    """Return the rows farthest from the mean of all: none where rows are not points."""
    if not (isinstance(gram, KernelGram) and _can_move(gram)):
        return np.arange(0)
    X = gram.rows.take(slice(None))
    xp = namespace(X)
    centre = xp.mean(X, axis=0)
    blocks = row_blocks(gram.n, 8 * X.shape[1], block_bytes(X))
    away = np.concatenate([to_host(xp.sum((X[rows, :] - centre) ** 2, axis=1)) for rows in blocks])
    return np.argsort(-away, kind="stable")[:size]


def _within(sample: Sample, landmarks: Landmarks) -> Landmarks:
    """Return landmarks of the whole matrix as landmarks of the sample, which has their rows."""
    if landmarks.indices is None:
        return landmarks
    return replace(landmarks, indices=sample.positions(landmarks.indices))


def _moved(gram: KernelGram, landmarks: Landmarks, judge: Judge) -> Landmarks:
    """Return the landmarks where the descent of the sample's loss takes them.

    A part of the sample finds the way, with each landmark's nearest row in it; then all of it.
    """
    X, rough = (g.rows.take(slice(None)) for g in (judge.sample.gram, judge.sample.gram.rounded()))
    xp = namespace(X)
    Z, points = (xp.astype(part, xp.float64) for part in (landmarks.points, X))
    ground = Ground()  # the second round goes on where the first has been
    for rows, steps in zip(_rounds(landmarks, judge), _steps(len(landmarks)), strict=True):
        matrix = judge.matrix if len(rows) == len(judge.sample) else judge.matrix.part(rows)
        sample, few_digits = take(points, rows), take(rough, rows)
        Z, evaluations = refine(gram.kernel, Z, sample, matrix, steps, ground, few_digits)
        gram.tally.count += evaluations * len(rows) * len(landmarks)
    return Landmarks(None, like(Z, X))


def _rounds(landmarks: Landmarks, judge: Judge) -> tuple[Indices, Indices]:
    """Return the rows of each of two rounds: a part of the sample, and all of it."""
    size = len(judge.sample)
    first = min(size, max(size // 2, FIRST_ROWS_PER_LANDMARK * len(landmarks)))
    values = judge.sample.gram.cross(slice(None), landmarks)
    nearest = to_host(namespace(values).argmax(values, axis=0))
    return np.union1d(np.linspace(0, size - 1, first).astype(np.intp), nearest), np.arange(size)


def _steps(c: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return how many steps each of two rounds takes, at least and at most."""
    least = min(MOST_STEPS, max(FEWEST, STEPS_OF_ALL // c))
    return (FIRST_STEPS, FIRST_STEPS), (least, least + least // 2)


def _distinct(gram: Gram) -> Indices:
    """Return those rows that are not repetitions of others."""
    points = gram.rows.take(slice(None))
    if is_sparse(points):
        return np.arange(gram.n)
    return np.sort(np.unique(to_host(points), axis=0, return_index=True)[1])


def _can_move(gram: KernelGram) -> bool:
    """Whether landmarks may be points: dense data and a kernel with a derivative."""
    return gram.kernel.differentiable and not is_sparse(gram.rows.take(slice(0, 1)))


def _boosted_columns(gram: Gram, c: int, row_cap: int, rng: np.random.Generator) -> Landmarks:
    """Return c columns by boosting with J in the boosting step, k-means as clustering."""
    p = max(1, round(c / COLUMNS_PER_LEARNER))
    m = -(-c // p)
    if p * m + 2 > gram.n:
        return gram.landmarks(rng.choice(gram.n, size=c, replace=False))
    settings = Settings(
        n_learners=p,
        n_columns=m,
        n_candidates=CANDIDATES_PER_COLUMN * m,
        n_fit=1,
        n_tune=1,
        row_cap=row_cap,
    )
    run = boost(gram, settings, JointCore(), KMeansSelector(), rng)
    return pooled([learner.landmarks for learner in run.learners]).take(np.arange(c))
