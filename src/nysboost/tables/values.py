"""Values of columns: what kind they are, and as numbers, by value and not by their text."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Sequence
from numbers import Number
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Floats

MISSING = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", "nat")
"""What programs write, in letters of any case, where text has no value."""

MISSING_MARKERS = (
    *MISSING, "?", "-", "--", ".", "none", "missing", "#div/0!", "#value!", "#ref!", "#num!",
)  # fmt: skip
"""What people write besides, in a column that is otherwise numbers."""

MINUS = "\u2212"
DAY_FIRST, MONTH_FIRST = "day first", "month first"
TRUTH = {"true": 1.0, "false": 0.0}

FEW_VALUES = 32
"""Values up to which text beside numbers is a category, and a category has a column for each."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_LOCAL_DATE = re.compile(
    r"(\d\d?)([./-])(\d\d?)\2(\d{4})(?: (\d\d?)(:\d\d(?::\d\d)?)(?: ?([AP])M)?)?", re.ASCII | re.I
)
_SPANS = (  # as pandas and Python write them, clocks, and ISO 8601
    re.compile(r"(?:(-?\d+) days?,? ?\+?)?(?:(\d+):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?)?", re.ASCII),
    re.compile(r"P(?:(-?\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.ASCII),
)
_UNITS = (86_400, 3600, 60, 1)
_EPOCH = dt.datetime(1970, 1, 1)


def first_of(wrong: Any) -> int | None:
    """Return the first row where something is wrong, None if there is none."""
    return int(np.argmax(wrong)) if wrong.any() else None


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, NA, or what programs write for it."""
    if isinstance(value, str):
        return len(value) < 8 and value.strip().lower() in MISSING
    if value is None:
        return True
    same = value == value
    return not isinstance(same, bool | np.bool) or not same


def is_missing_marker(value: Any) -> bool:
    """Whether a value is text that marks a gap among numbers."""
    return isinstance(value, str) and value.strip().lower() in MISSING_MARKERS


# As numbers


def tidy(text: str) -> str:
    """Return text without blanks around it, and with the minus sign of typesetters as a hyphen."""
    return text.strip().replace(MINUS, "-")


def as_number(value: Any) -> float | None:
    """Return a value as a number, NaN for a mark of a gap; None if it is no number."""
    if isinstance(value, str):
        text = tidy(value)
        if _NUMBER.fullmatch(text):
            return float(text)
        return float("nan") if text.lower() in MISSING_MARKERS else None
    if not isinstance(value, Number | np.bool) or isinstance(value, complex | np.complexfloating):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf")


def as_truth(value: Any) -> float | None:
    """Return 1 or 0 for a truth value, NaN for a mark of a gap; None if it is none of these."""
    text = value.strip().lower() if isinstance(value, str) else ""
    found = TRUTH.get(text, as_number(value))
    return found if found in (0.0, 1.0, None) or found != found else None


def as_seconds(value: Any) -> float | None:
    """Return a date as seconds since 1970 (UTC); None if it is none."""
    if isinstance(value, str):
        text = value.strip()
        try:
            value = dt.datetime.fromisoformat(text) if len(text) >= 8 and "-" in text else None
        except ValueError:
            return None
    if isinstance(value, np.datetime64):
        return float(value.astype("datetime64[us]").astype(np.int64)) / 1e6
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.UTC).replace(tzinfo=None)
        return float((value - _EPOCH).total_seconds())
    return (value - _EPOCH.date()).total_seconds() if isinstance(value, dt.date) else None


def from_seconds(seconds: float) -> dt.datetime | str:
    """Return the date that is so many seconds after 1970 (UTC), as text if years are too far."""
    try:
        return _EPOCH + dt.timedelta(seconds=seconds)
    except OverflowError:
        return f"{seconds} s"


def as_span(value: Any) -> float | None:
    """Return a span of time, or a time of the day, in seconds; None if it is none."""
    if isinstance(value, str):
        parts = [f.groups() for form in _SPANS if (f := form.fullmatch(value.strip()))]
        if not parts or not any(parts[0]):
            return None
        return sum(float(x or 0) * unit for x, unit in zip(parts[0], _UNITS, strict=True))
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "us")) / 1e6
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_EPOCH, value) - _EPOCH
    return value.total_seconds() if isinstance(value, dt.timedelta) else None


READINGS = {"number": as_number, "date": as_seconds, "duration": as_span, "boolean": as_truth}
"""How the values of each kind become numbers; what is no such value is None."""


def numbers_as(kind: str, values: Sequence[Any], form: str = "") -> tuple[Floats, Any]:
    """Return values of a kind as numbers, NaN for a mark of a gap, and which are of another."""
    values = [in_usual_form(value, form) for value in values] if form else values
    found = list(map(READINGS[kind], values))
    return np.array(found, dtype=np.float64), np.array([x is None for x in found], dtype=bool)


# What text of one column has in common: the unit of numbers, or the order of day and month


def unit_of(value: Any) -> str:
    """Return the percent sign or the currency that a number is written with, or ""."""
    text = tidy(value) if isinstance(value, str) and re.search(r"\d", value) else ""
    signs = (text[-1:], text.lstrip("+-")[:1]) if text else ()
    return next((s for s in signs if s == "%" or unicodedata.category(s) == "Sc"), "")


def unit_pattern(unit: str) -> str:
    """Return the pattern of a unit before or behind a number; its group is a sign before it."""
    return rf"^([+-]?){re.escape(unit)}\s*|\s*{re.escape(unit)}$"


def in_usual_form(value: Any, form: str) -> Any:
    """Return a number without its unit, or a date as ISO 8601 writes it, if it has this form."""
    if not isinstance(value, str):
        return value
    if form not in (DAY_FIRST, MONTH_FIRST):
        return re.sub(unit_pattern(form), r"\1", tidy(value), count=1) if form else tidy(value)
    found = _LOCAL_DATE.fullmatch(value.strip())
    if found is None:
        return value
    day, month = (found[1], found[3]) if form == DAY_FIRST else (found[3], found[1])
    iso = f"{found[4]}-{month:0>2}-{day:0>2}"
    if found[5] is None:
        return iso
    hour = int(found[5]) % 12 + 12 * (found[7] in "Pp") if found[7] else int(found[5])
    return f"{iso} {hour:02}{found[6]}"


def find_unit(values: Sequence[Any]) -> str:
    """Return the unit that all numbers of a column are written with, or ""."""
    numbers = (value for value in values if not is_missing_marker(value))
    unit = unit_of(next(numbers, ""))
    return unit if unit and all(unit_of(value) == unit for value in numbers) else ""


def find_order(values: Sequence[Any]) -> str:
    """Return in which order days and months are, if all are dates in that one alone, or ""."""
    if in_usual_form(values[0], DAY_FIRST) == values[0]:
        return ""
    orders = [o for o in (DAY_FIRST, MONTH_FIRST) if not numbers_as("date", values, o)[1].any()]
    # after a dot the month comes first nowhere
    dotted = len(orders) == 2 and all("." in str(value) for value in values)
    return orders[0] if dotted or len(orders) == 1 else ""


def kind_of(values: Sequence[Any], counts: Any) -> tuple[str, str, Floats]:
    """Return what such a column is, how it is written, and its values as numbers.

    It is one of `READINGS`, "category", or "numbers, but": numbers, and few values that are none.
    """
    if all(isinstance(v, bool | np.bool) for v in values):
        return "boolean" if len(values) else "number", "", np.array(values, dtype=np.float64)
    if all(map(is_missing_marker, values)):
        return "category", "", np.empty(0)
    form = find_unit(values) or find_order(values)
    start = in_usual_form(values[0], form) if form else values[0]
    for kind, read in READINGS.items():
        if read(start) is not None:
            numbers, wrong = numbers_as(kind, values, form)
            if not wrong.any():
                return kind, form, numbers
    numbers, _ = numbers_as("number", values)
    real = np.isfinite(numbers)
    there = counts[[not is_missing_marker(v) for v in values]].sum()
    varied = len(values) > min(FEW_VALUES, there / 2) or (numbers[real] % 1 != 0).any()
    almost = varied and counts[real].sum() >= 0.9 * there
    return "numbers, but" if almost else "category", "", numbers


# As categories


def plain(value: Any) -> str | bool | float:
    """Return a value as a category keeps it: text, a truth value or a number."""
    if isinstance(value, np.bool | np.number | np.str_ | np.bytes_):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if isinstance(value, str | bool | int | float):
        return value.strip() if isinstance(value, str) else value
    number = as_number(value)
    if number is not None:
        return number
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return str(value.date())
    return str(value)


def find_positions(known: Sequence[Any], values: Sequence[Any]) -> list[int]:
    """Return where values stand among the known ones of a category, −2 if they do not.

    1, 1.0 and True are one value, and "1" is looked for as 1 if it is not known itself.
    """
    exact = {value: i for i, value in enumerate(known)}
    others = {_other(value): i for value, i in reversed(exact.items())}
    return [exact.get(value, others.get(value, -2)) for value in map(plain, values)]


def _other(value: Any) -> Any:
    """Return a number or a truth value for text, and text for these."""
    if isinstance(value, str):
        number = int(value) if _WHOLE.fullmatch(value) else as_number(value)
        truth = TRUTH.get(value.strip().lower())
        return truth if truth is not None else number if number == number else None
    if isinstance(value, bool):
        return str(value)
    return str(int(value)) if value == value // 1 and abs(value) < 2**63 else repr(as_number(value))
