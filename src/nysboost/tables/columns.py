"""A fitted column of a table, with which the same column of later tables is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.messages import format_cell, format_count
from nysboost.tables.categories import GAP, UNKNOWN, Value, find_positions
from nysboost.tables.dates import DATES, DAY_FIRST, MONTH_FIRST, ZONED, from_seconds, is_date
from nysboost.tables.frames import Cells, RawColumn
from nysboost.tables.summaries import PLURALS
from nysboost.tables.values import Booleans, first_of, numbers_as

BIG = 1e28
OUTLYING = 1e25
"""A number above the first value, and this many times a typical number of its column, is a code for
"no data"."""

EXTREME = 1e60
"""If numbers exceed this, or are all below its inverse, they are scaled to about 1 by a power of
two."""

MANY_UNKNOWN = 10
UNKNOWN_SHARE = 0.1
"""A warning names a column if at least this many rows, and this share, have unknown categories."""

NOT_USED = ("text", "id", "empty")


@dataclass(frozen=True)
class Column:
    """A fitted column of a table.

    Attributes
    ----------
    name : str
    kind : str
        "number", "boolean", "date", "date with time zone" or "duration" (these in seconds), or
        "category". Other kinds are not used: "text" with values that hardly repeat, an "id" that
        numbers the rows, and "empty".
    values, counts : tuple
        For a category: its sorted values, and the number of rows with each.
    padded : tuple of str
        For a category: values that were written with blanks around them.
    gaps : int
        Number of rows without a value.
    marks : tuple of str
        Marks that were read as missing values, such as "?".
    usual, median : float
        The median of absolute values, and the median of the numbers.
    form : str
        The form of text: the unit of numbers, "day first" or "month first".
    cycles : tuple of str
        For dates and times: the names of their cycles in `tables.dates.CYCLES`.
    note : str
        A hint on how to hold out rows of such a table, or "".
    """

    name: str
    kind: str = "number"
    values: tuple[Value, ...] = ()
    gaps: int = 0
    marks: tuple[str, ...] = ()
    usual: float = 0.0
    median: float = 0.0
    counts: tuple[int, ...] = ()
    form: str = ""
    cycles: tuple[str, ...] = ()
    padded: tuple[str, ...] = ()
    note: str = ""

    @property
    def used(self) -> bool:
        """Whether the column is used."""
        return self.kind not in NOT_USED

    @property
    def scale(self) -> float:
        """The power of two that scales numbers to about 1 if their squares are out of range."""
        in_range = self.usual == 0 or 1 / EXTREME <= self.usual <= EXTREME
        if in_range:
            return 1.0
        _, exponent = np.frexp(self.usual)
        return float(np.exp2(-exponent.clip(-1020, 1020)))

    def describe(self) -> str:
        """Return its name, and its numbers of values and missing values."""
        notes = []
        if self.values:
            notes.append(format_count(len(self.values), "value"))
        if self.cycles:
            notes.append(f"by {', '.join(self.cycles)}")
        if self.cycles and self.kind == ZONED:
            notes.append("in UTC")

        if self.form in (DAY_FIRST, MONTH_FIRST):
            notes.append(self.form)
        elif self.form:
            notes.append(f"in {self.form}")

        if self.gaps:
            notes.append(format_count(self.gaps, "gap"))
        if self.marks:
            notes.append(f"written {', '.join(map(repr, self.marks))}")

        if not notes:
            return self.name
        return f"{self.name} ({', '.join(notes)})"

    def read(self, cells: RawColumn, missing: str, start: int) -> Cells:
        """Return the same column of another table, shape (n,); raise if a row does not fit.

        Missing floats are NaN. Categories are positions among `values`, −1 if missing, −2 if
        unknown. `start` is the number of the first row in messages.
        """
        found: Cells
        if self.kind == "category":
            found = self._read_positions(cells, missing, start)
            gaps = found == GAP
        else:
            found = self._read_numbers(cells, start)
            gaps = np.isnan(found)
            self._refuse_far(found, start)

        # refuse gaps, in a column of any kind
        first_gap = first_of(gaps)
        if missing != "fill" and first_gap is not None:
            n_gaps = int(gaps.sum())
            where = f", first in row {start + first_gap}"
            raise ValueError(say_gaps(self.name, n_gaps, where))
        return found

    def _refuse_far(self, numbers: Floats, start: int) -> None:
        """Refuse infinity and, among numbers, a code for "no data"."""
        far = np.isinf(numbers)
        if self.kind == "number":
            far = is_far(np.abs(numbers), self.usual)
        row = first_of(far)
        if row is not None:
            raise ValueError(say_far(self.name, numbers[row], start + row))

    def _read_numbers(self, cells: RawColumn, start: int) -> Floats:
        """Return numbers, NaN in gaps, or refuse values of another kind."""
        # values that are not numbers yet, or numbers of some kind
        if cells.values is not None:
            numbers, is_other = numbers_as(self.kind, cells.values, self.form)
            wrong = np.append(is_other, False)[cells.data]
            data = cells.replace_values(numbers)
        else:
            data = cells.data
            wrong = ~np.isnan(data) & ~self._accepts(cells)

        row = first_of(wrong)
        if row is None:
            return np.asarray(data)
        raise ValueError(
            f"Column {self.name!r} was fitted with {PLURALS[self.kind]}, but row {start + row} "
            f"has {self._show(cells, row)}: {self._advise(cells, row)}."
        )

    def _advise(self, cells: RawColumn, row: int) -> str:
        """Return what to do about a value of another kind."""
        if cells.values is None:
            other_date = {self.kind, cells.kind} == set(DATES)
        else:
            value = cells.values[cells.data[row]]
            other_date = self.kind in DATES and is_date(value)
        if not other_date:
            return "give it the same kind of value as in the fit"

        # in pandas, as an example
        if self.kind == ZONED:
            return "add the time zone, with .dt.tz_localize(zone) in pandas"
        return (
            "convert to the local time of the fit and drop the time zone, in pandas with "
            ".dt.tz_convert(zone).dt.tz_localize(None)"
        )

    def _accepts(self, cells: RawColumn) -> Booleans:
        """Return a mask (n,) of numbers in another table that have the kind of this column."""
        if self.kind == "boolean" and cells.kind == "number":
            return np.isin(cells.data, (0, 1))
        accepted = {self.kind}
        if self.kind == "number":
            accepted.add("boolean")
        return np.full(len(cells.data), cells.kind in accepted)

    def _show(self, cells: RawColumn, row: int) -> str:
        """Return the value of a row, or its kind, as a sentence has it."""
        if cells.values is not None:
            return format_cell(cells.values[cells.data[row]])
        if self.kind == "boolean" and cells.kind == "number":
            return f"{cells.data[row]:g}"
        return f"a {cells.kind}"

    def _read_positions(self, cells: RawColumn, missing: str, start: int) -> Indices:
        """Return the position of each value among the fitted ones."""
        # numbers may stand for categories
        if cells.values is None:
            cells = _as_values(cells)
        values = cells.values or ()
        positions = find_positions(self.values, values)
        positions_and_gap = np.array([*positions, GAP])
        found: Indices = positions_and_gap[cells.data]

        row = first_of(found == UNKNOWN)
        if missing == "raise" and row is not None:
            raise ValueError(
                f"Column {self.name!r} has the value {self._show(cells, row)} in row "
                f'{start + row}, which was not in the fit, and missing="raise" does not allow this.'
            )

        is_unknown = np.array(positions, dtype=np.intp) == UNKNOWN
        self._warn_of_unknown(found, list(compress(values, is_unknown)))
        return found

    def _warn_of_unknown(self, found: Indices, unknown: Sequence[object]) -> None:
        """Warn if many rows have one of these `unknown` values."""
        n_rows = np.count_nonzero(found != GAP)
        n_unknown = np.count_nonzero(found == UNKNOWN)
        if n_unknown < max(MANY_UNKNOWN, UNKNOWN_SHARE * n_rows):
            return

        # if all are unknown, they may be those of another column
        if n_unknown == n_rows:
            says = (
                f"none of the values of the fit: it has {_list_some(unknown)}, but was fitted with "
                f"{_list_some(self.values)}. Only"
            )
        else:
            says = (
                f"values that were not in the fit in {n_unknown:,} of {n_rows:,} rows: "
                f"{_list_some(unknown)}. There, only"
            )
        warnings.warn(
            f"Column {self.name!r} has {says} the other columns determine the prediction.",
            stacklevel=2,
        )


def _as_values(cells: RawColumn) -> RawColumn:
    """Convert a column of numbers to a column of values."""
    to_value = VALUES.get(cells.kind, float)
    numbers: list[float] = cells.data.tolist()
    values: list[Hashable] = list(numbers)
    for row in np.flatnonzero(~cells.gaps):
        values[row] = to_value(numbers[row])
    return RawColumn.of(cells.name, cells.kind, values)


VALUES: dict[str, Callable[[float], Hashable]] = {
    "boolean": bool,
    "date": from_seconds,
    ZONED: from_seconds,
}
"""The value that a number represents in columns of each other kind."""


def is_far(sizes: Floats | float, usual: float) -> Booleans:
    """Return a mask of numbers that are "no data" codes, given their sizes and a typical size."""
    if not 0 < usual < np.inf:
        usual = 1.0
    return np.asarray(sizes) > max(BIG, usual * OUTLYING)


# Sentences


def _list_some(values: Sequence[object]) -> str:
    """Format the first of some values for a sentence."""
    listed = [format_cell(value) for value in values[:3]]
    if len(values) > 3:
        listed.append("…")
    return ", ".join(listed)


def say_gaps(name: str, count: int, first: str = "") -> str:
    """Return the error message about missing values."""
    return (
        f"Column {name!r} has {format_count(count, 'missing value')} (it contains NaN, None or "
        f"empty text){first}. Remove such rows or fill them in first: a learner does with "
        'missing="fill", any other estimator with sklearn.impute.SimpleImputer before it.'
    )


def say_far(name: str, value: float, row: int | None = None) -> str:
    """Return the error message about a number that is too large."""
    at = ""
    if row is not None:
        at = f" in row {row}"
    if not np.isfinite(value):
        return (
            f"Column {name!r} contains infinity ({value}), or a number too large for floating "
            f"point{at}: remove such rows or clip them first."
        )

    return (
        f"Column {name!r} has the value {value:.6g}{at}, out of range beside its other values: "
        "if it stands for no data, make it NaN; else divide the column or leave such rows out."
    )
