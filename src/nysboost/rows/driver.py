"""The driver: blocks of rows, worked on by several threads, with results in the order of the rows.

A pass reads *pieces* of rows, if they come from a file or go to one, and cuts each piece into
*blocks* that stay in a core's cache. A *task* says what is done to a block. Results are used in
the order of the rows, so that the number of threads changes no result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from nysboost.numerics.arrays import Array, Floats, is_numpy, slices, take
from nysboost.numerics.checks import Budget
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import mark_worker_thread, one_blas_thread, usable_threads
from nysboost.rows.sizes import ENDLESS, SCAN_BYTES, TILE_COLS, TILE_ROWS, WAITING

T = TypeVar("T")
R = TypeVar("R")

LEAST_ROWS = 64  # fewer rows than this at a time would leave a matrix product nothing to do
SHARED_ROWS = 256  # with fewer rows for each core, starting threads costs more than they bring
PIECE_BYTES = 2**26  # a piece of this size is read or written at the full speed of a disk

Result: TypeAlias = Any
"""What a task makes of a block: a table of as many rows, or whatever else `fold` can merge."""

BlockFunction: TypeAlias = Callable[..., Result]
"""(block of rows, *the same rows of aligned tables) ↦ the task's result."""

Shared: TypeAlias = Any
"""What a function of blocks needs beside them: any object that can be pickled."""

Merge: TypeAlias = Callable[[T, T], T]
"""Two results, of rows and of the rows behind them ↦ the result of both."""

FusedFunction: TypeAlias = Callable[[Array, Array], bool]
"""(piece of rows, out) ↦ whether `out` was filled, by one kernel of a GPU."""


# Sizes of a pass


