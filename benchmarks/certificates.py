"""Certificates and tolerances, against the truth.

Coverage: on every matrix of the tests' market and on tables of the UCI collection, heavy tails
included, certificates with many seeds, from some rows and from all, against the error itself.
Width: on MNIST with a million kernel values in all, and with as many as there are by default.
Tolerance: the landmarks that `tol` finds against the fewest that work, found by trying, and its
time against that of one fit.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from common import Row, benchmark, compare, points, progress, synthetic

import nysboost as nb

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import market

TABLES = [
    *("protein", "keggundirected", "kin40k", "bike", "pol", "elevators"),
    *("concrete", "energy", "wine", "airfoil", "housing", "solar"),
]
"""Of the UCI collection: the first two have heavy tails."""

CONFIDENCES = (0.95, 0.99)


def table(name: str, n: int, options: argparse.Namespace) -> np.ndarray:
    """Return n standardised rows of one of the tables, or synthetic ones with heavy tails."""
    rng = np.random.default_rng(0)
    path = Path(options.data_dir or ".") / "uci" / f"{name}.npz"
    if options.data == "synthetic" or not path.exists():
        return synthetic(n, 8) * np.exp(rng.normal(size=(n, 1)))
    X = np.load(path)["X"].astype(np.float64)
    X = X[rng.permutation(len(X))[:n]]
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)


def problems(options: argparse.Namespace) -> Iterator[tuple[str, nb.Approximation]]:
    """Yield an approximation by each method of everything that is to be covered."""
    small, large = options.small, options.rows
    for name in market.NAMES:
        problem = market.problem(name, n=small)
        for method in options.methods:
            yield (
                f"market: {name}",
                nb.approximate(problem.X, method, problem.kernel, n_components=15, random_state=0),
            )
    for name in TABLES[: options.tables]:
        X, c = table(name, large, options), options.landmarks
        for method in options.methods:
            kernel = nb.Gaussian(sigma="median")
            yield name, nb.approximate(X, method, kernel, n_components=c, random_state=0)


def coverage(options: argparse.Namespace) -> Iterator[Row]:
    """Yield how often an interval misses the truth, in units of what its confidence allows."""
    norms = ("frobenius", "trace")
    missed: dict[tuple[float, str], list[bool]] = {(p, n): [] for p in CONFIDENCES for n in norms}
    kinds = 0
    for name, approx in problems(options):
        kinds += 1
        n, c = approx.shape[0], len(approx.landmarks)
        truth = {norm: approx.relative_error(norm=norm) for norm in norms}
        for n_entries in (c * c + n * c // 3 + 3000, c * c + 2 * n * c):
            for p, seed in ((p, s) for p in CONFIDENCES for s in range(options.seeds)):
                found = approx.certificate(p, n_entries=n_entries, random_state=seed)
                for norm in norms:
                    low, high = getattr(found, norm)
                    missed[p, norm].append(not low <= truth[norm] <= high)
        so_far = (f"{norm} {p}: {sum(w)} of {len(w)}" for (p, norm), w in missed.items())
        progress(f"{name}, {approx.method}; missed so far, {', '.join(so_far)}")
    for (p, norm), wrong in missed.items():
        allowed, rate = 100 * (1 - p), 100 * float(np.mean(wrong))
        worst = np.mean(np.split(np.array(wrong), kinds), axis=1).max()
        error = {"frobenius": "Frobenius", "trace": "trace"}[norm]
        what = f"{error} error outside a {100 * p:.0f} % interval, {len(wrong):,} runs"
        how = {"unit": "%", "note": f"of the worst matrix {worst:.0%}"}
        yield compare(what, "at most", [rate], allowed, 1.0, **how)


def width(options: argparse.Namespace) -> Iterator[Row]:
    """Yield half the width of an interval in units of the error, on MNIST."""
    X = points("mnist", options.images, options).astype(np.float32)
    kernel = nb.Gaussian(sigma=5.0)
    approx = nb.approximate(X, "joint", kernel, n_components=options.clusters, random_state=0)
    for n_entries in (10**6, 2 * 10**7):
        halves = []
        for seed in range(options.rounds):
            found = approx.certificate(n_entries=n_entries, random_state=seed)
            low, high = found.frobenius
            halves.append(100 * (high - low) / (high + low))
        what = f"half the width, in % of the error, with {found.entries_evaluated:,} kernel values"
        yield compare(what, "at most", halves, 5.0, 1.0, unit="%")


def tolerance(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the landmarks that `tol` finds, and what it costs."""
    for name in options.searched:
        X, kernel = table(name, options.rows, options), nb.Gaussian(sigma="median")
        for tol in options.tolerances:
            found, cost = searched(X, kernel, tol, name)
            least = fewest(X, kernel, tol, found)
            what = f"{name}, tol = {tol}"
            yield compare(f"{what}: landmarks", "fewest that work", [found], [least], 1.3, unit="")
            yield cost


def searched(X: np.ndarray, kernel: nb.Gaussian, tol: float, name: str) -> tuple[int, Row]:
    """Return the landmarks that `tol` finds, and its time against that of the final fit alone."""

    def fit(**size: float) -> tuple[int, float]:
        start = time.process_time()
        approx = nb.approximate(X, "joint", kernel, random_state=0, **size)
        return len(approx.landmarks), time.process_time() - start

    found, spent = fit(tol=tol)
    _, once = fit(n_components=found)
    # who comes first pays for fresh memory: they take turns, and the shortest time counts
    for _ in range(2):
        spent = min(spent, fit(tol=tol)[1])
        once = min(once, fit(n_components=found)[1])
    return found, compare(f"{name}, tol = {tol}: time", "one fit", [spent], [once], 3.0)


def fewest(X: np.ndarray, kernel: nb.Gaussian, tol: float, found: int) -> int:
    """Return the fewest landmarks that work, going down from `found` in steps of 3 %."""
    best, c, failed = found, found, 0
    while c > 1 and failed < 3:
        c = min(c - 1, int(c / 1.03))
        approx = nb.approximate(X, "joint", kernel, n_components=c, random_state=0)
        best, failed = (c, 0) if approx.relative_error() <= tol else (best, failed + 1)
    return best


main = benchmark(
    __file__, __doc__, "Certificates and tolerance", (coverage, width, tolerance), rounds=5,
    options={
        "methods": ["uniform", "joint"], "seeds": (5, "certificates of each kind"),
        "small": (400, "rows of the market's matrices"), "rows": (2000, "rows of a table"),
        "tables": 4, "landmarks": 60, "images": 10_000, "clusters": 120,
        "tolerances": [0.1, 0.01], "searched": ["protein", "keggundirected", "kin40k", "bike"],
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
