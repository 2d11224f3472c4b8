"""The blockwise engine: rows cut to fit cache and memory, and worked on by every core.

A pass over many rows holds a *piece* of them at a time, where they come from a file or go
to one, and cuts the piece into *blocks* that stay in a core's cache between their passes.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nysboost.numerics.arrays import Array
from nysboost.numerics.memory import Budget, readable
from nysboost.numerics.threads import on_one_core, one_blas_thread, usable_threads

T = TypeVar("T")
R = TypeVar("R")

LEAST_ROWS = 64
"""Fewer rows than this at a time would leave a matrix product nothing to do."""

SHARED_ROWS = 256
"""Below this many rows for each core, starting threads costs more than they bring."""

PIECE_BYTES = 2**26
"""A piece of this size is read or written at the full speed of a disk."""


@dataclass(frozen=True)
class Plan:
    """How many rows are held, how many are worked on at a time, and by how many threads."""

    piece: int
    block: int
    threads: int


def plan(
    n: int,
    *,
    fixed: int,
    block_row: int,
    piece_row: int,
    budget: Budget,
    cache_bytes: int,
    parallel: bool,
) -> Plan:
    """Share out the working memory of a pass over n rows.

    Parameters
    ----------
    n : int
        Number of rows.
    fixed : int
        Bytes that are held throughout.
    block_row, piece_row : int
        Bytes for each row of a block, and of a piece; 0 where rows are not held in pieces.
    budget : Budget
        Bytes that may be held in all, and cores that may be used.
    cache_bytes : int
        Bytes of a block that suit the hardware.
    parallel : bool
        Whether several blocks may be worked on at the same time.

    Raises
    ------
    ValueError
        If not even the smallest block fits, with the memory that is needed.
    """
    least = max(1, min(n, LEAST_ROWS))
    needed = fixed + least * (block_row + piece_row)
    if needed > budget.bytes:
        msg = (
            f"max_memory of {readable(budget.bytes)} is too small: one block of {least} rows needs "
            f"{readable(needed)}. Raise max_memory to that or more, or take fewer landmarks."
        )
        raise ValueError(msg)
    free = budget.bytes - fixed
    threads = usable_threads(budget) if parallel else 1
    for_blocks = free // 2 if piece_row else free
    threads = max(1, min(threads, for_blocks // (least * block_row), n // SHARED_ROWS))
    at_once = min(cache_bytes, for_blocks // threads) // block_row
    block = max(least, min(at_once, -(-n // threads)))
    if piece_row == 0:
        return Plan(max(1, n), block, threads)
    left = min(PIECE_BYTES * threads, free - threads * block * block_row)
    return Plan(max(least, left // piece_row), block, threads)


class Scratch(threading.local):
    """Memory in which a thread computes block after block: each thread has its own.

    Without it every block asks the system for new memory, which Dask's workers, told to give
    freed memory back at once, get page by page: a third more time.

    Parameters
    ----------
    columns : int
        Width of the blocks.
    form : array
        Shows the namespace and the dtype; only NumPy's memory is managed here.
    """

    def __init__(self, columns: int, form: Array) -> None:
        self._columns, self._form = columns, form
        self._memory: Array | None = None

    def __call__(self, count: int) -> Array | None:
        """Return memory for `count` rows, which the next call hands out again."""
        if not isinstance(self._form, np.ndarray):
            return None
        if self._memory is None or self._memory.shape[0] < count:
            self._memory = np.empty((count, self._columns), self._form.dtype)
        return self._memory[:count, :]


def each_block(work: Callable[[slice], None], n: int, plan: Plan) -> None:
    """Call `work` on slices that cover range(n), several at a time if the plan says so."""
    threads = max(1, min(plan.threads, n // SHARED_ROWS))
    count = -(-n // plan.block)
    if threads > 1:
        count = -(-count // threads) * threads
    size = -(-n // max(1, count))
    pending = deque(slice(i, min(i + size, n)) for i in range(0, n, size or 1))
    if threads == 1 or len(pending) == 1:
        for block in pending:
            work(block)
        return

    def worker() -> None:
        while True:
            try:
                block = pending.popleft()
            except IndexError:
                return
            with _clearing(pending):
                work(block)

    with one_blas_thread(), ThreadPoolExecutor(threads) as pool, _clearing(pending):
        for result in [pool.submit(worker) for _ in range(threads)]:
            result.result()


def side_by_side(work: Callable[[T], R], items: Sequence[T], threads: int) -> Iterator[R]:
    """Yield work(item) for each item, in order, as many at a time as there are threads.

    For searches that know nothing of each other: each has one core, and what it does inside
    starts no threads of its own.
    """
    if threads == 1 or len(items) == 1:
        yield from map(work, items)
        return

    def alone(item: T) -> R:
        with on_one_core():
            return work(item)

    with one_blas_thread(), ThreadPoolExecutor(threads) as pool:
        try:
            yield from pool.map(alone, items)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _clearing(pending: deque[slice]) -> Iterator[None]:
    """Let an error, or Ctrl-C, end all threads after the block that each is at."""
    try:
        yield
    except BaseException:
        pending.clear()
        raise
