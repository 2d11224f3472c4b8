"""What the commands print: sentences, tables and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

_QUIET_SECONDS = 10.0
"""A log file gets a line of progress this often."""
_FILE_WIDTH = 140
"""Columns of a table that goes to a file: no terminal says how wide it is."""


def _console(stderr: bool = False) -> Console:
    # Made anew each time, so that output follows whoever replaced sys.stdout.
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def say(sentence: str) -> None:
    """Print a sentence."""
    _console().print(sentence, markup=False, soft_wrap=True)


def words(title: str, names: Sequence[str]) -> None:
    """Print a title and some names."""
    console = _console()
    console.print(title, style="bold")
    console.print("  " + ", ".join(names), markup=False)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for name in head:
        drawn.add_column(name, overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    _console().print(drawn, markup=False)


@contextmanager
def progress(title: str) -> Iterator[Callable[..., None]]:
    """Show how many of how many are done, and the time left; plain lines without a terminal.

    What it gives is a function of the number done, of their total, and of whether the time
    left may be told from the speed so far.
    """
    console = _console(stderr=True)
    if not console.is_terminal:
        yield _plain(title, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console) as bar:
        task, clock = bar.add_task(title, total=None, left=""), _Clock()

        def update(done: int, total: int, steady: bool = True) -> None:
            bar.update(task, total=total, completed=done, left=clock.left(done, total, steady))

        yield update


class _Clock:
    """Tells the time left from the speed since the first call."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.first: int | None = None

    def left(self, done: int, total: int, steady: bool) -> str:
        """Return in words how long it will take; nothing where that cannot be told."""
        # What was there before the start says nothing about the speed.
        self.first = done if self.first is None else self.first
        made, passed = done - self.first, time.monotonic() - self.began
        if not (steady and made > 0 and done < total):
            return ""
        return f"about {_span(passed / made * (total - done))} left"


def _plain(title: str, console: Console) -> Callable[..., None]:
    clock, last = _Clock(), [-_QUIET_SECONDS]

    def update(done: int, total: int, steady: bool = True) -> None:
        now, left = time.monotonic() - clock.began, clock.left(done, total, steady)
        if done < total and now - last[0] < _QUIET_SECONDS:
            return
        last[0] = now
        console.print(f"{title}: {done} of {total}{', ' if left else ''}{left}", markup=False)

    return update


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def keep_earlier(path: Path) -> None:
    """Give an earlier report another name, and say so."""
    if path.exists():
        kept = path.with_name(f"{path.stem}.earlier{path.suffix}")
        path.replace(kept)
        say(f"The earlier report is kept as {kept}.")
