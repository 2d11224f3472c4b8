"""Time to fit the flagship: against n, and against scikit-learn's KMeans on the same data.

n = 10⁴ and 10⁶ rows, d = 54, c = 480: the ratio should be near 1. MNIST, 70,000 rows, c = 240:
the ratio to KMeans with 240 clusters, which is the first half of a k-means Nyström. Each
time is the best of several runs in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

import nysboost as nb
from nysboost.experiments import datasets


def best_of(repeats: int, run: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def against_n(repeats: int) -> dict[str, float]:
    record: dict[str, float] = {}
    for n in (10**4, 10**6):
        X = np.random.default_rng(0).normal(size=(n, 54))
        kernel = nb.Gaussian(sigma=5.0)

        def fit(X: np.ndarray = X, kernel: nb.Gaussian = kernel) -> None:
            nb.approximate(X, "joint", kernel, n_components=480, random_state=0)

        record[f"n = {n:.0e}"] = best_of(repeats, fit)
    record["ratio"] = record["n = 1e+06"] / record["n = 1e+04"]
    return record


def against_kmeans(data_dir: Path | None, repeats: int) -> dict[str, float]:
    data = datasets.load("mnist", data_dir)
    X = data.draw(70_000, np.random.default_rng(0))
    kernel = nb.Gaussian(sigma=5.0)
    ours = best_of(
        repeats, lambda: nb.approximate(X, "joint", kernel, n_components=240, random_state=0)
    )
    theirs = best_of(1, lambda: KMeans(240, n_init=1, random_state=0).fit(X))
    return {"joint": ours, "KMeans": theirs, "ratio": ours / theirs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=Path("out/joint_time.json"))
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}")
    results = {
        "fit of joint against n, d = 54, c = 480": against_n(options.repeats),
        "fit of joint on MNIST, n = 70,000, c = 240": against_kmeans(
            options.data_dir, options.repeats
        ),
    }
    for what, record in results.items():
        print(what, {name: round(value, 3) for name, value in record.items()}, flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
