"""Progress of a pass over rows: how many, how fast, how long still."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

SECONDS = 10.0
"""Between two lines where standard error is no terminal; there it is a tenth of a second."""


class Progress:
    """Rows as they pass by, told on standard error.

    Parameters
    ----------
    what : str
        What is being done.
    total : int or None
        How many rows there are, if that is known.
    shown : bool
        Whether anything is said.
    """

    def __init__(self, what: str, total: int | None, *, shown: bool) -> None:
        self.what, self.total, self.shown = what, total, shown
        self.rows = 0
        self._begun = self._said = time.perf_counter()

    def of(self, blocks: Iterator[NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Yield the blocks, and count the rows of those that are done with."""
        for block in blocks:
            yield block
            self.rows += len(block)
            self._say()
        if self.shown and sys.stderr.isatty():
            print(file=sys.stderr)

    @property
    def seconds(self) -> float:
        """Time since the beginning."""
        return time.perf_counter() - self._begun

    def sentence(self) -> str:
        """Return how far it has come."""
        speed = self.rows / max(self.seconds, 1e-9)
        of = f" of {self.total}" if self.total else ""
        rest = max(0, (self.total or 0) - self.rows) / max(speed, 1e-9)
        left = f", about {rest:.0f} s left" if self.total else ""
        return f"{self.what}: {self.rows}{of} rows, {speed:,.0f} rows/s{left}"

    def _say(self) -> None:
        now, terminal = time.perf_counter(), sys.stderr.isatty()
        if self.shown and now - self._said >= (0.1 if terminal else SECONDS):
            self._said = now
            line = f"\r{self.sentence()}\033[K" if terminal else f"{self.sentence()}\n"
            print(line, end="", file=sys.stderr, flush=True)
