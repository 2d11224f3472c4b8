"""Threads: how many a pass may use, and the BLAS library kept to one of them.

Blocks of rows share the cores, so that the products inside a block run on one thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from nysboost.numerics.memory import Budget

LINGER = 0.5
"""Seconds that the limit outlasts the last task of Dask: to change the number of OpenBLAS's
threads back and forth between tasks costs more, 50 ms on two busy cores, than many a task."""

_here = threading.local()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Keep what runs inside to one thread: others run beside it, as tasks of Dask do."""
    outside = getattr(_here, "confined", False)
    _here.confined = True
    try:
        with _limit.held(LINGER):
            yield
    finally:
        _here.confined = outside


def one_blas_thread() -> AbstractContextManager[None]:
    """Keep matrix products to one thread each until the last pass of this process ends."""
    return _limit.held()


def usable_threads(budget: Budget) -> int:
    """Return how many threads a pass may use, by the user's own settings."""
    if getattr(_here, "confined", False):
        return 1
    available = _limit.threads_outside()
    return min(available, budget.threads or available)


class _Limit:
    """One BLAS thread per block, however many passes run at the same time.

    Products inside a block run on one thread, because the blocks themselves share the
    cores. The setting belongs to the whole process: the first pass to begin changes it,
    the last to end restores it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._threads = 1
        self._waiting = False
        self._context: Any = None

    def threads_outside(self) -> int:
        """Return the number of threads that the user has set."""
        with self._lock:
            return _threads_now() if self._context is None else self._threads

    @contextmanager
    def held(self, linger: float = 0.0) -> Iterator[None]:
        """Hold the limit; `linger` is how long it may stay when nobody holds it any more."""
        with self._lock:
            if self._context is None:
                self._threads = _threads_now()
                self._context = _blas().limit(limits=1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not linger:
                    self._restore()
                elif self._threads > 1 and not self._waiting:
                    self._waiting = True
                    timer = threading.Timer(linger, self._later)
                    timer.daemon = True
                    timer.start()

    def _later(self) -> None:
        with self._lock:
            self._waiting = False
            self._restore()

    def _restore(self) -> None:
        if not self._users and not self._waiting and self._context is not None:
            self._context.restore_original_limits()
            self._context = None


_limit = _Limit()
if hasattr(os, "register_at_fork"):  # a thread that holds the lock does not come along
    os.register_at_fork(after_in_child=_limit.__init__)  # type: ignore[misc]


@cache
def _blas() -> ThreadpoolController:
    """Return the handle on the BLAS libraries: looking for them takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


def _threads_now() -> int:
    return min((int(library["num_threads"]) for library in _blas().info()), default=1)
