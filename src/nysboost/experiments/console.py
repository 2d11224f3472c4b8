"""What the commands print: sentences, tables and progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_QUIET_SECONDS = 10.0
_FILE_WIDTH = 140


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
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """Show how many of how many are done, and the time left; plain lines without a terminal."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield _plain(title, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            if bar.tasks[0].total is None:
                # What was there before the start says nothing about the speed.
                bar.reset(task, total=total, completed=done)
            bar.update(task, completed=done)

        yield update


def _plain(title: str, console: Console) -> Callable[[int, int], None]:
    began = time.monotonic()
    first: list[int] = []
    last = [-_QUIET_SECONDS]

    def update(done: int, total: int) -> None:
        now = time.monotonic() - began
        first.append(done)
        if done < total and now - last[0] < _QUIET_SECONDS:
            return
        last[0] = now
        made = done - first[0]
        left = f", about {_span(now / made * (total - done))} left" if 0 < made < total else ""
        console.print(f"{title}: {done} of {total}{left if done < total else ''}", markup=False)

    return update


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
