"""Missing values: the only place that decides which cells have no value.

A cell of a frame is missing if it is None, NaN, NaT, NA or blank text. In text files, programs
write marks such as "NA" for missing values. In a frame, "NA" is ordinary text, unless the other
values of its column are numbers, dates or durations.
"""

from __future__ import annotations

import numpy as np

PROGRAM_MARKS = ("", "na", "n/a", "nan", "null", "<na>", "#n/a", "nat")
"""Marks that programs write into text files for missing values, in upper or lower case."""

NUMBER_MARKS = (
    *PROGRAM_MARKS, "?", "-", "--", ".", "none", "missing", "#div/0!", "#value!", "#ref!", "#num!",
)  # fmt: skip
"""Marks with those that people write in columns of numbers, dates and durations."""


def is_gap(value: object) -> bool:
    """Return whether a cell of a frame has no value: None, NaN, NaT, NA or blank text."""
    if isinstance(value, str):
        return not value or value.isspace()
    if value is None:
        return True

    # NaN and NaT are not equal to themselves; pandas' NA compares to itself as NA
    equals_itself = value == value
    if not isinstance(equals_itself, bool | np.bool):
        return True
    return not equals_itself


def is_program_mark(value: object) -> bool:
    """Return whether a value is text that programs write for a missing value."""
    return isinstance(value, str) and value.strip().lower() in PROGRAM_MARKS


def is_number_mark(value: object) -> bool:
    """Return whether a value is text that marks a gap in a column of numbers."""
    return isinstance(value, str) and value.strip().lower() in NUMBER_MARKS
