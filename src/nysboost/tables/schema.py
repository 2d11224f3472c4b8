"""The schema of a table, decided at fit and used to read later tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from nysboost.numerics.arrays import Floats
from nysboost.rows.recognise import is_frame
from nysboost.tables.columns import Column
from nysboost.tables.dates import DATES
from nysboost.tables.deciding import decide
from nysboost.tables.frames import (
    Cells,
    RawColumn,
    Table,
    list_column_names,
    read_columns,
    refuse_unknown,
)
from nysboost.tables.summaries import ColumnSummary, summarise_columns
from nysboost.tables.values import READINGS

if TYPE_CHECKING:
    from nysboost.tables.csv_files import CsvFile

KINDS = (*READINGS, "category", "text", "id", "empty")

SHOWN = 12
"""Largest number of columns of one kind that a description names."""


@dataclass(frozen=True, repr=False)
class Schema:
    """The fitted columns of a table, or none for an array of `width` complete columns.

    Missing values in later arrays are filled with `medians` (width,). If `named`, later tables are
    matched by names. `decimal` and `thousands` describe its text file.
    """

    columns: tuple[Column, ...]
    width: int
    named: bool = False
    decimal: str = "."
    thousands: str = ""
    medians: Floats | None = field(default=None, compare=False)

    @classmethod
    def of(cls, X: Table, missing: str = "fill", ids: str = "keep") -> Schema:
        """Survey a data frame or an array, and decide the kind of each column."""
        summaries = summarise_columns(X)
        return cls.from_summaries([summaries], missing, named=is_frame(X), ids=ids)

    @classmethod
    def from_summaries(
        cls,
        parts: Iterable[Sequence[ColumnSummary]],
        missing: str,
        *,
        named: bool,
        ids: str = "keep",
    ) -> Schema:
        """Decide the kind of each column from the summaries of all parts of a table.

        Parameters
        ----------
        parts : iterable of sequences of ColumnSummary
        missing : "fill", "raise" or "refuse"
            Unless it is "fill", gaps are refused. With "refuse" a kernel sees the numbers as they
            are, and not scaled as by a learner.
        named : bool
            Whether columns of later tables are matched by name.
        ids : "keep" or "drop"
            Whether columns that number the rows are used.
        """
        summaries = _add_up(parts)
        if not named:  # an array has the columns that its user chose
            ids = "keep"

        columns = tuple(decide(summary, missing, ids) for summary in summaries)

        # ids that are all there is are used
        if all(column.kind == "id" for column in columns):
            columns = tuple(decide(summary, missing, "keep") for summary in summaries)

        if not any(column.used for column in columns):
            raise ValueError(
                "X has no column that can be used: all are ids, text that hardly repeats, or empty."
            )
        if missing == "refuse":
            _warn_of_seconds([column for column in columns if column.used])
        return cls(columns, len(columns), named)

    def read(self, X: Table, missing: str = "fill", start: int = 0) -> list[Cells]:
        """Read the columns of a table with this schema, matched by name, shape (n,) each.

        Unused columns have no rows. `start` is the number of the first row in messages.
        """
        wanted: Sequence[str] = ()
        if is_frame(X) and self.named:
            wanted = self.match_names(list_column_names(X))
        categories = {column.name for column in self.columns if column.kind == "category"}

        cells = list(read_columns(X, wanted, categories))
        if len(cells) != self.width:
            raise ValueError(f"X has {len(cells)} columns, but the fit had {self.width}.")
        return self.read_cells(cells, missing, start)

    def read_cells(self, cells: Sequence[RawColumn], missing: str, start: int = 0) -> list[Cells]:
        """Read raw columns, in the order of this schema."""
        # an array of numbers alone has no columns of its own here
        columns = self.columns or [Column(each.name) for each in cells]
        found: list[Cells] = []
        for column, each in zip(columns, cells, strict=True):
            if column.used:
                found.append(column.read(each, missing, start))
            else:
                found.append(np.empty(0))
        return found

    def as_written(self, file: CsvFile) -> Schema:
        """Return the same schema for units, decimal and thousands marks of a text file."""
        units = file.numbers
        columns = []
        for column in self.columns:
            form = units.get(column.name) or column.form
            columns.append(replace(column, form=form))

        return replace(
            self,
            columns=tuple(columns),
            decimal=file.writing.decimal,
            thousands=file.writing.thousands or self.thousands,
        )

    def match_names(self, there: Sequence[str], table: str = "X") -> list[str]:
        """Return the names of the fitted columns; raise if a table lacks some of them."""
        used = [column.name for column in self.columns if column.used]
        refuse_unknown(used, there, table, ", which the model was fitted on")
        return [column.name for column in self.columns]

    @property
    def notes(self) -> list[str]:
        """Hints on how to hold out rows of such a table."""
        return [column.note for column in self.columns if column.note]

    def without_notes(self) -> Schema:
        """Return the same schema without hints."""
        columns = tuple(replace(column, note="") for column in self.columns)
        return replace(self, columns=columns)

    def __repr__(self) -> str:
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        """Return a line for each kind of column: names, values and missing values."""
        lines = []
        for kind in KINDS:
            found = [column.describe() for column in self.columns if column.kind == kind]
            if not found:
                continue

            line = f"{kind}: {', '.join(found[:SHOWN])}"
            if len(found) > SHOWN:
                line += f" and {len(found) - SHOWN} more"
            lines.append(line)
        return lines or [f"number: {self.width} columns"]


def _warn_of_seconds(used: Sequence[Column]) -> None:
    """Warn of dates beside other columns, which hardly count in a kernel of seconds."""
    dates = [column.name for column in used if column.kind in DATES]
    if dates and len(dates) < len(used):
        warnings.warn(
            "In a kernel dates are seconds, beside which the other columns hardly count: convert "
            f"the column {dates[0]!r} to a number of their size first, in days for example. "
            "Learners scale columns themselves.",
            stacklevel=2,
        )


def _add_up(parts: Iterable[Sequence[ColumnSummary]]) -> list[ColumnSummary]:
    """Return the summary of each column over all parts of a table."""
    iterator = iter(parts)
    total = list(next(iterator))
    for part in iterator:
        total = [upper + lower for upper, lower in zip(total, part, strict=True)]
    return total
