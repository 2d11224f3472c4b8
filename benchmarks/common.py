"""What the benchmarks share: timing in turn, tables, records, data and the command.

A shared machine is noisy, so that what is compared runs in turn, round after round, and what
counts is the median of the ratios within a round; the smallest and largest are shown beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from environment import machine, machine_line

from nysboost.paper import datasets

FLOOR = "the two bare products"
"""(X Zᵀ) N alone, of the same shapes and precision: no transform can do without them."""

Cells = list[list[str]]
Times = dict[str, list[float]]


@dataclass(frozen=True)
class Row:
    """One comparison: medians over the rounds, and the ratios within the rounds."""

    what: str
    against: str
    ours: float
    theirs: float
    unit: str
    ratio: float
    low: float
    high: float
    goal: float | None = None
    note: str = ""
    part: str = ""

    @property
    def verdict(self) -> str:
        """Whether the ratio is at most the goal; nothing where there is none."""
        return "" if self.goal is None else "met" if self.ratio <= self.goal else "missed"

    def cells(self) -> list[str]:
        """Return the row as text."""
        sizes = [f"{_short(value)} {self.unit}" for value in (self.ours, self.theirs)]
        ratio = [f"{self.ratio:.3f}", f"{self.low:.2f}–{self.high:.2f}"]
        goal = "" if self.goal is None else f"{self.goal:.2f}"
        return [self.what, self.against, *sizes, *ratio, goal, self.verdict, self.note]


HEADER = ["what", "against", "ours", "theirs", "ratio", "min–max", "goal", "", "remark"]


@dataclass
class Report:
    """What a benchmark found: all that its table, the pages and the summary need."""

    title: str
    machine: dict[str, str] = field(default_factory=lambda: machine())
    rows: list[Row] = field(default_factory=list)

    def add(self, found: Row) -> None:
        """Add a row, and print it at once, as a benchmark takes minutes."""
        self.rows.append(found)
        progress(f"{found.what} / {found.against}: {found.ratio:.3f} {found.verdict}")

    def save(self, path: Path) -> None:
        """Write the report as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Report:
        """Read what `save` wrote."""
        stored = json.loads(path.read_text())
        return cls(stored["title"], stored["machine"], [Row(**row) for row in stored["rows"]])

    def text(self, markdown: bool) -> str:
        """Return the machine and the table, as plain text or as Markdown."""
        head = f"{self.title}.\n{machine_line(self.machine)}."
        return f"{head}\n\n{table(HEADER, [row.cells() for row in self.rows], markdown)}"


