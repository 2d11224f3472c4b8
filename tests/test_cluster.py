"""A real cluster of local processes: same results, also when workers die on the way."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pyarrow.parquet as parquet
import pytest
import zarr
from distributed import Client, LocalCluster

import nysboost as nb

KERNEL = nb.Gaussian(sigma=1.5)
CHUNK, CHUNKS = 500, 8

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with dask.config.set(scheduler=None), Client(cluster) as client:  # what it was, afterwards
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def X():  # noqa: N802
    return np.random.default_rng(0).normal(size=(CHUNK * CHUNKS, 3))


def slowly(block, seconds=0.0):
    time.sleep(seconds)
    return block


def rows(X, seconds=0.0):
    chunks = da.from_array(X, chunks=(CHUNK, 3))
    return chunks.map_blocks(slowly, seconds=seconds, dtype=X.dtype, meta=np.empty((0, 0)))


def fit(X, method="kmeans"):
    return nb.approximate(X, method, KERNEL, n_components=30, row_cap=300, random_state=0)


@contextmanager
def worker_dies(client, after):
    """Kill a worker's process `after` so many seconds; its nanny starts another."""
    pids = list(client.run(os.getpid).values())
    killer = threading.Timer(after, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    yield
    killer.join()


def test_a_cluster_gives_the_results_of_the_run_in_memory(client, X):
    here, there = fit(X), fit(rows(X))
    np.testing.assert_array_equal(there.landmarks.points, here.landmarks.points)
    np.testing.assert_array_equal(there.features().compute(), here.features())
    V = np.ones((len(X), 2))
    np.testing.assert_allclose(there @ V, here @ V, rtol=1e-10)


def test_a_worker_that_dies_while_results_are_stored_changes_nothing(client, X, tmp_path):
    model = nb.StandardNystroem(n_columns=30, random_state=0).fit(X)
    how = {"kernel": "gaussian", "metric": "one", "random_state": 0}
    learner = nb.NystroemRegressor(n_components=30, **how).fit(X[:1000], X[:1000, 0] ** 2)
    features, predictions = (str(tmp_path / name) for name in ("features", "predictions"))
    slow = rows(X, seconds=0.2)
    with worker_dies(client, after=0.3):
        dask.compute(
            model.transform(slow).to_zarr(features, compute=False),
            learner.predict(slow).to_zarr(predictions, compute=False),
        )
    np.testing.assert_array_equal(da.from_zarr(features).compute(), model.transform(X))
    stored = da.from_zarr(predictions).compute()
    np.testing.assert_allclose(stored, learner.predict(X), rtol=1e-12, atol=1e-12)


def test_workers_solve_the_leaves_of_a_learner(client):
    X = np.random.default_rng(1).uniform(-1, 1, size=(5500, 2))
    y, how = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]), {"kernel": "matern", "metric": "each"}
    here, there = (
        nb.NystroemRegressor(12, local=400, scale="standard", random_state=0, **how).fit(rows, y)
        for rows in (X, da.from_array(X, chunks=(1100, 2)))
    )
    assert there.n_local_rows_ == 5500
    np.testing.assert_allclose(there.predict(X[:100]), here.predict(X[:100]), atol=1e-6)


@pytest.mark.slow
def test_a_worker_that_dies_while_a_learner_is_fitted_changes_nothing(client, X):
    slow, y = rows(X, seconds=0.3), X[:, 0] ** 2 + np.sin(X[:, 1])

    def fitted():
        return nb.NystroemRegressor(n_components=20, random_state=0).fit(slow, y)

    undisturbed = fitted()
    with worker_dies(client, after=0.7):
        disturbed = fitted()
    np.testing.assert_array_equal(disturbed.components_, undisturbed.components_)
    np.testing.assert_array_equal(disturbed.predict(X), undisturbed.predict(X))


def test_landmarks_are_one_node_of_the_graph_and_bring_no_training_rows(X):
    model = nb.StandardNystroem(n_columns=30, random_state=0).fit(X)
    lazy = model.transform(rows(X))
    shared = [key for key in lazy.dask if str(key).startswith("task-")]
    assert len(shared) == 1
    travels = pickle.dumps(lazy.dask[shared[0]])
    assert len(travels) < X.nbytes / 2


def test_the_command_line_works_on_a_cluster(client, X, tmp_path, command):
    np.save(tmp_path / "rows.npy", X)
    pd.DataFrame(X).to_csv(tmp_path / "rows.csv", index=False)
    model, address = tmp_path / "m.nysboost", client.scheduler.address
    zarr_out, parquet_out = tmp_path / "features.zarr", tmp_path / "features.parquet"
    for words in (
        ["fit", tmp_path / "rows.npy", "--out", model, "--method", "uniform"],
        ["transform", model, tmp_path / "rows.npy", "--out", zarr_out],
        ["transform", model, tmp_path / "rows.csv", "--out", parquet_out],
    ):
        status, told, err = command(*words, "--scheduler", address)
        assert status == 0, err
        assert "progress: http" in err
        assert f"rows: {len(X)}" in told
    expected = nb.load(model).transform(X)
    np.testing.assert_allclose(da.from_zarr(str(zarr_out)).compute(), expected, atol=1e-8)
    np.testing.assert_allclose(pd.read_parquet(parquet_out), expected, atol=1e-8)
    assert zarr.open_array(str(zarr_out)).attrs["software"] == f"NysBoost {nb.__version__}"
    part = next(parquet_out.glob("*.parquet"))
    assert parquet.read_schema(part).metadata[b"software"] == f"NysBoost {nb.__version__}".encode()


IN_PROCESSES = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import dask, dask.array as da, numpy as np, nysboost as nb

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(400, 3))
    model = nb.NystroemRegressor(10, landmarks="kmeans", random_state=0)
    here = model.fit(X, np.sin(X[:, 0])).predict(X)
    with (  # one pool: each of its own would import the library anew for every pass
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        lazy = da.from_array(X, chunks=(100, 3))
        there = model.fit(lazy, da.sin(lazy[:, 0])).predict(lazy).compute()
    np.testing.assert_allclose(there, here, rtol=1e-9, atol=1e-12)
"""


def test_the_scheduler_of_processes_gives_the_same_model(tmp_path):
    # a script of its own: what its processes leave behind, or wait for, is not pytest's
    script = tmp_path / "script.py"
    script.write_text(IN_PROCESSES)
    subprocess.run([sys.executable, str(script)], check=True, timeout=300)
