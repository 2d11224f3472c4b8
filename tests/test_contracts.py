"""Promises about the whole: what an import pulls in, and how much memory is held."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import nysboost as nb


def run_python(code):
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def test_importing_the_library_pulls_in_nothing_heavy():
    heavy = (
        "{'dask', 'torch', 'matplotlib', 'pandas', 'polars', 'rich', 'typer', 'plotly', 'pyarrow'}"
    )
    code = (
        "import sys, sklearn.metrics.pairwise, sklearn.cluster; before = set(sys.modules);"
        f"import nysboost; print(sorted({heavy} & (set(sys.modules) - before)))"
    )
    assert run_python(code).strip() == "[]"


def test_the_time_that_an_import_takes_is_printed(capsys):
    code = (
        "import time, sklearn.metrics.pairwise, sklearn.cluster; t = time.perf_counter();"
        "import nysboost; print(time.perf_counter() - t)"
    )
    seconds = float(run_python(code))
    with capsys.disabled():
        print(f"\nimport nysboost: {seconds:.3f} s beyond scikit-learn's own")


def peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", ["nystrom", "ensemble-ridge", "URB-mean", "RRB-SF"])
def test_fitting_many_rows_holds_far_less_than_their_columns(method):
    n, m = 200_000, 20
    X = np.random.default_rng(0).normal(size=(n, 5))
    sizes = {"n_learners": 3, "n_columns": m, "n_candidates": 50, "row_cap": 500}
    peak = peak_bytes(
        lambda: nb.approximate(X, method, nb.Gaussian(sigma=1.0), **sizes, random_state=0)
    )
    assert peak < 8 * n * m / 4


def test_transforming_many_rows_holds_little_more_than_the_features():
    n, m = 200_000, 20
    X = np.random.default_rng(0).normal(size=(n, 5))
    fitted = nb.StandardNystroem(n_columns=m, n_components=3, random_state=0).fit(X)
    assert peak_bytes(lambda: fitted.transform(X)) < 8 * n * 3 + 30 * 2**20


@pytest.mark.parametrize("method", ["nystrom", "URB-mean"])
def test_the_relative_error_never_holds_the_matrix(method):
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 2))
    approx = nb.approximate(X, method, n_learners=2, n_columns=10, row_cap=500, random_state=0)
    assert peak_bytes(approx.relative_error) < 8 * n * n * 0.75


def test_a_kernels_diagonal_never_holds_the_matrix():
    X = np.random.default_rng(0).normal(size=(3000, 2))
    approx = nb.approximate(X, "nystrom", n_columns=10, random_state=0)
    assert peak_bytes(approx.diag) < 2**23
