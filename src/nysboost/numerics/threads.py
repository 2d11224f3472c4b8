"""Threads: how many a pass may use, and the BLAS library kept to one of them.

Blocks of rows share the cores, so that the products inside a block run on one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from nysboost.numerics.memory import Budget

_here = threading.local()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep what runs inside to one thread: others run beside it, as tasks of Dask do."""
    outside = getattr(_here, "confined", False)
    _here.confined = True
    try:
        with one_blas_thread():
            yield
    finally:
        _here.confined = outside


def usable_threads(budget: Budget) -> int:
    """Return how many threads a pass may use, by the user's own settings."""
    if getattr(_here, "confined", False):
        return 1
    with _limit.lock:
        available = _limit.threads if _limit.users else _threads_now()
    return min(available, budget.threads or available)


class _Limit:
    """One BLAS thread per block, however many passes run at the same time.

    Products inside a block run on one thread, because the blocks themselves share the
    cores. The setting belongs to the whole process: the first pass to begin changes it,
    the last to end restores it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.threads = 1
        self.context: Any = None


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # a thread that holds the lock does not come along
    os.register_at_fork(after_in_child=_limit.__init__)  # type: ignore[misc]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep matrix products to one thread each until the last pass of this process ends."""
    with _limit.lock:
        if not _limit.users:
            _limit.threads = _threads_now()
            _limit.context = _blas().limit(limits=1)
        _limit.users += 1
    try:
        yield
    finally:
        with _limit.lock:
            _limit.users -= 1
            if not _limit.users:
                _limit.context.restore_original_limits()


@cache
def _blas() -> ThreadpoolController:
    """Return the handle on the BLAS libraries: looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def _threads_now() -> int:
    return min((int(library["num_threads"]) for library in _blas().info()), default=1)
