"""The driver: one ordered, threaded map and fold over blocks of rows.

A pass reads *pieces* of rows, where they come from a file or go to one, and cuts each piece into
*blocks* that stay in a core's cache. Blocks are worked on by several threads, and results are
used in the order of the rows, so that the number of threads changes no result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from nysboost.numerics.resources import (
    Budget,
    confine_this_thread,
    format_bytes,
    one_blas_thread,
    usable_threads,
)

T = TypeVar("T")
R = TypeVar("R")

LEAST_ROWS = 64
"""Fewer rows than this at a time would leave a matrix product nothing to do."""

SHARED_ROWS = 256
"""Below this many rows for each core, starting threads costs more than they bring."""

PIECE_BYTES = 2**26
"""A piece of this size is read or written at the full speed of a disk."""

WAITING = 4
"""Results for each thread that may wait until they are used in the order of the rows."""

ENDLESS = 2**30
"""Rows that are assumed where only the end of a stream tells their number."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a pass: rows of a piece, rows of a block, and threads."""

    piece: int
    block: int
    threads: int = 1

    def cut(self, n: int) -> list[slice]:
        """Return blocks of about equal size that cover range(n), as many for each thread."""
        threads = max(1, min(self.threads, n // SHARED_ROWS))
        count = -(-n // self.block)
        if threads > 1:
            count = -(-count // threads) * threads
        size = -(-n // max(1, count)) or 1
        return [slice(i, min(i + size, n)) for i in range(0, n, size)]


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
            raise ValueError(
                f"max_memory of {format_bytes(budget.bytes)} is too small: one block of {least} "
                f"rows needs {format_bytes(needed)}. Raise max_memory to that or more, or take "
                "fewer landmarks."
            )
        free = budget.bytes - self.fixed
        several = parallel and n >= 2 * SHARED_ROWS
        threads = usable_threads(budget) if several else 1
        for_blocks = free // 2 if self.piece_row else free
        at_least = least * self.block_row + self.thread
        threads = max(1, min(threads, for_blocks // at_least, n // SHARED_ROWS))
        if threads > 1:
            for_blocks, free = (size - threads * self.thread for size in (for_blocks, free))
        at_once = min(cache_bytes, for_blocks // threads) // self.block_row
        block = max(least, min(at_once, -(-n // threads)))
        if self.piece_row == 0:
            return Plan(max(1, n), block, threads)
        left = min(PIECE_BYTES * threads, free - threads * block * self.block_row)
        return Plan(max(least, left // self.piece_row), block, threads)


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Cut range(start, stop) into slices of `size`."""
    return (slice(i, min(i + size, stop)) for i in range(start, stop, size))


def in_order(function: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Yield function(item) for each item, in order, `threads` of them at a time."""
    if threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[R]] = deque()
    with one_blas_thread(), ThreadPoolExecutor(threads, initializer=confine_this_thread) as pool:
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
