"""Processor time to fit an approximation: against other methods, rows, and another version.

    python benchmarks/fit.py --data-dir folder
    git worktree add /tmp/before TAG
    python benchmarks/fit.py --only versions --against /tmp/before/src --data-dir folder

`joint`: against k-means landmarks on 4,000 rows; on "gaussian", three features, a fit has nothing
to refine. `rows`: `joint` for growing n; beyond the row cap neither time nor memory should grow.
`pivots`: randomly pivoted Cholesky against one pivot at a time, and against the n × c kernel values
that this needs before it does anything with them. `versions`: time and error of `joint`, each fit
in a process of its own, in turn with the version at --against.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import Row, benchmark, compare, points, time_in_turn
from environment import in_child, peak_megabytes
from zoo import PAPER, load

import nysboost as nb
from nysboost.gram import Gram, make_gram

LIMIT_MB = 500.0
TITLES = {"mnist": "MNIST", "covertype": "Covertype", "gaussian": "three Gaussian features"}
GOALS = {"mnist": 4.5, "gaussian": 6.0}
"""Time of joint over that of k-means landmarks."""


def fit(
    X: np.ndarray, method: str, how: dict[str, Any], seed: int, sigma: float | str = 5.0
) -> nb.Approximation:
    """Fit once."""
    return nb.approximate(X, method, nb.Gaussian(sigma=sigma), **how, random_state=seed)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield time and memory of fits to growing numbers of rows."""
    first, *others = sorted(options.rows)
    found = {n: in_child(_fit_rows, n, options.landmarks) for n in (first, *others)}
    for n in others:
        seconds = [[found[size][0]] for size in (n, first)]
        yield compare(f"`joint`, {n:,} rows", f"{first:,} rows", *seconds, 1.3)
    n = max(options.rows)
    what = f"`joint`, {n:,} rows: memory beyond X"
    yield compare(what, "at most", [found[n][1]], LIMIT_MB, 1.0, unit="MB")


def _fit_rows(n: int, c: int) -> tuple[float, float]:
    """Return the seconds of a fit and the peak memory beyond X."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    how = {"n_components": c}
    fit(X[:1000], "joint", how, 0)  # libraries loaded
    before, start = peak_megabytes(), time.process_time()
    fit(X, "joint", how, 0)
    return time.process_time() - start, peak_megabytes() - before


def joint(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of joint against k-means landmarks."""
    how = {"n_components": options.landmarks}
    for data in options.sets:
        X = _rows_of(data, options)
        work = {m: partial(fit, X, m, how, sigma="median") for m in ("joint", "kmeans")}
        times = time_in_turn(work, options.rounds)
        what = f"`joint`, {TITLES.get(data, data)}"
        yield compare(what, "`kmeans`", times["joint"], times["kmeans"], GOALS.get(data))


def pivots(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of randomly pivoted Cholesky on rows with features of falling spread."""
    n, c = max(options.rows), options.pivots
    for d in (5, 20):
        X = np.random.default_rng(0).standard_normal((n, d)) * np.sqrt(d / (1 + np.arange(d))) / 2
        kernel = nb.Gaussian(gamma=1 / d)
        gram = make_gram(X, kernel)
        work: dict[str, Callable[[int], Any]] = {
            "ours": lambda seed, X=X, kernel=kernel: nb.approximate(
                X, "rpcholesky", kernel, n_components=c, random_state=seed
            ),
            "one pivot at a time": lambda seed, gram=gram: _one_at_a_time(gram, c, seed),
            "the kernel values": lambda _, gram=gram: _kernel_values(gram, c),
        }
        times = time_in_turn(work, options.rounds, warm_up=False)
        for other, goal in {"one pivot at a time": 0.1, "the kernel values": 6.0}.items():
            what = f"`rpcholesky`, {n:,} rows, {d} columns"
            yield compare(what, other, times["ours"], times[other], goal)


def _one_at_a_time(gram: Gram, c: int, seed: int) -> None:
    """Draw and eliminate one pivot after the other."""
    rng = np.random.default_rng(seed)
    F, diag = np.zeros((gram.n, c), order="F"), np.asarray(gram.diag(), dtype=np.float64)
    for i in range(c):
        j = rng.choice(gram.n, size=1, p=diag / diag.sum())
        column = gram.block(np.arange(gram.n), j)[:, 0] - F[:, :i] @ F[j[0], :i]
        F[:, i] = column / np.sqrt(diag[j[0]])
        diag = np.maximum(diag - F[:, i] ** 2, 0)
        diag[j] = 0


def _kernel_values(gram: Gram, c: int) -> None:
    landmarks = gram.landmarks(np.arange(c))
    for start in range(0, gram.n, 1000):
        gram.cross(slice(start, start + 1000), landmarks)


FIT = """
import sys, time, numpy as np, nysboost as nb
path, c, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, kernel = np.load(path), nb.Gaussian(sigma="median")
nb.approximate(X[:200], "joint", kernel, n_components=20, random_state=0)
began = time.process_time()
found = nb.approximate(X, "joint", kernel, n_components=c, random_state=seed)
print(time.process_time() - began, found.relative_error())
"""


def versions(options: argparse.Namespace) -> Iterator[Row]:
    """Yield time and error of joint over those of another version."""
    c, ours = options.landmarks, Path(__file__).parents[1] / "src"
    for data in options.sets:
        rows = options.out.with_name(f"{data}.npy")
        rows.parent.mkdir(parents=True, exist_ok=True)
        np.save(rows, _rows_of(data, options))
        pairs = [
            [_fit_of(source, rows, c, seed) for source in (ours, options.against)]
            for seed in range(options.rounds)
        ]
        rows.unlink()
        for i, unit in enumerate(("s", "relative error")):
            now, before = ([pair[side][i] for pair in pairs] for side in (0, 1))
            what = f"joint, {data}, c = {c}, n = {options.few:,}"
            yield compare(what, "the other version", now, before, (1.05, 1.005)[i], unit=unit)


def _rows_of(data: str, options: argparse.Namespace) -> np.ndarray:
    """Return rows of a data set; three Gaussian features are "gaussian"."""
    if data == "gaussian":
        return np.random.default_rng(0).normal(size=(options.few, 3))
    if data in PAPER:
        return points(data, options.few, options)
    return load(data, options.few, options.data_dir)[: options.few]


def _fit_of(source: Path, rows: Path, c: int, seed: int) -> tuple[float, ...]:
    """Return processor time and error of a fit by the version at `source`."""
    others = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    path = os.pathsep.join([str(source.resolve()), *others])
    command = [sys.executable, "-c", FIT, str(rows), str(c), str(seed)]
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return tuple(map(float, done.stdout.split()))


main = benchmark(
    __file__, __doc__, "Fits, float64", (joint, rows, pivots, versions),
    rounds=3, usual=("joint", "rows", "pivots"),
    options={
        "against": (None, "src of another version of the library"),
        "sets": ["mnist", "covertype", "kin40k", "gaussian"], "rows": [10**4, 10**5, 10**6],
        "few": (4000, "rows of a data set"), "landmarks": 240, "pivots": 500,
        "columns": (120, "of each learner of a mixture"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
