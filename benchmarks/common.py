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
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from environment import machine, machine_line

from nysboost.paper import datasets

FLOOR = "floor"
"""The two bare matrix products: in a curve their time is real and their error borrowed."""

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


@dataclass(frozen=True)
class Curve:
    """Error against time over the number of landmarks; `method` says how it is drawn."""

    method: str
    label: str
    landmarks: list[int]
    seconds: list[float]
    errors: list[float]

    def cells(self) -> Cells:
        """Return one line of text for each number of landmarks."""
        points = zip(self.landmarks, self.seconds, self.errors, strict=True)
        return [[self.label, str(c), _short(s), f"{e:.3g}"] for c, s, e in points]


@dataclass
class Report:
    """What a benchmark found: all that its table, its picture and the summary need."""

    title: str
    machine: dict[str, str] = field(default_factory=lambda: machine())
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def add(self, found: Row | Curve) -> None:
        """Add a row, and say so at once, as a benchmark takes minutes; or a curve."""
        if isinstance(found, Curve):
            self.curves.append(found)
            return
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
        rows, curves = [Row(**r) for r in stored["rows"]], [Curve(**c) for c in stored["curves"]]
        return cls(stored["title"], stored["machine"], rows, curves)

    def text(self, markdown: bool) -> str:
        """Return the machine and the tables, as plain text or as Markdown."""
        parts = [f"{self.title}.\n{machine_line(self.machine)}."]
        parts += [table(HEADER, [row.cells() for row in self.rows], markdown)]
        if self.curves:
            points = [cells for curve in self.curves for cells in curve.cells()]
            parts += [table(["method", "landmarks", "seconds", "error"], points, markdown)]
        return "\n\n".join(parts)


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


def clock_of(options: argparse.Namespace) -> Callable[[], float]:
    """Return the clock that --wall chooses, an option of some benchmarks."""
    return time.perf_counter if options.wall else time.process_time


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


Part = Callable[[argparse.Namespace], Iterator[Row | Curve]]


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
    """Return the main function of a benchmark, made of parts that yield rows and curves.

    It measures all parts, the `usual` ones or those that --only names, or reads an earlier run;
    writes JSON and picture, and prints the tables. A title may name options in braces.
    """
    by_name = {part.__name__.replace("_", "-"): part for part in parts}

    def main(arguments: Sequence[str] | None = None) -> None:
        parser = record_options(doc, options)
        parser.add_argument("--only", nargs="+", choices=by_name, default=[*(usual or by_name)])
        parser.add_argument("--data", choices=("paper", "synthetic"), default="paper")
        parser.add_argument("--plot", type=Path, help="JSON of an earlier run to show again")
        common = {"rounds": (rounds, "how often each is timed"), "markdown": False}
        add_options(parser, common | {"out": Path(f"out/{Path(script).stem}.json")})
        given = parser.parse_args(arguments)
        path = given.plot or given.out
        report = Report.load(path) if given.plot else Report(title.format(**vars(given)))
        for name in () if given.plot else given.only:
            for found in by_name[name](given):
                report.add(found)
                report.save(path)  # what is there stays if the rest is stopped
        if report.curves:
            from same_error import draw

            draw(report, path.with_suffix(".png"))
        print(report.text(given.markdown), flush=True)

    return main


def _short(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"