@dataclass(frozen=True)
class Plan:
    """Sizes of a pass: rows of a piece, rows of a block, and threads."""

    piece: int
    block: int
    threads: int = 1

    def cut(self, n: int) -> list[slice]:
        """Return blocks of about equal size that cover range(n), as many for each thread."""
        threads = max(1, min(self.threads, n // SHARED_ROWS))

        # as many rounds as the largest block needs, with a block for each thread
        rounds = -(-n // (self.block * threads))
        count = max(1, rounds * threads)
        size = max(1, -(-n // count))
        return list(slices(0, n, size))


@dataclass(frozen=True)
class Cost:
    """Bytes that a pass holds: in all, for each row of a block and of a piece, and a thread."""

    fixed: int
    block_row: int
    piece_row: int = 0
    thread: int = 0

    def plan(self, n: int | None, budget: Budget, *, cache_bytes: int, parallel: bool) -> Plan:
        """Return the sizes of a pass over n rows, or None if unknown, within a memory budget.

        Raises a ValueError that says what is needed if not even the smallest block fits.
        """
        if n is None:
            n = ENDLESS
        least = max(1, min(n, LEAST_ROWS))
        self._refuse_small(budget, least)

        # pieces and blocks have half of the memory each
        free = budget.bytes - self.fixed
        for_blocks = free
        if self.piece_row:
            for_blocks = free // 2

        # as many threads as have room for the smallest block
        smallest = least * self.block_row + self.thread
        threads = 1
        if parallel and n >= 2 * SHARED_ROWS:
            usable = min(usable_threads(budget), n // SHARED_ROWS)
            threads = max(1, min(usable, for_blocks // smallest))
        if threads > 1:
            for_blocks -= threads * self.thread
            free -= threads * self.thread

        # a block fits in a core's cache, and each thread has one
        block_bytes = min(cache_bytes, for_blocks // threads)
        rows_of_thread = -(-n // threads)
        block = max(least, min(block_bytes // self.block_row, rows_of_thread))
        if self.piece_row == 0:
            return Plan(max(1, n), block, threads)

        # a piece has what the blocks leave
        left = free - threads * block * self.block_row
        piece_bytes = min(PIECE_BYTES * threads, left)
        piece = max(least, piece_bytes // self.piece_row)
        return Plan(piece, block, threads)

    def _refuse_small(self, budget: Budget, least: int) -> None:
        """Raise if the memory does not hold the smallest block."""
        needed = self.fixed + least * (self.block_row + self.piece_row)
        if needed <= budget.bytes:
            return
        raise ValueError(
            f"max_memory of {format_bytes(budget.bytes)} is too small: one block of {least} rows "
            f"needs {format_bytes(needed)}. Raise max_memory to that or more, or use fewer "
            "landmarks."
        )


# Running blocks in order


def in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield function(item) for each item, in order, `threads` of them at a time."""
    if threads == 1:
        yield from map(function, items)
        return

    # results are used in the order of the items, so that threads change no sum
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, initializer=mark_worker_thread)
    with one_blas_thread(), pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= WAITING * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            for future in waiting:
                future.cancel()
            raise


def run_blocks(function: Callable[[slice], R], n: int, plan: Plan) -> Iterator[R]:
    """Yield function(block) for slices that cover range(n), in order."""
    blocks = plan.cut(n)
    if len(blocks) == 1:
        return map(function, blocks)
    return in_order(function, blocks, plan.threads)


class Wide(Protocol):
    """Anything that says how many columns it has."""

    @property
    def n_features(self) -> int:
        """Number of columns."""


def scan_size(rows: Wide) -> int:
    """Return how many rows of a table a scan holds at a time."""
    return max(1, SCAN_BYTES // (8 * rows.n_features))


# Tasks


class PlannedRows(Protocol):
    """What a task may ask of the rows to choose the sizes of a pass: see `rows.RowStream`."""

    @property
    def n(self) -> int | None:
        """Number of rows, None if unknown."""

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""

    @property
    def template(self) -> Array:
        """One row in floating point."""


class Task(ABC):
    """What a pass does to each block of rows. It can be sent to where the rows are.

    Attributes
    ----------
    name : str
        What Dask's dashboard shows.
    finite : bool
        Whether NaN and infinity in the rows are errors.
    in_place : bool
        Whether the function writes its result to an argument ``out``.
    """

    name: str
    finite: bool = False
    in_place: bool = False

    @abstractmethod
    def prepare(self, template: Array) -> BlockFunction:
        """Return the function of blocks like `template`; it is called once in each process."""

    @abstractmethod
    def plan(self, rows: PlannedRows, streamed: bool) -> Plan:
        """Return the sizes of a pass over rows; `streamed` if rows or results go through files."""

    def fuse(self, template: Array, n: int) -> FusedFunction | None:  # noqa: ARG002
        """Return a function that writes the results of a whole piece, where there is one."""
        return None


@dataclass(frozen=True)
class BlockTask(Task):
    """A task made of function(shared, block, *aligned): a plain function, which can be pickled.

    Blocks of `size` rows come one after the other, with all of BLAS's threads.
    """

    name: str
    function: BlockFunction
    shared: Shared = None
    size: int = 2**14
    finite: bool = False

    def prepare(self, template: Array) -> BlockFunction:  # noqa: ARG002
        """Return the function with its shared value."""
        return partial(self.function, self.shared)

    def plan(self, rows: PlannedRows, streamed: bool) -> Plan:  # noqa: ARG002
        """Return blocks of `size` rows, one at a time."""
        return Plan(self.size, self.size)


@dataclass(frozen=True, eq=False)
class PairTask(ABC):
    """What a pass over all pairs of rows does to each tile of the n×n matrix of pairs.

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
        """Return what tiles need of a block: arrays of as many rows."""

    @abstractmethod
    def evaluate(self, upper: list[Array], lower: list[Array]) -> Floats:
        """Return the result for a tile, from what was loaded of its rows and of its columns."""

    def run(self, upper: tuple[Array, ...], lower: tuple[Array, ...]) -> Iterator[Floats]:
        """Yield the results of all tiles of two blocks, or of one with itself."""

        def work(at: PairSlices) -> Floats:
            rows = [take(part, at.rows) for part in upper]
            columns = [take(part, at.columns) for part in lower]
            return at.times * self.evaluate(rows, columns)

        n_rows = upper[0].shape[0]
        n_columns = lower[0].shape[0]
        tiles = list(_tiles(n_rows, n_columns, same=upper is lower))

        # other libraries have threads of their own
        threads = 1
        if len(tiles) > 1 and is_numpy(upper[0]):
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
