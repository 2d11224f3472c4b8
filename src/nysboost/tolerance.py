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
from nysboost.certificate import N_ENTRIES, Certificate, NormOfGram, certify
from nysboost.engine.curve import Curve
from nysboost.engine.pilot import pilot
from nysboost.gram import Gram

PILOT_ROWS = (256, 512, 2048)
"""Rows of the pilot, and as many that judge it. Where scouts correct it, a hundredth of a second is
enough; else a twentieth and, where the tolerance takes so many landmarks that a fit takes much
longer, two seconds."""

STEP = 3
"""Times as many landmarks has a trial at most as the one before it, which is then cheap."""

CLOSE_ENOUGH = 1.2
"""No fewer landmarks are sought once a trial with a 1.2th of them has failed, or would fail."""

FEW = 4
"""Up to so many landmarks one less is fewer by a third: there a trial has to fail."""

AIM = 0.97
"""Of the tolerance: two fits with the same number of landmarks differ by a few per cent. Scouts
are that much worse than what they speak of: there all of it is the aim."""

EXPENSIVE, FAR_ENOUGH = 3, 1.3
"""Trials with at least half the landmarks of the result, which are what it costs: at most three,
and a fourth only where there may be fewer by this factor.
"""

HOPELESS, SURELY_HOPELESS = 1.5, 4.0
"""A tolerance is given up where it would take so many times the landmarks that are allowed:

by the trials, and by the pilot alone.
"""

FALLBACK = 240
"""Landmarks of the result where the tolerance cannot be reached; `approximate` has as many."""

ROWS_PER_LANDMARK = 4
"""The Gram matrix of so many rows is held in a fit."""

SHARE = 0.25
"""Of the kernel values of a fit, for its certificate, which has as many as any other at least.

Up to some thousand rows that is every entry. On 3000 rows a sample of a tenth of them took
eight times as long, for its blocks are small.
"""

PER_SQUARE = 10
"""Kernel values of a certificate for each pair of landmarks at least: it begins with these."""


CONFIDENCE = 0.95
"""Of the certificates."""

SCOUTS, SCOUT_ROWS, ROWS_PER_SCOUTED = 3, 1024, 8
"""Scouts at most, the rows that they look at, and how many of these each landmark needs."""

SCOUT_ENTRIES = 4 * 10**5
"""Kernel values that judge a scout, beside those of all rows' features where these are few."""

SURELY = 1.1
"""Where a scout misses the tolerance by this factor, a fit on more rows misses it too. On four
tables scouts with up to four landmarks had .78 to 1.08 times the error of the fit, in the middle
1.01; with 16 it was 1.04 to 1.5, which costs a few landmarks at most."""


