"""The progress of a computation: a bar of rich with the remaining time, lines, and callbacks."""

from __future__ import annotations

import math
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.util import find_spec
from numbers import Integral
from typing import TYPE_CHECKING, Protocol, TypeVar

from nysboost.numerics.messages import format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

T = TypeVar("T")

SECONDS = 2.0  # a bar appears for what takes longer, or is about to
PAUSE = 10.0  # seconds without a line after which a log says how much is done
REFRESH = 0.1  # seconds between two looks at a computation


class RowBlock(Protocol):
    """Rows that are counted together."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(number of rows, ...)."""


B = TypeVar("B", bound=RowBlock)


@dataclass
class Progress:
    """A computation of `total` units of work, of which `done` are finished.

    `say` prints a line: the result of a step, or after `pause` seconds without one how much is
    done, with the time left. `listen` is called with this object after each step. With a `limit`,
    in seconds, the computation ends early.
    """

    say: Callable[[str], None] | None = None
    listen: Callable[[Progress], None] | None = None
    clock: Callable[[], float] = time.perf_counter
    pause: float = PAUSE
    total: float = 0.0
    done: float = 0.0
    before: float = 0.0
    limit: float | None = None

    def __post_init__(self) -> None:
        now = self.clock()
        self.created = now
        self.begun = now
        self.spoke = now

    def begin(self, total: float, done: float = 0.0) -> None:
        """Begin work of known size, in any units; a part of it may already be done."""
        self.total = total
        self.done = done
        self.before = done
        self.begun = self.clock()
        self.spoke = self.begun

    def step(self, size: float = 1.0, line: str = "") -> None:
        """Count a part of this size as done, and print a line, or the progress."""
        self.done += size
        if self.listen is not None:
            self.listen(self)
        if self.say is None:
            return

        # the line, or how much is done if nothing has been said for long
        now = self.clock()
        was_silent = now - self.spoke >= self.pause
        if not line and was_silent:
            line = f"{self.share:.0%} of the work is done"
        if line:
            self.spoke = now
            if self.rest:
                line = f"{line}, {self.rest}"
            self.say(line)

    @property
    def passed(self) -> float:
        """Seconds since the computation began."""
        return self.clock() - self.created

    def has_time(self, share: float = 1.0) -> bool:
        """Whether less than this share of the time limit has passed, if there is one."""
        return self.limit is None or self.passed < share * self.limit

    @property
    def share(self) -> float:
        """Share of the work that is done, 0 to 1; 0 if its size is unknown."""
        if not self.total:
            return 0.0
        return min(self.done / self.total, 1.0)

    @property
    def left(self) -> float | None:
        """Estimated seconds for the rest, None if unknown."""
        made = self.done - self.before
        if not self.total or not made:
            return None

        # at the speed since it began
        passed = self.clock() - self.begun
        rest = max(self.total - self.done, 0.0)
        estimate = passed * rest / made
        if self.limit is None:
            return estimate
        until_limit = max(self.limit - self.passed, 0.0)
        return min(estimate, until_limit)

    @property
    def is_long(self) -> bool:
        """Whether the computation takes so long that a bar is shown."""
        if self.passed >= SECONDS:
            return True

        # an estimate means something after a while
        foreseen = self.passed + (self.left or 0)
        return self.passed >= SECONDS / 4 and foreseen > SECONDS

    @property
    def rest(self) -> str:
        """The remaining time in words, or "" if it is unknown or less than a second."""
        left = self.left
        if left is None or left < 1:
            return ""
        return f"about {format_seconds(left)} left"


_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


def current() -> Progress:
    """Return the progress of the running computation, or a progress that is not shown."""
    return _current.get() or Progress()


