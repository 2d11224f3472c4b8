"""Dask against the same work in memory: overhead, bytes moved, and what a row costs.

Rows are made on the fly from the number of their chunk, so that any number of them takes no
disk and hardly any memory. On workers features are reduced where they are made, to the sum of
their squares: what is timed is the pass, not the network. Times are processor times of all
processes, which other users of the machine do not change.

    python benchmarks/dask_scale.py                                       a minute
    python benchmarks/dask_scale.py --only learning --learn-rows 100000000      an hour
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask
import dask.array as da
import numpy as np
from common import Row, benchmark, compare, progress, time_in_turn
from distributed import Client, LocalCluster, wait
from environment import peak_megabytes

import nysboost as nb

CHUNKS = 64
LEARN_D, LEARN_C = 16, 100
THREADED, TWO_WORKERS, MOVED, WORKER_MB = 1.15, 1.4, 2.0, 2000.0
"""The goals: ratios of time, of bytes through the scheduler, and a worker's megabytes."""

Work = dict[str, Callable[[int], Any]]


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


def in_memory(model: Any, X: np.ndarray) -> float:
    """Return the same sum without Dask, on as many cores as Dask has."""
    total = 0.0
    for part in np.array_split(X, CHUNKS):
        F = model.transform(part)
        total += float((F * F).sum())
    return total


@contextmanager
def cluster(workers: int, threads: int = 1) -> Iterator[Client]:
    """Start local workers."""
    how = {"threads_per_worker": threads, "dashboard_address": ":0", "memory_limit": "8GiB"}
    unspilled = dask.config.set({"distributed.worker.memory.spill": False})
    with unspilled, LocalCluster(n_workers=workers, **how) as local, Client(local) as client:
        client.wait_for_workers(workers)
        yield client


def processor_seconds(client: Client | None) -> float:
    """Return the processor time of this process and of the workers so far."""
    there = client.run(time.process_time).values() if client else ()
    return time.process_time() + sum(there)


def outgoing(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def in_processor_time(
    what: str, work: Work, goal: float, options: argparse.Namespace, client: Client | None = None
) -> Row:
    """Time two in turn, ours last, by the processor time of all processes."""
    times = time_in_turn(work, options.rounds, clock=partial(processor_seconds, client))
    theirs, ours = work
    return compare(what, "in memory", times[ours], times[theirs], goal)


def _model_of_rows(options: argparse.Namespace) -> tuple[Any, np.ndarray, da.Array]:
    """Return a model, rows in memory, and the same rows on the fly."""
    d, c = options.dimension, options.landmarks
    lazy = rows_on_the_fly(options.rows, d, CHUNKS)
    X = lazy.compute()
    model = nb.StandardNystroem(gamma=1 / d, n_columns=c, random_state=0).fit(X[:20_000])
    return model, X, lazy


def threads(options: argparse.Namespace) -> Iterator[Row]:
    """Transform 64 chunks by threads, against memory; both keep all features."""
    model, X, lazy = _model_of_rows(options)
    stored = da.from_array(X, chunks=lazy.chunks)
    work: Work = {
        "memory": lambda _: model.transform(X),
        "threads": lambda _: model.transform(stored).persist(scheduler="threads"),
    }
    what = f"`transform` of {CHUNKS} chunks by threads, {len(X):,} rows"
    yield in_processor_time(what, work, THREADED, options)


def workers(options: argparse.Namespace) -> Iterator[Row]:
    """Transform rows that two local workers hold, against memory; both sum up squares."""
    model, X, lazy = _model_of_rows(options)
    with cluster(2) as client:
        held = lazy.persist()
        wait(held)
        work: Work = {
            "memory": lambda _: in_memory(model, X),
            "workers": lambda _: sum_of_squares(model.transform(held)).compute(),
        }
        what = f"`transform` by two local workers, {len(X):,} rows"
        yield in_processor_time(what, work, TWO_WORKERS, options, client)


def traffic(options: argparse.Namespace) -> Iterator[Row]:
    """Count the bytes that leave the workers in a fit, against those of the sample."""
    n, d = options.fit_rows, options.dimension
    X = rows_on_the_fly(n, d, CHUNKS)
    with cluster(2) as client:
        start = time.perf_counter()
        nb.approximate(X, "joint", nb.Gaussian(gamma=1 / d), n_components=100, random_state=0)
        seconds = time.perf_counter() - start
        bytes_moved = sum(client.run(outgoing).values())
    progress(f"fit: {seconds:.0f} s")
    sample = _sample_rows(100, n) * d * 4
    what = f"sent by the workers in a fit of `joint` to {n:,} rows"
    yield compare(what, "the sample", [bytes_moved / 1e6], sample / 1e6, MOVED, unit="MB")


def _sample_rows(c: int, n: int) -> int:
    """Return how many rows a joint fit looks at: the first look, the sample, two rounds."""
    cap = max(4096, 4 * c)
    return min(n, 512 + min(cap, max(cap // 2, 8 * c)) + cap) + 1256


def target(X: np.ndarray) -> np.ndarray:
    """Return a smooth target with noise that is the same each time, of deviation 0.07."""
    clean = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2
    return clean + 0.1 * np.sin(1e4 * X[:, 3].astype(np.float64))


def learning(options: argparse.Namespace) -> Iterator[Row]:
    """Fit a regressor to rows made on the fly, on two local workers: error, memory, time."""
    n = options.learn_rows
    X = rows_on_the_fly(n, LEARN_D, max(CHUNKS, n // 2**18))
    y = X.map_blocks(target, drop_axis=1, dtype=np.float64, meta=np.empty(0))
    new = np.random.default_rng(10**6).standard_normal((20_000, LEARN_D), dtype=np.float32)
    model = nb.NystroemRegressor(n_components=LEARN_C, random_state=0, verbose=1)
    with cluster(2, options.threads) as client:
        start, before = time.perf_counter(), processor_seconds(client)
        model.fit(X, y)
        seconds, spent = time.perf_counter() - start, processor_seconds(client) - before
        peak = max(client.run(peak_megabytes).values())
    truth = target(new)
    error = float(np.sqrt(np.mean((model.predict(new) - truth) ** 2)))
    what = f"{n:,} rows on two workers of {options.threads} threads"
    progress(f"{what}: {seconds:.0f} s, {spent:.0f} s of processor time")
    what = f"regressor on {n:,} rows, d = {LEARN_D}, c = {LEARN_C}"
    yield compare(f"peak memory of a worker, {what}", "limit", [peak], WORKER_MB, 1.0, unit="MB")
    yield compare(f"processor time, {what}", "10⁶ rows", [spent], n / 1e6)
    yield compare(f"error, {what}", "the noise", [error], 0.1 / np.sqrt(2), unit="")


main = benchmark(
    __file__, __doc__, "Dask, on local workers", (threads, workers, traffic, learning), rounds=3,
    usual=("threads", "workers", "traffic"),
    options={
        "rows": 100_000, "fit-rows": 1_000_000, "learn-rows": 2_000_000,
        "threads": (1, "of each worker, in learning"), "dimension": 54, "landmarks": 480,
    },
)  # fmt: skip


if __name__ == "__main__":
    main()
