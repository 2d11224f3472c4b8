"""A tolerance instead of a rank: the fewest landmarks whose certificate says so."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from nysboost.approximation import Approximation
from nysboost.certificate import N_ENTRIES, Certificate, Norm, certify, norm_of_gram
from nysboost.engine.curve import Curve, Tried, errors_by_rank
from nysboost.gram import Gram

CURVE_ROWS = (256, 512, 2048)
"""Rows of a sample for the curve: the smallest with pilot fits, the largest for many landmarks."""

STEP = 3
"""Times as many landmarks has a trial at most as the one before it, which is then cheap."""

CLOSE_ENOUGH = 1.2
"""No fewer landmarks are sought once a trial with a 1.2th of them has failed, or would fail."""

FEW = 4
"""Up to so many landmarks one less is fewer by a third: there a trial has to fail."""

AIM = 0.97
"""Of the tolerance: fits with the same number of landmarks differ by a few per cent."""

EXPENSIVE, FAR_ENOUGH = 3, 1.3
"""Trials with half the landmarks of the result or more; a fourth only where this factor is left."""

HOPELESS, SURELY_HOPELESS = 1.5, 4.0
"""Given up where it takes so many times the landmarks allowed: by trials, by the sample alone."""

FALLBACK = 240
"""Landmarks of the result where the tolerance cannot be reached; `approximate` has as many."""

ROWS_PER_LANDMARK = 4
"""The Gram matrix of so many rows is held in a fit."""

SHARE, PER_SQUARE = 0.25, 10
"""Kernel values of a certificate: of those of its fit, and for each pair of landmarks, at least."""

CONFIDENCE = 0.95
"""Of the certificates."""

PILOT_FITS, PILOT_ROWS, ROWS_PER_PILOT_LANDMARK = 3, 1024, 8
"""Pilot fits at most, the rows that they look at, and how many of these each landmark needs."""

PILOT_ENTRIES = 4 * 10**5
"""Kernel values that score a pilot, beside those of all rows' features where these are few."""

SURELY = 1.1
"""Where a pilot misses by this factor, so does the fit: pilots had .78 to 1.08 of its error."""


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


Fit: TypeAlias = Callable[[int], Approximation]
"""From a number of landmarks to an approximation."""


@dataclass(frozen=True, eq=False)
class Trial(Tried):
    """A fit with c landmarks, its error at most (of a pilot, about), and its certificate."""

    approximation: Approximation
    certificate: Certificate


