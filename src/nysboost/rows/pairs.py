"""Passes over all pairs of rows, by tiles of the n×n matrix, with a few in memory at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nysboost.numerics.arrays import Array, Floats, as_float, convert_like, is_numpy, slices, take
from nysboost.numerics.checks import Budget
from nysboost.numerics.threads import usable_threads
from nysboost.rows.driver import in_order
from nysboost.rows.sizes import TILE_COLS, TILE_ROWS

if TYPE_CHECKING:
    from nysboost.rows.rows import Rows


@dataclass(frozen=True, eq=False)
class PairTask(ABC):
    """The work of a pass over all pairs of rows on each tile of the n×n matrix.

    Attributes
    ----------
    size : int
        Rows that are loaded together.
    budget : Budget
        Threads of the pass.
    """

    size: int
    budget: Budget

    @abstractmethod
    def load(self, block: Array, *aligned: Array) -> tuple[Array, ...]:
        """Return the arrays of a block that tiles need, with as many rows."""

    @abstractmethod
    def evaluate(self, upper: list[Array], lower: list[Array]) -> Floats:
        """Return the result for a tile from the loaded arrays of its rows and columns."""

    def run_all(self, rows: Rows, aligned: Sequence[Array]) -> Iterator[Floats]:
        """Yield the results of the tiles on and above the diagonal, strip by strip."""
        for strip in slices(0, rows.n, self.size):
            # a strip with itself
            upper = self._load_rows(rows, strip, aligned)
            yield from self.run(upper, upper)

            # and with all rows behind it
            for part in slices(strip.stop, rows.n, self.size):
                lower = self._load_rows(rows, part, aligned)
                yield from self.run(upper, lower)

    def _load_rows(self, rows: Rows, at: slice, aligned: Sequence[Array]) -> tuple[Array, ...]:
        """Return what tiles need of some rows, with the same rows of aligned tables."""
        taken = as_float(rows.take(at))
        block = convert_like(rows.template, taken)
        others = [other[at, ...] for other in aligned]
        return self.load(block, *others)

    def run(self, upper: tuple[Array, ...], lower: tuple[Array, ...]) -> Iterator[Floats]:
        """Yield the results of all tiles of two blocks, or of one with itself."""

        def work(at: PairSlices) -> Floats:
            rows = [take(part, at.rows) for part in upper]
            columns = [take(part, at.columns) for part in lower]
            return at.times * self.evaluate(rows, columns)

        # the first part of a block is its rows
        X = upper[0]
        Y = lower[0]
        tiles = list(_tiles(X.shape[0], Y.shape[0], same=upper is lower))

        # other libraries have threads of their own
        threads = 1
        if len(tiles) > 1 and is_numpy(X):
            threads = usable_threads(self.budget)
        return in_order(work, tiles, threads)


@dataclass(frozen=True)
class PairSlices:
    """Rows and columns of a tile of pairs; `times` is 2 if its mirror image counts too."""

    rows: slice
    columns: slice
    times: int


def _tiles(n_rows: int, n_columns: int, *, same: bool) -> Iterator[PairSlices]:
    """Cut a matrix into tiles, or its upper triangle if rows and columns are the `same`."""
    for rows in slices(0, n_rows, TILE_ROWS):
        first_column = 0

        # a tile on the diagonal, which has no mirror image
        if same:
            yield PairSlices(rows, rows, times=1)
            first_column = rows.stop

        for columns in slices(first_column, n_columns, TILE_COLS):
            yield PairSlices(rows, columns, times=2)
