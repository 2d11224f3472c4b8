"""Rows of an iterator of tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from nysboost.numerics.arrays import Array
from nysboost.rows.rows import Rows, RowStream


class IteratedRows(RowStream):
    """Rows that can be read once, table by table: for `transform`, not for `fit`."""

    n = None
    in_memory = False
    lazy = True

    def __init__(self, tables: Iterator[Rows]) -> None:
        first = next(tables, None)
        if first is None:
            raise ValueError("X is an iterator that gave no block of rows.")
        self._first = first
        self._rest = tables

    @property
    def n_features(self) -> int:
        """Number of columns of the first table, and of all others."""
        return self._first.n_features

    @property
    def numbers_per_row(self) -> int:
        """Number of values in a row of the first table."""
        return self._first.numbers_per_row

    @property
    def template(self) -> Array:
        """One row of the first table."""
        return self._first.template

    def pieces(self, size: int) -> Iterator[Array]:
        """Yield the tables, cut into parts of at most `size` rows."""
        for number, table in enumerate(chain([self._first], self._rest)):
            if table.n_features != self.n_features:
                raise ValueError(
                    f"Block {number} of X has {table.n_features} columns, but the blocks before it "
                    f"have {self.n_features}."
                )
            yield from table.pieces(size)