@dataclass(frozen=True, eq=False)
class Trier:
    """Fits, and certificates for them that share what is known of G."""

    gram: Gram
    rng: np.random.Generator

    @cached_property
    def norm(self) -> Norm:
        """‖G‖_F."""
        return norm_of_gram(self.gram, CONFIDENCE, self.rng)

    def run(self, fit: Fit, c: int, *, pilot: bool = False) -> Trial:
        """Fit with c landmarks, and find out how well."""
        n, before = self.gram.n, self.gram.entries_evaluated
        approximation = fit(c)
        if pilot:
            entries = PILOT_ENTRIES + c * c + min(2 * n * c, N_ENTRIES // 10)
        else:
            spent = self.gram.entries_evaluated - before
            entries = max(N_ENTRIES, int(SHARE * spent), PER_SQUARE * c * c)
        norm = None if n * (n + len(approximation.landmarks)) <= entries else self.norm
        residual = approximation._residual(None)
        found = certify(residual, CONFIDENCE, entries, self.rng, norm=norm)
        low, high = found.frobenius
        return Trial(c, (low + high) / 2 if pilot else high, approximation, found)


def within_tolerance(
    fit: Fit,
    tol: float,
    gram: Gram,
    limit: int | None,
    rng: np.random.Generator,
    pilot: Fit | None = None,
) -> Approximation:
    """Return the fit with the fewest landmarks whose error is certified to be at most `tol`.

    A sample of rows gives the form of log error against log c; fits, and pilots on `PILOT_ROWS`
    rows where those are much cheaper, correct its height. The search ends when the largest c that
    fails and the smallest that does not are near each other. `limit` is the most landmarks.
    """
    if isinstance(tol, bool) or not isinstance(tol, float | int) or not 0 < tol < 1:
        raise ValueError(f"tol is a relative error between 0 and 1, but tol={tol!r} was given.")
    allowed = int(math.sqrt(gram.budget.bytes / 8)) // ROWS_PER_LANDMARK
    most = max(1, min(gram.n, allowed if limit is None else limit))
    sizes = CURVE_ROWS if pilot is not None else CURVE_ROWS[1:]
    search = Search(_sample_curve(gram, sizes, tol, rng), tol, most, limit is None)
    trier = Trier(gram, rng)
    if pilot is not None:
        pilots: list[Trial] = []  # fits on few rows, with as many landmarks as these can tell of
        while len(pilots) < PILOT_FITS and (c := search.next(pilots)) is not None:
            if c > PILOT_ROWS // ROWS_PER_PILOT_LANDMARK:
                break
            pilots.append(trier.run(pilot, c, pilot=True))
        search = search.after(pilots)
    trials: list[Trial] = []
    while (c := search.next(trials)) is not None:
        trials.append(trier.run(fit, c))
    reached = [trial for trial in trials if trial.error <= tol]
    if reached:
        return min(reached, key=lambda trial: trial.c).approximation
    best = min(trials, key=lambda trial: trial.error)
    needed = search.curve.landmarks_for(trials, tol)
    warnings.warn(_say_failure(best, needed, tol, most), ToleranceWarning, stacklevel=5)
    return best.approximation


@dataclass(frozen=True, eq=False)
class Search:
    """What is sought: up to `most` landmarks, our limit if `give_up`; `fails` are too few."""

    curve: Curve
    tol: float
    most: int
    give_up: bool
    fails: int = 0
    has_pilots: bool = False

    @property
    def aim(self) -> float:
        """What the curve is to come down to."""
        return self.tol if self.has_pilots else AIM * self.tol

    def after(self, pilots: list[Trial]) -> Search:
        """Return the search with what pilots have found."""
        fails = max((one.c for one in pilots if one.error > SURELY * self.tol), default=0)
        curve = self.curve.through(pilots, self.tol)
        return replace(self, curve=curve, fails=fails, has_pilots=bool(pilots))

    def next(self, trials: list[Trial]) -> int | None:
        """Return how many landmarks to try next; None if the search is over."""
        good = min((trial.c for trial in trials if trial.error <= self.tol), default=None)
        if good is None:
            return self._further(trials)
        bad = max((trial.c for trial in trials if trial.error > self.tol), default=self.fails)
        low = bad + 1 if bad else max(1, good // 2)
        guess = self.curve.first_below(trials, self.aim, low, good)
        expensive = sum(2 * trial.c >= good for trial in trials)
        near = bad if good <= FEW else max(bad, guess)
        enough = CLOSE_ENOUGH if expensive < EXPENSIVE else FAR_ENOUGH
        if good <= enough * near or good == bad + 1 or expensive > EXPENSIVE:
            return None
        # should it fail there, it is the last
        if self.has_pilots or good <= CLOSE_ENOUGH**2 * guess:
            guess = max(guess, math.ceil(good / CLOSE_ENOUGH))
        return min(guess, good - 1)

    def _further(self, trials: list[Trial]) -> int | None:
        """Return a number of landmarks beyond all that failed, or None where there is no hope."""
        last = max((trial.c for trial in trials), default=self.fails)
        if last >= self.most:
            return None
        hopeless = HOPELESS if len(trials) > 1 else SURELY_HOPELESS
        if self.give_up and self.curve.landmarks_for(trials, self.tol) > hopeless * self.most:
            resort = min(FALLBACK, self.most)
            return resort if last < resort else None
        highest = min(self.most, STEP * last if last else self.curve.reach)
        guess = self.curve.first_below(trials, self.aim, last + 1, highest)
        # a little more than fails is not worth a fit
        return min(self.most, max(guess, math.ceil(1.1 * last)))


def _sample_curve(
    gram: Gram, sizes: tuple[int, ...], tol: float, rng: np.random.Generator
) -> Curve:
    """Return the curve of the first sample that comes down to the tolerance, or of the last."""
    for size in sizes:
        curve = Curve(np.log(errors_by_rank(gram, size, rng)), gram.n)
        if 2 * size >= gram.n or curve.landmarks_for([], tol) <= curve.reach:
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
