"""Fitting time and memory against n: past the row cap neither should grow.

URB-mean, d = 20, p = 8 learners of m = 120 columns, for n = 10⁴, 10⁵ and 10⁶. Each fit runs in
its own process, so that its peak memory is its own. Reading the data, the one pass that looks
for NaN, is timed apart.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np
from common import Report, compare, in_child, parser, peak_megabytes, run

import nysboost as nb
from nysboost.boosting.algorithm import boost
from nysboost.boosting.variants import parse_variant
from nysboost.data.recognise import as_rows
from nysboost.gram import make_gram

LIMIT_MB = 500.0


def child(n: int, columns: int, seed: int) -> tuple[float, float, float]:
    """Return the seconds of reading and of fitting, and the peak memory beyond X in MB."""
    X = np.random.default_rng(0).normal(size=(n, 20))
    before = peak_megabytes()
    _fit(X[:2000], 10, seed)  # libraries loaded, threads started
    start = time.perf_counter()
    as_rows(X)
    reading = time.perf_counter() - start
    return reading, _fit(X, columns, seed), peak_megabytes() - before


def _fit(X: np.ndarray, columns: int, seed: int) -> float:
    variant, gram = parse_variant("URB-mean"), make_gram(X, nb.Gaussian(sigma=5.0))
    settings, rng = nb.Settings(n_learners=8, n_columns=columns), np.random.default_rng(seed)
    start = time.perf_counter()
    boost(gram, settings, variant.boosting, variant.selector, rng).mixture(variant.final)
    return time.perf_counter() - start


def measure(options: argparse.Namespace) -> Report:
    report = Report(f"Fit of URB-mean against n, d = 20, p = 8, m = {options.columns}, float64")
    rows, columns = sorted(options.rows), options.columns
    rounds = [{n: in_child(child, n, columns, s) for n in rows} for s in range(options.rounds)]
    reading, fitting, peaks = ({n: [r[n][i] for r in rounds] for n in rows} for i in range(3))
    for n in rows:
        what, note = f"fit, n = {n:,}", f"reading {statistics.median(reading[n]):.3f} s"
        goal = 1.3 if n > rows[0] else None
        report.add(compare(what, f"n = {rows[0]:,}", fitting[n], fitting[rows[0]], goal, note=note))
        what = f"peak beyond X, n = {n:,}"
        report.add(compare(what, "limit", peaks[n], LIMIT_MB, 1.0, unit="MB"))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=3)
    options.add_argument("--rows", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    options.add_argument("--columns", type=int, default=120)
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
