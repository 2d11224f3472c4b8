"""How the error falls with the number of landmarks: foretold by a pilot, corrected by trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nysboost.numerics.arrays import Floats
from nysboost.numerics.tolerances import EPS

LEAST_SLOPE = 0.5
"""Beyond the last trial log error falls by this times log c at least: better too few than too many.

On heavy-tailed rows a pilot hardly falls: it has no landmark for the far rows that judge it.
"""

LEAST_SHARE = 0.25
"""Of what was foretold the error falls at least, for two trials may lie too close to tell."""

MUCH = 20.0
"""The curve is followed up to e²⁰ landmarks, more than anyone has rows in memory."""


class Tried(Protocol):
    """A number of landmarks, and the error that came of it."""

    @property
    def c(self) -> int:
        """Landmarks."""

    @property
    def error(self) -> float:
        """Relative error."""


@dataclass(frozen=True, eq=False)
class Curve:
    """How the error falls with the number of landmarks: log error at c = 1, …, m.

    Trials lie above or below it by what the two of them nearest to the tolerance say.
    """

    logs: Floats
    n: int

    @property
    def reach(self) -> int:
        """The most landmarks of which the pilot can say anything: half of its rows."""
        return max(1, len(self.logs) // 2)

    def __call__(self, c: Floats) -> Floats:
        """Return log error, beyond the reach of the pilot as it fell before.

        The rows of the pilot stand for rows without landmark; those with one have no error.
        """
        known = self.logs[: self.reach]
        x = np.log(np.arange(1, self.reach + 1))
        half = max(0, self.reach // 2 - 1)
        rise = x[-1] - x[half]
        slope = (known[-1] - known[half]) / rise if rise > 0 else 0.0
        logs = np.log(c)
        beyond = known[-1] + slope * (logs - x[-1])
        without = np.log(np.maximum(1 - c / self.n, EPS))
        found: Floats = np.where(logs <= x[-1], np.interp(logs, x, known), beyond) + without
        return found

    def through(self, trials: Sequence[Tried], target: float) -> Curve:
        """Return the curve as the two trials nearest to the target correct it.

        It is shifted to the nearest. Where the error falls by more than was foretold from one to
        the other, it is tilted, and where by less, compressed: so it goes on falling.
        """
        near = sorted(trials, key=lambda trial: abs(_log(trial.error) - math.log(target)))[:2]
        if not near:
            return self
        at = np.array([float(trial.c) for trial in near])
        found = np.array([_log(trial.error) for trial in near])
        foretold = self(at)
        logs = self.logs - foretold[0]
        if len(near) > 1:
            step = math.log(at[1] / at[0])
            fall, expected = (float(ends[0] - ends[1]) / step for ends in (found, foretold))
            if fall > expected:
                logs = logs - (fall - expected) * np.log(np.arange(1, len(logs) + 1) / at[0])
            elif expected > 0:
                logs = logs * max(fall / expected, LEAST_SHARE)
        return Curve(logs + found[0], self.n)

    def first_below(self, trials: Sequence[Tried], target: float, low: int, high: int) -> int:
        """Return the fewest landmarks from low to high that come down to the target, or high."""
        candidates = np.arange(low, max(low, high) + 1)
        curve = self.through(trials, target)(candidates.astype(np.float64))
        last = max(trials, key=lambda trial: trial.c, default=None)
        if last is not None and low > last.c:
            steep = _log(last.error) - LEAST_SLOPE * np.log(candidates / last.c)
            curve = np.minimum(curve, steep)
        below = np.flatnonzero(curve <= math.log(target))
        return int(candidates[below[0]]) if len(below) else high

    def needed(self, trials: Sequence[Tried], tol: float) -> float:
        """Return how many landmarks the tolerance takes, if the error goes on as it fell last."""
        candidates = np.exp(np.linspace(0, MUCH, 2000))
        below = np.flatnonzero(self.through(trials, tol)(candidates) <= math.log(tol))
        return float(candidates[below[0]]) if len(below) else math.inf


def _log(error: float) -> float:
    return math.log(max(error, EPS))
