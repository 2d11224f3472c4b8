"""How near joint comes to the optimum of rank c, and boosted columns to rpcholesky.

n = 4000 random rows of the paper's data, prepared as the paper does; Gaussian, σ = 5; means over
seeds. joint against the singular value decomposition with c = 240; JJB-mean, four learners,
against rpcholesky with c = 480 on MNIST.

    python benchmarks/optimum.py --data-dir folder [--device cuda]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zoo

import nysboost as nb
from nysboost.numerics.arrays import namespace, to_host

SIGMA, N = 5.0, 4000
GOALS = {"mnist": 1.04, "glove": 1.03, "covertype": 1.15, "pendigits": 1.35}
BOOSTED = {"mnist": 0.80}


def errors_of(data: str, methods: Sequence[str], c: int, options: argparse.Namespace) -> Any:
    """Return each method's mean error over the seeds, and that of the optimum."""
    found: dict[str, list[float]] = {method: [] for method in (*methods, "optimal")}
    kernel = nb.Gaussian(sigma=SIGMA)
    for seed in range(options.seeds):
        rows = zoo.split(zoo.table(data, options.data_dir), options.rows, seed, False)[0]
        X = zoo._on(options.device, rows)
        G = kernel(X, X)
        for method in methods:
            features = zoo._own(X, kernel, method, c, seed)
            found[method].append(zoo._error(features(X), G))
        spectrum = np.sort(np.abs(to_host(namespace(G).linalg.eigvalsh(G))))[::-1]
        found["optimal"].append(float(np.linalg.norm(spectrum[c:]) / np.linalg.norm(spectrum)))
    return {method: float(np.mean(values)) for method, values in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--device", default=None, help="a PyTorch device, such as cuda")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=N)
    parser.add_argument("--landmarks", type=int, nargs=2, default=[240, 480])
    options = parser.parse_args(arguments)
    few, many = options.landmarks
    for data, goal in GOALS.items():
        mean = errors_of(data, ["joint"], few, options)
        ratio = mean["joint"] / mean["optimal"]
        print(f"{data}, c = {few}: joint / optimum {ratio:.4f} (goal {goal})", mean, flush=True)
    for data, goal in BOOSTED.items():
        mean = errors_of(data, ["JJB-mean", "rpcholesky"], many, options)
        ratio = mean["JJB-mean"] / mean["rpcholesky"]
        print(
            f"{data}, c = {many}: JJB-mean / rpcholesky {ratio:.4f} (goal {goal})", mean, flush=True
        )


if __name__ == "__main__":
    main()
