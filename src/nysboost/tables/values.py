"""Values of columns: what kind they are, and as numbers, by value and not by their text."""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Floats, Indices

MISSING = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", "nat")
"""What programs write, in letters of any case, where text has no value."""

MARKS = (*MISSING, "?", "-", "--", ".", "none", "missing", "#div/0!", "#value!", "#ref!", "#num!")
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
_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?", re.ASCII)
_EPOCH = dt.datetime(1970, 1, 1)


@dataclass(frozen=True, eq=False)
class Factor:
    """A column of any values: `codes` (n,) are positions among the distinct ones, or −1."""

    codes: Indices
    values: Sequence[Any]

    @classmethod
    def of(cls, cells: Iterable[Hashable]) -> Factor:
        """Give each value a number; 1, 1.0 and Decimal(1) are one value."""
        seen: dict[Any, int] = {}
        codes = np.array([seen.setdefault(cell, len(seen)) for cell in cells], dtype=np.intp)
        gaps = np.array([is_gap(value) for value in seen], dtype=bool)
        if not gaps.any():
            return cls(codes, list(seen))
        renumbered = np.where(gaps, -1, np.cumsum(~gaps) - 1)
        return cls(renumbered[codes], [v for v, gap in zip(seen, gaps, strict=True) if not gap])

    def counts(self) -> Indices:
        """Return how many rows have each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def at(self, numbers: Sequence[float] | Floats) -> Floats:
        """Return for each row the number of its value, NaN where it is missing."""
        return np.append(np.asarray(numbers, dtype=np.float64), np.nan)[self.codes]


def first_of(wrong: Any) -> int | None:
    """Return the first row where something is wrong, None if there is none."""
    return int(np.argmax(wrong)) if wrong.any() else None


def is_gap(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, NA, or what programs write for it."""
    if isinstance(value, str):
        return len(value) < 8 and value.strip().lower() in MISSING
    if value is None:
        return True
    same = value == value
    return not isinstance(same, bool | np.bool) or not same


def is_mark(value: Any) -> bool:
    """Whether a value is text that marks a gap among numbers."""
    return isinstance(value, str) and value.strip().lower() in MARKS


# Forms: what text of one column has in common


def find_form(values: Sequence[Any]) -> str:
    """Return how text of a column is written: its unit, or in which order days and months are.

    A unit is a percent sign or a currency; it, or the order, is that of every value, or "".
    """
    texts = (tidy(v) if isinstance(v, str) else "" for v in values if not is_mark(v))
    start = next(texts, "")
    if unit := _unit(start):
        return unit if all(_unit(text) == unit for text in texts) else ""
    if not _LOCAL_DATE.fullmatch(start):
        return ""
    found = [_LOCAL_DATE.fullmatch(text) for text in chain([start], texts)]
    dates = [date.groups() for date in found if date]
    if len(dates) < len(found):
        return ""
    if max(int(date[2]) for date in dates) > 12:
        return MONTH_FIRST
    dotted = all(date[1] == "." for date in dates)  # after which the month comes first nowhere
    return DAY_FIRST if dotted or max(int(date[0]) for date in dates) > 12 else ""


def is_local_date(value: Any) -> bool:
    """Whether a value is text such as 1/2/2020, a date whose order is that of a country."""
    return isinstance(value, str) and _LOCAL_DATE.fullmatch(value.strip()) is not None


def _unit(text: str) -> str:
    signs = (text[-1:], text.lstrip("+-")[:1]) if re.search(r"\d", text) else ()
    return next((s for s in signs if s == "%" or unicodedata.category(s) == "Sc"), "")


def without_unit(text: str) -> str:
    """Return a number without blanks around it, and without its unit, if it has one."""
    text = tidy(text)
    unit = _unit(text)
    return text.replace(unit, "", 1).strip() if unit else text


