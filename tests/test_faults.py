"""Faults: killed, interrupted, out of disk, from many threads and processes.

What was whole before stays whole, nothing that is half-written looks whole, and what is done
again is identical. `make fault` kills 20 runs of each kind at random moments.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import nysboost as nb

KILLS = int(os.environ.get("NYSBOOST_KILLS", "1"))
SEED = int(os.environ.get("NYSBOOST_FAULT_SEED", "0"))
X = np.random.default_rng(0).normal(size=(3000, 6))

START = """
import sys, numpy as np, nysboost as nb
from pathlib import Path
folder = Path(sys.argv[1])
X = np.random.default_rng(0).normal(size=(3000, 6))
model = nb.StandardNystroem(n_components=200, random_state=0).fit(X)
"""
SAVE = (
    START
    + """
print("ready", flush=True)
while True:
    nb.save(model, folder / "model", with_rows=True)
"""
)
TRANSFORM = (
    START
    + """
rows = np.tile(X, (20, 1))
print("ready", flush=True)
while True:
    model.transform(rows, out=folder / "features.npy")
"""
)
FIT = (
    START
    + """
import h5py
with h5py.File(folder / "rows.h5", "r") as store:
    print("ready", flush=True)
    while True:
        found = nb.StandardNystroem(n_components=200, random_state=0).fit(store["X"])
        nb.save(found, folder / "model")
"""
)


def start(program: str, folder: Path) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", program, str(folder)],
        stdout=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def killed(program: str, folder: Path, delay: float) -> None:
    """Start the program and kill it at some moment of its work."""
    with start(program, folder) as process:
        time.sleep(delay)
        process.kill()


def moments(longest: float) -> np.ndarray:
    return np.random.default_rng(SEED).uniform(0.0, longest, size=KILLS)


@pytest.fixture(scope="module")
def model() -> nb.StandardNystroem:
    return nb.StandardNystroem(n_components=200, random_state=0).fit(X)


class TestKilled:
    def test_a_model_file_is_whole_or_not_there(self, tmp_path, model):
        nb.save(model, tmp_path / "model", with_rows=True)
        whole = (tmp_path / "model").read_bytes()
        for delay in moments(0.4):
            killed(SAVE, tmp_path, delay)
            assert (tmp_path / "model").read_bytes() == whole

    def test_features_on_disk_are_whole_or_not_there(self, tmp_path, model):
        expected = model.transform(np.tile(X, (20, 1)))
        for delay in moments(1.0):
            killed(TRANSFORM, tmp_path, delay)
            if (tmp_path / "features.npy").exists():
                assert np.array_equal(np.load(tmp_path / "features.npy"), expected)

    def test_a_fit_on_a_store_leaves_it_alone_and_is_the_same_again(self, tmp_path, model):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "rows.h5", "w") as store:
            store["X"] = X
        stored = (tmp_path / "rows.h5").read_bytes()
        for delay in moments(1.0):
            killed(FIT, tmp_path, delay)
            assert (tmp_path / "rows.h5").read_bytes() == stored
            if (tmp_path / "model").exists():
                assert np.array_equal(nb.load(tmp_path / "model").transform(X), model.transform(X))

    @pytest.mark.slow
    def test_a_reproduction_goes_on_where_it_was(self, tmp_path):
        arguments = [
            sys.executable, "-W", "ignore", "-m", "nysboost.cli", "reproduce", "simulation",
            "--quick", "--replicates", "2", "--max-learners", "3", "--jobs", "1",
            "--variants", "URB-mean", "--reading", "columns", "--out",
        ]  # fmt: skip
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
        subprocess.run([*arguments, tmp_path / "whole"], check=True, **quiet)
        for number, delay in enumerate(moments(8.0)):
            out = tmp_path / f"killed-{number}"
            process = subprocess.Popen([*arguments, out], **quiet)
            time.sleep(delay)
            process.kill()
            process.wait()
            subprocess.run([*arguments, out], check=True, **quiet)
            for path in (tmp_path / "whole").rglob("*.csv"):
                again = out / path.relative_to(tmp_path / "whole")
                assert again.read_bytes() == path.read_bytes()


def work_and_wait(work: Callable[[], object]) -> None:
    work()
    time.sleep(5)  # a fast machine may be done: the interrupt comes all the same


class TestInterrupted:
    @pytest.mark.parametrize(
        "work",
        [
            lambda: nb.approximate(np.tile(X, (4, 1)), "joint", n_components=400, random_state=0),
            lambda: nb.approximate(X, n_components=300, random_state=0).relative_error(
                norm="spectral"
            ),
            lambda: nb.StandardNystroem(n_components=900).fit(X).transform(np.tile(X, (60, 1))),
        ],
        ids=["fit", "error", "transform"],
    )
    def test_ctrl_c_ends_a_long_operation_at_once_and_the_next_is_right(self, work):
        # pytest-xdist's workers ignore Ctrl-C, which is for the process that started them
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        main = threading.main_thread().ident
        alarm = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
        alarm.start()
        began = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                work_and_wait(work)
        finally:
            signal.signal(signal.SIGINT, before)
        assert time.monotonic() - began < 30
        assert np.isfinite(nb.approximate(X[:50], "uniform", n_components=9).to_dense()).all()

    def test_ctrl_c_while_features_go_to_a_file_leaves_no_file(self, tmp_path, model):
        def rows():
            yield X
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            model.transform(rows(), out=tmp_path / "features.npy")
        assert list(tmp_path.iterdir()) == []

    def test_a_store_that_fails_in_the_middle_leaves_no_file(self, tmp_path, model):
        def rows():
            yield X
            raise OSError(5, "Input/output error")

        with pytest.raises(OSError, match="Input/output error"):
            model.transform(rows(), out=tmp_path / "features.npy")
        assert list(tmp_path.iterdir()) == []


class TestNoRoom:
    @pytest.mark.parametrize(
        "what", ["nb.save(model, folder / 'm')", "model.transform(X, folder / 'f.npy')"]
    )
    def test_a_full_disk_is_a_sentence_and_leaves_nothing(self, what, tmp_path):
        limited = (
            START
            + f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    {what}
except OSError as error:
    print(error)
"""
        )
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", limited, str(tmp_path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Make room or write to another disk" in done.stdout, done.stderr
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
    def test_a_read_only_folder_is_a_sentence(self, tmp_path, model):
        tmp_path.chmod(0o500)
        with pytest.raises(OSError, match="could not be written"):
            nb.save(model, tmp_path / "model")


