"""What the columns of a table are: decided once, at fit; every later table goes through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Floats, Indices
from nysboost.tables.columns import Column, Look, decide, is_far, look_at, say_far, say_gaps
from nysboost.tables.frames import Cells, columns_of, is_frame, names_of
from nysboost.tables.values import Factor, find_positions, first_of, from_seconds, numbers_as

KINDS = ("number", "boolean", "date", "duration", "category", "text", "empty")
TRUTHS = ("boolean", "number")  # a column of numbers takes truth values too

SHOWN = 12
"""Columns of one kind that a description names."""


@dataclass(frozen=True, repr=False)
class Schema:
    """The columns of a table as fitted; none for an array of `width` numbers without gaps.

    Gaps of later arrays are filled with its `medians`, (width,). If `named`, later tables are
    matched by names. `decimal` and `thousands` are of its text file.
    """

    columns: tuple[Column, ...]
    width: int
    named: bool = False
    decimal: str = "."
    thousands: str = ""
    medians: Floats | None = field(default=None, compare=False)

    @classmethod
    def of(cls, X: Any, missing: str = "fill") -> Schema:
        """Look at a data frame or an array, and decide what each column is."""
        return cls.of_looks([look_at(X)], missing, named=is_frame(X))

    @classmethod
    def of_looks(cls, parts: Iterable[Sequence[Look]], missing: str, *, named: bool) -> Schema:
        """Decide what each column is from looks at the columns of each part of a table."""
        looks = reduce(lambda upper, lower: [*map(add, upper, lower)], parts)
        found = tuple(decide(look, missing) for look in looks)
        if not any(column.used for column in found):
            what = "all are text that hardly comes again, or have no values"
            raise ValueError(f"X has no column that can be used: {what}.")
        return cls(found, len(found), named)

    def read(self, X: Any, missing: str = "fill", start: int = 0) -> list[Any]:
        """Return the columns of a table as this schema has them, matched by name, of shape (n,).

        Floats have NaN in gaps; categories are positions among `values`, −1 in gaps, −2 if
        unknown; text is None. `start` is the number of the first row in messages.
        """
        wanted = self.match_names(names_of(X)) if is_frame(X) and self.named else ()
        categories = {column.name for column in self.columns if column.kind == "category"}
        cells = list(columns_of(X, wanted, categories))
        if len(cells) != self.width:
            raise ValueError(f"X has {len(cells)} columns, but {self.width} were fitted.")
        return self.read_cells(cells, missing, start)

    def read_cells(self, cells: Sequence[Cells], missing: str, start: int = 0) -> list[Any]:
        """Return columns as they came, in the order of this schema, as it has them."""
        columns = self.columns or [Column(each.name) for each in cells]
        return [
            _read(column, each, missing, start) if column.used else None
            for column, each in zip(columns, cells, strict=True)
        ]

    def match_names(self, there: Sequence[str], table: str = "X") -> list[str]:
        """Return the names of the fitted columns, or say which of them a table lacks."""
        known = set(there)
        lacking = [c.name for c in self.columns if c.name not in known and c.used]
        if lacking:
            raise ValueError(
                f"{table} has no column {', '.join(map(repr, lacking))}, which the model was "
                f"fitted on. It has {', '.join(map(repr, sorted(there)))}."
            )
        return [column.name for column in self.columns]

    def __repr__(self) -> str:
        return "\n".join(self.describe())

    def describe(self) -> list[str]:
        """Return a line for each kind of column: names, values and gaps."""
        lines = []
        for kind in KINDS:
            found = [c.describe() for c in self.columns if c.kind == kind]
            if found:
                more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
                lines.append(f"{kind}: {', '.join(found[:SHOWN])}{more}")
        return lines or [f"number: {self.width} columns"]


def _read(column: Column, cells: Cells, missing: str, start: int) -> Any:
    """Return a column as floats or positions, or say which row does not fit."""
    if column.kind == "category":
        values: Any = _positions(column, cells, missing, start)
        gaps = values == -1
    else:
        values = _numbers(column, cells, start)
        gaps, sizes = np.isnan(values), np.abs(values)
        far = is_far(sizes, column.usual) if column.kind == "number" else np.isinf(sizes)
        if (row := first_of(far)) is not None:
            raise ValueError(say_far(column.name, values[row], start + row))
    if missing != "fill" and (row := first_of(gaps)) is not None:
        raise ValueError(say_gaps(column.name, int(gaps.sum()), missing, start + row))
    return values


def _numbers(column: Column, cells: Cells, start: int) -> Floats:
    data = cells.data
    if isinstance(data, Factor):
        numbers, wrong = numbers_as(column.kind, data.values, column.form)
        if (row := first_of(np.append(wrong, False)[data.codes])) is not None:
            raise ValueError(_unfit(column, f"{data.values[data.codes[row]]!r:.60}", start + row))
        return data.at(numbers)
    there = ~np.isnan(data)
    if column.kind == "boolean" and cells.kind == "number":
        if (row := first_of(there & (data != 0) & (data != 1))) is not None:
            raise ValueError(_unfit(column, repr(float(data[row])), start + row))
    elif cells.kind != column.kind and there.any() and (cells.kind, column.kind) != TRUTHS:
        raise ValueError(_unfit(column, f"a {cells.kind}", start + int(np.argmax(there))))
    return data


def _positions(column: Column, cells: Cells, missing: str, start: int) -> Indices:
    data = cells.data
    if not isinstance(data, Factor):
        value: Any = {"boolean": bool, "date": from_seconds}.get(cells.kind, float)
        data = Factor.of([value(x) if x == x else x for x in data.tolist()])
    places = np.array([*find_positions(column.values, data.values), -1], dtype=np.intp)
    found: Indices = places[data.codes]
    if missing == "raise" and (row := first_of(found == -2)) is not None:
        raise ValueError(
            f"Column {column.name!r} has the value {data.values[data.codes[row]]!r:.60} in row "
            f'{start + row}, which was not there in fitting and which missing="raise" refuses.'
        )
    return found


def _unfit(column: Column, shown: str, row: int) -> str:
    plural = {"number": "numbers", "boolean": "truth values", "date": "dates"}
    return (
        f"Column {column.name!r} was fitted with {plural.get(column.kind, 'durations')}, but row "
        f"{row} has {shown}: give it the kind of value that it had in fitting."
    )
