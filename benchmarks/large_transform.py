"""Transform of more rows than memory holds, from a memory map to a memory map on disk.

d = 54, c = 480, float32. Each run is a process of its own, so that its peak memory is its own:
it fits to the first 20,000 rows, and is timed from transform until the features are on the
disk. The floor is the bare products (X Zᵀ) N over blocks of rows, from the same file to a file.
Needs 2.2 GB of disk for each million rows, in --folder; it is empty again afterwards.

    python benchmarks/large_transform.py --rows 1000000 10000000      what the docs show
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import FLOOR, Report, compare, in_child, parser, peak_megabytes, progress, run

import nysboost as nb

BLOCK = 2**16
OURS = {"map": "transform(X, out=memmap)", "path": 'transform(X, out="file.npy")'}
LIMIT_MB = 1000.0
LINEAR = 1.25
"""Time for a row at the largest n may be this many times that at the smallest."""

Found = dict[tuple[str, int], list[tuple[float, float]]]


def write_input(path: Path, n: int, d: int) -> None:
    """Write n standard normal rows, a block at a time, never holding more."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    for start in range(0, n, BLOCK):
        X[start : start + BLOCK] = rng.standard_normal((min(BLOCK, n - start), d), dtype=np.float32)
    X.flush()


def child(
    kind: str, n: int, source: Path, out: Path, c: int, max_memory: str
) -> tuple[float, float]:
    """Return the seconds of one transform to disk, and this process' peak memory in MB."""
    X = np.load(source, mmap_mode="r")[:n]
    how: dict[str, Any] = {"gamma": 1 / X.shape[1], "n_columns": c, "random_state": 0}
    estimator = nb.StandardNystroem(max_memory=max_memory, **how).fit(np.array(X[:20_000]))
    Z, N = estimator.components_, estimator.normalization_
    start = time.perf_counter()
    if kind == "path":
        estimator.transform(X, out=str(out))
    else:
        F = np.lib.format.open_memmap(out, mode="w+", dtype=X.dtype, shape=(n, N.shape[1]))
        if kind == "map":
            estimator.transform(X, out=F)
        else:
            _bare_products(X, Z, N, F)
    with out.open("rb+") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - start, peak_megabytes()


def _bare_products(X: np.ndarray, Z: np.ndarray, N: np.ndarray, out: np.ndarray) -> None:
    for start in range(0, len(X), BLOCK):
        block = slice(start, start + BLOCK)
        np.matmul(X[block] @ Z.T, N, out=out[block])


def measure(options: argparse.Namespace) -> Report:
    d, c = options.dimension, options.landmarks
    report = Report(f"Transform from disk to disk, d = {d}, c = {c}, float32")
    found: Found = {(kind, n): [] for n in options.rows for kind in (*OURS, FLOOR)}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="nysboost-") as folder:
        source, out = Path(folder) / "rows.npy", Path(folder) / "features.npy"
        progress(f"writing {max(options.rows):,} rows")
        write_input(source, max(options.rows), d)
        for number in range(options.rounds):
            for (kind, n), measured in found.items():
                measured.append(in_child(child, kind, n, source, out, c, options.max_memory))
                out.unlink()
                seconds, peak = measured[-1]
                progress(f"round {number + 1}, n = {n:,}, {kind}: {seconds:.3g} s, {peak:.0f} MB")
    for kind, what in OURS.items():
        _add(report, what, kind, found)
    return report


def _add(report: Report, what: str, kind: str, found: Found) -> None:
    rows = sorted({n for _, n in found})
    seconds = {key: [s for s, _ in measured] for key, measured in found.items()}
    for n in rows:
        peaks = [peak for _, peak in found[kind, n]]
        where, floor = f"{what}, n = {n:,}", seconds[FLOOR, n]
        report.add(compare(where, "bare products", seconds[kind, n], floor))
        report.add(compare(f"peak of {where}", "limit", peaks, LIMIT_MB, 1.0, unit="MB"))
    small, large = ([s / n * 1e6 for s in seconds[kind, n]] for n in (rows[0], rows[-1]))
    against = f"n = {rows[0]:,}"
    report.add(compare(where, against, large, small, LINEAR, unit="s for 10⁶ rows"))


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=3)
    options.add_argument("--rows", type=int, nargs="+", default=[200_000, 1_000_000])
    options.add_argument("--dimension", type=int, default=54)
    options.add_argument("--landmarks", type=int, default=480)
    options.add_argument("--max-memory", default="512MiB", help="what the estimator is allowed")
    options.add_argument("--folder", type=Path, default=None, help="where the files are put")
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
