"""Processor time to fit an approximation: against the rows, other methods, and another version.

    python benchmarks/fit.py --only joint boosting --data-dir folder
    git worktree add /tmp/before TAG
    python benchmarks/fit.py --only versions --against /tmp/before/src --data-dir folder

`rows`: URB-mean with 8 learners of 120 columns and `joint` for growing n: beyond the row cap
neither time nor memory should grow. `joint`: against k-means with as many centres on MNIST, and
against k-means landmarks where a fit has nothing to refine. `boosting`: against the ensemble with
the same p, m and k. `pivots`: randomly pivoted Cholesky against one pivot at a time, and against
the n × c kernel values that this needs before it does anything with them. `versions`: time and
error of `joint`, each fit in a process of its own, in turn with the version at --against; --sets
may have tables of the zoo and "gaussian", three features, beside the paper's.
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
from common import Row, benchmark, clock_of, compare, points, time_in_turn
from environment import in_child, peak_megabytes
from sklearn.cluster import KMeans
from zoo import PAPER, load

import nysboost as nb
from nysboost.gram import Gram, make_gram

LIMIT_MB = 500.0
BASE = "ensemble-ridge"
BOOSTED = {"UUB-mean": 1.0, "UEB-mean": 1.0, "URB-mean": 1.3, "RRB-mean": None}
"""Goals: time over that of the ensemble."""


def fit(
    X: np.ndarray, method: str, how: dict[str, Any], seed: int, sigma: float | str = 5.0
) -> nb.Approximation:
    """Fit once."""
    return nb.approximate(X, method, nb.Gaussian(sigma=sigma), **how, random_state=seed)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield time and memory of fits to growing numbers of rows."""
    first, *others = sorted(options.rows)
    mixture = {"n_learners": 8, "n_columns": options.columns}
    for method, how in (("URB-mean", mixture), ("joint", {"n_components": options.landmarks})):
        found = {n: in_child(_fit_rows, n, method, how) for n in (first, *others)}
        for n in others:
            seconds = [[found[size][0]] for size in (n, first)]
            yield compare(f"{method}, n = {n:,}", f"n = {first:,}", *seconds, 1.3)
        peak = [found[max(options.rows)][1]]
        what = f"{method}, peak beyond X, n = {max(options.rows):,}"
        yield compare(what, "limit", peak, LIMIT_MB, 1.0, unit="MB")


def _fit_rows(n: int, method: str, how: dict[str, Any]) -> tuple[float, float]:
    """Return the seconds of a fit and the peak memory beyond X."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    fit(X[:1000], method, how, 0)  # libraries loaded
    before, start = peak_megabytes(), time.process_time()
    fit(X, method, how, 0)
    return time.process_time() - start, peak_megabytes() - before


def joint(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of joint against k-means clustering and k-means landmarks."""
    X, c = points("mnist", options.images, options), options.landmarks
    how = {"n_components": c}
    work: dict[str, Callable[[int], Any]] = {
        "joint": partial(fit, X, "joint", how),
        "KMeans": lambda seed: KMeans(c, n_init=1, random_state=seed).fit(X),
    }
    times = time_in_turn(work, options.rounds, warm_up=False, clock=clock_of(options))
    what = f"joint, {'MNIST' if options.data == 'paper' else 'synthetic'}, c = {c}, n = {len(X):,}"
    yield compare(what, f"KMeans({c}, n_init=1)", times["joint"], times["KMeans"], 0.06)
    X = np.random.default_rng(0).normal(size=(options.few, 3))
    work = {m: partial(fit, X, m, how, sigma="median") for m in ("joint", "kmeans")}
    times = time_in_turn(work, options.rounds, clock=clock_of(options))
    what = f"joint, three Gaussian features, c = {c}, n = {len(X):,}"
    yield compare(what, "kmeans", times["joint"], times["kmeans"], 8.0)


def boosting(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of boosting against the ensemble; every round has its own seed."""
    how = {"n_learners": 8, "n_columns": options.columns, "rank": options.columns * 5 // 12}
    for data in options.sets:
        X = points(data, options.few, options)
        work = {name: partial(fit, X, name, how) for name in (BASE, *BOOSTED)}
        times = time_in_turn(work, options.rounds, clock=clock_of(options))
        for name, goal in BOOSTED.items():
            what = f"{name}, {data}, d = {X.shape[1]}, n = {len(X):,}"
            yield compare(what, BASE, times[name], times[BASE], goal)


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
        times = time_in_turn(work, options.rounds, warm_up=False, clock=clock_of(options))
        for other, goal in {"one pivot at a time": 0.1, "the kernel values": 6.0}.items():
            what = f"rpcholesky, n = {n:,}, d = {d}, c = {c}"
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
            yield compare(what, "the other version", now, before, (0.5, 1.005)[i], unit=unit)


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
    __file__, __doc__, "Fits, float64", (rows, joint, boosting, pivots, versions),
    rounds=3, usual=("rows", "joint", "boosting", "pivots"),
    options={
        "against": (None, "src of another version of the library"),
        "wall": (False, "joint, boosting, pivots: by the clock, not in processor time"),
        "sets": ["mnist", "glove", "covertype"], "rows": [10**4, 10**5],
        "few": (4000, "rows where there are few"), "images": 70_000, "landmarks": 240,
        "pivots": 500, "columns": (120, "of each learner of a mixture"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
