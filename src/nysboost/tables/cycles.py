"""Cycles of dates: time of day, weekday and season."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import Floats

DAY = 86_400.0
WEEK = 7 * DAY
YEAR = 365.2425 * DAY

DIGITS = 9
"""Decimals of sine and cosine, so that cos 2π/7 and cos 12π/7 are one number."""


@dataclass(frozen=True)
class Cycle:
    """What comes again after a `period`, the first time at `start`; nothing changes in a `step`.

    All are in seconds, `start` since 1970. A time has three codes: its phase φ, from 0 to 1, and
    sin 2πφ and cos 2πφ, which put the last hour of a day beside the first. Without φ the error on
    `bike_hours` is 1.03 times as large, with weeks that begin on Thursday 1.01 times.
    """

    name: str
    period: float
    step: float = 0.0
    start: float = 0.0

    def phase(self, seconds: Floats) -> Floats:
        """Return the share of the period that has passed; times are seconds since 1970."""
        since_start = seconds - self.start
        if self.step:
            since_start = np.floor(since_start / self.step) * self.step
        return np.asarray(np.mod(since_start, self.period) / self.period)


CYCLES = {
    cycle.name: cycle
    for cycle in (
        Cycle("time of day", DAY),
        Cycle("weekday", WEEK, step=DAY, start=4 * DAY),  # 5 January 1970 was a Monday
        Cycle("season", YEAR),
    )
}


def choose_cycles(kind: str, seconds: Floats) -> tuple[str, ...]:
    """Return the names of the cycles that a column goes through, if it has dates or durations.

    Parameters
    ----------
    kind : str
        Only dates and durations have some.
    seconds : ndarray of shape (n,)
        Its values, without gaps.
    """
    if kind not in ("date", "duration") or len(seconds) == 0:
        return ()
    least = float(seconds.min())
    span = float(seconds.max()) - least

    # times of day are durations below 24 hours, spread over more than half a day
    if kind == "duration":
        is_time_of_day = least >= 0 and DAY / 2 < span < DAY
        if is_time_of_day:
            return ("time of day",)
        return ()

    # within one period the date itself says as much
    repeated = [cycle for cycle in CYCLES.values() if span > cycle.period]
    return tuple(cycle.name for cycle in repeated if _varies(cycle, seconds))


def _varies(cycle: Cycle, seconds: Floats) -> bool:
    return bool(np.ptp(cycle.phase(seconds)) > 0)


def encode_cycles(names: Sequence[str], seconds: Floats) -> list[Floats]:
    """Return phase, sine and cosine of each cycle, of shape (n,); all are 0 in a gap."""
    columns: list[Floats] = []
    for name in names:
        phase = CYCLES[name].phase(seconds)
        angle: Floats = 2 * np.pi * phase
        sine = np.sin(angle).round(DIGITS)
        cosine = np.cos(angle).round(DIGITS)
        columns += [phase, sine, cosine]
    return [np.nan_to_num(column) for column in columns]
