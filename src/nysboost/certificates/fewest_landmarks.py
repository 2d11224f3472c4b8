"""Find the smallest number of landmarks with a certified error within a tolerance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.certificates.certificate import Certificate, certify, norm_of_gram
from nysboost.certificates.certificate_constants import (
    CLOSE_ENOUGH,
    CONFIDENCE,
    CURVE_ROWS,
    ENTRIES_PER_SQUARE,
    GROWTH,
    HOPELESS,
    N_ENTRIES,
    ROWS_PER_LANDMARK,
    SHARE_OF_FIT,
    SIZES,
    SURELY_HOPELESS,
)
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.checks import require_fraction
from nysboost.numerics.tolerances import EPS
from nysboost.settings import DEFAULT_COMPONENTS


class ToleranceWarning(UserWarning):
    """Issued if a tolerance cannot be reached; the result is then the closest one found.

    .. versionadded:: 0.2

    See Also
    --------
    approximate : its parameter `tol` sets the tolerance.

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
    """A fit with c landmarks, an upper bound of its error, and its certificate."""

    c: int
    error: float
    approximation: Approximation
    certificate: Certificate


def within_tolerance(
    fit: Callable[[int], Approximation],
    tol: float,
    gram: Gram,
    limit: int | None,
    rng: Generator,
) -> Approximation:
    """Return a fit with as few landmarks as possible and a certified error of at most `tol`.

    A sample of rows gives the shape of the curve of log error against log c, and trials correct its
    height. The search ends when the largest c that fails is near the smallest c that succeeds.
    `limit` is the largest number of landmarks.
    """
    require_fraction("tol", tol)
    curve = _sample_curve(gram, tol, rng)

    # at most as many landmarks as asked for, or as memory for the sample allows
    gives_up = limit is None
    if limit is None:
        limit = math.isqrt(gram.budget.bytes // 8) // ROWS_PER_LANDMARK
    most = max(1, min(gram.n, limit))

    trials: list[Trial] = []
    norm = None
    while c := _next_size(curve, trials, tol, most, give_up=gives_up):
        # fit, and count the kernel values that it takes
        before = gram.entries_evaluated
        approximation = fit(c)
        of_fit = gram.entries_evaluated - before
        share_of_fit = int(SHARE_OF_FIT * of_fit)
        entries = max(N_ENTRIES, share_of_fit, ENTRIES_PER_SQUARE * c * c)

        # measure its error; ‖G‖ is shared by all trials
        row_entries = gram.n + len(approximation.landmarks)
        is_sampled = gram.n * row_entries > entries
        if norm is None and is_sampled:
            norm = norm_of_gram(gram, CONFIDENCE, rng)
        residual = approximation._residual(None)
        certificate = certify(residual, CONFIDENCE, entries, rng, norm=norm)
        _, error = certificate.frobenius
        trials.append(Trial(c, error, approximation, certificate))

    reached = [trial for trial in trials if trial.error <= tol]
    if reached:
        return min(reached, key=lambda trial: trial.c).approximation

    best = min(trials, key=lambda trial: trial.error)
    needed = curve.through(trials).first_below(tol, SIZES)
    reason = _say_failure(best, needed, tol, most)
    warnings.warn(reason, ToleranceWarning, stacklevel=6)
    return best.approximation


def _next_size(
    curve: Curve,
    trials: Sequence[Trial],
    tol: float,
    most: int,
    *,
    give_up: bool,
) -> int | None:
    """Return how many landmarks to try next, at most `most`; None if the search is over.

    With `give_up`, it is the default number if far more than `most` would be needed.
    """
    # the smallest c that reaches the tolerance, and the largest that does not
    reached = [trial.c for trial in trials if trial.error <= tol]
    failed = [trial.c for trial in trials if trial.error > tol]
    enough = min(reached, default=None)
    too_few = max(failed, default=0)
    if too_few >= most:
        return None

    # the default, if the sample, or trials, predict that far more than `most` are needed
    curve = curve.through(trials)
    hopeless = HOPELESS
    if len(trials) <= 1:
        hopeless = SURELY_HOPELESS
    may_give_up = give_up and enough is None
    if may_give_up and curve.first_below(tol, SIZES) > hopeless * most:
        fallback = min(DEFAULT_COMPONENTS, most)
        if too_few >= fallback:
            return None
        return fallback

    # a guess between them
    upper = enough
    if upper is None:
        upper = min(most, GROWTH * too_few or curve.reach)
    between = np.arange(too_few + 1, upper)
    guess = min(upper, curve.first_below(tol, between))

    # stop if it is near enough to what is known
    nearest = max(too_few, guess)
    if enough is not None and enough <= CLOSE_ENOUGH * nearest:
        return None
    least = math.ceil(CLOSE_ENOUGH * too_few)
    return min(most, max(int(guess), least))


@dataclass(frozen=True, eq=False)
class Curve:
    """The error as a function of the number of landmarks.

    `logs` are log errors of a sample of the n rows at c = 1, …, m. `added` holds log c of each
    trial, and its difference from the sample's curve.
    """

    logs: Floats
    n: int
    added: tuple[Sequence[float], Sequence[float]] = (0.0,), (0.0,)

    @property
    def reach(self) -> int:
        """The largest number of landmarks for which the sample predicts errors: half its rows."""
        return max(1, len(self.logs) // 2)

    def __call__(self, c: Floats | Indices) -> Floats:
        """Return the log error, extrapolated linearly beyond the reach of the sample."""
        log_c = np.log(c)
        sizes = np.arange(1, self.reach + 1)
        known_c = np.log(sizes)
        known = self.logs[: self.reach]

        # the line through the last half, for what lies beyond
        half = max(0, self.reach // 2 - 1)
        fall = known[-1] - known[half]
        run = max(known_c[-1] - known_c[half], EPS)
        slope = fall / run
        beyond = np.maximum(log_c - known_c[-1], 0)
        within = np.interp(log_c, known_c, known)
        found: Floats = within + slope * beyond

        # rows that are landmarks are exact
        left = np.maximum(1 - c / self.n, EPS)
        found += np.log(left)
        return found + np.interp(log_c, *self.added)

    def through(self, trials: Sequence[Trial]) -> Curve:
        """Return the curve through all trials."""
        if not trials:
            return self
        rising = sorted(trials, key=lambda trial: trial.c)
        c = np.array([trial.c for trial in rising])
        errors = np.array([trial.error for trial in rising])
        logs = np.log(np.maximum(errors, EPS))
        differences = logs - self(c)
        return replace(self, added=(np.log(c), differences))

    def first_below(self, error: float, candidates: Floats | Indices) -> float:
        """Return the first of increasing numbers of landmarks with at most this error, or ∞."""
        below = np.flatnonzero(self(candidates) <= math.log(error))
        if len(below) == 0:
            return math.inf
        return float(candidates[below[0]])


def _sample_curve(gram: Gram, tol: float, rng: Generator) -> Curve:
    """Return the curve of the best error of rank c, from the spectrum of a sample of rows.

    The sample is the first that reaches the tolerance, or the largest.
    """
    for size in CURVE_ROWS:
        count = min(size, gram.n)
        rows = rng.choice(gram.n, size=count, replace=False)
        G = gram.host_block(rows, rows)
        eigenvalues = np.linalg.eigvalsh(G)

        # √(Σ_{i>c} λ_i² / Σ λ_i²), from sums of the smallest m, m − 1, …, 1
        sums = np.cumsum(eigenvalues**2)[::-1]
        total = sums[0] or 1.0
        tails = np.append(sums[1:], 0.0)
        errors = np.sqrt(tails / total)

        logs = np.log(np.maximum(errors, EPS))
        curve = Curve(logs, gram.n)
        reaches = curve.first_below(tol, SIZES) <= curve.reach
        if reaches or 2 * size >= gram.n:
            break
    return curve


def _say_failure(best: Trial, needed: float, tol: float, most: int) -> str:
    """Return why the tolerance was not reached, and what to do."""
    if best.c >= most:
        why = f"n, max_memory and n_components allow at most {most} landmarks"
    else:
        count = "far more"
        if needed < math.inf:
            count = f"about {needed:,.0f}"
        why = f"it would take {count} landmarks, but n and max_memory allow fewer"

    low, high = best.certificate.frobenius
    return (
        f"tol={tol:g} was not reached: {why}. The result has {best.c} landmarks and a relative "
        f"Frobenius error between {low:.3g} and {high:.3g}. Choose a wider kernel, a larger tol, "
        "or a larger n_components or max_memory."
    )
