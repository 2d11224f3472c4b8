"""A real cluster of local processes: same results, also when workers die on the way."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

import nysboost as nb

KERNEL = nb.Gaussian(sigma=1.5)
CHUNK, CHUNKS = 500, 8

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
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


def fit(X):
    return nb.approximate(X, "joint", KERNEL, n_components=40, row_cap=500, random_state=0)


def kill_one(client, after):
    """Kill a worker's process `after` so many seconds; its nanny starts another."""
    pids = list(client.run(os.getpid).values())
    killer = threading.Timer(after, os.kill, (pids[0], signal.SIGKILL))
    killer.start()
    return killer


def test_a_cluster_gives_the_results_of_the_run_in_memory(client, X):
    here, there = fit(X), fit(rows(X))
    np.testing.assert_array_equal(there.landmarks.points, here.landmarks.points)
    np.testing.assert_array_equal(there.features().compute(), here.features())
    V = np.ones((len(X), 2))
    np.testing.assert_allclose(there @ V, here @ V, rtol=1e-10)
    assert there.relative_error() == pytest.approx(here.relative_error())


def test_a_worker_that_dies_in_the_middle_of_a_fit_changes_nothing(client, X):
    here = fit(X)
    killer = kill_one(client, after=0.3)
    there = fit(rows(X, seconds=0.2))
    killer.join()
    np.testing.assert_array_equal(there.landmarks.points, here.landmarks.points)
    np.testing.assert_array_equal(there.learners[0].projection, here.learners[0].projection)


def test_a_worker_that_dies_while_features_are_stored_changes_nothing(client, X, tmp_path):
    model = nb.Nystroem(n_components=30, random_state=0).fit(X)
    killer = kill_one(client, after=0.3)
    model.transform(rows(X, seconds=0.2)).to_zarr(str(tmp_path / "features.zarr"))
    killer.join()
    stored = da.from_zarr(str(tmp_path / "features.zarr")).compute()
    np.testing.assert_array_equal(stored, model.transform(X))


def test_landmarks_travel_to_each_worker_once(client, X):
    features = fit(X).feature_map()[0]
    lazy = nb.Nystroem(n_components=30, random_state=0).fit(X).transform(rows(X))
    shared = [key for key in lazy.dask if str(key).startswith("shared-")]
    assert len(shared) == 1
    assert features.alone().gram.rows.n == len(X)
    assert not hasattr(features.alone().gram.rows, "data")
