"""Time of transform: against the two bare matrix products, and scikit-learn's Nystroem.

`memory`: one learner of c landmarks, float32 and float64, standard normal rows; where d = 54 also
the mixture URB-mean, 8 learners with as many landmarks in all. The floor is (X Zᵀ) N of the same
shapes and dtype in blocks of rows, which stay in the cache. `disk`: from a memory map to a memory
map, d = 54, float32, each run in a process of its own, with its peak memory; the floor is the
bare products over the same file. Needs 2.2 GB of disk for each million rows, in --folder.
`row`: one row at a time, beyond scikit-learn's check of its input.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import FLOOR, Row, benchmark, clock_of, compare, time_in_turn
from environment import in_child, peak_megabytes
from sklearn.kernel_approximation import Nystroem
from sklearn.utils import check_array

import nysboost as nb

BLOCK, WIDE = 1024, 54
OURS, PEER, MIXTURE = "Nystroem", "scikit-learn", "URB-mean"
LIMIT_MB, LINEAR = 1000.0, 1.25
"""Peak memory on disk, and time of a row at the largest n over that at the smallest."""


def memory(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the time of transform in memory."""
    for dtype in ("float32", "float64"):
        for d in options.dimensions:
            X = np.random.default_rng(0).standard_normal((options.rows, d)).astype(dtype)
            work = _work(X, options.landmarks)
            times = time_in_turn(work, options.rounds, clock=clock_of(options))
            what = f"transform, {dtype}, d = {d}, n = {len(X):,}, c = {options.landmarks}"
            single = dtype == "float32"
            goals = {FLOOR: 1.0, PEER: 0.5 if single else 0.7}
            for other, goal in goals.items():
                yield compare(what, other, times[OURS], times[other], goal)
            if d == WIDE:
                yield compare(f"{MIXTURE}, {what}", PEER, times[MIXTURE], times[PEER], 0.4)


def _work(X: np.ndarray, c: int) -> dict[str, Callable[[int], Any]]:
    # at γ = 1/d no eigenvalue is cut, so that all multiply by a c×c matrix
    seen, how = X[:20_000], {"gamma": 1 / X.shape[1], "random_state": 0}
    ours = nb.Nystroem(method="uniform", n_components=c, **how).fit(seen)
    peer = Nystroem(n_components=c, **how).fit(seen)
    Z, N = ours.components_, ours.normalization_
    work = {
        FLOOR: lambda _: bare_products(X, Z, N, np.empty((len(X), N.shape[1]), X.dtype)),
        OURS: lambda _: ours.transform(X),
        PEER: lambda _: peer.transform(X),
    }
    if X.shape[1] == WIDE:
        sizes = {"n_learners": 8, "n_columns": c // 8, "rank": c * 50 // 960}
        mixed = nb.BoostedNystroem(MIXTURE, **sizes, **how).fit(seen)
        work[MIXTURE] = lambda _: mixed.transform(X)
    return work


def bare_products(X: np.ndarray, Z: np.ndarray, N: np.ndarray, out: np.ndarray) -> np.ndarray:
    """Return (X Zᵀ) N, a block of rows at a time."""
    for start in range(0, len(X), BLOCK):
        block = slice(start, start + BLOCK)
        np.matmul(X[block] @ Z.T, N, out=out[block])
    return out


def disk(options: argparse.Namespace) -> Iterator[Row]:
    """Yield time and memory from a file to a file, for each number of rows."""
    found: dict[tuple[str, int], list[tuple[float, float]]] = {
        (kind, n): [] for n in sorted(options.disk_rows) for kind in (OURS, FLOOR)
    }
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="nysboost-") as folder:
        source, out = Path(folder) / "rows.npy", Path(folder) / "features.npy"
        _write(source, max(options.disk_rows))
        for _ in range(options.rounds):
            for (kind, n), measured in found.items():
                measured.append(in_child(_from_disk, kind, n, source, out, options.landmarks // 2))
                out.unlink()
    rows = sorted(options.disk_rows)
    seconds = {key: [s for s, _ in measured] for key, measured in found.items()}
    for n in rows:
        what = f'transform(X, out="file.npy"), n = {n:,}'
        yield compare(what, FLOOR, seconds[OURS, n], seconds[FLOOR, n])
        peaks = [peak for _, peak in found[OURS, n]]
        yield compare(f"peak of {what}", "limit", peaks, LIMIT_MB, 1.0, unit="MB")
    large, small = ([s / n * 1e6 for s in seconds[OURS, n]] for n in (rows[-1], rows[0]))
    yield compare(what, f"n = {rows[0]:,}", large, small, LINEAR, unit="s for 10⁶ rows")


def _write(path: Path, n: int, block: int = 2**16) -> None:
    """Write n standard normal rows, a block at a time."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, WIDE))
    for start in range(0, n, block):
        size = (min(block, n - start), WIDE)
        X[start : start + block] = rng.standard_normal(size, dtype=np.float32)
    X.flush()


def _from_disk(kind: str, n: int, source: Path, out: Path, c: int) -> tuple[float, float]:
    """Return the seconds of one transform until all is on the disk, and the peak memory in MB."""
    X = np.load(source, mmap_mode="r")[:n]
    made = nb.Nystroem(method="uniform", n_components=c, gamma=1 / WIDE, random_state=0,
                       max_memory="512MiB").fit(np.array(X[:20_000]))  # fmt: skip
    N = made.normalization_
    start = time.perf_counter()
    if kind == OURS:
        made.transform(X, out=str(out))
    else:
        F = np.lib.format.open_memmap(out, mode="w+", dtype=X.dtype, shape=(n, N.shape[1]))
        bare_products(X, made.components_, N, F)
    with out.open("rb+") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - start, peak_megabytes()


def row(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the milliseconds of one row, 256 landmarks and 10 features."""
    X = np.random.default_rng(0).normal(size=(2000, 10))
    features = nb.Nystroem(method="uniform", gamma=0.1, n_components=256, random_state=0).fit(X)
    model = nb.NystroemRegressor(256, landmarks="uniform", local=False, random_state=0)
    model.fit(X, np.sin(X[:, 0]))
    classifier = nb.NystroemClassifier(random_state=0).fit(X, np.sin(2 * X[:, 0]) + X[:, 1] > 0.5)

    def many(work: Callable[[np.ndarray], Any], _round: int) -> None:
        for i in range(options.calls):
            work(X[i % 500 : i % 500 + 1])

    ours = {"transform": features.transform, "predict": model.predict}
    ours["predict of a classifier with leaves"] = classifier.predict
    calls = {"check_array": check_array, **ours}
    work = {name: partial(many, call) for name, call in calls.items()}
    times = time_in_turn(work, options.rounds, clock=clock_of(options))
    each = {name: [1000 * t / options.calls for t in found] for name, found in times.items()}
    for name in ours:
        yield compare(f"{name}, one row", "check_array", each[name], each["check_array"], unit="ms")


main = benchmark(
    __file__, __doc__, "Transform", (memory, disk, row), rounds=3,
    options={
        "rows": 100_000, "landmarks": 960, "dimensions": [16, 54, 300, 784],
        "disk-rows": [200_000, 1_000_000], "calls": (500, "of one row"),
        "folder": (None, "where the files are put"),
        "wall": (False, "memory, row: by the clock, not in processor time"),
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
