"""Decide the kind of each column of a table from the summary of all its rows."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np

from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.linalg import median
from nysboost.numerics.messages import format_cell
from nysboost.tables.categories import Value, plain
from nysboost.tables.columns import Column, is_far, say_far, say_gaps
from nysboost.tables.dates import DATES, choose_cycles, is_date, is_local_date
from nysboost.tables.frames import RawColumn
from nysboost.tables.summaries import PLURALS, ColumnSummary
from nysboost.tables.values import (
    READINGS,
    as_whole,
    find_rounded,
    first_of,
    kind_of,
    numbers_as,
)

FEW_FOR_TEXT = 32
"""Up to this many values may occur only once; with more, text needs two rows per value on
average."""

FEWEST_IDS = 100
"""Fewest rows for which a different number in each row is an id; a table of years has fewer."""

ID_EVIDENCE = 10.0
"""n²/2R of an id: n measurements among R values all differ with probability exp(−n²/2R)."""

NEARLY_SORTED = 0.95
"""A table is sorted by a date if at least this share of rows does not decrease."""

_SAYS_ID = re.compile(r"(?:^|[\W_])[iI][dD]$|[a-z](?:Id|ID)$")


def decide(given: ColumnSummary, missing: str, ids: str = "keep") -> Column:
    """Decide the kind of a column.

    Parameters
    ----------
    given : ColumnSummary
        Its values, or numbers and what else is known already.
    missing : "fill" or another
        Any value other than "fill" makes missing values an error.
    ids : "keep" or "drop"
        Whether to use a column that numbers the rows.
    """
    # find the kind, and turn values into numbers
    kind, form, numbers = _find_kind(given)
    summary = given
    marks: tuple[str, ...] = ()
    if given.counts and kind in READINGS:
        summary, marks = _as_numbers(given, kind, numbers, missing)

    # describe the column by its kind
    if summary.gaps and missing != "fill":
        raise ValueError(say_gaps(summary.name, summary.gaps))
    if kind == "category":
        return _decide_category(summary)
    if summary.gaps and not summary.sampled:
        return _leave_out_empty(summary)

    column = _decide_numbers(summary, kind)
    column = replace(column, form=form, marks=marks)
    if kind != "number":
        return column

    # whole numbers that floats would round are still told apart
    exact = summary
    rounded = find_rounded(list(given.counts), numbers)
    if rounded is not None:
        exact = _count_from_least(given, numbers)
    if ids == "drop" and numbers_rows(exact):
        _warn_of_id(summary)
        return replace(column, kind="id", note="")
    if rounded is not None:
        _warn_of_rounding(summary.name, rounded)
    return column


# Numbers, dates, durations and truth values


def _find_kind(summary: ColumnSummary) -> tuple[str, str, Floats]:
    """Return the kind of a column, its written form, and its different values as numbers."""
    values = list(summary.counts)
    is_empty_category = summary.kind == "category" and not values
    if summary.kind != "object" and not is_empty_category:
        return summary.kind, "", np.empty(0)

    kind, form, numbers = kind_of(values, _rows_of_values(summary))
    if kind != "numbers, but" and not summary.sampled:
        return kind, form, numbers

    # the rest of the column is numbers: so must these be
    kind = summary.sampled or "number"
    numbers, wrong = numbers_as(kind, values, form)
    at = first_of(wrong)
    if at is not None:
        other = format_cell(values[at])
        raise ValueError(
            f"Column {summary.name!r} holds {PLURALS[kind]}, but also {other}: make it "
            f"a {kind} or leave it empty; or make the column a category, with "
            'astype("category") or --category.'
        )
    return kind, form, numbers


def _as_numbers(
    summary: ColumnSummary, kind: str, numbers: Floats, missing: str
) -> tuple[ColumnSummary, tuple[str, ...]]:
    """Return the summary with values as numbers, and the marks of missing values."""
    of_rows = np.repeat(numbers, _rows_of_values(summary))
    read = ColumnSummary.at(RawColumn(summary.name, kind, of_rows))

    # what became NaN marks a gap
    pairs = zip(summary.counts, numbers, strict=True)
    marks = sorted(str(value) for value, number in pairs if np.isnan(number))
    if marks and missing == "fill":
        warnings.warn(
            f"Column {summary.name!r} holds {PLURALS[kind]}, and {read.gaps} times "
            f"{', '.join(map(repr, marks))}: these are read as missing values.",
            stacklevel=2,
        )
    rest = replace(summary, counts=Counter())
    return read + rest, tuple(marks)


def _count_from_least(summary: ColumnSummary, numbers: Floats) -> ColumnSummary:
    """Return the summary of whole numbers less the least of them, as floats hold them exactly."""
    whole = [as_whole(value) for value in summary.counts]
    least = min(number for number in whole if number is not None)
    shifted = numbers - float(least)
    for i, number in enumerate(whole):
        if number is not None:
            shifted[i] = float(number - least)
    exact, _ = _as_numbers(summary, "number", shifted, "raise")
    return exact


def _rows_of_values(summary: ColumnSummary) -> Indices:
    """Return how many rows have each value."""
    return np.array(list(summary.counts.values()), dtype=np.intp)


def _decide_numbers(summary: ColumnSummary, kind: str) -> Column:
    """Return a column of numbers, or refuse a code for "no data"."""
    far = summary.far
    is_wrong = kind == "number" and is_far(abs(far), summary.least)
    if not np.isfinite(far) or is_wrong:
        raise ValueError(say_far(summary.name, far))

    sample = summary.sample
    return Column(
        name=summary.name,
        kind=kind,
        gaps=summary.gaps,
        usual=median(np.abs(sample[sample != 0])),
        median=median(sample),
        cycles=choose_cycles(kind, sample),
        note=_note_on_numbers(summary, kind),
    )


def _leave_out_empty(summary: ColumnSummary) -> Column:
    warnings.warn(
        f"Column {summary.name!r} has no value in any of {summary.gaps} rows, and is left out.",
        stacklevel=2,
    )
    return Column(summary.name, "empty", gaps=summary.gaps)


# Categories


def _decide_category(summary: ColumnSummary) -> Column:
    """Return a column of categories, or of text that hardly repeats."""
    n_rows = summary.counts.total()
    hardly_repeat = len(summary.counts) > max(FEW_FOR_TEXT, n_rows / 2)
    if summary.kind == "object" and hardly_repeat:
        _warn_of_text(summary)
        return Column(summary.name, "text", gaps=summary.gaps)

    # values that are kept alike are one
    counts: Counter[Value] = Counter()
    for value, count in summary.counts.items():
        counts[plain(value)] += count

    # numbers before texts
    texts = sorted(value for value in counts if isinstance(value, str))
    numbers = sorted(value for value in counts if not isinstance(value, str))
    values = (*numbers, *texts)

    # values with blanks around them, which ONNX compares as they are
    written = [value for value in summary.counts if isinstance(value, str)]
    padded = [text for text in written if text != text.strip()]

    return Column(
        name=summary.name,
        kind="category",
        values=values,
        gaps=summary.gaps,
        counts=tuple(counts[value] for value in values),
        padded=tuple(sorted(padded)),
        note=_note_on_groups(summary.name, len(values), n_rows),
    )


def _warn_of_text(summary: ColumnSummary) -> None:
    hint = ""
    if all(is_local_date(value) for value in summary.counts):
        hint = " Write dates as 2020-01-31 if day and month could be swapped."
    elif all(is_date(value) for value in summary.counts):
        hint = " Some of its dates have a time zone, others have none: write all in one way."

    warnings.warn(
        f"Column {summary.name!r} is text with {len(summary.counts)} different values in "
        f"{summary.counts.total()} rows. It is left out, because nothing can be learned "
        f"from values that hardly repeat.{hint}",
        stacklevel=2,
    )


# Ids, groups and order


def numbers_rows(summary: ColumnSummary) -> bool:
    """Return whether numbers are ids or row numbers rather than measurements.

    They are whole numbers that differ in every row. Either the column's name says that they are
    ids, or there are too many of them for measurements: n measurements among R possible values all
    differ with probability exp(−n²/2R).
    """
    sample = summary.sample
    n = len(sample)
    if n < FEWEST_IDS or summary.repeats:
        return False

    # whole numbers, all of them different
    fractions = sample % 1
    if fractions.any() or len(np.unique(sample)) < n:
        return False

    # R, and the evidence n²/2R
    possible = np.ptp(sample) + 1
    unlikely = n**2 / (2 * possible) > ID_EVIDENCE
    return bool(unlikely) or _SAYS_ID.search(summary.name) is not None


def _warn_of_id(summary: ColumnSummary) -> None:
    sample = summary.sample
    warnings.warn(
        f"Column {summary.name!r} has a different whole number in each row ({sample.min():.0f} "
        f"to {sample.max():.0f}), like an id, so it says nothing about new rows and is left out. "
        'To use it, set ids="keep" (in a shell, --ids keep).',
        stacklevel=2,
    )


def _warn_of_rounding(name: str, example: int) -> None:
    warnings.warn(
        f"Column {name!r} has whole numbers such as {example}, of which floating point holds the "
        "first 16 digits only. If they are ids, make the column a category, with "
        'astype("category") or --category, or leave it out. If they are measurements, subtract '
        "the least of them first.",
        stacklevel=2,
    )


def _note_on_numbers(summary: ColumnSummary, kind: str) -> str:
    """Return a hint if rows are sorted by a date, or belong to numbered groups."""
    sample = summary.sample
    n = len(sample)
    if kind == "number" and _SAYS_ID.search(summary.name):
        n_values = len(np.unique(sample))
        return _note_on_groups(summary.name, n_values, n)

    # dates that differ
    if kind not in DATES or n < FEWEST_IDS or np.ptp(sample) == 0:
        return ""

    # values come in the order of their first rows, so most rows must have that order too
    if summary.returns > (1 - NEARLY_SORTED) * n * summary.every:
        return ""

    # sorted up or down
    steps = np.diff(sample)
    upwards = np.mean(steps >= 0)
    downwards = np.mean(steps <= 0)
    if max(upwards, downwards) < NEARLY_SORTED:
        return ""
    order = repr(summary.name)
    advice = "hold out the last ones"
    if downwards > upwards:
        order = f"{order}, latest first"
        advice = "reverse the rows and hold out the last ones"
    return (
        f"The rows are sorted by {order}. If the model will predict later rows, {advice}: an error "
        "on rows between the training rows is too small."
    )


def _note_on_groups(name: str, n_values: int, n_rows: int) -> str:
    """Return a hint if a column with the name of an id has several rows for each id."""
    repeated = n_rows >= FEWEST_IDS and 1 < n_values <= n_rows / 2
    if not repeated or not _SAYS_ID.search(name):
        return ""
    return (
        f"Column {name!r} has {n_values:,} ids in {n_rows:,} rows. If the model will predict rows "
        "of new ids, hold out all rows of an id together: otherwise the error is too small."
    )
