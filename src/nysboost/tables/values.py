"""Values of columns: their kind, and their numbers."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import partial
from numbers import Integral, Number
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.arrays import Floats, Indices
from nysboost.tables.dates import (
    DAY_FIRST,
    MONTH_FIRST,
    ZONED,
    as_seconds,
    as_span,
    find_order,
    to_iso,
)
from nysboost.tables.gaps import is_number_mark

Booleans: TypeAlias = NDArray[np.bool]

MINUS = "\u2212"
"""The typographic minus sign."""

TRUTH = {"true": 1.0, "false": 0.0}

FEW_VALUES = 32
"""Up to this many values, text among numbers makes a category, and each value of a category has a
column."""

MOSTLY = 0.9
"""If at least this share of the values are numbers, text among them is a mistake, not a
category."""

# possessive: a cell of many digits that is no number takes time in proportion to its length
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,300}", re.ASCII)

EXACT = 2**53
"""Whole numbers up to this can be stored as floats exactly."""


def first_of(wrong: Booleans) -> int | None:
    """Return the first True row of a mask, or None."""
    if not wrong.any():
        return None
    return int(np.argmax(wrong))


# As numbers


def tidy(text: str) -> str:
    """Return text without surrounding blanks, and with a hyphen for the typographic minus sign."""
    return text.strip().replace(MINUS, "-")


def as_number(value: object) -> float | None:
    """Return a value as a number, NaN for a mark of a missing value; None if it is not a number."""
    if isinstance(value, str):
        text = tidy(value)
        if _NUMBER.fullmatch(text):
            return float(text)
        if is_number_mark(text):
            return np.nan
        return None

    # numbers of any library, Decimal and Fraction
    is_complex = isinstance(value, complex | np.complexfloating)
    if is_complex or not isinstance(value, Number | np.bool):
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except OverflowError:  # a whole number of more than 308 digits
        return np.inf


def as_truth(value: object) -> float | None:
    """Return 1 or 0 for a Boolean, NaN for a mark of a missing value, else None."""
    if isinstance(value, str):
        truth = TRUTH.get(value.strip().lower())
        if truth is not None:
            return truth

    # 0 and 1 stand for truth values
    number = as_number(value)
    if number is None or np.isnan(number):
        return number
    if number in (0.0, 1.0):
        return number
    return None


READINGS: dict[str, Callable[[object], float | None]] = {
    "number": as_number,
    "date": as_seconds,
    ZONED: partial(as_seconds, zoned=True),
    "duration": as_span,
    "boolean": as_truth,
}
"""How the values of each kind become numbers; None for a value of another kind."""


def numbers_as(kind: str, values: Sequence[object], form: str = "") -> tuple[Floats, Booleans]:
    """Return values of a kind as numbers, NaN if missing, and a mask of values of another kind."""
    read = READINGS[kind]
    found: list[float | None] = []
    for value in values:
        if form and isinstance(value, str):
            value = in_usual_form(value, form)
        if is_number_mark(value):
            found.append(np.nan)
        else:
            found.append(read(value))

    # None becomes NaN
    numbers = np.array(found, dtype=np.float64)
    wrong = np.array([number is None for number in found], dtype=bool)
    return numbers, wrong


def as_whole(value: object) -> int | None:
    """Return a whole number, or text that is one, with all digits; None for other values."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, str):
        text = tidy(value)
        if _WHOLE.fullmatch(text):
            return int(text)
    return None


def find_rounded(values: Sequence[object], numbers: Floats) -> int | None:
    """Return a whole number among values that has more digits than its float; None if none has."""
    large = np.isfinite(numbers) & (np.abs(numbers) > EXACT)
    for i in np.flatnonzero(large).tolist():
        whole = as_whole(values[i])
        if whole is not None and whole != int(numbers[i]):
            return whole
    return None


# What text of one column has in common: the unit of numbers, or the order of day and month


def unit_of(value: object) -> str:
    """Return the percent sign or the currency of a written number, or ""."""
    if not isinstance(value, str) or not re.search(r"\d", value):
        return ""
    # the last sign, or the first, if it is % or a currency
    text = tidy(value)
    for sign in (text[-1:], text.lstrip("+-")[:1]):
        if sign == "%" or (sign and unicodedata.category(sign) == "Sc"):
            return sign
    return ""


def unit_pattern(unit: str) -> str:
    """Return the pattern of a unit before or after a number; its group is a sign before it."""
    return rf"^([+-]?){re.escape(unit)}\s*|\s*{re.escape(unit)}$"


def without_unit(text: str, unit: str) -> str:
    """Return a number without the unit before or after it."""
    text = tidy(text)
    body = text.lstrip("+-")
    sign = text[: len(text) - len(body)]
    if len(sign) < 2 and body.startswith(unit):
        return sign + body.removeprefix(unit).lstrip()
    if text.endswith(unit):
        return text.removesuffix(unit).rstrip()
    return text


def in_usual_form(text: str, form: str) -> str:
    """Return a number without its unit, or a date in ISO 8601, if it has this form."""
    if form in (DAY_FIRST, MONTH_FIRST):
        return to_iso(text, form)
    if form:
        return without_unit(text, form)
    return tidy(text)


def find_unit(values: Sequence[object]) -> str:
    """Return the common unit of all numbers of a column, or ""."""
    numbers = (value for value in values if not is_number_mark(value))
    unit = unit_of(next(numbers, ""))
    if unit and all(unit_of(value) == unit for value in numbers):
        return unit
    return ""


# The kind of a column


def kind_of(values: Sequence[object], counts: Indices) -> tuple[str, str, Floats]:
    """Return the kind of a column, its written form, and its values as numbers.

    Parameters
    ----------
    values : sequence
        The distinct values of the column, without missing values.
    counts : ndarray of shape (len(values),)
        Number of rows with each value.

    Returns
    -------
    kind : str
        A key of `READINGS`, "category", or "numbers, but": numbers with a few other values.
    form : str
        The unit of numbers, the order of day and month in dates, or "".
    numbers : ndarray of shape (len(values),)
    """
    if len(values) == 0:
        return "number", "", np.empty(0)
    if all(isinstance(value, bool | np.bool) for value in values):
        return "boolean", "", np.array(values, dtype=np.float64)

    # marks of gaps say nothing about the kind
    there = [value for value in values if not is_number_mark(value)]
    if not there:
        return "category", "", np.empty(0)

    # take the first kind that fits all values; one value rules out most kinds
    form = find_unit(values)
    if not form:
        form = find_order(there)
    for kind in READINGS:
        _, first_is_wrong = numbers_as(kind, there[:1], form)
        if first_is_wrong.any():
            continue
        numbers, wrong = numbers_as(kind, values, form)
        if not wrong.any():
            return kind, form, numbers

    # mostly numbers with a few mistakes, or text
    numbers, _ = numbers_as("number", values)
    if _are_mostly_numbers(values, numbers, counts):
        return "numbers, but", "", numbers
    return "category", "", numbers


def _are_mostly_numbers(values: Sequence[object], numbers: Floats, counts: Indices) -> bool:
    """Return whether nine of ten rows have numbers, with too many values for a category."""
    # count the rows with a value, and those with a number
    is_there = [not is_number_mark(value) for value in values]
    is_number = np.isfinite(numbers)
    rows = counts[is_there].sum()
    rows_of_numbers = counts[is_number].sum()

    # few whole numbers may be codes of a category
    many = len(values) > min(FEW_VALUES, rows / 2)
    fractions = numbers[is_number] % 1
    are_measured = many or bool(fractions.any())
    return are_measured and bool(rows_of_numbers >= MOSTLY * rows)
