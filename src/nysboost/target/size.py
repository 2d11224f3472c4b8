"""How many landmarks: doubled until held-out error stops falling by more than its noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np

from nysboost.engine.moments import Moments
from nysboost.numerics.arrays import Floats, to_host
from nysboost.numerics.progress import Work
from nysboost.target.candidates import Candidate, Found, Sample, judged, moved
from nysboost.target.linear import predictions_along
from nysboost.target.plain import Plain
from nysboost.target.race import FIRST_STEPS

LEAST, MOST = 32, 1024
"""Landmarks to begin with, and at most; never more than half of the rows."""

SEARCH_ROWS = 10240
"""Rows of the search at most. A fifth of them judges, as in a race, which leaves eight for each of
the most landmarks, as the first stage of a race has. The same rows serve every number of
landmarks, so that only the number differs."""

JUDGES = 600
"""Rows that judge at least, where there are as many: fifths in turn. With one fifth of 927 rows
(concrete, split 5) the search ended at 128 landmarks, with a test error of .277, where 463 had
.249; four of them, with half of the rows as the last number, find 463."""

Recipe: TypeAlias = Callable[[Sample, Sample, int, np.random.Generator], Found]
"""From rows that fit, rows that judge and a number of landmarks to a candidate with its error."""


def enough(
    sample: Sample,
    plain: Plain,
    candidates: tuple[Candidate, ...],
    trace: Callable[[int], float],
    rng: np.random.Generator,
    work: Work,
) -> int:
    """Return the number of landmarks beyond which twice, and four times, as many predict no better.

    Rows that take no part in the fits judge them. With the least number of landmarks every
    candidate is tried, and the best is tried with twice as many, and so on. With eᵢ the squared
    error of held-out row i and dᵢ = eᵢ(c) − eᵢ(2c), or eᵢ(4c), the search ends where no mean(d) is
    above its standard error: one step alone may hide in the noise of few rows.

    Parameters
    ----------
    sample : Sample
        Standardised rows, of which `SEARCH_ROWS` at most are used.
    plain : Plain
        The simplest model.
    candidates : tuple of Candidate
        What is tried beside it.
    trace : callable
        From the number of landmarks to τ, the weight of the bound's trace.
    rng : numpy.random.Generator
        Source of all randomness.
    work : Work
        Takes lines of progress.
    """
    most = max(1, min(MOST, sample.n // 2))
    c = min(LEAST, most)
    if 2 * c > most:
        return c
    splits = _splits(sample, rng)
    recipes: list[Recipe] = [plain.best, *(partial(_stepped, k, trace) for k in candidates)]
    weights = _weights(splits)

    def errors_of(recipe: Recipe, c: int) -> Floats:
        tried = [(recipe(fit, judge, c, rng), fit, judge) for fit, judge in splits]
        return np.concatenate([_squared_errors(*one) for one in tried])

    def told(c: int, errors: Floats) -> None:
        root = float(np.average(errors, weights=weights)) ** 0.5
        work.step(0, f"{c} landmarks: held-out error {root:.4g}")

    begun = [(errors_of(recipe, c), recipe) for recipe in recipes]
    errors, recipe = min(begun, key=lambda pair: float(np.average(pair[0], weights=weights)))
    told(c, errors)
    more, last = 2 * c, c
    while last < more <= 4 * c:
        fresh = errors_of(recipe, more)
        told(more, fresh)
        if falls(errors - fresh, weights):
            c, errors = more, fresh
        more, last = min(2 * more, most), more
    return c


def _splits(sample: Sample, rng: np.random.Generator) -> list[tuple[Sample, Sample]]:
    """Return rows that fit and rows that judge: a fifth of all, or more than one in turn."""
    order = rng.permutation(sample.n)[:SEARCH_ROWS]
    fifths = [np.sort(part) for part in np.array_split(order, 5)]
    enough_to_judge = min(5, -(-JUDGES // max(1, len(order) // 5)))
    return [
        (sample[np.setdiff1d(order, fifth)], sample[fifth]) for fifth in fifths[:enough_to_judge]
    ]


def _weights(splits: list[tuple[Sample, Sample]]) -> Floats | None:
    """Return how much each row that judges counts; None where all are alike, or none does."""
    given = [to_host(judge.weights) for _, judge in splits if judge.weights is not None]
    return np.concatenate(given) if given and sum(map(np.sum, given)) > 0 else None


def falls(differences: Floats, weights: Floats | None = None) -> bool:
    """Whether the mean of paired differences, shape (h,), is above its standard error."""
    counts = np.ones(len(differences)) if weights is None else weights
    if not counts.sum() > 0:  # no row that judges counts
        return False
    shares = counts / counts.sum()
    mean = float(shares @ differences)
    noise = float(np.sqrt(np.sum((shares * (differences - mean)) ** 2)))
    return mean > noise


def _stepped(
    candidate: Candidate,
    trace: Callable[[int], float],
    fit: Sample,
    judge: Sample,
    c: int,
    rng: np.random.Generator,
) -> Found:
    """Return a candidate after the steps that a race begins with, judged."""
    return judged(moved(candidate.start(fit, c, rng), fit, trace(c), FIRST_STEPS), fit, judge)


def _squared_errors(found: Found, fit: Sample, judge: Sample) -> Floats:
    """Return the squared error of each held-out row, shape (h,)."""
    basis = found.basis()
    train = Moments.of(basis(fit.X), fit.Y, fit.weights)
    (mean,) = predictions_along(train, basis(judge.X), np.array([found.gamma]))
    return np.asarray(to_host((judge.Y - mean) ** 2).mean(axis=1))