def in_usual_form(value: Any, form: str) -> Any:
    """Return a number without its unit, or a date as ISO 8601 writes it, if it has this form."""
    if not form or not isinstance(value, str):
        return value
    if form not in (DAY_FIRST, MONTH_FIRST):
        return without_unit(value)
    found = _LOCAL_DATE.fullmatch(value.strip())
    if found is None:
        return value
    day, month = (found[1], found[3]) if form == DAY_FIRST else (found[3], found[1])
    iso = f"{found[4]}-{month:0>2}-{day:0>2}"
    if found[5] is None:
        return iso
    hour = int(found[5]) % 12 + 12 * (found[7] in "Pp") if found[7] else int(found[5])
    return f"{iso} {hour:02}{found[6]}"


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
        return float("nan") if text.lower() in MARKS else None
    if not isinstance(value, Number | np.bool) or isinstance(value, complex | np.complexfloating):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf")


def as_truth(value: Any) -> float | None:
    """Return 1 or 0 for a truth value, NaN for a mark of a gap; None if it is none of these."""
    if isinstance(value, str) and value.strip().lower() in TRUTH:
        return TRUTH[value.strip().lower()]
    found = as_number(value)
    return found if found is not None and (found in (0.0, 1.0) or found != found) else None


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
        return float((value - _EPOCH) / dt.timedelta(seconds=1))
    return (value - _EPOCH.date()) / dt.timedelta(seconds=1) if isinstance(value, dt.date) else None


def from_seconds(seconds: float) -> dt.datetime:
    """Return the date that is so many seconds after 1970 (UTC)."""
    return _EPOCH + dt.timedelta(seconds=seconds)


def as_span(value: Any) -> float | None:
    """Return a span of time, or a time of the day, in seconds; None if it is none."""
    if isinstance(value, str):
        try:
            value = dt.time.fromisoformat(value.strip()) if ":" in value else None
        except ValueError:
            return None
    if isinstance(value, np.timedelta64):
        return float(value / np.timedelta64(1, "us")) / 1e6
    if isinstance(value, dt.time):
        return value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6
    return value / dt.timedelta(seconds=1) if isinstance(value, dt.timedelta) else None


READINGS = {"number": as_number, "boolean": as_truth, "date": as_seconds, "duration": as_span}
"""How the values of each kind become numbers; what is no such value is None."""


def numbers_as(kind: str, values: Sequence[Any], form: str = "") -> tuple[Floats, Any]:
    """Return values of a kind as numbers, NaN for a mark of a gap, and which are of another."""
    values = [in_usual_form(value, form) for value in values] if form else values
    if kind == "date" and all(map(_is_iso_date, values)):  # two to three times as fast as below
        with suppress(ValueError):  # the 30th of February
            dates = np.array(values, dtype="datetime64[us]").astype(np.int64)
            return dates / 1e6, np.zeros(len(values), dtype=bool)
    found = [READINGS[kind](value) for value in values]
    return np.array(found, dtype=np.float64), np.array([x is None for x in found], dtype=bool)


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and _DATE.fullmatch(value) is not None


def kind_of(values: Sequence[Any], counts: Any) -> tuple[str, str]:
    """Return what such a column is, one of `READINGS`, "category", or "numbers, but", and its form.

    The last has numbers, and few values that are none.
    """
    if not len(values):
        return "number", ""
    if all(isinstance(v, bool | np.bool) for v in values):
        return "boolean", ""
    if all(map(is_mark, values)):
        return "category", ""
    form = find_form(values)
    usual = [in_usual_form(value, form) for value in values] if form else values
    for kind in ("number", "date", "duration", "boolean"):
        if READINGS[kind](usual[0]) is not None and not numbers_as(kind, usual)[1].any():
            return kind, form
    numbers, _ = numbers_as("number", values)
    real = ~np.isnan(numbers)
    there = counts[[not is_mark(v) for v in values]].sum()
    varied = len(values) > min(FEW_VALUES, there / 2) or (numbers[real] % 1 != 0).any()
    almost = varied and counts[real].sum() >= 0.9 * there
    return "numbers, but" if almost else "category", ""


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
    return str(int(value)) if value == value // 1 and abs(value) < 2**63 else repr(float(value))
