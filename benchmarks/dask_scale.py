"""Dask against the same work in memory: overhead, bytes moved, and what a row costs.

Rows are made on the fly from the number of their chunk, so that any number of them takes no
disk and hardly any memory. Features are reduced where they are made, to the sum of their
squares: what is timed is the pass, not the network.

    python benchmarks/dask_scale.py                                what `make bench-dask` runs
    python benchmarks/dask_scale.py --rows 10000000 --learn-rows 100000000      hours
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import dask.array as da
import numpy as np
from common import Report, compare, parser, peak_megabytes, progress, race, run
from distributed import Client, LocalCluster

import nysboost as nb

CHUNKS = 64
LEARN_D, LEARN_C = 16, 100
MOVED, THREADED, TWO_WORKERS, WORKER_MB = 2.0, 1.15, 1.4, 2000.0


def made(block_info: Any = None) -> np.ndarray:
    """Return the standard normal rows of one chunk, the same each time it is asked for."""
    where = block_info[None]
    rng = np.random.default_rng(where["chunk-location"][0])
    return rng.standard_normal(where["chunk-shape"], dtype=np.float32)


def rows_on_the_fly(n: int, d: int, chunks: int) -> da.Array:
    """Return n rows that are made when they are read."""
    sizes = tuple(n * (i + 1) // chunks - n * i // chunks for i in range(chunks))
    meta = np.empty((0, 0), dtype=np.float32)
    return da.map_blocks(made, chunks=(sizes, (d,)), dtype=np.float32, meta=meta, token="rows")


def sum_of_squares(F: da.Array) -> da.Array:
    return (F * F).sum()


def in_memory(model: Any, X: np.ndarray, chunks: int) -> float:
    """Return the same sum without Dask, on as many cores as Dask would have."""
    total = 0.0
    for part in np.array_split(X, chunks):
        F = model.transform(part)
        total += float((F * F).sum())
    return total


@contextmanager
def cluster(workers: int) -> Iterator[Client]:
    """Start local workers of one thread each."""
    how = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": "8GiB"}
    with LocalCluster(n_workers=workers, **how) as local, Client(local) as client:
        client.wait_for_workers(workers)
        yield client


def outgoing(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def moved(client: Client) -> int:
    """Return the bytes that left the workers so far."""
    return sum(client.run(outgoing).values())


def overhead(report: Report, options: argparse.Namespace) -> None:
    """Transform of 64 chunks by threads, and by two local workers, against memory."""
    n, d, c = options.rows, options.dimension, options.landmarks
    lazy = rows_on_the_fly(n, d, CHUNKS)
    X = lazy.compute()
    model = nb.StandardNystroem(gamma=1 / d, n_columns=c, random_state=0).fit(X[:20_000])
    stored = da.from_array(X, chunks=lazy.chunks)
    memory = f"{n:,} rows in memory, d = {d}, c = {c}"
    threads = {
        "memory": lambda _: in_memory(model, X, CHUNKS),
        "threads": lambda _: sum_of_squares(model.transform(stored)).compute(scheduler="threads"),
    }
    times = race(threads, options.rounds)
    what = f"Dask, {CHUNKS} chunks, threads"
    report.add(compare(what, memory, times["threads"], times["memory"], THREADED))
    with cluster(2) as client:
        held = client.persist(stored)
        contestants = {
            "memory": threads["memory"],
            "workers": lambda _: sum_of_squares(model.transform(held)).compute(),
        }
        times = race(contestants, options.rounds)
    report.add(compare("two local workers", memory, times["workers"], times["memory"], TWO_WORKERS))


def fit_traffic(report: Report, options: argparse.Namespace) -> None:
    """Bytes through the scheduler for a fit, against those of the sample, and the time."""
    n, d, c = options.fit_rows, options.dimension, options.landmarks
    X = rows_on_the_fly(n, d, CHUNKS)
    settings: dict[str, Any] = {"n_components": c, "random_state": 0}
    with cluster(2) as client:
        before, start = moved(client), time.perf_counter()
        there = nb.approximate(X, "joint", nb.Gaussian(gamma=1 / d), **settings)
        seconds = time.perf_counter() - start
        bytes_moved = moved(client) - before
    sample = _sample_rows(c, there.shape[0]) * d * 4
    progress(f"fit: {seconds:.0f} s")
    what = f"bytes moved, joint fit of {n:,} rows"
    row = compare(what, "bytes of the sample", [bytes_moved / 1e6], sample / 1e6, MOVED, unit="MB")
    report.add(row)


def _sample_rows(c: int, n: int) -> int:
    """Return how many rows a joint fit looks at: two rounds, judges, and the first look."""
    cap = max(4096, 4 * c)
    return min(n, 512 + min(cap, max(cap // 2, 8 * c)) + cap) + 1256


def weak_scaling(report: Report, options: argparse.Namespace) -> None:
    """Give each of 1, 2 and 4 workers the same number of rows."""
    n, d, c = options.rows // 2, options.dimension, options.landmarks
    X = rows_on_the_fly(20_000, d, 1).compute()
    model = nb.StandardNystroem(gamma=1 / d, n_columns=c, random_state=0).fit(X)
    found: dict[int, list[float]] = {}
    for workers in (1, 2, 4):
        with cluster(workers):
            work = sum_of_squares(model.transform(rows_on_the_fly(n * workers, d, 16 * workers)))
            found[workers] = race({str(workers): lambda _, work=work: work.compute()}, 2)[
                str(workers)
            ]
    for workers in (2, 4):
        what, against = f"{workers} workers, {n * workers:,} rows", f"1 worker, {n:,} rows"
        report.add(compare(what, against, found[workers], found[1]))


def target(X: np.ndarray) -> np.ndarray:
    """Return a smooth target with a little noise that is the same each time."""
    clean = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2
    return clean + 0.1 * np.sin(1e4 * X[:, 3])


def learning(report: Report, options: argparse.Namespace) -> None:
    """Fit a regressor to rows made on the fly, on two local workers: error, memory, time."""
    n = options.learn_rows
    chunks = max(CHUNKS, n // 2**18)
    X = rows_on_the_fly(n, LEARN_D, chunks)
    y = X.map_blocks(lambda x: target(x), drop_axis=1, dtype=np.float64, meta=np.empty(0))
    new = np.random.default_rng(10**6).standard_normal((20_000, LEARN_D), dtype=np.float32)
    model = nb.NystroemRegressor(n_components=LEARN_C, random_state=0)
    with cluster(2) as client:
        start = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - start
        peak = max(client.run(peak_megabytes).values())
    truth = target(new)
    error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)) / truth.std())
    progress(f"{n:,} rows in {seconds:.0f} s, error {error:.3f} of the target's spread")
    what = f"peak memory of a worker, regressor on {n:,} rows"
    report.add(compare(what, "limit", [peak], WORKER_MB, 1.0, unit="MB"))
    floor = 0.1 / np.sqrt(2) / truth.std()
    report.add(compare("its error", "the noise", [error], float(floor), unit=""))


def measure(options: argparse.Namespace) -> Report:
    report = Report("Dask, on local workers of one thread each")
    with dask.config.set({"distributed.worker.memory.spill": False}):
        overhead(report, options)
        fit_traffic(report, options)
        weak_scaling(report, options)
        if hasattr(nb, "NystroemRegressor"):
            learning(report, options)
    return report


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__file__, __doc__, rounds=3)
    options.add_argument("--rows", type=int, default=400_000)
    options.add_argument("--fit-rows", type=int, default=10_000_000)
    options.add_argument("--learn-rows", type=int, default=2_000_000)
    options.add_argument("--dimension", type=int, default=54)
    options.add_argument("--landmarks", type=int, default=480)
    run(options.parse_args(arguments), measure)


if __name__ == "__main__":
    main()
