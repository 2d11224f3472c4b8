"""Rows that are still to come, where the sample's own far rows stand alone.

Landmarks that move fit the far rows of their sample. Other rows may lie farther out still, and
these the outermost rows reach better, the pivots of a Cholesky factorisation. On the sample such
rows lose, so the descent goes on from there until it is ahead of what plain Nyström has; and a
rehearsal on half of the rows says whether the other half is served better so.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nysboost.boosting.judge import Judge
from nysboost.boosting.learner import Learner
from nysboost.gram import KernelGram, Landmarks, Sample
from nysboost.joint.refinement import refine
from nysboost.numerics.arrays import Array, Floats, Indices, epsilon, like, namespace, take, to_host
from nysboost.numerics.linalg import norms
from nysboost.numerics.tolerances import EXHAUSTED, NOTHING_LEFT, cutoff

FEWEST, FEWEST_ROWS = 8, 256
"""Landmarks and rows below which half of them say nothing about all."""

NOVEL = 3.0
"""Above this a rehearsal pays. Of 88 runs of the zoo those below 2.5 have errors on other rows
that are 1 to 20 times those in sample, those above it up to 10⁶ times. MNIST, Covertype, kin40k and
Pendigits (σ = 5, c = 240 and 480) have 0.1 to 2.7; there a rehearsal would double the time."""

AHEAD = 0.95
"""The share of plain Nyström's error on randomly pivoted rows that is enough."""

TRIES = ((0.9, 0.9), (0.75, 0.8), (0.0, 0.7))
"""One after the other until it is enough: the share of the pivots, the first of them, that stay
where they are, and how far the rest goes down, as a share of what is enough: the loss of the
descent knows no anchor, which costs up to a fifth of the error here."""

STEPS = 24
"""Of L-BFGS, at most, in each try."""

BETTER = 0.99
"""The share of the descent's error on other rows below which pivots are worth what they cost in
sample, two to three times its error there."""

HALVES = 3
"""Of the rows, drawn at random: the median of three verdicts counts. One alone is wrong in
one of three runs (keggundirected under a polynomial kernel, c = 60: 0.5 to 5 times the error)."""


def novelty(judge: Judge, learner: Learner, error: float) -> float:
    """Return what landmarks would miss of each other, in units of all that the sample misses.

    Were landmark j not there, 1 / (W⁻¹)_jj of its own place would be missed. Where that adds up
    to more than is missed of the sample, landmarks serve single rows, and others like
    these, which are not in the sample, have none. Nothing is new where nothing is left.
    """
    if error**2 < NOTHING_LEFT:
        return 0.0
    plain = judge.plain(learner.landmarks)
    alone = 1 / to_host(norms(plain.projection, axis=1)) ** 2
    return float(np.linalg.norm(alone)) / (error * judge.matrix.norm)


def from_pivots(judge: Judge, c: int, limit: float) -> Learner | None:
    """Return the approximation on the outermost rows, or near them; None where it would lose.

    At first all pivots stay where they are, then the last of them move, then all: until the error
    on the sample is small enough.

    Parameters
    ----------
    judge : Judge
        The sample.
    c : int
        Number of landmarks.
    limit : float
        The error that is small enough.
    """
    gram = judge.sample.gram
    assert isinstance(gram, KernelGram)
    rows = pivots(judge.sample.matrix, c)
    if len(rows) < c:
        return None
    form = gram.rows.take(slice(None))
    X = namespace(form).astype(form, namespace(form).float64)
    Z = take(X, rows)
    learner, error = judge.fit(Landmarks(None, like(Z, form)))
    for stay, farther in TRIES:
        if error <= limit:
            break
        pinned, goal = round(stay * c), farther * limit
        Z, evaluations = refine(
            gram.kernel, Z, X, judge.matrix, (STEPS, STEPS), pinned=pinned, goal=goal
        )
        gram.tally.count += evaluations * len(judge.sample) * c
        learner, error = judge.fit(Landmarks(None, like(Z, form)))
    return learner if error <= limit else None


def enough(judge: Judge, start: Landmarks, rng: np.random.Generator) -> float:
    """Return the error that nobody has to be ashamed of: not above the start's, and ahead of peers.

    These stand for all: plain Nyström on randomly pivoted rows.
    """
    drawn = judge.sample.gram.landmarks(pivots(judge.sample.matrix, len(start), rng))
    return min(judge.fit(start)[1], AHEAD * judge.error(judge.plain(drawn)))


def pivots(G: Array, c: int, rng: np.random.Generator | None = None) -> Indices:
    """Return c pivots of G's partial Cholesky factorisation, or as many as its rank has.

    The largest entry of the residual's diagonal is next or, with a source of randomness, one that
    is drawn in proportion.

    Examples
    --------
    >>> import numpy as np
    >>> pivots(np.diag([1.0, 3.0, 2.0]), 2)
    array([1, 2])
    """
    xp = namespace(G)
    F = xp.zeros_like(G[:, :c], dtype=xp.float64)
    left: Floats = to_host(xp.linalg.diagonal(G)).astype(np.float64)
    floor = cutoff(EXHAUSTED * c, epsilon(G)) * float(left.max())
    rows: list[int] = []
    while len(rows) < c and left.max() > floor:
        i, j = len(rows), _next(left, rng)
        column = xp.astype(G[:, j], xp.float64) - F[:, :i] @ F[j, :i]
        F[:, i] = column / float(np.sqrt(left[j]))
        left = np.maximum(left - to_host(F[:, i] ** 2), 0)
        rows.append(j)
        left[rows] = 0
    return np.array(rows, dtype=np.intp)


def _next(left: Floats, rng: np.random.Generator | None) -> int:
    return int(np.argmax(left) if rng is None else rng.choice(len(left), p=left / left.sum()))


def rehearsed(
    sample: Sample,
    c: int,
    fit: Callable[[Sample, int], tuple[Learner, Judge, Landmarks]],
    rng: np.random.Generator,
) -> bool:
    """Whether pivots serve other rows better, by half of the rows and half as many landmarks.

    Parameters
    ----------
    sample : Sample
        The rows.
    c : int
        Number of landmarks.
    fit : callable
        From a sample and a number of landmarks to the approximation by descent, its judge, and
        the landmarks that it started from.
    rng : numpy.random.Generator
        Source of randomness.
    """
    if c < FEWEST or len(sample) < FEWEST_ROWS:
        return False
    ratios: list[float] = []
    for _ in range(HALVES):
        half, others = np.array_split(rng.permutation(len(sample)), 2)
        descended, judge, start = fit(Sample.of(sample.gram, half), c // 2)
        pivoted = from_pivots(judge, c // 2, enough(judge, start, rng))
        if pivoted is not None:
            ours, theirs = (_missed(sample, learner, others) for learner in (descended, pivoted))
            ratios.append(theirs / ours)
        better = sum(ratio < BETTER for ratio in ratios)
        if 2 * max(better, len(ratios) - better) > HALVES:
            break  # the others cannot change the median's side
    return len(ratios) > 0 and float(np.median(ratios)) < BETTER


def _missed(sample: Sample, learner: Learner, rows: Indices) -> float:
    """Return ‖G − K̂‖ on some rows of the sample."""
    F = learner.features(sample.gram, rows)
    return float(norms(take(take(sample.matrix, rows), rows, axis=1) - F @ F.T))
