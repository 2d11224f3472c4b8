"""Dates, durations and times of day: their seconds, their usual text forms, and their cycles."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import Floats

ZONED = "date with time zone"
DATES = ("date", ZONED)
"""Kinds of columns of dates. Dates with and without a time zone are never mixed, as in pandas."""

DAY_FIRST = "day first"
MONTH_FIRST = "month first"

_EPOCH = dt.datetime(1970, 1, 1)
_YEAR_FIRST = re.compile(r"^(\d{4})([/.])(\d\d)\2(\d\d)(?=$|[ T])", re.ASCII)
_LOCAL_DATE = re.compile(
    r"(?P<first>\d\d?)(?P<mark>[./-])(?P<second>\d\d?)(?P=mark)(?P<year>\d{4})"
    r"(?: (?P<hour>\d\d?)(?P<minutes>:\d\d(?::\d\d)?)(?: ?(?P<half>[AP])M)?)?",
    re.ASCII | re.IGNORECASE,
)

_DAYS_AND_CLOCK = re.compile(
    r"(?:(-?\d+) days?,? ?\+?)?(?:(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?)?", re.ASCII
)
_ISO_DURATION = re.compile(
    r"P(?:(-?\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_SECONDS = (86_400, 3600, 60, 1)  # of a day, an hour, a minute and a second


# As seconds


def as_seconds(value: object, *, zoned: bool = False) -> float | None:
    """Return a date as seconds since 1970; None if it is not a date.

    With `zoned`, only dates with a time zone are read, and the seconds are those of UTC. Otherwise,
    only dates without one are.
    """
    if isinstance(value, str):
        value = _parse_iso_date(value.strip())
    elif hasattr(value, "to_timestamp"):  # a period of pandas: when it begins
        value = value.to_timestamp()

    # dates with a time of day
    has_zone = getattr(value, "tzinfo", None) is not None
    if has_zone != zoned:
        return None
    if isinstance(value, dt.datetime):
        if zoned:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return float((value - _EPOCH).total_seconds())

    if isinstance(value, np.datetime64):
        microseconds = value.astype("datetime64[us]").astype(np.int64)
        return float(microseconds) / 1e6
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).total_seconds()
    return None


def is_date(value: object) -> bool:
    """Return whether a value is a date, with or without a time zone."""
    return any(as_seconds(value, zoned=zoned) is not None for zoned in (False, True))


def _parse_iso_date(text: str) -> dt.datetime | None:
    # digits alone are a number
    text = _YEAR_FIRST.sub(r"\1-\3-\4", text, count=1)
    if "-" not in text:
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def from_seconds(seconds: float) -> dt.datetime | str:
    """Return the date at some seconds after 1970, as text if the year is out of range."""
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds} s"


def as_span(value: object) -> float | None:
    """Return a duration, or a time of the day, in seconds; None if it is neither."""
    if isinstance(value, str):
        return _parse_span(value.strip())
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "us")) / 1e6

    # a time of the day is the time since midnight
    if isinstance(value, dt.time):
        local = value.replace(tzinfo=None)
        value = dt.datetime.combine(_EPOCH, local) - _EPOCH
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return None


def _parse_span(text: str) -> float | None:
    """Return the seconds of "3 days 00:16:34", "26:30" or "P3DT16M"; None for other text."""
    found = _DAYS_AND_CLOCK.fullmatch(text) or _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    pairs = zip(found.groups(), _SECONDS, strict=True)
    return sum(float(part or 0) * unit for part, unit in pairs)


def format_span(ticks: int, ticks_per_second: int) -> str:
    """Return a duration as `as_span` reads it: "3 days 00:16:34.5", or "-1 days +23:00:00"."""
    seconds, rest = divmod(ticks, ticks_per_second)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)

    sign = "+" if days < 0 else ""
    text = f"{days} days {sign}{hour:02}:{minute:02}:{second:02}"
    if rest == 0:
        return text
    n_digits = len(str(ticks_per_second)) - 1
    decimals = f"{rest:0{n_digits}}".rstrip("0")
    return f"{text}.{decimals}"


# The order of day and month


def is_local_date(value: object) -> bool:
    """Return whether a value is text such as 31/1/2020, in which two numbers could be the month."""
    return _match_local_date(value) is not None


def _match_local_date(value: object) -> re.Match[str] | None:
    if not isinstance(value, str):
        return None
    return _LOCAL_DATE.fullmatch(value.strip())


def to_iso(text: str, order: str) -> str:
    """Return a date such as 31/1/2020 in ISO 8601; other values are unchanged."""
    found = _match_local_date(text)
    if found is None:
        return text

    day = found["first"]
    month = found["second"]
    if order == MONTH_FIRST:
        day = found["second"]
        month = found["first"]
    date = f"{found['year']}-{month:0>2}-{day:0>2}"
    if found["hour"] is None:
        return date

    hour = int(found["hour"])
    if found["half"]:
        afternoon = found["half"] in "Pp"
        hour = hour % 12 + 12 * afternoon
    return f"{date} {hour:02}{found['minutes']}"


def find_order(values: Sequence[object]) -> str:
    """Return "day first" or "month first" if only this order is possible for all values, or ""."""
    if not values or not is_local_date(values[0]):
        return ""
    orders = [order for order in (DAY_FIRST, MONTH_FIRST) if _all_dates(values, order)]
    if len(orders) == 1:
        return orders[0]

    # nobody writes the month first before a dot
    dotted = all("." in str(value) for value in values)
    if orders and dotted:
        return DAY_FIRST
    return ""


def _all_dates(values: Sequence[object], order: str) -> bool:
    dates = (to_iso(str(value), order) for value in values)
    return all(as_seconds(date) is not None for date in dates)


# Cycles: time of day, weekday and season

DAY = 86_400.0
WEEK = 7 * DAY
YEAR = 365.2425 * DAY

DIGITS = 9
"""Decimals of sine and cosine, so that cos 2π/7 and cos 12π/7 are one number."""


@dataclass(frozen=True)
class Cycle:
    """A cycle with a `period`, beginning at `start`; it changes in steps of length `step`.

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
        since_last = np.mod(since_start, self.period)
        return np.asarray(since_last / self.period)


CYCLES = {
    cycle.name: cycle
    for cycle in (
        Cycle("time of day", DAY),
        Cycle("weekday", WEEK, step=DAY, start=4 * DAY),  # 5 January 1970 was a Monday
        Cycle("season", YEAR),
    )
}


def choose_cycles(kind: str, seconds: Floats) -> tuple[str, ...]:
    """Return the names of the cycles of a column of dates or durations.

    Parameters
    ----------
    kind : str
        Only dates and durations have cycles; those of dates with a time zone are in UTC.
    seconds : ndarray of shape (n,)
        Its values, without gaps.
    """
    if kind not in (*DATES, "duration") or len(seconds) == 0:
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
    names = []
    for cycle in CYCLES.values():
        varies = np.ptp(cycle.phase(seconds)) > 0
        if span > cycle.period and varies:
            names.append(cycle.name)
    return tuple(names)


def encode_cycles(names: Sequence[str], seconds: Floats) -> list[Floats]:
    """Return phase, sine and cosine of each cycle, shape (n,), with 0 for missing values."""
    columns: list[Floats] = []
    for name in names:
        phase = CYCLES[name].phase(seconds)
        angle: Floats = 2 * np.pi * phase
        sine = np.sin(angle).round(DIGITS)
        cosine = np.cos(angle).round(DIGITS)
        columns += [phase, sine, cosine]
    return [np.nan_to_num(column) for column in columns]
