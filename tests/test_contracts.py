"""Promises about the whole: what an import pulls in, and how much memory is held."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from peaks import peak_bytes

import nysboost as nb


def run_python(code, *words):
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_importing_the_library_pulls_in_nothing_heavy():
    heavy = "dask torch matplotlib pandas polars rich typer plotly pyarrow"
    code = (
        "import sys, sklearn.metrics.pairwise, sklearn.cluster; before = set(sys.modules);"
        "import nysboost; nysboost.approximate([[1.0], [2.0]]);"
        f"print(sorted(set('{heavy}'.split()) & (set(sys.modules) - before)))"
    )
    assert run_python(code).strip() == "[]"


@pytest.mark.parametrize("method", ["nystrom", "ensemble-ridge", "URB-mean", "RRB-SF"])
def test_fitting_many_rows_holds_far_less_than_their_columns(method):
    n, m = 200_000, 20
    X = np.random.default_rng(0).normal(size=(n, 5))
    sizes = {"n_learners": 3, "n_columns": m, "n_candidates": 50, "row_cap": 500}
    peak = peak_bytes(
        lambda: nb.approximate(X, method, nb.Gaussian(sigma=1.0), **sizes, random_state=0)
    )
    assert peak < 8 * n * m / 4


PASSES = {
    "product": lambda approx: approx @ np.ones(approx.shape[0]),
    "eigenpairs": lambda approx: approx.eigh(2),
    "diagonal": lambda approx: approx.diag(),
    "system": lambda approx: approx.solve(np.ones(approx.shape[0]), 1.0),
    "projection": lambda approx: approx._factor.positive_part(None),
    "Frobenius error": lambda approx: approx.relative_error(np.arange(4000)),
    "trace error": lambda approx: approx.relative_error(np.arange(4000), "trace"),
}


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("method", ["nystrom", "ensemble-ridge"])
def test_every_pass_keeps_to_its_working_memory(method, name):
    n, max_memory = 60_000, 4_000_000
    X = np.random.default_rng(0).normal(size=(n, 6))
    sizes = {"n_learners": 2, "n_columns": 40, "row_cap": 500, "random_state": 0}
    approx = nb.approximate(X, method, max_memory=max_memory, **sizes)
    result = 8 * n * 4  # vectors of length n: two eigenvectors, say, and indices
    assert peak_bytes(lambda: PASSES[name](approx)) < max_memory + result < 8 * n * 40


def test_a_transform_into_an_array_keeps_to_its_working_memory():
    n, max_memory = 100_000, 2_000_000
    X = np.random.default_rng(0).normal(size=(n, 6)).astype(np.float32)
    fitted = nb.StandardNystroem(n_columns=50, max_memory=max_memory, random_state=0).fit(X[:1000])
    out = np.empty((n, 50), dtype=np.float32)
    assert peak_bytes(lambda: fitted.transform(X, out=out)) < max_memory
    blocks = (X[i : i + 5000] for i in range(0, n, 5000))
    assert peak_bytes(lambda: fitted.transform(blocks, out=out)) < max_memory


DISK_TO_DISK = """
import sys
from pathlib import Path

import numpy as np
import nysboost as nb

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

folder, n, d, c = Path(sys.argv[1]), 120_000, 20, 200
with (folder / "X.bin").open("wb") as file:
    for seed in range(10):
        rows = np.random.default_rng(seed).normal(size=(n // 10, d)).astype(np.float32)
        rows.tofile(file)
X = np.memmap(folder / "X.bin", np.float32, "r", shape=(n, d))
fitted = nb.StandardNystroem(n_columns=c, max_memory="30MB", random_state=0).fit(X)
out = np.memmap(folder / "F.bin", np.float32, "w+", shape=(n, c))
fitted.transform(X[:2000])
before = peak()
fitted.transform(X, out=out)
print(peak() - before)
fitted.transform(X, out=folder / "F.npy")
print(peak() - before)
assert np.array_equal(out[-5:], np.load(folder / "F.npy", mmap_mode="r")[-5:])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_from_disk_to_disk_only_the_working_memory_is_resident(tmp_path):
    # the features are 96 MB, and the pages of both files would count if they were kept
    assert max(map(int, run_python(DISK_TO_DISK, str(tmp_path)).split())) < 40_000_000
