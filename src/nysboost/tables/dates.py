"""Dates, durations and times of day as seconds, and the ways in which people write them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

import numpy as np

DAY_FIRST = "day first"
MONTH_FIRST = "month first"

_EPOCH = dt.datetime(1970, 1, 1)
_SHORTEST_DATE = len("20200131")
_LOCAL_DATE = re.compile(
    r"(?P<first>\d\d?)(?P<mark>[./-])(?P<second>\d\d?)(?P=mark)(?P<year>\d{4})"
    r"(?: (?P<hour>\d\d?)(?P<minutes>:\d\d(?::\d\d)?)(?: ?(?P<half>[AP])M)?)?",
    re.ASCII | re.IGNORECASE,
)
_LONGEST_LOCAL_DATE = len("31/12/2020 12:00:00 AM")

_DAYS_AND_CLOCK = re.compile(
    r"(?:(-?\d+) days?,? ?\+?)?(?:(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?)?", re.ASCII
)
_ISO_DURATION = re.compile(
    r"P(?:(-?\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_SECONDS = (86_400, 3600, 60, 1)  # of a day, an hour, a minute and a second


# As seconds


def as_seconds(value: object) -> float | None:
    """Return a date as seconds since 1970 (UTC); None if it is no date."""
    if isinstance(value, str):
        value = _parse_iso_date(value.strip())
    if isinstance(value, np.datetime64):
        microseconds = value.astype("datetime64[us]").astype(np.int64)
        return float(microseconds) / 1e6
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return float((value - _EPOCH).total_seconds())
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).total_seconds()
    return None


def _parse_iso_date(text: str) -> dt.datetime | None:
    # digits alone are a number
    if len(text) < _SHORTEST_DATE or "-" not in text:
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None


def from_seconds(seconds: float) -> dt.datetime | str:
    """Return the date that is so many seconds after 1970 (UTC), as text if years are too far."""
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
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_EPOCH, value.replace(tzinfo=None)) - _EPOCH
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    return None


def _parse_span(text: str) -> float | None:
    """Return the seconds of "3 days 00:16:34", "26:30" or "P3DT16M", None if it is no such text."""
    found = _DAYS_AND_CLOCK.fullmatch(text) or _ISO_DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    pairs = zip(found.groups(), _SECONDS, strict=True)
    return sum(float(part or 0) * unit for part, unit in pairs)


# The order of day and month


def is_local_date(value: object) -> bool:
    """Return whether a value is text such as 31/1/2020, in which two numbers could be the month."""
    return _match_local_date(value) is not None


def _match_local_date(value: object) -> re.Match[str] | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    if len(text) > _LONGEST_LOCAL_DATE:
        return None
    return _LOCAL_DATE.fullmatch(text)


def to_iso(text: str, order: str) -> str:
    """Return a date such as 31/1/2020 in the form of ISO 8601; anything else as it is."""
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
    """Return "day first" or "month first" if all values are dates in that order alone, or ""."""
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
    texts = [str(value) for value in values]
    return all(as_seconds(to_iso(text, order)) is not None for text in texts)