@contextmanager
def report_progress(
    title: str, verbose: int | None = None, listen: Callable[[Progress], None] | None = None
) -> Iterator[Progress]:
    """Show the progress of a computation, unless it is a part of another one.

    `verbose` None shows a bar after two seconds, 0 shows nothing, and 1 also shows lines for steps.
    """
    if not isinstance(verbose, Integral | None):
        raise ValueError(f"verbose is None, 0 or 1, but verbose={verbose!r} was given.")

    # a surrounding computation shows its own progress; without parts of its own it counts these
    outer = _current.get()
    if outer is not None:
        verbose = 0
        if not outer.total and listen is None:
            yield outer
            return

    progress = Progress(None, listen)
    token = _current.set(progress)
    try:
        with _show(progress, title, verbose):
            yield progress
    finally:
        _current.reset(token)


def count_rows(blocks: Iterable[B], title: str, total: int | None, verbose: int) -> Iterator[B]:
    """Yield blocks of rows, and show how many rows are done."""
    progress = Progress()
    progress.begin(total or 0)
    with _show(progress, title, verbose):
        for block in blocks:
            yield block
            progress.step(block.shape[0])


def track(steps: Collection[T], what: str = "") -> Iterator[T]:
    """Yield the steps, and count each as done when the next one begins; `what` names them."""
    # a larger computation, of which this is a part, counts
    progress = current()
    if progress.total:
        yield from steps
        return

    total = len(steps)
    progress.begin(total)
    for number, step in enumerate(steps, start=1):
        yield step

        # it is done when the next is asked for
        line = ""
        if what:
            line = f"{what} {number} of {total}"
        progress.step(1.0, line)


# Showing it


@contextmanager
def _show(progress: Progress, title: str, verbose: int | None) -> Iterator[None]:
    """Show a bar when the work takes long, and lines if `verbose`."""
    # a bar says how much is done, so that lines need not
    bar = None
    if verbose != 0 and _has_screen():
        bar = _Bar(progress, title)
        progress.pause = math.inf

    lines = _Lines(progress, title, bar)
    if verbose:
        progress.say = lines
    with bar or nullcontext():
        yield
    lines.close()


class _Lines:
    """Prints lines on standard error with title and time, above the bar if there is one."""

    def __init__(self, progress: Progress, title: str, bar: _Bar | None) -> None:
        self._progress = progress
        self._title = title
        self._bar = bar
        self._used = False

    def __call__(self, line: str) -> None:
        self._used = True
        text = f"{self._title} {self._progress.passed:6.1f} s  {line}"
        if self._bar is None or self._bar.shown is None:
            print(text, file=sys.stderr, flush=True)
            return

        # above the bar
        console = self._bar.shown.console
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Print a last line when the work has ended, if there were others."""
        if self._used:
            self("done")


class _Bar:
    """A bar of rich that appears when the work takes long, and disappears at the end."""

    def __init__(self, progress: Progress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.shown: RichProgress | None = None

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        """Watch the work until it ends."""
        while not self._over.wait(REFRESH):
            if self.shown is None and self._progress.is_long:
                self.shown = _make_bar()
                task = self.shown.add_task(self._title, left="")
                self.shown.start()

            if self.shown is not None:
                # without a total, rich shows a moving bar
                work = self._progress
                total = work.total if work.share < 1 else None
                self.shown.update(task, total=total, completed=work.done, left=work.rest)
                self.shown.refresh()
        if self.shown is not None:
            self.shown.stop()


def _make_bar() -> RichProgress:
    """Return the bar: title, share done, elapsed time and remaining time."""
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )


def _has_screen() -> bool:
    """Whether rich is installed and can show a bar: on a terminal, or in a notebook.

    Workers, processes or threads, show none.
    """
    if multiprocessing.current_process().name != "MainProcess":
        return False
    if threading.current_thread() is not threading.main_thread():
        return False

    # a terminal
    if find_spec("rich") is None:
        return False
    if sys.stderr is not None and sys.stderr.isatty():
        return True

    # a notebook
    return "ipykernel" in sys.modules and find_spec("ipywidgets") is not None
