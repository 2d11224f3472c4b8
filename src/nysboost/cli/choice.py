"""Which columns of a table are used, and their rows as numbers, without gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.cli.errors import CommandError, DataError, ModelError
from nysboost.cli.tables import Table


@dataclass
class Choice:
    """Columns of a table, and what is done about missing values.

    Parameters
    ----------
    table : Table
        The table.
    columns : list of int
        Those that are used, in this order.
    drop_missing : bool
        Whether rows with missing values are left out; otherwise they are an error.
    usable : array of bool or None
        Rows that may be used, those that have a target say; None is all.
    droppable : bool
        Whether the command could do without a column.
    """

    table: Table
    columns: list[int]
    drop_missing: bool = False
    usable: NDArray[np.bool] | None = None
    droppable: bool = False
    dropped_rows: int = field(default=0, init=False)

    @property
    def names(self) -> list[str] | None:
        """What the columns are called; None if they have numbers only."""
        names = self.table.names
        return None if names is None else [names[i] for i in self.columns]

    @property
    def whole(self) -> bool:
        """Whether these are all columns of a table without names, and all of its rows."""
        everything = self.columns == list(range(self.table.width))
        return self.table.names is None and everything and not self.drop_missing

    def blocks(self) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order, as blocks of finite numbers.

        Rows that are left out on the way are no longer `usable` then.
        """
        self._refuse_text()
        start, self.dropped_rows = 0, 0
        for block in self.table.blocks(self.columns):
            at = slice(start, start + len(block))
            kept = finite_rows(block)
            if not kept.all() and not self.drop_missing:
                row = int(np.argmin(kept))
                raise DataError(self._missing(start + row, block[row]))
            if self.usable is not None:
                kept &= self.usable[at]
                self.usable[at] = kept
            start += len(block)
            self.dropped_rows += int(len(block) - kept.sum())
            if kept.any():
                yield block if kept.all() else block[kept]

    def frames(self) -> Iterator[Any]:
        """Read all rows once, in order, as data frames, text and gaps as they are.

        Rows with gaps are left out where missing values are to be dropped.
        """
        for frame in self.table.frames(self.columns):
            kept = frame.dropna() if self.drop_missing else frame
            self.dropped_rows += len(frame) - len(kept)
            if len(kept):
                yield kept

    def _refuse_text(self) -> None:
        text = [name for name in self.table.text if name in (self.names or [])]
        if text:
            msg = f"{self.table.path} has columns that are no numbers: {', '.join(text)}."
            if self.droppable:
                leave = " ".join(f"--drop-column {name!r}" for name in text)
                msg = f"{msg} Leave them out: {leave}"
            raise DataError(msg)

    def _missing(self, row: int, values: NDArray[Any]) -> str:
        at = int(np.argmin(np.isfinite(values)))
        name = f"column {self.columns[at]}" if self.names is None else repr(self.names[at])
        column = f", --drop-column {name} the column" if self.droppable else ""
        return (
            f"{self.table.path} has a missing or infinite value in row {row}, {name}. "
            f"--drop-missing leaves such rows out{column}."
        )


def finite_rows(block: NDArray[Any]) -> NDArray[np.bool]:
    """Return which rows have finite numbers only; the sum of a block tells that all have."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(block.sum()):
            return np.ones(len(block), dtype=np.bool)
    whole: NDArray[np.bool] = np.isfinite(block).all(axis=1)
    return whole


def find_column(table: Table, name: str) -> int:
    """Return the number of a column that was given by its name or its number."""
    if table.names is not None and name in table.names:
        return table.names.index(name)
    if name.lstrip("-").isdigit() and -table.width <= int(name) < table.width:
        return int(name) % table.width
    known = "numbers only" if table.names is None else ", ".join(table.names)
    msg = f"{table.path} has no column {name!r}. It has {table.width}: {known}."
    raise CommandError(msg)


def all_but(table: Table, left_out: Sequence[int], *, drop_missing: bool) -> Choice:
    """Choose all columns but some."""
    columns = [i for i in range(table.width) if i not in left_out]
    if not columns:
        msg = f"Nothing is left of the columns of {table.path}."
        raise CommandError(msg)
    return Choice(table, columns, drop_missing)


def as_in(table: Table, names: Sequence[str] | None, width: int, *, drop_missing: bool) -> Choice:
    """Choose the columns that a model was fitted on, by their names where both have names.

    Parameters
    ----------
    table : Table
        New rows.
    names : sequence of str or None
        The names that the model knows.
    width : int
        The number of columns that the model knows.
    drop_missing : bool
        Whether rows with missing values are left out.
    """
    if names is not None and table.names is not None:
        missing = [name for name in names if name not in table.names]
        if missing:
            msg = f"The model needs columns that {table.path} does not have: {', '.join(missing)}."
            raise ModelError(msg)
        return Choice(table, [table.names.index(name) for name in names], drop_missing)
    if table.width != width:
        msg = f"The model was fitted on {width} columns, but {table.path} has {table.width}."
        raise ModelError(msg)
    return Choice(table, list(range(width)), drop_missing)
