"""Memory and threads that a computation may use.

OpenBLAS has one setting of threads for the process, which passes that overlap share: the first
sets it, the last restores it. threadpoolctl's own limits cost 60 µs and do nothing in other
threads.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import ceil
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController, threadpool_limits

MAX_MEMORY = 2**30
"""Working memory of a pass over the rows, beyond what goes in and what comes out."""

LARGEST_KEPT = 2**25 - 2**16
"""Bytes of the largest piece that GNU's C library can be taught to keep: just below 32 MB."""

UNITS = {"": 1, **{f"{p}B": 1000**i for i, p in enumerate(["", "K", "M", "G", "T"])}}
UNITS |= {f"{p}IB": 1024**i for i, p in enumerate(["K", "M", "G", "T"], start=1)}


@dataclass(frozen=True)
class Budget:
    """Working memory of a pass over the rows, and cores; None is what matrix products use."""

    bytes: int = MAX_MEMORY
    threads: int | None = None

    @classmethod
    def of(cls, max_memory: int | str = MAX_MEMORY, n_jobs: int | None = None) -> Budget:
        """Return the budget that a user's `max_memory` and `n_jobs` stand for.

        Examples
        --------
        >>> Budget.of("2MB", n_jobs=-1)
        Budget(bytes=2000000, threads=None)
        """
        if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
            raise ValueError(f"n_jobs is a whole number or None, but n_jobs={n_jobs!r} was given.")
        return cls(as_bytes(max_memory), n_jobs if n_jobs is not None and n_jobs > 0 else None)


def as_bytes(max_memory: int | str) -> int:
    """Turn 500_000_000, "500MB" or "0.5GiB" into a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Z]*)\s*", str(max_memory).upper())
    if isinstance(max_memory, bool) or match is None or match[2] not in UNITS:
        raise ValueError(
            'max_memory is a number of bytes or a text such as "500MB" or "2GiB", but '
            f"max_memory={max_memory!r} was given."
        )
    return int(float(match[1]) * UNITS[match[2]])


def format_bytes(size: float) -> str:
    """Return a number of bytes as a person would write it, rounded up to a tenth."""
    for unit in ("kB", "MB", "GB"):
        size = ceil(size / 100) / 10
        if size < 1000 or unit == "GB":
            break
    return f"{size:.1f} {unit}"


def keep_freed_memory() -> None:
    """Have GNU's C library keep some 64 MB of freed memory: 16 ms a step of a search, not 26."""
    np.empty(LARGEST_KEPT, dtype=np.uint8)


_local = threading.local()


@contextmanager
def on_one_core() -> Iterator[None]:
    """Limit what runs inside to one thread: others run beside it, as tasks of Dask do."""
    outside = getattr(_local, "confined", False)
    _local.confined = True
    try:
        with one_blas_thread():
            yield
    finally:
        _local.confined = outside


def at_most(threads: int | None) -> AbstractContextManager[Any]:
    """Limit matrix products and passes inside to so many threads; None is no limit."""
    if threads == 1:
        return on_one_core()
    return nullcontext() if threads is None else threadpool_limits(threads, user_api="blas")


def confine_this_thread() -> None:
    """Have passes that this thread begins use no other: it is one of a pass's own."""
    _local.confined = True


def usable_threads(budget: Budget) -> int:
    """Return how many threads a pass may use, by the user's own settings."""
    if getattr(_local, "confined", False):
        return 1
    available = _limit.threads_outside()
    return min(available, budget.threads or available)


class one_blas_thread:  # noqa: N801
    """A context in which matrix products run on one thread each, in the whole process."""

    def __enter__(self) -> None:
        _limit.enter(id(self))

    def __exit__(self, *_: object) -> None:
        _limit.leave(id(self))

    __del__ = __exit__


SMALL = 512
"""Rows of a square matrix up to which products run on one thread: two gain nothing there."""


def threads_for(size: int) -> AbstractContextManager[None]:
    """Return the context for algebra of square matrices of a size: one thread for small ones."""
    return one_blas_thread() if size <= SMALL else nullcontext()


FEW_CORES = 2
"""Up to so many cores products run on one thread: two would wait for each other wherever another
process takes a core (a fit of 3,000 rows beside a busy process: 7 s, and 19 s with two threads)."""


def threads_on_few_cores(budget: Budget) -> AbstractContextManager[None]:
    """Return the context for work that a busy neighbour may not stop: one thread on few cores."""
    return one_blas_thread() if usable_threads(budget) <= FEW_CORES else nullcontext()


@dataclass(frozen=True)
class _Library:
    """A BLAS library: functions that read and change its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], Any]


class _Limit:
    """One thread for each BLAS library as long as anybody is inside; the last restores it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a context may be collected while another enters
        self._inside: set[int] = set()
        self._changed: list[tuple[_Library, int]] = []

    def forget_threads(self) -> None:
        """Begin anew in a forked child, where the threads inside do not exist."""
        self._lock = threading.RLock()
        self._inside = set()
        self.leave(0)

    def threads_outside(self) -> int:
        """Return the number of threads that the user has set."""
        with self._lock:
            changed = {id(library): before for library, before in self._changed}
            numbers = [changed.get(id(one)) or one.get() for one in _libraries()]
        return min(numbers, default=1)

    def enter(self, who: int) -> None:
        """Set the limit, if nobody is inside yet."""
        with self._lock:
            self._inside.add(who)
            if len(self._inside) > 1:
                return
            for library in _libraries():
                before = library.get()
                if before > 1:
                    self._changed.append((library, before))
                    library.set(1)

    def leave(self, who: int) -> None:
        """Give back what `enter` has changed, if nobody else is inside."""
        with self._lock:
            self._inside.discard(who)
            while self._changed and not self._inside:
                library, before = self._changed[-1]
                if library.get() == 1:
                    library.set(before)
                self._changed.pop()


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.forget_threads)


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return the BLAS libraries of NumPy and SciPy: looking for them takes milliseconds."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return tuple(
        _openblas(one) or _Library(one.get_num_threads, one.set_num_threads) for one in found
    )


def _openblas(controller: Any) -> _Library | None:
    """Return OpenBLAS's own functions, where its threads belong to the process."""
    if getattr(controller, "threading_layer", "") != "pthreads":
        return None
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        name = f"{prefix}openblas_{{}}_num_threads{suffix}".format
        if hasattr(controller.dynlib, name("set")):
            functions = (getattr(controller.dynlib, name(what)) for what in ("get", "set"))
            return _Library(*functions)
    return None
