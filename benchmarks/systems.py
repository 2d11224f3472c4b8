"""All methods side by side, at equal number of columns, on the paper's five data sets.

n = 2,000 random rows, Gaussian kernel with σ = 5, c = 120 columns in all, one thread. For each
method: the relative error in the Frobenius norm, the processor time of finding it, and the entries
of the matrix that it evaluated, in units of n². The paper's sizes are --rows 4000 --columns 240.

Records are appended as they are made; the same command goes on where it was.

    python benchmarks/systems.py --data-dir folder        all of it, then the table
    python benchmarks/systems.py --workers 8              the same, on eight cores
    python benchmarks/systems.py --methods joint          one method anew, into another --out
    python benchmarks/systems.py --summary --markdown     the table alone
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import append, progress, read, record_options, table
from environment import one_thread, placed

import nysboost as nb
from nysboost.paper import datasets

DATA = ("mnist", "covertype", "glove", "pendigits", "ijcnn")
GAMMA = 1 / 50
SHOWN = ("ensemble-ridge", "block-nystrom", "URB-mean", "JJB-mean")
"""Of the paper's mixtures, of which there are thirty, the best of each family."""


@dataclass(frozen=True)
class Method:
    """A method, under the name that the table gives it, and how it is called."""

    name: str
    method: str
    family: str
    how: dict[str, Any]


def methods(c: int) -> Iterator[Method]:
    """Yield every method once, and three that need more than their number of columns."""
    for family, names in nb.FAMILIES.items():
        for name in names:
            mixed = family.startswith(("ensemble", "boosting"))
            if not mixed or name in SHOWN:
                learners = {"n_learners": 4} if mixed else {}
                yield Method(name, name, family, {"n_components": c, **learners})
    half, centres = {"n_components": c, "rank": c // 2}, "cluster centres"
    yield Method("density-weighted, half rank", "density-weighted", centres, half)
    yield Method("nystrom, half rank", "nystrom", "standard", {"n_columns": c, "rank": c // 2})
    yield Method(f"meka, {c} in each of 5", "meka", centres, {"n_components": 5 * c})


def measure(data: str, seed: int, method: Method, X: Any) -> dict[str, Any]:
    """Run one method with one seed."""
    began = time.process_time()
    kernel = nb.Gaussian(gamma=GAMMA)
    approx = nb.approximate(X, method.method, kernel, random_state=seed, **method.how)
    seconds, entries = time.process_time() - began, approx.entries_evaluated / len(X) ** 2
    found = {"error": approx.relative_error(), "seconds": seconds, "entries": entries}
    return {"data": data, "seed": seed, "method": method.name, "family": method.family, **found}


def run(options: argparse.Namespace) -> None:
    """Run what is not in the file yet, each seed of a data set in a process of its own."""
    pairs = list(product(range(options.seeds), DATA))
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        for task in [pool.submit(run_all, data, seed, options) for seed, data in pairs]:
            task.result()


def run_all(data: str, seed: int, options: argparse.Namespace) -> None:
    """Run all methods that are asked for on one sample of a data set."""
    one_thread()
    done = {r["method"] for r in read(options.out) if (r["data"], r["seed"]) == (data, seed)}
    rng = np.random.default_rng([seed, options.rows])
    points = datasets.load(data, options.data_dir, progress).draw(options.rows, rng)
    X = placed(points, options.device)
    for method in methods(options.columns):
        if method.name in done or method.name not in (options.methods or [method.name]):
            continue
        record = measure(data, seed, method, X)
        append(options.out, record)
        progress(f"{data} {seed} {method.name}: {record['error']:.3g}")


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
        cells = [name, *(f"{m:.2e}" for m in means)]
        lines.append((rank, [*cells, f"{seconds:.2f}", f"{entries:.2f}"]))
    header = ["method", *DATA, "seconds", "entries / n²"]
    return table(header, [cells for _, cells in sorted(lines)], markdown)


def main() -> None:
    """Run the benchmark from the command line."""
    options = record_options(__doc__, {
        "out": Path("out/systems.jsonl"), "rows": 2000, "columns": 120, "seeds": 2,
        "workers": (1, "processes, of one thread each"), "methods": ([], "only these"),
        "device": ("", "of the rows, as PyTorch names it"),
        "summary": (False, "measure nothing"), "markdown": False,
    }).parse_args()  # fmt: skip
    if not options.summary:
        run(options)
    print(summary(read(options.out), options.markdown))


if __name__ == "__main__":
    main()
