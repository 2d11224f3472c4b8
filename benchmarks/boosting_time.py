"""Time to fit boosting against ensemble Nyström: same p, m, k and data.

Covertype, n = 4000, p = 8, m = 120, k = 50, Gaussian σ = 5. The methods take turns, so that
what else the machine does meets them all alike; the ratios are those of the smallest times.
The goals: UUB-mean and UEB-mean at most 1.0 times ensemble-ridge, URB-mean at most 1.5.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np

import nysboost as nb
from nysboost.experiments import datasets

BASE = "ensemble-ridge"
METHODS = (BASE, "UUB-mean", "UEB-mean", "URB-mean", "RRB-mean")
SIZES = {"n_learners": 8, "n_columns": 120, "rank": 50}


def cpu_seconds(X: np.ndarray, repeats: int) -> dict[str, list[float]]:
    kernel = nb.Gaussian(sigma=5.0)
    times: dict[str, list[float]] = {method: [] for method in METHODS}
    for seed in range(repeats):
        for method in METHODS:
            start = time.process_time()
            nb.approximate(X, method, kernel, **SIZES, random_state=seed)
            times[method].append(time.process_time() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--data", default="covertype")
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--out", type=Path, default=Path("out/boosting_time.json"))
    options = parser.parse_args()
    X = datasets.load(options.data, options.data_dir).draw(4000, np.random.default_rng(0))
    print(f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}; {options.data}")
    cpu_seconds(X, 1)  # what is done once only is not counted
    times = cpu_seconds(X, options.repeats)
    print(f"{'method':16}{'CPU ms, least':>15}{'ratio':>8}{'median':>8}{'ratio':>8}")
    for method, taken in times.items():
        least, median = min(taken), float(np.median(taken))
        ratios = least / min(times[BASE]), median / float(np.median(times[BASE]))
        print(f"{method:16}{1e3 * least:15.0f}{ratios[0]:8.2f}{1e3 * median:8.0f}{ratios[1]:8.2f}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(times, indent=2))


if __name__ == "__main__":
    main()
