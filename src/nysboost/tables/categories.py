"""Values of categories: how they are stored, and how values of other tables are matched."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

import numpy as np

from nysboost.tables.gaps import is_program_mark
from nysboost.tables.values import TRUTH, as_number, as_whole

Value = str | bool | float
"""A value of a category."""

GAP = -1
UNKNOWN = -2
"""Positions of a missing value, and of a value that was not in the fit."""


def plain(value: object) -> Value:
    """Return a value in the form stored by a category: text, a Boolean or a number."""
    if isinstance(value, np.bool | np.number | np.str_ | np.bytes_):
        value = value.item()

    # text, and what JSON and model files keep as it is
    if isinstance(value, bytes):
        value = value.decode(errors="backslashreplace")
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | int | float):
        return value

    # numbers of other types; all else by its text, without a time that is midnight
    number = as_number(value)
    if number is not None:
        return number
    if isinstance(value, dt.datetime) and value.time() == dt.time():
        return str(value.date())
    return str(value)


def find_positions(known: Sequence[Value], values: Sequence[object]) -> list[int]:
    """Return the positions of values among the known values of a category.

    1, 1.0 and True are the same value. "1" is matched with 1 if "1" itself is unknown. A mark such
    as "NA" is a missing value, unless it is a known value.
    """
    # of several values with the same other form the first counts
    exact = {value: i for i, value in enumerate(known)}
    others = {_other_form(value): i for value, i in reversed(exact.items())}

    positions = []
    for value in map(plain, values):
        position = exact.get(value, others.get(value))
        if position is None and is_program_mark(value):
            position = GAP
        elif position is None:
            position = UNKNOWN
        positions.append(position)
    return positions


def _other_form(value: Value) -> Value | None:
    """Return text as a number or a Boolean, and these as text."""
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bool):
        return str(value)

    # whole numbers without a decimal point
    is_small = isinstance(value, int) or abs(value) < 2**63
    if value == value // 1 and is_small:
        return str(int(value))
    return repr(as_number(value))


def _from_text(text: str) -> float | None:
    """Return the number, or the truth value, that a text is; None if it is neither."""
    truth = TRUTH.get(text.strip().lower())
    if truth is not None:
        return truth

    # whole numbers keep all their digits
    whole = as_whole(text)
    if whole is not None:
        return whole

    number = as_number(text)
    if number is None or np.isnan(number):
        return None
    return number