def time_in_turn(
    work: Mapping[str, Callable[[int], Any]],
    rounds: int,
    *,
    warm_up: bool = True,
    after: Callable[[str, Any], None] = lambda _name, _result: None,
    clock: Callable[[], float] = time.process_time,
) -> Times:
    """Return the seconds of each function in each round, in every round in another order.

    Each is called with the number of the round, as a seed for those that need one, and once
    before, untimed, if there is a `warm_up`. `after` gets each name and result outside of the time.
    The clock is processor time, which other work on the machine changes little.
    """
    names = list(work)
    times: Times = {name: [] for name in names}
    for name in names if warm_up else ():
        work[name](0)
    for number in range(rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            start = clock()
            result = work[name](number)
            times[name].append(clock() - start)
            after(name, result)
            del result
            progress(f"round {number + 1}/{rounds}, {name}: {times[name][-1]:.3g} s")
    return times


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Return the seconds of some work; the processor's, which say more on a busy machine."""
    began = clock()
    work()
    return clock() - began


def compare(
    what: str,
    against: str,
    ours: Sequence[float],
    theirs: Sequence[float] | float,
    goal: float | None = None,
    *,
    unit: str = "s",
    note: str = "",
) -> Row:
    """Return the row of two lists of measurements, round by round, or of one and a limit."""
    other = theirs if isinstance(theirs, Sequence) else [theirs] * len(ours)
    ratios = [a / b for a, b in zip(ours, other, strict=True)]
    median, low, high = statistics.median(ratios), min(ratios), max(ratios)
    sizes = statistics.median(ours), statistics.median(other)
    return Row(what, against, *sizes, unit, median, low, high, goal, note)


def table(header: Sequence[str], rows: Cells, markdown: bool) -> str:
    """Return a table without its empty columns, aligned in both forms."""
    kept = [i for i in range(len(header)) if any(row[i] for row in rows)]
    lines = [[row[i] for i in kept] for row in [list(header), *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = [[cell.ljust(w) for cell, w in zip(line, widths, strict=True)] for line in lines]
    if not markdown:
        return "\n".join("  ".join(line).rstrip() for line in padded)
    padded.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def synthetic(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Return n float64 points in 20 clusters, with features of falling spread, as real data."""
    rng = np.random.default_rng(seed)
    spread = np.sqrt(d / (1.0 + np.arange(d)))
    centres = rng.standard_normal((20, d))
    return (rng.standard_normal((n, d)) / 2 + centres[rng.integers(20, size=n)]) * spread / 2


def points(name: str, n: int, options: argparse.Namespace) -> np.ndarray:
    """Return n points of one of the paper's data sets, or what --data put in its place."""
    dataset = datasets.DATASETS[name]
    if options.data == "synthetic":
        return synthetic(n, dataset.dimension)
    data = datasets.load(name, options.data_dir, progress)
    return data.draw(n, np.random.default_rng(0))


def labelled(name: str, options: argparse.Namespace) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of a data set as features, and their labels."""
    if options.data == "synthetic":
        X = synthetic(400, 6)
        return X, (X[:, 0] > np.median(X[:, 0])).astype(int)
    points = datasets.load(name, options.data_dir)
    y = np.load(points.source)["y"]
    return (points.values.astype(np.float64) - points.shift) / points.scale, y.astype(int)


def append(path: Path, *records: dict[str, Any]) -> None:
    """Write records to the end of a file, each a line of JSON, all in one write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file; a half-written last line is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


def progress(message: str) -> None:
    """Say where a run stands, apart from its result."""
    print(message, file=sys.stderr, flush=True)


def add_options(parser: argparse.ArgumentParser, options: Mapping[str, Any]) -> None:
    """Add options, given by their defaults, or by a default and its explanation.

    A list takes several values, False is a flag, and None a path that may be left out. The type
    is that of the default; that of an empty list is text.
    """
    for name, given in options.items():
        default, text = given if isinstance(given, tuple) else (given, None)
        if default is False:
            parser.add_argument(f"--{name}", action="store_true", help=text)
            continue
        several = isinstance(default, list)
        one = (default or [""])[0] if several else default
        kind = Path if one is None else type(one)
        number = "*" if several else None
        parser.add_argument(f"--{name}", type=kind, nargs=number, default=default, help=text)


def record_options(doc: str | None, options: Mapping[str, Any]) -> argparse.ArgumentParser:
    """Return a parser of options for a benchmark that keeps records, with its docstring as help."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, {"data-dir": (None, "folder of the data"), **options})
    return parser


Part = Callable[[argparse.Namespace], Iterator[Row]]


def benchmark(
    script: str,
    doc: str | None,
    title: str,
    parts: Sequence[Part],
    *,
    rounds: int,
    options: Mapping[str, Any],
    usual: Sequence[str] = (),
) -> Callable[[Sequence[str] | None], None]:
    """Return the main function of a benchmark, made of parts that yield rows.

    It measures all parts, the `usual` ones or those that --only names, writes the rows of each
    part into a JSON file in place of its earlier ones, and prints the table. A title may name
    options in braces.
    """
    by_name = {part.__name__.replace("_", "-"): part for part in parts}

    def main(arguments: Sequence[str] | None = None) -> None:
        parser = record_options(doc, options)
        parser.add_argument("--only", nargs="+", choices=by_name, default=[*(usual or by_name)])
        parser.add_argument("--data", choices=("paper", "synthetic"), default="paper")
        common = {"rounds": (rounds, "how often each is timed"), "markdown": False}
        add_options(parser, common | {"out": Path(f"out/{Path(script).stem}.json")})
        given = parser.parse_args(arguments)

        report = Report(title.format(**vars(given)))
        if given.out.exists():
            report.rows = [row for row in Report.load(given.out).rows if row.part not in given.only]
        for name in given.only:
            for found in by_name[name](given):
                report.add(replace(found, part=name))
                report.save(given.out)  # what is there stays if the rest is stopped
        print(report.text(given.markdown), flush=True)

    return main


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
