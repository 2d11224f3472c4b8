"""Fitting time and memory against n: past the row cap neither should grow.

URB-mean, d = 20, p = 8 learners of m = 120 columns, for n = 10⁴, 10⁵ and 10⁶. Each fit
runs in its own process, so that its peak memory is its own; times are the best of
several fits, as a ratio to the smallest n. Reading the data, the one pass that looks for
NaN, is timed apart.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import resource
import time
from pathlib import Path

import numpy as np

import nysboost as nb
from nysboost.boosting import boost
from nysboost.gram import make_gram
from nysboost.rows import as_rows
from nysboost.variants import parse_variant

SIZES = (10**4, 10**5, 10**6)
SETTINGS = nb.Settings(n_learners=8, n_columns=120)


def measure(n: int, repeats: int) -> dict[str, float]:
    X = np.random.default_rng(0).normal(size=(n, 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reading, fitting = [], []
    for seed in range(repeats):
        start = time.perf_counter()
        as_rows(X)
        read = time.perf_counter()
        variant = parse_variant("URB-mean")
        gram = make_gram(X, nb.Gaussian(sigma=5.0))
        made = time.perf_counter()
        rng = np.random.default_rng(seed)
        boost(gram, SETTINGS, variant.boosting, variant.selector, rng).mixture(variant.final)
        reading.append(read - start)
        fitting.append(time.perf_counter() - made)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"n": n, "read_s": min(reading), "fit_s": min(fitting), "peak_beyond_X_MB": peak / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("out/fit_scaling.json"))
    options = parser.parse_args()
    print(f"{platform.machine()}, {multiprocessing.cpu_count()} cores, NumPy {np.__version__}")
    print(f"{'n':>9} {'read s':>8} {'fit s':>8} {'fit ratio':>10} {'peak beyond X, MB':>18}")
    records: list[dict[str, float]] = []
    for n in SIZES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            record = pool.apply(measure, (n, options.repeats))
        records.append(record)
        record["fit_ratio"] = record["fit_s"] / records[0]["fit_s"]
        print(
            f"{n:>9} {record['read_s']:>8.3f} {record['fit_s']:>8.3f} {record['fit_ratio']:>10.2f} "
            f"{record['peak_beyond_X_MB']:>18.0f}",
            flush=True,
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(records, indent=2))


if __name__ == "__main__":
    main()
