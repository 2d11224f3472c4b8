"""Faults: killed, interrupted, out of disk, from many threads and processes.

What was whole before stays whole, nothing that is half-written looks whole, and what is done
again is identical. `make fault` kills 20 runs of each kind at random moments.
"""

from __future__ import annotations

import multiprocessing
import os
import re
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
QUICK = {"kernel": "gaussian", "metric": "one", "random_state": 0}

START = """
import sys, h5py, numpy as np, nysboost as nb
from pathlib import Path
folder = Path(sys.argv[1])
X = np.random.default_rng(0).normal(size=(3000, 6))
QUICK = {"kernel": "gaussian", "metric": "one", "random_state": 0}
model = nb.StandardNystroem(n_components=200, random_state=0).fit(X)
"""
LOOP = START + "rows = np.tile(X, (20, 1))\nprint('ready', flush=True)\nwhile True:\n    "
SAVE = LOOP + "nb.save(model, folder / 'model', with_rows=True)"
TRANSFORM = LOOP + "model.transform(rows, out=folder / 'features.npy')"
FIT = (
    LOOP
    + """with h5py.File(folder / "rows.h5", "r") as store:
        found = nb.NystroemRegressor(8, **QUICK).fit(store["X"], X[:, 0] * X[:, 1])
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
        for delay in moments(0.4):
            killed(SAVE, tmp_path, delay)
            found = nb.load(tmp_path / "model").transform(X)  # other processes may round otherwise
            np.testing.assert_allclose(found, model.transform(X), atol=1e-9)

    def test_features_on_disk_are_whole_or_not_there(self, tmp_path, model):
        expected = model.transform(np.tile(X, (20, 1)))
        for delay in moments(1.0):
            killed(TRANSFORM, tmp_path, delay)
            if (tmp_path / "features.npy").exists():
                np.testing.assert_allclose(np.load(tmp_path / "features.npy"), expected, atol=1e-9)

    def test_a_learners_fit_on_a_store_leaves_it_alone_and_is_the_same_again(self, tmp_path):
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "rows.h5", "w") as store:
            store["X"] = X
            learner = nb.NystroemRegressor(8, **QUICK).fit(store["X"], X[:, 0] * X[:, 1])
        stored, expected = (tmp_path / "rows.h5").read_bytes(), learner.predict(X)
        for delay in moments(2.0):
            killed(FIT, tmp_path, delay)
            assert (tmp_path / "rows.h5").read_bytes() == stored
            if (tmp_path / "model").exists():
                assert np.array_equal(nb.load(tmp_path / "model").predict(X), expected)
        nb.save(learner, tmp_path / "model")  # over what a killed run may have left
        assert np.array_equal(nb.load(tmp_path / "model").predict(X), expected)

    @pytest.mark.slow
    def test_a_reproduction_goes_on_where_it_was(self, tmp_path):
        arguments = [
            sys.executable, "-W", "ignore", "-m", "nysboost", "reproduce", "simulation",
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


SEED_0 = {"random_state": 0}
LONG_WORK = {
    "fit": lambda: nb.approximate(np.tile(X, (4, 1)), "joint", n_components=400, **SEED_0),
    "error": lambda: nb.approximate(X, n_components=300, **SEED_0).relative_error(norm="spectral"),
    "transform": lambda: nb.StandardNystroem(n_components=500).fit(X).transform(
        np.tile(X, (40, 1))),
    "tolerance": lambda: nb.approximate(X, tol=1e-4, **SEED_0),
    "regression": lambda: nb.NystroemRegressor(100, **SEED_0).fit(X, X[:, 0]),
    "classification": lambda: nb.NystroemClassifier(100, **SEED_0).fit(X, X[:, 0] > 0),
    "components": lambda: nb.KernelPCA(5, n_landmarks=600, method="joint", **SEED_0).fit(X),
    "clusters": lambda: nb.SpectralClustering(20, n_init=200, **SEED_0).fit(X),
    "two samples": lambda: nb.mmd_test(X, X + 0.1, n_permutations=10**6, **SEED_0),
}  # fmt: skip


class TestInterrupted:
    @pytest.mark.parametrize("work", LONG_WORK.values(), ids=LONG_WORK)
    @pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    def test_ctrl_c_ends_a_long_operation_at_once_and_the_next_is_right(self, work):
        # pytest-xdist's workers ignore Ctrl-C, which is for the process that started them
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        main, done = threading.main_thread().ident, threading.Event()

        def interrupt():  # again where Python has dropped it, in a callback of its own
            for delay in (0.3, 3.0):
                if not done.wait(delay):
                    signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        began = time.process_time()
        try:
            with pytest.raises(KeyboardInterrupt):
                work_and_wait(work)
        finally:
            done.set()
            signal.signal(signal.SIGINT, before)
        assert time.process_time() - began < 30  # of work: whatever else the machine does
        assert np.isfinite(nb.approximate(X[:50], "uniform", n_components=9).to_dense()).all()


NAMES = "a,b,c,d,e,f"
COMMANDS = [
    "compare rows.csv --methods uniform --components 8 --repeats 1",
    "learn rows.csv --target a --components 3 --folds 2",
    "reproduce simulation --quick --replicates 1 --max-learners 2 --jobs 1 --variants URB-mean",
    "fit rows.csv --components 40 --method uniform",
]


LIMIT = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
"""
NO_ROOM = r"A limit on the size of a file of [\d.]+ [kM]B stopped it: raise the limit"
RUN_ALL = f"""
import sys
from nysboost.cli import main
{LIMIT.format(3000)}
for number, words in enumerate(sys.argv[1:]):
    try: main([*words.split(), "--out", f"out{{number}}"])
    except SystemExit as ended: print("ended with", ended.code)
"""


def run(program: str, words: list[str], **how) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-B", "-W", "ignore", "-c", program, *words]
    return subprocess.run(words, capture_output=True, text=True, check=False, **how)


class TestNoRoom:
    def test_a_full_disk_is_a_sentence_and_leaves_nothing(self, tmp_path):
        limited = START + LIMIT.format(50_000)
        limited += "from nysboost.cli.sinks import open_sink\n"
        limited += "def write():\n with open_sink(folder / 'g.npy', None, force=False) as put:\n"
        limited += "  while True: put({'u': X[:9, 0]})\n"  # so few that they stay in a buffer
        transform = "model.transform(X, folder / 'f.npy')"
        for what in ("nb.save(model, folder / 'm')", transform, "write()"):
            limited += f"try: {what}\nexcept OSError as error: print(error)\n"
        done = run(limited, [str(tmp_path)])
        assert len(re.findall(NO_ROOM, done.stdout)) == 3, done.stderr
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("outputs", ["store['F']", "folder / 'F.npy'"])
    def test_a_store_of_hdf5_on_a_full_disk_is_an_error_and_no_crash(self, tmp_path, outputs):
        program = (
            START
            + LIMIT.format(10**6)
            + f"""
with h5py.File(folder / "F.h5", "w") as store:
    store.create_dataset("F", (60_000, 200), "f8")
    try: model.transform(np.tile(X, (20, 1)), out={outputs})
    except OSError as error: print(error)
"""
        )
        done = run(program, [str(tmp_path)])
        assert re.search(NO_ROOM, done.stdout), done.stderr
        assert (done.returncode, done.stderr) == (0, "")

    def test_an_hdf5_output_of_a_command_on_a_full_disk_is_an_error_and_no_crash(self, tmp_path):
        program = (
            START
            + LIMIT.format(2 * 10**6)
            + """
from nysboost.cli.sinks import open_sink
try:
    with open_sink(folder / 'g.h5', None, force=False) as put:
        for _ in range(1000): put({'u': np.tile(X[:, 0], 10)})
except OSError as error: print(error)
"""
        )
        done = run(program, [str(tmp_path)])
        assert re.search(NO_ROOM, done.stdout), done.stderr
        assert (done.returncode, done.stderr) == (0, "")
        assert list(tmp_path.iterdir()) == []

    def test_a_full_disk_ends_a_command_with_a_sentence_and_no_half_report(self, tmp_path):
        np.savetxt(tmp_path / "rows.csv", X[:60], delimiter=",", header=NAMES, comments="")
        done = run(RUN_ALL, COMMANDS, cwd=tmp_path)
        assert len(re.findall("ended with [27]$", done.stdout, re.M)) == len(COMMANDS), done.stderr
        assert "Traceback" not in done.stderr
        assert len(re.findall(NO_ROOM, done.stderr)) == len(COMMANDS), done.stderr
        assert not list(tmp_path.rglob("*.html"))
        assert not list(tmp_path.rglob("*.partial*"))

    @pytest.mark.parametrize("place", ["chmod", "/sys"])
    def test_a_read_only_folder_is_a_sentence(self, tmp_path, model, place):
        if place == "chmod" and os.geteuid() == 0:
            pytest.skip("nothing that chmod does is read-only to root")
        folder = tmp_path if place == "chmod" else Path(place)
        if not folder.is_dir():
            pytest.skip("a folder that nobody may write to is only on Linux")
        tmp_path.chmod(0o500)
        with pytest.raises(OSError, match=r"could not be written to .*model'"):
            nb.save(model, folder / "model")
        with pytest.raises(OSError, match=r"could not be written to .*f\.npy'"):
            model.transform(X, out=folder / "f.npy")


class Failing:
    """A store whose rows cannot be read from some row on."""

    shape, dtype, ndim, chunks = X.shape, X.dtype, 2, (100, X.shape[1])

    def __getitem__(self, at: object) -> np.ndarray:
        rows = np.arange(len(X))[at[0] if isinstance(at, tuple) else at]
        if np.max(rows, initial=0) >= 1500:
            raise OSError(5, "Input/output error")
        return X[at]


class TestFailingStore:
    @pytest.mark.parametrize(
        "work",
        [
            lambda rows: nb.StandardNystroem(n_components=20).fit(rows),
            lambda rows: nb.NystroemRegressor(5, random_state=0).fit(rows, X[:, 0]),
            lambda rows: nb.KernelPCA(2).fit(rows),
            lambda rows: nb.StandardNystroem(n_components=9).fit(X[:99]).transform(rows),
            lambda rows: nb.NystroemRegressor(5, **QUICK).fit(X[:99], X[:99, 0]).predict(rows),
        ],
    )
    def test_the_stores_own_error_arrives(self, work):
        with pytest.raises(OSError, match="Input/output error"):
            work(Failing())


def answer_of(model: nb.StandardNystroem | nb.NystroemRegressor) -> np.ndarray:
    ask = model.predict if hasattr(model, "predict") else model.transform
    return np.asarray(ask(X[:700]))


class TestManyAtOnce:
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's, on a fork among threads
    def test_answers_are_the_same_in_threads_and_processes(self, model):
        models = [model, nb.NystroemRegressor(8, **QUICK).fit(X[:300], X[:300, 0])]
        expected = [answer_of(one) for one in models] * 8
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(answer_of, models * 8))
        for how in ("fork", "spawn"):
            with multiprocessing.get_context(how).Pool(2) as pool:
                found += pool.map_async(answer_of, models).get(timeout=120)
        assert all(map(np.array_equal, found, [*expected, *expected[:4]]))

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
    clustered = nb.SpectralClustering(3, n_landmarks=40, n_init=2, random_state=0).fit(X)
    yield float(clustered.embedding_.sum()), clustered.labels_.tolist()
    yield float(nb.KernelPCA(2, n_landmarks=40, random_state=0).fit_transform(X).sum())
    some, y, quick = X[:200], X[:200, 0], {"kernel": "gaussian", "metric": "one", "random_state": 0}
    yield nb.NystroemRegressor(5, **quick).fit(some, y).predict(some).tolist()
    yield nb.NystroemClassifier(5, **quick).fit(some, y > 1).predict(some).tolist()
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
        threads = os.environ | {"OMP_NUM_THREADS": "3", "OPENBLAS_NUM_THREADS": "1"}
        done = run(program, [str(Path(nb.__file__).parents[1])], timeout=150, env=threads)
        assert done.stdout == "same\n", done.stderr[-500:]
