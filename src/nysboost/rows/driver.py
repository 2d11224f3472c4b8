"""The driver: several threads process blocks of rows, and results are used in row order.

A pass reads *pieces* of rows, if they come from a file or go to one, and cuts each piece into
*blocks* that stay in a core's cache. A *task* defines the work on a block. Results are used in the
order of the rows, so the number of threads does not change them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, TypeVar

from nysboost.numerics.arrays import Array, empty, namespace, slices
from nysboost.numerics.checks import Budget
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import mark_worker_thread, one_blas_thread, usable_threads
from nysboost.rows.sizes import ENDLESS, SCAN_BYTES, WAITING

T = TypeVar("T")
R = TypeVar("R")

LEAST_ROWS = 64  # fewer rows than this at a time would leave a matrix product nothing to do
SHARED_ROWS = 256  # with fewer rows for each core, starting threads costs more than they bring
PIECE_BYTES = 2**26  # a piece of this size is read or written at the full speed of a disk

Result: TypeAlias = Any
"""The result of a task for a block: a table with as many rows, or anything that `fold` can
merge."""

BlockFunction: TypeAlias = Callable[..., Result]
"""(block of rows, *the same rows of aligned tables) ↦ the task's result."""

Shared: TypeAlias = Any
"""A further argument of a function of blocks: any object that can be pickled."""

Merge: TypeAlias = Callable[[T, T], T]
"""The results of rows, and of the rows after them ↦ the result of both."""

FusedFunction: TypeAlias = Callable[[Array, Array], bool]
"""(piece of rows, out) ↦ whether a GPU kernel has filled `out`."""


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
    """Bytes of a pass: fixed, per row of a block, per row of a piece, and per thread."""

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

        # the smallest block has to fit
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
    most = WAITING * threads
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(threads, initializer=mark_worker_thread)
    with one_blas_thread(), pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= most:
                    yield waiting.popleft().result()

            while waiting:
                yield waiting.popleft().result()
        except BaseException:
            # cancel what has not begun
            for future in waiting:
                future.cancel()
            raise


def run_blocks(function: Callable[[slice], R], n: int, plan: Plan) -> Iterator[R]:
    """Yield function(block) for slices that cover range(n), in order."""
    # one block needs no thread of its own
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
    """Return the number of rows that a scan holds at a time."""
    return max(1, SCAN_BYTES // (8 * rows.n_features))


# Tasks


class PlannedRows(Protocol):
    """The properties of rows with which a task plans a pass: see `rows.RowStream`."""

    @property
    def n(self) -> int | None:
        """Number of rows, None if unknown."""

    @property
    def numbers_per_row(self) -> int:
        """Number of values of a row in memory."""

    @property
    def template(self) -> Array:
        """One row in floating point."""


class Task(ABC):
    """The work of a pass on each block of rows. It can be sent to a worker.

    Attributes
    ----------
    name : str
        Name in Dask's dashboard.
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
        """Return a function that writes the results of a whole piece, or None."""
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


# Where results go


class Output(ABC):
    """A table of `n_columns` features like `template`, written once and in order.

    The rows are written piece by piece: `room` returns an array, the caller fills it, and `write`
    stores it. `begin` is called first, and `finish` or `abandon` at the end.

    Attributes
    ----------
    in_memory : bool
        Whether the rows take no memory in addition to that of the caller.
    written : int
        Number of rows that were written so far.
    """

    in_memory: bool = False

    def __init__(self, n_columns: int, template: Array) -> None:
        self.n_columns = n_columns
        self.template = template
        self.written = 0

    @abstractmethod
    def begin(self) -> None:
        """Prepare, and raise if there is no room for the result."""

    def room(self, count: int) -> Array:
        """Return an uninitialised array for the next `count` rows."""
        return empty((count, self.n_columns), self.template)

    def write(self, rows: Array) -> None:
        """Write the next rows: the array that `room` returned, filled."""
        self._put(rows)
        self.written += rows.shape[0]

    @abstractmethod
    def _put(self, rows: Array) -> None:
        """Store rows after those written before."""

    @abstractmethod
    def finish(self) -> Array:
        """Return the result, now that all rows are there."""

    @abstractmethod
    def abandon(self) -> None:
        """Remove or mark an incomplete result; this is called while an error is handled."""


class GrowingOutput(Output):
    """A new array for an unknown number of rows."""

    def __init__(self, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self._parts: list[Array] = []

    def begin(self) -> None:
        """Do nothing: there is nothing to prepare."""

    def _put(self, rows: Array) -> None:
        self._parts.append(rows)

    def finish(self) -> Array:
        """Return all rows in one array."""
        return namespace(*self._parts).concat(self._parts)

    def abandon(self) -> None:
        """Do nothing: nobody has the incomplete result."""


class ArrayOutput(Output):
    """An array that is filled in place; if the pass fails, the remaining rows become NaN."""

    in_memory = True

    def __init__(self, out: Array, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.out = out

    def begin(self) -> None:
        """Do nothing: there is nothing to prepare."""

    def room(self, count: int) -> Array:
        """Return the next rows of the array itself."""
        stop = self.written + count
        refuse_more_rows(stop, self.out)
        return self.out[self.written : stop, :]

    def _put(self, rows: Array) -> None:
        """Do nothing: the rows were filled in place."""

    def finish(self) -> Array:
        """Return the array, if it is full."""
        refuse_fewer_rows(self.written, self.out)
        return self.out

    def abandon(self) -> None:
        """Set the rows that were not reached to NaN."""
        self.out[self.written :, :] = float("nan")


def refuse_more_rows(stop: int, out: Array) -> None:
    """Raise if rows up to `stop` do not fit in an array."""
    if stop > out.shape[0]:
        raise ValueError(f"out has {out.shape[0]} rows, but X has more rows.")


def refuse_fewer_rows(written: int, out: Array) -> None:
    """Raise if an array has room for more rows than were written."""
    if written < out.shape[0]:
        raise ValueError(
            f"X ended after {written} rows, but out has {out.shape[0]}: the other rows of out were "
            "set to NaN."
        )
