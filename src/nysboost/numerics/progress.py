"""How far a long computation has come, told to those who asked."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

PAUSE = 5.0
"""Seconds of silence after which work without a result of its own says how far it is."""

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


@dataclass
class Work:
    """Work of which parts get done: it says what came of them, and how long the rest will take.

    Parameters
    ----------
    say : callable
        Takes a line.

    Examples
    --------
    >>> work = Work(print)
    >>> work.begin(2.0)
    >>> work.step(2.0, "All of it")
    All of it, about 0 s left
    """

    say: Callable[[str], None] = lambda _: None
    total: float = 0.0
    done: float = 0.0
    begun: float = 0.0
    spoke: float = 0.0

    def begin(self, total: float) -> None:
        """Begin work of a size that is known, in any units."""
        self.total, self.done = total, 0.0
        self.begun = self.spoke = time.perf_counter()

    def step(self, size: float, line: str = "") -> None:
        """Say that a part of that size is done; without a line, only after a while."""
        self.done, now = self.done + size, time.perf_counter()
        if not line and now - self.spoke < PAUSE:
            return
        self.spoke, share = now, min(self.done / self.total, 1.0) if self.total else 0.0
        left = (now - self.begun) * (1 - share) / share if share else 0.0
        what = line or f"{share:.0%} of the work is done"
        self.say(f"{what}, about {left:.0f} s left" if share else what)
