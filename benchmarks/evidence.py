"""The figures of docs/evidence.md that no other benchmark makes: ten minutes on one core.

matrix      error against the number of columns, 2,000 rows of three data sets
boosting    error against the number of learners, the paper's simulation
intervals   coverage and width of prediction intervals, six tables with few rows
scale       time to fit against the number of rows

Every result is a line of JSON in --out and is not measured again. What competes has its default
settings; time is processor time. `benchmarks/results.py evidence out/evidence.jsonl` puts the
results into docs/results.json and draws the pictures.

    python benchmarks/evidence.py --data-dir folder
    python benchmarks/evidence.py --data-dir folder --only intervals --splits 5
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
from common import append, progress, read, record_options, synthetic
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nysboost as nb
from nysboost.paper import datasets

Record = dict[str, Any]

SETS = ("mnist", "covertype", "pendigits")
METHODS = ("optimal", "joint", "kmeans", "rpcholesky", "uniform", "URB-mean")
COLUMNS = (20, 40, 80, 120, 240)
SIGMA = 5.0
"""The bandwidth of the Gaussian kernel on the paper's real data."""

MIXTURES = ("URB-mean", "RRB-mean", "ensemble-ridge", "ensemble-uniform")
LEARNERS, EACH = 20, 10
"""Learners p and columns m of each in the paper's simulation, which has 1,000 points and σ = 1."""

TABLES = ("concrete", "energy", "wine", "airfoil", "housing", "solar")
COVERAGES = (0.5, 0.8, 0.9, 0.95)

EXACT_ROWS = 4_000
"""Rows up to which exact kernel ridge regression is fitted, which takes n³ operations."""

LEARNED_ROWS = 100_000
"""Rows up to which a regressor is fitted here; `benchmarks/learning.py` fits more."""


def matrix(options: argparse.Namespace) -> Iterator[Record]:
    """Yield the relative error of each method on each data set with each number of columns."""
    for name in SETS:
        points = datasets.load(name, options.data_dir, progress)
        for seed in range(options.seeds):
            X = points.draw(options.rows, np.random.default_rng(seed))
            for columns in COLUMNS:
                for method in METHODS:
                    sizes: dict[str, int] = {"n_components": columns}
                    if method == "URB-mean":
                        sizes["n_learners"] = 4
                    kernel = nb.Gaussian(sigma=SIGMA)
                    found = nb.approximate(X, method, kernel, random_state=seed, **sizes)
                    at = {"data": name, "seed": seed, "columns": columns, "method": method}
                    yield at | {"error": float(found.relative_error())}


def boosting(options: argparse.Namespace) -> Iterator[Record]:
    """Yield the errors with 1, 2, … learners of mixtures, and of one core on as many columns."""
    points = datasets.load("simulation", None)
    kernel = nb.Gaussian(sigma=1.0)
    for seed in range(options.replicates):
        X = points.draw(1000, np.random.default_rng(seed))
        settings = nb.Settings.paper("simulation")
        for method in MIXTURES:
            run = nb.approximate(X, method, kernel, settings=settings, random_state=seed)
            yield {"method": method, "seed": seed, "errors": run.error_path().tolist()}
        errors = []
        for p in range(1, LEARNERS + 1):
            one = nb.approximate(X, "nystrom", kernel, n_columns=EACH * p, random_state=seed)
            errors.append(float(one.relative_error()))
        yield {"method": "nystrom", "seed": seed, "errors": errors}


def intervals(options: argparse.Namespace) -> Iterator[Record]:
    """Yield the share of test rows in their intervals, and the intervals' mean width."""
    for name in TABLES:
        stored = np.load(options.data_dir / "uci" / f"{name}.npz")
        X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64).ravel()
        for split in range(options.splits):
            test = stored["test_mask"][:, split]
            rows = X[~test], (y[~test] - y[~test].mean()) / y[~test].std()
            new, truth = X[test], (y[test] - y[~test].mean()) / y[~test].std()
            for learner, ends in _all_intervals(rows, new):
                for coverage, (low, high) in ends.items():
                    inside = float(np.mean((low <= truth) & (truth <= high)))
                    at = {"table": name, "split": split, "learner": learner, "coverage": coverage}
                    yield at | {"inside": inside, "width": float(np.mean(high - low))}


Ends = dict[float, tuple[np.ndarray, np.ndarray]]


def _all_intervals(
    rows: tuple[np.ndarray, np.ndarray], new: np.ndarray
) -> Iterator[tuple[str, Ends]]:
    """Yield the intervals of new rows that each learner predicts."""
    model = nb.NystroemRegressor(random_state=0).fit(*rows)
    yield "NysBoost", {c: tuple(model.predict_interval(new, c)) for c in COVERAGES}

    kernel = ConstantKernel(1.0) * Matern(3.0, nu=1.5) + WhiteKernel(0.1)
    process = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, random_state=0))
    mean, std = process.fit(*rows).predict(new, return_std=True)
    normal = {0.5: 0.6745, 0.8: 1.2816, 0.9: 1.6449, 0.95: 1.96}
    ends = {c: (mean - z * std, mean + z * std) for c, z in normal.items()}
    yield "exact Gaussian process", ends

    found: Ends = {}
    for coverage in COVERAGES:
        low, high = (
            HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
            .fit(*rows)
            .predict(new)
            for level in ((1 - coverage) / 2, (1 + coverage) / 2)
        )
        found[coverage] = (low, high)
    yield "trees, quantile loss", found


def scale(options: argparse.Namespace) -> Iterator[Record]:
    """Yield the time that fits take, and features of all rows, by the number of rows."""
    for n in options.sizes:
        X = synthetic(n, 10).astype(np.float32)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]
        gamma = 0.05
        ours = nb.Nystroem(gamma=gamma, n_components=100, random_state=0)
        theirs = Nystroem(gamma=gamma, n_components=100, random_state=0)
        yield {"rows": n, "what": "Nystroem", "seconds": _time(ours.fit_transform, X)}
        yield {
            "rows": n, "what": "scikit-learn's Nystroem", "seconds": _time(theirs.fit_transform, X),
        }  # fmt: skip
        if n <= LEARNED_ROWS:
            learner = nb.NystroemRegressor(random_state=0)
            yield {"rows": n, "what": "NystroemRegressor", "seconds": _time(learner.fit, X, y)}
        if n <= EXACT_ROWS:
            exact = KernelRidge(kernel="rbf", gamma=gamma, alpha=0.1)
            yield {"rows": n, "what": "exact", "seconds": _time(exact.fit, X, y)}


def _time(work: Any, *given: Any) -> float:
    began = time.process_time()
    work(*given)
    return time.process_time() - began


PARTS = {"matrix": matrix, "boosting": boosting, "intervals": intervals, "scale": scale}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the parts that are not in the file yet."""
    options = record_options(__doc__, {
        "out": Path("out/evidence.jsonl"), "only": ([], "matrix, boosting, intervals or scale"),
        "rows": (2000, "of the matrix"), "seeds": (2, "of the matrix"),
        "replicates": (20, "of the simulation"), "splits": (2, "of a table"),
        "sizes": ([1000, 4000, 10_000, 30_000, 100_000, 1_000_000], "numbers of rows"),
    }).parse_args(arguments)  # fmt: skip
    done = {record["part"] for record in read(options.out)}
    for name in options.only or PARTS:
        if name in done:
            continue
        progress(name)
        found = list(PARTS[name](options))
        append(options.out, *({"part": name, "nysboost": nb.__version__} | r for r in found))


if __name__ == "__main__":
    main()
