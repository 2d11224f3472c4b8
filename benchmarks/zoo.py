"""`joint` and boosted columns against five other methods: 17 data sets, 8 kernels, several sizes.

The paper's five data sets and twelve tables of the UCI collection (standardised); random rows, at
most three quarters of a table; Gaussian kernels with σ = ¼, ½, 1, 2 and 4 times the median
distance, Laplacian, Matérn 3/2 and cubic polynomial; at most a quarter as many landmarks as rows.
Relative Frobenius errors on fitted rows and on other rows, on 4,000 of them at most, and the
optimum of rank c. Records are appended as they are made; the same command goes on where it was.

    python benchmarks/zoo.py --data-dir folder                      500 rows, a minute or two
    python benchmarks/zoo.py --rows 4000 --sizes 60 240 480 960 --seeds 3 --jobs 8
    python benchmarks/zoo.py --rows 50000 --device cuda             many rows, on a GPU
    python benchmarks/zoo.py --summary                              the tables alone
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import append, progress, read, record_options, table
from environment import one_thread, placed
from joblib import Parallel, delayed
from scipy.spatial.distance import pdist

import nysboost as nb
from nysboost.paper import datasets

PAPER = ("mnist", "covertype", "glove", "pendigits", "ijcnn")
TABLES = (
    *("kin40k", "protein", "bike", "pol", "elevators", "keggundirected"),
    *("concrete", "energy", "wine", "airfoil", "housing", "solar"),
)
PEERS = ("uniform", "kmeans", "rpcholesky", "greedy", "rls")
METHODS = (*PEERS, "JJB-mean", "joint")
KERNELS = ("g0.25", "g0.5", "g1", "g2", "g4", "laplacian", "matern", "polynomial")
CHECKED = 4000
ROUNDING = 1e-12
"""Errors below this are rounding, and count as this."""
ABOVE = 1.02
"""From this ratio on a method counts as worse."""
KEY = ("data", "kernel", "seed", "rows")

Cell = tuple[str, str, int]


@cache
def load(name: str, most: int, data_dir: Path | None) -> np.ndarray:
    """Return rows of a data set, prepared as the paper does, or standardised."""
    if name in PAPER:
        return datasets.draw(name, most, 0, data_dir)[0]
    X = np.load((data_dir or Path()) / "uci" / f"{name}.npz")["X"].astype(np.float64)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def kernel_of(name: str, X: np.ndarray) -> nb.Kernel:
    """Return a kernel by its name, with a bandwidth measured on up to 1,000 rows."""
    some = X[:1000]
    if name == "polynomial":
        return nb.Polynomial(gamma=1 / X.shape[1])
    if name == "laplacian":
        return nb.Laplacian(sigma=float(np.median(pdist(some, "cityblock"))))
    median = float(np.median(pdist(some)))
    if name == "matern":
        return nb.Matern(nu=1.5, sigma=median)
    return nb.Gaussian(sigma=float(name[1:]) * median)


def measure(task: dict[str, Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the errors of all methods on one data set with one kernel and seed."""
    one_thread()
    X = load(task["data"], 2 * options.rows, options.data_dir)
    X = X[np.random.default_rng([task["seed"], 4000]).permutation(len(X))]
    n = min(options.rows, 3 * len(X) // 4)
    kernel = kernel_of(task["kernel"], X[:n])
    seen = placed(X[:n], options.device)
    checked = [placed(X[start : start + min(n, CHECKED)], options.device) for start in (0, n)]
    grams = [kernel(rows, rows) for rows in checked]
    records, sizes = [], [c for c in options.sizes if c <= n // 4]
    for c, method in product(sizes, options.methods):
        how = {"n_learners": 4} if method.endswith("-mean") else {}
        found = nb.approximate(
            seen, method, kernel, n_components=c, random_state=task["seed"], **how
        )
        features = found.feature_map()[0]
        errors = [_error(features(rows), G) for rows, G in zip(checked, grams, strict=True)]
        records.append({**task, "n": n, "c": c, "method": method, "errors": errors})
    if n <= CHECKED:
        G = np.asarray(grams[0].cpu() if options.device else grams[0])
        squares = np.cumsum(np.sort(np.linalg.eigvalsh(G) ** 2))
        for c in sizes:
            limit = [float(np.sqrt(squares[n - c - 1] / squares[-1]))]
            records.append({**task, "n": n, "c": c, "method": "optimal", "errors": limit})
    return records


def _error(F: Any, G: Any) -> float:
    return float(((G - F @ F.T) ** 2).sum() / (G**2).sum()) ** 0.5


def ratios(
    records: list[dict[str, Any]], which: int, method: str, against: Sequence[str]
) -> dict[Cell, float]:
    """Return each cell's mean error of a method, over the smallest of some others."""
    errors: dict[Cell, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for r in records:
        if which < len(r["errors"]):
            cell = (r["data"], r["kernel"], r["c"])
            errors[cell][r["method"]].append(max(r["errors"][which], ROUNDING))
    return {
        cell: float(np.mean(found[method]) / min(np.mean(found[peer]) for peer in against))
        for cell, found in errors.items()
        if {method, *against} <= found.keys()
    }


COMPARISONS = {
    "joint / best of " + ", ".join(PEERS): (0, "joint", PEERS),
    "the same on other rows": (1, "joint", PEERS),
    "JJB-mean / rpcholesky": (0, "JJB-mean", ("rpcholesky",)),
    "joint / optimum of rank c": (0, "joint", ("optimal",)),
}


def tables(records: list[dict[str, Any]]) -> str:
    """Return the comparisons, the worst cells, and the ratio by data set and kernel."""
    lines, worst = [], []
    for title, how in COMPARISONS.items():
        found = ratios(records, *how)
        if not found:
            continue
        values = np.array(list(found.values()))
        above = f"{(values > ABOVE).sum()}" if "optimum" not in title else ""
        cells = [title, str(len(values)), f"{_mean(values):.3f}", f"{values.max():.3f}", above]
        lines.append(cells)
        largest = sorted(found, key=found.__getitem__, reverse=True)[:6]
        worst += [[title, *map(str, cell), f"{found[cell]:.3f}"] for cell in largest]
    header = ["ratio", "cells", "geometric mean", "largest", "above 1.02"]
    parts = [table(header, lines, True)]
    parts += [table(["the largest", "data", "kernel", "c", "ratio"], worst, True)]
    by_data: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (name, kernel, _), ratio in ratios(records, 0, "joint", PEERS).items():
        by_data[name][kernel].append(ratio)
    rows = [
        [name, *(f"{_mean(found[k]):.2f}" if k in found else "–" for k in KERNELS)]
        for name, found in sorted(by_data.items())
    ]
    parts += [table(["data", *(f"`{kernel}`" for kernel in KERNELS)], rows, True)]
    return "\n\n".join(parts)


def _mean(values: Sequence[float] | np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))


def main(arguments: Sequence[str] | None = None) -> None:
    options = record_options(__doc__, {
        "out": Path("out/zoo.jsonl"), "sets": [*PAPER, *TABLES], "kernels": list(KERNELS),
        "methods": list(METHODS), "sizes": [60], "rows": 500, "seeds": 1, "jobs": 1,
        "device": ("", "a PyTorch device, such as cuda"), "summary": (False, "measure nothing"),
    }).parse_args(arguments)  # fmt: skip
    if not options.summary:
        done = {tuple(r[name] for name in KEY) for r in read(options.out)}
        asked = product(options.sets, options.kernels, range(options.seeds), [options.rows])
        todo = [key for key in asked if key not in done]
        # in an order that is fair if it is cut off
        todo = [todo[i] for i in np.random.default_rng(0).permutation(len(todo))]
        results = Parallel(options.jobs, return_as="generator")(
            delayed(measure)(dict(zip(KEY, key, strict=True)), options) for key in todo
        )
        for number, records in enumerate(results, 1):
            append(options.out, *records)
            progress(f"{number}/{len(todo)}")
    print(tables(read(options.out)))


if __name__ == "__main__":
    main()
