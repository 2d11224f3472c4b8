"""All methods side by side, at equal number of columns, on the paper's five data sets.

n = 4000 random rows, Gaussian kernel with σ = 5, c = 240 columns in all, three seeds, one
thread. For each method: the relative error in the Frobenius norm, the processor time of
finding it, and the entries of the matrix that it evaluated, in units of n².

Records are appended as they are made; the same command goes on where it was.

    python benchmarks/systems.py --data-dir folder        all of it, then the table
    python benchmarks/systems.py --workers 8              the same, on eight cores
    python benchmarks/systems.py --methods joint          one method anew, into another --out
    python benchmarks/systems.py --summary --markdown     the table alone
    python benchmarks/systems.py --summary --picture f.png
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import placed, progress, table
from threadpoolctl import threadpool_limits

import nysboost as nb
from nysboost.experiments import datasets
from nysboost.experiments.palette import style

DATA = ("mnist", "covertype", "glove", "pendigits", "ijcnn")
ROWS, COLUMNS, GAMMA = 4000, 240, 1 / 50
SHOWN = ("ensemble-ridge", "URB-mean", "JJB-mean")
"""Of the paper's mixtures, of which there are thirty, the best of each family."""
DOUBLES = ("uniform", "density-weighted")
"""Not drawn: at full rank they are nystrom and kmeans."""


@dataclass(frozen=True)
class Contestant:
    """A method, under the name that the table gives it, and how it is called."""

    name: str
    method: str
    family: str
    how: dict[str, Any]


def contestants() -> Iterator[Contestant]:
    """Yield every method once, and three that need more than their number of columns."""
    for family, methods in nb.FAMILIES.items():
        for method in methods:
            mixed = family.startswith(("ensemble", "boosting"))
            if mixed and method not in SHOWN:
                continue
            learners = {"n_learners": 4} if mixed else {}
            yield Contestant(method, method, family, {"n_components": COLUMNS, **learners})
    half = COLUMNS // 2
    yield Contestant(
        "density-weighted, rank 120",
        "density-weighted",
        "cluster centres",
        {"n_components": COLUMNS, "rank": half},
    )
    yield Contestant(
        "nystrom, rank 120", "nystrom", "standard", {"n_columns": COLUMNS, "rank": half}
    )
    yield Contestant(
        "meka, 240 in each of 5", "meka", "cluster centres", {"n_components": 5 * COLUMNS}
    )


def measure(data: str, seed: int, contestant: Contestant, X: np.ndarray, G: np.ndarray) -> Any:
    """Run one method with one seed."""
    began = time.process_time()
    approx = nb.approximate(
        X, contestant.method, nb.Gaussian(gamma=GAMMA), random_state=seed, **contestant.how
    )
    seconds = time.process_time() - began
    squares = 0.0
    for start in range(0, ROWS, 500):
        rows = slice(start, start + 500)
        squares += float(((G[rows] - approx.block(rows, slice(None))) ** 2).sum())
    return {
        "data": data,
        "seed": seed,
        "method": contestant.name,
        "family": contestant.family,
        "error": float(np.sqrt(squares / float((G**2).sum()))),
        "seconds": seconds,
        "entries": approx.entries_evaluated / ROWS**2,
    }


def run(options: argparse.Namespace) -> None:
    """Run what is not in the file yet, each seed of a data set in a process of its own."""
    options.out.parent.mkdir(parents=True, exist_ok=True)
    pairs = list(product(range(options.seeds), DATA))
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        for task in [pool.submit(run_all, data, seed, options) for seed, data in pairs]:
            task.result()


def run_all(data: str, seed: int, options: argparse.Namespace) -> None:
    """Run all methods that are asked for on one sample of a data set."""
    done = {r["method"] for r in read(options.out) if (r["data"], r["seed"]) == (data, seed)}
    rng = np.random.default_rng([seed, ROWS])
    X = placed(datasets.load(data, options.data_dir, progress).draw(ROWS, rng), options.device)
    G = nb.Gaussian(gamma=GAMMA)(X, X)
    for contestant in contestants():
        asked = not options.methods or contestant.name in options.methods
        if contestant.name in done or not asked:
            continue
        with threadpool_limits(1):
            record = measure(data, seed, contestant, X, G)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")  # one write: lines of others do not mix with it
        progress(f"{data} {seed} {contestant.name}: {record['error']:.3g}")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the records so far."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def summary(records: list[dict[str, Any]], markdown: bool) -> str:
    """Return the table: mean errors on each data set, mean time and entries, best first."""
    names = list(dict.fromkeys(r["method"] for r in records))
    lines = []
    for name in names:
        mine = [r for r in records if r["method"] == name]
        errors = [[r["error"] for r in mine if r["data"] == data] for data in DATA]
        means = [float(np.mean(e)) if e else np.nan for e in errors]
        seconds, entries = (float(np.mean([r[k] for r in mine])) for k in ("seconds", "entries"))
        rank = float(np.exp(np.nanmean(np.log(means))))
        cells = [name, mine[0]["family"], *(f"{m:.2e}" for m in means)]
        lines.append((rank, [*cells, f"{seconds:.2f}", f"{entries:.2f}"]))
    header = ["method", "family", *DATA, "seconds", "entries / n²"]
    return table(header, [cells for _, cells in sorted(lines)], markdown)


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw error against time, one panel for each data set, and as many names as have room."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.6), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    for axes, data in zip(panels, DATA, strict=False):
        of_data = sorted(
            (r for r in records if r["data"] == data),
            key=lambda r: (r["method"] == "optimal", r["error"]),
        )
        for name in dict.fromkeys(r["method"] for r in of_data if r["method"] not in DOUBLES):
            mine = [r for r in of_data if r["method"] == name]
            look = style(name.partition(",")[0])
            x, y = (np.mean([r[k] for r in mine]) for k in ("seconds", "error"))
            axes.scatter(x, y, color=look.colour, marker=look.mark, s=28)
            axes.annotate(
                name, (x, y), fontsize=5.5, xytext=(3, 2), textcoords="offset points", color="0.3"
            )
        axes.set(xscale="log", yscale="log", title=data)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.2)
    families = {r["family"]: style(r["method"].partition(",")[0]).colour for r in records}
    for family, colour in families.items():
        panels[-1].scatter([], [], color=colour, label=family)
    panels[-1].legend(loc="center", frameon=False)
    panels[-1].set_axis_off()
    figure.supxlabel("seconds to find it, on one thread")
    figure.supylabel("relative Frobenius error")
    figure.draw_without_rendering()
    for axes in panels:
        _make_room(axes.texts)
    figure.savefig(path, dpi=110)


def _make_room(names: Sequence[Any]) -> None:
    """Take away each name that would hide one before it, those of smaller errors."""
    kept: list[Any] = []
    for name in list(names):
        box = name.get_window_extent()
        if any(box.overlaps(other) for other in kept):
            name.remove()
        else:
            kept.append(box)


def main() -> None:
    """Run the benchmark from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data-dir", type=Path, default=None, help="folder of the paper's data")
    parser.add_argument("--out", type=Path, default=Path("out/systems.jsonl"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="processes, of one thread each")
    parser.add_argument("--methods", nargs="+", default=[], help="only these")
    parser.add_argument("--device", default="", help="of the rows, as PyTorch names it")
    parser.add_argument("--summary", action="store_true", help="measure nothing")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--picture", type=Path, default=None, help="where the picture goes")
    options = parser.parse_args()
    if not options.summary:
        run(options)
    records = read(options.out)
    print(summary(records, options.markdown))
    if options.picture:
        draw(records, options.picture)


if __name__ == "__main__":
    main()
