"""Threads of passes and of matrix products.

OpenBLAS has one number of threads per process, which overlapping passes share: the smallest limit
holds, and the last pass restores it. threadpoolctl's own limits take 60 µs, and have no effect in
other threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from threadpoolctl import ThreadpoolController

if TYPE_CHECKING:
    from nysboost.numerics.checks import Budget

_local = threading.local()


@contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Limit matrix products and passes to this number of threads; None is no limit."""
    if threads is None:
        yield
        return

    outside = _local.__dict__.get("most")
    if outside is not None:
        threads = min(threads, outside)
    _local.most = threads
    try:
        with limit_blas(threads):
            yield
    finally:
        _local.most = outside


def mark_worker_thread() -> None:
    """Mark this thread as a worker of a pass, so that its own passes use no other threads."""
    _local.most = 1


def usable_threads(budget: Budget) -> int:
    """Return the number of threads that the user's settings allow for a pass."""
    # the settings of BLAS outside our own limits
    with _lock:
        limits = []
        for i, (get, _) in enumerate(_libraries()):
            now = get()
            before, _ = _changed.get(i, (now, now))
            limits.append(before)

    # the user's limit, and that of the thread
    others = (budget.threads, _local.__dict__.get("most"))
    limits = limits or [1]
    limits += [most for most in others if most is not None]
    return min(limits)


class limit_blas:  # noqa: N801
    """A context that limits the threads of matrix products in the whole process.

    The smallest limit of all contexts holds, and the last context restores each library.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __enter__(self) -> None:
        with _lock:
            before = _limit()
            _inside[id(self)] = self.threads
            if _limit() != before:
                _apply_limit()

    def __exit__(self, *_: object) -> None:
        with _lock:
            before = _limit()
            _inside.pop(id(self), None)
            if _limit() != before:
                _apply_limit()

    __del__ = __exit__


def one_blas_thread() -> limit_blas:
    """Return the context in which matrix products run on one thread each."""
    return limit_blas(1)


SMALL = 512  # rows of square matrices whose products gain nothing from a second thread


def threads_for(size: int) -> AbstractContextManager[None]:
    """Return the context for algebra of square matrices: small ones use one thread."""
    if size <= SMALL:
        return one_blas_thread()
    return nullcontext()


FEW_CORES = 2  # two threads wait for each other beside a busy process: 19 s for a fit, one 7 s


MOST_THREADS = 8  # of 4,000 × 240 matrices: MNIST on 16 cores 2.2 s, with 16 threads 2.5, 4 2.7


def threads_of_samples(budget: Budget) -> limit_blas:
    """Return the context for algebra of a sample, which is too small for many threads."""
    usable = usable_threads(budget)
    if usable <= FEW_CORES:
        return limit_blas(1)
    return limit_blas(min(usable, MOST_THREADS))


_Library: TypeAlias = tuple[Callable[[], int], Callable[[int], object]]
"""A BLAS library: functions that read and change its number of threads."""


_lock = threading.RLock()  # a context may be collected while another enters


_inside: dict[int, int] = {}


_changed: dict[int, tuple[int, int]] = {}
"""For each changed library, by address, the number of threads before and the number set."""


def _limit() -> int | None:
    return min(_inside.values(), default=None)


def _apply_limit() -> None:
    """Set the smallest limit, or restore the earlier number, unless others have changed it."""
    limit = _limit()
    for i, (get, change) in enumerate(_libraries()):
        now = get()
        before, ours = _changed.pop(i, (now, now))
        wanted = before
        if limit is not None:
            wanted = min(before, limit)

        # what is now is ours, unless others have changed it since
        if now == ours and now != wanted:
            change(wanted)
            ours = wanted

        # to be restored when the last context is left
        if limit is not None and ours != before:
            _changed[i] = (before, ours)

    if _limit() != limit:  # a context was collected meanwhile
        _apply_limit()


def _forget_threads() -> None:
    """Reset the state in a forked child, where the threads do not exist."""
    global _lock
    _lock = threading.RLock()
    _inside.clear()
    if _changed:  # else the libraries may not be known yet, and looking for them takes time
        _apply_limit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return the BLAS libraries, cached because finding them takes milliseconds."""
    found: list[_Library] = []
    for one in ThreadpoolController().select(user_api="blas").lib_controllers:
        functions = one.get_num_threads, one.set_num_threads
        # threadpoolctl limits OpenBLAS's own threads only for the calling thread
        if getattr(one, "threading_layer", "") == "pthreads":
            functions = _openblas_functions(one.dynlib) or functions
        found.append(functions)
    return tuple(found)


def _openblas_functions(loaded: object) -> _Library | None:
    """Return OpenBLAS's functions for the process, under any of their names, if it has them."""
    for prefix, suffix in product(("", "scipy_"), ("", "64_", "_64")):
        name = f"{prefix}openblas_{{}}_num_threads{suffix}"
        change = getattr(loaded, name.format("set"), None)
        if change is not None:
            return getattr(loaded, name.format("get")), change
    return None
