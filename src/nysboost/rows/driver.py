"""The driver: blocks of rows, worked on by several threads, with results in the order of the rows.

A pass reads *pieces* of rows, where they come from a file or go to one, and cuts each piece into
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
from typing import Any, TypeVar

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array
from nysboost.numerics.blocks import slices
from nysboost.numerics.budget import Budget
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import mark_worker_thread, one_blas_thread, usable_threads
from nysboost.rows.sizes import ENDLESS, TILE_COLS, TILE_ROWS, WAITING

T = TypeVar("T")
R = TypeVar("R")

LEAST_ROWS = 64  # fewer rows than this at a time would leave a matrix product nothing to do
SHARED_ROWS = 256  # with fewer rows for each core, starting threads costs more than they bring
PIECE_BYTES = 2**26  # a piece of this size is read or written at the full speed of a disk


@dataclass(frozen=True)
class Plan:
    """Sizes of a pass: rows of a piece, rows of a block, and threads."""

    piece: int
    block: int
    threads: int = 1

    def cut(self, n: int) -> list[slice]:
        """Return blocks of about equal size that cover range(n), as many for each thread."""
        threads = max(1, min(self.threads, n // SHARED_ROWS))
        count = -(-n // (self.block * threads)) * threads
        return list(slices(0, n, -(-n // max(1, count)) or 1))


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
        n = ENDLESS if n is None else n
        least = max(1, min(n, LEAST_ROWS))
        needed = self.fixed + least * (self.block_row + self.piece_row)
        if needed > budget.bytes:
            had, needs = format_bytes(budget.bytes), format_bytes(needed)
            raise ValueError(
                f"max_memory of {had} is too small: one block of {least} rows needs {needs}. Raise "
                "max_memory to that or more, or take fewer landmarks."
            )
        free = budget.bytes - self.fixed
        for_blocks = free // 2 if self.piece_row else free
        fitting = for_blocks // (least * self.block_row + self.thread)
        usable = usable_threads(budget) if parallel and n >= 2 * SHARED_ROWS else 1
        threads = max(1, min(usable, fitting, n // SHARED_ROWS))
        if threads > 1:
            for_blocks, free = (size - threads * self.thread for size in (for_blocks, free))
        at_once = min(cache_bytes, for_blocks // threads) // self.block_row
        block = max(least, min(at_once, -(-n // threads)))
        if self.piece_row == 0:
            return Plan(max(1, n), block, threads)
        left = min(PIECE_BYTES * threads, free - threads * block * self.block_row)
        return Plan(max(least, left // self.piece_row), block, threads)


def in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield function(item) for each item, in order, `threads` of them at a time."""
    if threads == 1:
        yield from map(function, items)
        return
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
    return in_order(function, blocks, plan.threads if len(blocks) > 1 else 1)


class Task(ABC):
    """What a pass does to each block of rows. It can be sent to where the rows are.

    `finite` tasks refuse NaN and infinity; those `in_place` leave their result in ``out``.
    """

    name: str
    finite = False
    in_place = False

    @abstractmethod
    def prepare(self, template: Array) -> Callable[..., Any]:
        """Return (block, *others) ↦ result for blocks like `template`, once in each process."""

    @abstractmethod
    def plan(self, rows: Any, streamed: bool) -> Plan:
        """Return the sizes of a pass over rows; `streamed` if rows or results go through files."""

    def fuse(self, template: Array, n: int) -> Callable[[Array, Array], bool] | None:  # noqa: ARG002
        """Return (piece, out) ↦ whether `out` was filled in one go, where a device can do that."""
        return None


@dataclass(frozen=True)
class BlockTask(Task):
    """function(shared, block, *others): a plain function, which can be pickled.

    Blocks of `size` rows come one after the other, with all of BLAS's threads.
    """

    name: str
    function: Callable[..., Any]
    shared: Any = None
    size: int = 2**14
    finite: bool = False

    def prepare(self, template: Array) -> Callable[..., Any]:  # noqa: ARG002
        return partial(self.function, self.shared)

    def plan(self, rows: Any, streamed: bool) -> Plan:  # noqa: ARG002
        return Plan(self.size, self.size)


@dataclass(frozen=True)
class PairTask:
    """What a pass over all pairs of rows does to each tile of the n×n matrix of pairs.

    load(shared, block, *others) returns arrays of as many rows, function(shared, upper, lower) a
    number or an array from two of these.
    """

    name: str
    load: Callable[..., tuple[Array, ...]]
    function: Callable[..., Any]
    shared: Any
    size: int
    budget: Budget

    def run(self, upper: tuple[Array, ...], lower: tuple[Array, ...]) -> Iterator[Any]:
        """Yield the results of all tiles of two blocks, or of one with itself, mirrored once."""

        def work(tile: tuple[slice, slice, int]) -> Any:
            rows, columns, times = tile
            left = [arrays.take(part, rows) for part in upper]
            right = [arrays.take(part, columns) for part in lower]
            return times * self.function(self.shared, left, right)

        tiles = list(_tiles(upper[0].shape[0], lower[0].shape[0], same=upper is lower))
        parallel = len(tiles) > 1 and arrays.is_numpy(upper[0])
        return in_order(work, tiles, usable_threads(self.budget) if parallel else 1)


def _tiles(rows: int, columns: int, *, same: bool) -> Iterator[tuple[slice, slice, int]]:
    """Cut rows × columns into tiles, each with how often it counts."""
    for tile in slices(0, rows, TILE_ROWS):
        if same:
            yield tile, tile, 1
        for part in slices(tile.stop if same else 0, columns, TILE_COLS):
            yield tile, part, 2