class ToleranceWarning(UserWarning):
    """A tolerance was not reached; the result is the nearest to it that was found.

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
class Trial:
    """A fit with c landmarks and its certificate.

    `error` is the upper end of the interval: what the error is at most, as far as is known. Of a
    scout, which is to be improved upon, it is the middle.
    """

    c: int
    approximation: Approximation
    certificate: Certificate
    error: float


@dataclass(frozen=True, eq=False)
class Trier:
    """Fits, and certificates for them that share what is known of G."""

    gram: Gram
    rng: np.random.Generator

    @cached_property
    def norm(self) -> NormOfGram:
        """‖G‖_F."""
        return NormOfGram.of(self.gram, CONFIDENCE, self.rng)

    def trial(self, fit: Fit, c: int) -> Trial:
        """Fit with c landmarks, and find out how well."""
        before = self.gram.entries_evaluated
        approximation = fit(c)
        spent = self.gram.entries_evaluated - before
        entries = max(N_ENTRIES, int(SHARE * spent), PER_SQUARE * c * c)
        certificate = self._certificate(approximation, entries)
        return Trial(c, approximation, certificate, certificate.frobenius[1])

    def scout(self, fit: Fit, c: int) -> Trial:
        """Fit with c landmarks on few rows, and look what becomes of it."""
        approximation = fit(c)
        entries = SCOUT_ENTRIES + c * c + min(2 * self.gram.n * c, N_ENTRIES // 10)
        certificate = self._certificate(approximation, entries)
        return Trial(c, approximation, certificate, sum(certificate.frobenius) / 2)

    def _certificate(self, approximation: Approximation, entries: int) -> Certificate:
        n = self.gram.n
        norm = None if n * (n + len(approximation.landmarks)) <= entries else self.norm
        return certify(approximation._residual(None), CONFIDENCE, entries, self.rng, norm=norm)


def within_tolerance(
    fit: Fit,
    tol: float,
    gram: Gram,
    limit: int | None,
    rng: np.random.Generator,
    scout: Fit | None = None,
) -> Approximation:
    """Return the fit with the fewest landmarks whose error is certified to be at most `tol`.

    A pilot on a sample gives the form of the curve, log error against log c; scouts, where there
    are any, and the method's own fits then say how far above or below it they are. The search is
    over when the largest number that fails and the smallest that does not are near each other, on
    the curve or in fact.

    Parameters
    ----------
    fit : callable
        From a number of landmarks to an approximation.
    tol : float
        Of the relative Frobenius error.
    gram : Gram
        G.
    limit : int or None
        Landmarks at most; None is what n and the working memory allow.
    rng : numpy.random.Generator
        Source of the certificates' randomness.
    scout : callable or None
        A fit that looks at `SCOUT_ROWS` rows, where that is much cheaper and hardly worse.

    Warns
    -----
    ToleranceWarning
        If it cannot be reached, with what was.
    """
    if isinstance(tol, bool) or not isinstance(tol, float | int) or not 0 < tol < 1:
        msg = f"tol is a relative error between 0 and 1, but tol={tol!r} was given."
        raise ValueError(msg)
    allowed = int(math.sqrt(gram.budget.bytes / 8)) // ROWS_PER_LANDMARK
    most = max(1, min(gram.n, allowed if limit is None else limit))
    sizes = PILOT_ROWS if scout is not None else PILOT_ROWS[1:]
    search = Search(_pilots(gram, sizes, tol, rng), tol, most, limit is None)
    trier = Trier(gram, rng)
    if scout is not None:
        search = search.after(_scouts(search, trier, scout))
    trials: list[Trial] = []
    while (c := search.next(trials)) is not None:
        trials.append(trier.trial(fit, c))
    reached = [trial for trial in trials if trial.error <= tol]
    if reached:
        return min(reached, key=lambda trial: trial.c).approximation
    best = min(trials, key=lambda trial: trial.error)
    needed = search.curve.needed(trials, tol)
    warnings.warn(_sentence(best, needed, tol, most), ToleranceWarning, stacklevel=4)
    return best.approximation


def _scouts(search: Search, trier: Trier, scout: Fit) -> list[Trial]:
    """Return fits on few rows with as many landmarks as such fits can tell of."""
    found: list[Trial] = []
    while len(found) < SCOUTS and (c := search.next(found)) is not None:
        if c > SCOUT_ROWS // ROWS_PER_SCOUTED:
            break
        found.append(trier.scout(scout, c))
    return found


@dataclass(frozen=True, eq=False)
class Search:
    """What is sought, and what is known of it beside the trials.

    Parameters
    ----------
    curve : Curve
        How the error falls.
    tol : float
        What is to be reached.
    most : int
        Landmarks at most.
    give_up : bool
        Whether that is no number that was given, so that it need not be tried where it is hopeless.
    fails : int
        Landmarks that are known not to be enough.
    scouted : bool
        Whether the curve is that of scouts.
    """

    curve: Curve
    tol: float
    most: int
    give_up: bool
    fails: int = 0
    scouted: bool = False

    @property
    def aim(self) -> float:
        """What the curve is to come down to."""
        return self.tol if self.scouted else AIM * self.tol

    def after(self, scouts: list[Trial]) -> Search:
        """Return the search with what scouts have found."""
        fails = max((one.c for one in scouts if one.error > SURELY * self.tol), default=0)
        curve = self.curve.through(scouts, self.tol)
        return replace(self, curve=curve, fails=fails, scouted=bool(scouts))

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
        if self.scouted or good <= CLOSE_ENOUGH**2 * guess:  # should it fail there, it is the last
            guess = max(guess, math.ceil(good / CLOSE_ENOUGH))
        return min(guess, good - 1)

    def _further(self, trials: list[Trial]) -> int | None:
        """Return a number of landmarks beyond all that failed, or None where there is no hope."""
        last = max((trial.c for trial in trials), default=self.fails)
        if last >= self.most:
            return None
        hopeless = HOPELESS if len(trials) > 1 else SURELY_HOPELESS
        if self.give_up and self.curve.needed(trials, self.tol) > hopeless * self.most:
            resort = min(FALLBACK, self.most)
            return resort if last < resort else None
        highest = min(self.most, STEP * last if last else self.curve.reach)
        guess = self.curve.first_below(trials, self.aim, last + 1, highest)
        # a little more than fails is not worth a fit
        return min(self.most, max(guess, math.ceil(1.1 * last)))


def _pilots(gram: Gram, sizes: tuple[int, ...], tol: float, rng: np.random.Generator) -> Curve:
    """Return the curve of the first pilot that comes down to the tolerance, or of the last."""
    for size in sizes:
        curve = Curve(np.log(pilot(gram, size, rng)), gram.n)
        if 2 * size >= gram.n or curve.needed([], tol) <= curve.reach:
            break
    return curve


def _sentence(best: Trial, needed: float, tol: float, most: int) -> str:
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
