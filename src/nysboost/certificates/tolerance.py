"""The fewest landmarks whose error is certified to be within a tolerance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nysboost.approximation import Approximation
from nysboost.certificates.certificate import N_ENTRIES, Certificate, certify, norm_of_gram
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, Indices, floats_on_host
from nysboost.numerics.parameters import require_fraction
from nysboost.numerics.tolerances import EPS
from nysboost.settings import DEFAULT_COMPONENTS

CURVE_ROWS = (512, 2048)
"""Rows of a sample for the curve: the larger where the smaller does not reach the tolerance."""

STEP = 3
"""A trial has at most so many times the landmarks of the one before: failures are cheap."""

CLOSE_ENOUGH = 1.2
"""The search ends when the smallest number that works is within this factor of one that fails."""

HOPELESS, SURELY_HOPELESS = 1.5, 4.0
"""Given up if so many times the landmarks allowed are needed: by trials, by the sample alone."""

ROWS_PER_LANDMARK = 4
"""The Gram matrix of so many rows is held in a fit."""

SHARE, PER_SQUARE = 0.25, 10
"""Kernel values of a certificate: of those of its fit, and for each pair of landmarks, at least."""

CONFIDENCE = 0.95  # of the certificates

SIZES = np.exp(np.linspace(0, 20, 2000))
"""Numbers of landmarks, beyond those allowed, at which the curve is evaluated."""


class ToleranceWarning(UserWarning):
    """A tolerance was not reached; the result is the nearest to it that was found.

    .. versionadded:: 0.2

    See Also
    --------
    approximate : takes `tol`.

    Examples
    --------
    >>> import warnings, numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 3))
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     approx = nb.approximate(X, "uniform", sigma=1.0, tol=0.01, n_components=5)
    >>> told[0].category.__name__, len(approx.landmarks)
    ('ToleranceWarning', 5)
    """


class Trial(NamedTuple):
    """A fit with c landmarks, its error at most, and its certificate."""

    c: int
    error: float
    approximation: Approximation
    certificate: Certificate


def within_tolerance(
    fit: Callable[[int], Approximation],
    tol: float,
    gram: Gram,
    limit: int | None,
    rng: np.random.Generator,
) -> Approximation:
    """Return the fit with the fewest landmarks whose error is certified to be at most `tol`.

    A sample of rows gives the form of log error against log c, and trials correct its height. The
    search ends when the largest c that fails and the smallest that does not are near each other.
    `limit` is the most landmarks.
    """
    require_fraction("tol", tol)
    allowed = int(math.sqrt(gram.budget.bytes / 8)) // ROWS_PER_LANDMARK
    most = max(1, min(gram.n, allowed if limit is None else limit))
    curve, trials, norm = _sample_curve(gram, tol, rng), list[Trial](), None
    while (c := _next_size(curve, trials, tol, most, give_up=limit is None)) is not None:
        before = gram.entries_evaluated
        approximation = fit(c)
        spent = gram.entries_evaluated - before
        entries = max(N_ENTRIES, int(SHARE * spent), PER_SQUARE * c * c)
        if norm is None and gram.n * (gram.n + len(approximation.landmarks)) > entries:
            norm = norm_of_gram(gram, CONFIDENCE, rng)  # shared by the other trials
        found = certify(approximation._residual(None), CONFIDENCE, entries, rng, norm=norm)
        trials.append(Trial(c, found.frobenius[1], approximation, found))
    reached = [trial for trial in trials if trial.error <= tol]
    if reached:
        return min(reached, key=lambda trial: trial.c).approximation
    best = min(trials, key=lambda trial: trial.error)
    needed = curve.through(trials).first_below(tol, SIZES)
    warnings.warn(_say_failure(best, needed, tol, most), ToleranceWarning, stacklevel=5)
    return best.approximation


def _next_size(
    curve: Curve, trials: Sequence[Trial], tol: float, most: int, *, give_up: bool
) -> int | None:
    """Return how many landmarks to try next, of `most`; None if the search is over.

    `give_up` tries the default number where far more than `most` would be needed.
    """
    good = min((trial.c for trial in trials if trial.error <= tol), default=None)
    bad = max((trial.c for trial in trials if trial.error > tol), default=0)
    curve = curve.through(trials)
    if give_up and good is None and bad < most:
        times = HOPELESS if len(trials) > 1 else SURELY_HOPELESS
        if curve.first_below(tol, SIZES) > times * most:
            fallback = min(DEFAULT_COMPONENTS, most)
            return fallback if bad < fallback else None
    high = good or min(most, STEP * bad if bad else curve.reach)
    guess = min(high, curve.first_below(tol, np.arange(bad + 1, high)))
    if bad >= most or (good is not None and good <= CLOSE_ENOUGH * max(bad, guess)):
        return None
    return min(most, max(int(guess), math.ceil(CLOSE_ENOUGH * bad)))


@dataclass(frozen=True, eq=False)
class Curve:
    """How the error falls with the number of landmarks.

    `logs` are log errors at c = 1, …, m, of a sample of the n rows; `added` are log c of trials,
    and what they add there.
    """

    logs: Floats
    n: int
    added: tuple[Sequence[float], Sequence[float]] = (0.0,), (0.0,)

    @property
    def reach(self) -> int:
        """The most landmarks for which the sample predicts the error: half of its rows."""
        return max(1, len(self.logs) // 2)

    def __call__(self, c: Floats | Indices) -> Floats:
        """Return log error; beyond the reach of the sample it goes on along a straight line."""
        at, x = np.log(c), np.log(np.arange(1, self.reach + 1))
        known, half = self.logs[: self.reach], max(0, self.reach // 2 - 1)
        slope = (known[-1] - known[half]) / max(x[-1] - x[half], EPS)
        found: Floats = np.interp(at, x, known) + slope * np.maximum(at - x[-1], 0)
        found += np.log(np.maximum(1 - c / self.n, EPS))  # rows that are landmarks are exact
        found += np.interp(at, *self.added)
        return found

    def through(self, trials: Sequence[Trial]) -> Curve:
        """Return the curve that is right at every trial."""
        if not trials:
            return self
        pairs = sorted((trial.c, max(trial.error, EPS)) for trial in trials)
        c, errors = np.array(pairs).T
        return replace(self, added=(np.log(c), np.log(errors) - self(c)))

    def first_below(self, error: float, candidates: Floats | Indices) -> float:
        """Return the first of rising numbers of landmarks whose error is at most this, or ∞."""
        below = np.flatnonzero(self(candidates) <= math.log(error))
        return float(candidates[below[0]]) if len(below) else math.inf


def _sample_curve(gram: Gram, tol: float, rng: np.random.Generator) -> Curve:
    """Return the curve of the best errors of rank c, by the spectrum of a sample of rows.

    It is that of the first sample that reaches the tolerance, or of the last.
    """
    for size in CURVE_ROWS:
        rows = rng.choice(gram.n, size=min(size, gram.n), replace=False)
        eigenvalues = np.linalg.eigvalsh(floats_on_host(gram.block(rows, rows)))
        left = np.cumsum(eigenvalues**2)[::-1]  # of the smallest m, m − 1, …, 1
        errors = np.sqrt(np.append(left[1:], 0.0) / (left[0] or 1.0))
        curve = Curve(np.log(np.maximum(errors, EPS)), gram.n)
        if 2 * size >= gram.n or curve.first_below(tol, SIZES) <= curve.reach:
            break
    return curve


def _say_failure(best: Trial, needed: float, tol: float, most: int) -> str:
    low, high = best.certificate.frobenius
    if best.c >= most:
        why = f"{most} landmarks are the most that n, max_memory and n_components allow"
    else:
        count = f"about {needed:,.0f}" if needed < math.inf else "far more"
        why = f"it would take {count} landmarks, more than n and max_memory allow"
    return (
        f"tol={tol:g} was not reached: {why}. The result has {best.c} landmarks and a relative "
        f"Frobenius error between {low:.3g} and {high:.3g}. Take a wider kernel, a larger tol, or "
        "a larger n_components or max_memory."
    )
