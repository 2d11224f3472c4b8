"""How far a long computation has come, told to those who asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_shown: ContextVar[bool] = ContextVar("progress is shown", default=False)


@contextmanager
def shown(verbose: bool | int) -> Iterator[None]:
    """Let everything inside say how far it is, if `verbose`."""
    token = _shown.set(bool(verbose))
    try:
        yield
    finally:
        _shown.reset(token)


def track(steps: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield the steps, and after each say how many are done and how long the rest will take.

    Parameters
    ----------
    steps : iterable
        What is to be done.
    what : str
        What to call it.
    total : int or None
        How many steps there are, where that is known and `steps` does not say.

    Examples
    --------
    >>> list(track([1, 2], "counting"))
    [1, 2]
    """
    if not _shown.get():
        yield from steps
        return
    total = len(steps) if total is None and isinstance(steps, Sized) else total
    begun = time.perf_counter()
    for done, step in enumerate(steps, start=1):
        yield step
        passed = time.perf_counter() - begun
        left = f", about {passed * (total - done) / done:.1f} s left" if total else ""
        of = f" of {total}" if total else ""
        print(f"nysboost: {what} {done}{of}, {passed:.1f} s{left}", file=sys.stderr, flush=True)
