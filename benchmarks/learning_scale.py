"""Learning from a memory map: time and memory against n.

A synthetic table, d = 20, 500 landmarks, for n = 10⁵, 10⁶ and 10⁷ in a .npy file that is written in
blocks and removed afterwards. Each fit runs in its own process, so that its peak memory is its own,
and is to stay within `max_memory`, beyond what the interpreter with its libraries, y and a fit of
few rows take. Landmarks and metric come from samples whose size does not grow: what grows with n is
one pass, and the time of a row in it is what is compared.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from common import Report, compare, in_child, parser, peak_megabytes, progress, run

import nysboost as nb

BLOCK, FEATURES = 100_000, 20
LIMIT_MB = 1000.0


def write(folder: Path, n: int) -> None:
    """Write n rows and their targets, a block at a time."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, (n, FEATURES))
    y = np.lib.format.open_memmap(folder / "y.npy", "w+", np.float32, (n,))
    for start in range(0, n, BLOCK):
        x = rng.normal(size=(min(BLOCK, n - start), FEATURES))
        X[start : start + BLOCK] = x
        smooth = np.sin(2 * x[:, 0]) * x[:, 1] + np.abs(x[:, 2] - x[:, 3])
        y[start : start + BLOCK] = smooth + 0.1 * rng.normal(size=len(x))


def child(folder: Path, components: int) -> tuple[float, float, float]:
    """Return seconds, peak memory in MB beyond that before the fit, and the first rows' error."""
    X, y = np.load(folder / "X.npy", mmap_mode="r"), np.load(folder / "y.npy").astype(np.float64)
    made = {"max_memory": "1GB", "random_state": 0}
    nb.NystroemRegressor(5, landmarks="uniform", **made).fit(X[:4000], y[:4000])
    before, start = peak_megabytes(), time.perf_counter()
    model = nb.NystroemRegressor(components, verbose=1, **made).fit(X, y)
    seconds = time.perf_counter() - start
    peak = peak_megabytes() - before
    miss = model.predict(X[: 2 * BLOCK]) - y[: 2 * BLOCK]
    return seconds, peak, float(np.sqrt(np.mean(miss**2)))


def measure(options: argparse.Namespace) -> Report:
    report = Report(
        f"Fit of NystroemRegressor from a memory map, d = {FEATURES}, c = {options.components}, "
        "float32, max_memory 1 GB"
    )
    rows, seconds = sorted(options.rows), {}
    for n in rows:
        with tempfile.TemporaryDirectory(dir=options.folder) as name:
            write(Path(name), n)
            seconds[n], peak, error = in_child(child, Path(name), options.components)
        progress(f"n = {n:,}: {seconds[n]:.1f} s, {peak:.0f} MB, RMSE {error:.4f}")
        note = f"RMSE {error:.4f}, noise 0.1"
        what = f"peak beyond before, n = {n:,}"
        report.add(compare(what, "limit", [peak], LIMIT_MB, 1.0, unit="MB", note=note))
        report.add(compare(f"fit, n = {n:,}", "its rows", [seconds[n]], n / 1e6, unit="s"))
    if len(rows) > 2:
        slopes = [(seconds[b] - seconds[a]) / (b - a) for a, b in pairwise(rows)]
        what, than = f"a row beyond {rows[-2]:,}", f"one beyond {rows[-3]:,}"
        report.add(compare(what, than, [1e6 * slopes[-1]], 1e6 * slopes[-2], 1.3, unit="µs"))
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=1)
    options.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    options.add_argument("--components", type=int, default=500)
    options.add_argument("--folder", type=Path, default=None, help="where the file lies")
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