def features_of(model: nb.StandardNystroem) -> np.ndarray:
    return np.asarray(model.transform(X[:700]))


def fitted_anew(_: object) -> np.ndarray:
    model = nb.BoostedNystroem(n_components=12, random_state=0).fit(X[:400])
    return np.asarray(model.transform(X[:50]))


class TestManyAtOnce:
    def test_threads_get_the_same_numbers(self, model):
        expected = features_of(model)
        with ThreadPoolExecutor(8) as pool:
            for found in pool.map(features_of, [model] * 16):
                assert np.array_equal(found, expected)

    @pytest.mark.parametrize("how", ["fork", "spawn"])
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's, on a fork among threads
    def test_processes_get_the_same_numbers(self, model, how):
        context = multiprocessing.get_context(how)
        with context.Pool(2) as pool:
            found = pool.map_async(features_of, [model] * 2).get(timeout=120)
        assert all(np.array_equal(one, features_of(model)) for one in found)

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_a_fit_in_a_forked_child_after_one_in_the_parent_does_not_wait_for_ever(self):
        # with threads, which the rest of the tests do without
        program = """
import sys; sys.path[:0] = [sys.argv[1]]
import multiprocessing, numpy as np, nysboost as nb
from scipy.sparse import csr_matrix
X = np.abs(np.random.default_rng(0).normal(size=(1500, 4)))
def fits():
    for method, kernel, rows in (("kmeans", "rbf", X), ("uniform", "laplacian", csr_matrix(X))):
        model = nb.Nystroem(kernel, method=method, n_components=12, random_state=0).fit(rows)
        yield float(model.transform(rows).sum())
def answer(queue): queue.put(list(fits()))
before = list(fits())
context = multiprocessing.get_context("fork")
queue = context.Queue()
child = context.Process(target=answer, args=(queue,))
child.start()
assert queue.get(timeout=100) == before
child.join()
print("same")
"""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, str(Path(nb.__file__).parents[1])],
            capture_output=True, text=True, check=False, timeout=150,
            env=os.environ | {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.stdout == "same\n", done.stderr[-500:]
