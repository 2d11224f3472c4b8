"""How far a computation is: a bar with the time left, lines if asked for, and callbacks."""

from __future__ import annotations

import math
import multiprocessing
import shutil
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeVar

from nysboost.numerics.messages import format_seconds

T = TypeVar("T")

SECONDS = 2.0  # a bar appears for what takes longer, or is about to
PAUSE = 10.0  # seconds without a line after which a log says how much is done
WIDTH = 24  # characters of the bar


@dataclass
class Progress:
    """A computation of `total` units of work, of which `done` are finished.

    `say` prints a line: the result of a step, or after `pause` seconds without one how much is
    done, with the time left. `listen` is called with this object after each step.
    """

    say: Callable[[str], None] | None = None
    listen: Callable[[Progress], None] | None = None
    clock: Callable[[], float] = time.perf_counter
    pause: float = PAUSE
    total: float = 0.0
    done: float = 0.0
    before: float = 0.0

    def __post_init__(self) -> None:
        self.created = self.begun = self.spoke = self.clock()

    def begin(self, total: float, done: float = 0.0) -> None:
        """Begin work of known size, in any units, of which a part is done already."""
        self.total, self.done, self.before = total, done, done
        self.begun = self.spoke = self.clock()

    def step(self, size: float = 1.0, line: str = "") -> None:
        """Count a part of that size as done, and print the line, or how much is done."""
        self.done += size
        if self.listen is not None:
            self.listen(self)
        if self.say is not None and (line or self.clock() - self.spoke >= self.pause):
            self.spoke = self.clock()
            self.say(self.sentence(line or f"{self.share:.0%} of the work is done"))

    @property
    def passed(self) -> float:
        """Seconds since the computation began."""
        return self.clock() - self.created

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; 0 where its size is unknown."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def left(self) -> float | None:
        """Estimated seconds that the rest takes, None where that is unknown."""
        made, passed = self.done - self.before, self.clock() - self.begun
        return passed * max(self.total - self.done, 0.0) / made if self.total and made else None

    @property
    def is_long(self) -> bool:
        """Whether the computation takes long enough for a bar."""
        passed = self.passed
        return passed >= SECONDS or (passed >= SECONDS / 4 and passed + (self.left or 0) > SECONDS)

    def sentence(self, line: str) -> str:
        """Return the line with the time left, where that is known."""
        left = self.left
        return line if left is None else f"{line}, about {format_seconds(left)} left"

    def bar(self, title: str) -> str:
        """Return the title with a bar and the time left, or with the time that has passed."""
        if self.share in (0, 1):
            return f"{title}: {format_seconds(self.passed)}"
        drawn = ("#" * round(WIDTH * self.share)).ljust(WIDTH, ".")
        return self.sentence(f"{title} [{drawn}] {self.share:.0%}")


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


def current() -> Progress:
    """Return the progress of the running computation, or one that is not shown."""
    return _current.get() or Progress()


@contextmanager
def report_progress(
    title: str, verbose: int | None = None, listen: Callable[[Progress], None] | None = None
) -> Iterator[Progress]:
    """Show the progress of what runs inside, unless it is a part of another computation.

    `verbose` None: a bar for what takes over two seconds; 0: nothing; 1: also lines for steps.
    """
    if not isinstance(verbose, Integral | None):
        raise ValueError(f"verbose is None, 0 or 1, but verbose={verbose!r} was given.")
    outer = _current.get()
    if outer is not None and not outer.total and listen is None:
        yield outer  # which knows no parts of its own
        return
    progress = Progress(None, listen)
    token = _current.set(progress)
    try:
        with _show(progress, title, verbose if outer is None else 0):
            yield progress
    finally:
        _current.reset(token)


def count_rows(blocks: Iterable[T], title: str, total: int | None, verbose: int) -> Iterator[T]:
    """Yield blocks of rows, and show how many of all rows are done; `verbose` as above."""
    progress = Progress()
    progress.begin(total or 0)
    with _show(progress, title, verbose):
        for block in blocks:
            yield block
            progress.step(block.shape[0])  # type: ignore[attr-defined]


def track(steps: Collection[T], what: str = "") -> Iterator[T]:
    """Yield the steps, and count each as done when the next is asked for; `what` names them."""
    progress = current()
    if progress.total:  # a larger computation, of which this is a part, counts
        yield from steps
        return
    progress.begin(len(steps))
    for number, step in enumerate(steps, start=1):
        yield step
        progress.step(1.0, f"{what} {number} of {len(steps)}" if what else "")


@contextmanager
def _show(progress: Progress, title: str, verbose: int | None) -> Iterator[None]:
    """Draw ten times a second, as soon as it takes long, and erase the line at the end."""

    def say(line: str) -> None:
        erase = "\r\033[K" if sys.stderr.isatty() else ""
        said = f"{erase}{title} {progress.passed:6.1f} s  {line}"
        print(said, file=sys.stderr, flush=True)

    draw = None if verbose == 0 else _find_screen()
    progress.say = say if verbose else None
    progress.pause = math.inf if draw else PAUSE
    if draw is None:
        yield
        return
    over = threading.Event()

    def watch() -> None:
        visible = False
        while not over.wait(0.1):
            visible = visible or progress.is_long
            if visible:
                draw(progress.bar(title))
        if visible:
            draw("")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _find_screen() -> Callable[[str], None] | None:
    """Return a function that shows a line in the place of the last one, or None without a screen.

    Workers, processes or threads, have none.
    """
    main_process = multiprocessing.current_process().name == "MainProcess"
    if not main_process or threading.current_thread() is not threading.main_thread():
        return None
    if sys.stderr is not None and sys.stderr.isatty():
        return _draw_on_terminal
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import Pretty, display

    shown: list[Any] = []  # a line of a cell's output that is written over

    def draw_in_notebook(text: str) -> None:
        if not shown:
            shown.append(display(Pretty(text), display_id=True))
        shown[0].update(Pretty(text))

    return draw_in_notebook


def _draw_on_terminal(text: str) -> None:
    width = shutil.get_terminal_size().columns - 1
    sys.stderr.write(f"\r\033[K{text[:width]}")
    sys.stderr.flush()
