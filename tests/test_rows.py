"""Where data rows come from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from nysboost import rows as rows_module
from nysboost.rows import as_float, as_rows, scan, spread_indices


def points(n=30, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


@pytest.mark.parametrize(
    "make",
    [
        np.asarray,
        np.asfortranarray,
        np.matrix,
        lambda X: X.tolist(),
        pd.DataFrame,
        pl.DataFrame,
        sparse.csr_matrix,
        sparse.csc_matrix,
        sparse.coo_array,
        lambda X: X.astype(object),
    ],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_rows_of_every_container_are_the_same(make):
    X = points()
    rows = as_rows(make(X))
    assert (rows.n, rows.n_features) == (30, 3)
    for where in (np.array([3, 3, 0]), slice(4, 9)):
        taken = rows.take(where)
        dense = taken.toarray() if sparse.issparse(taken) else taken
        assert sparse.issparse(taken) or type(taken) is np.ndarray
        np.testing.assert_array_equal(dense, X[where])


def test_a_memory_map_is_not_read_into_memory(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, points())
    mapped = np.load(path, mmap_mode="r")
    rows = as_rows(mapped)
    assert np.shares_memory(rows.data, mapped)
    np.testing.assert_array_equal(rows.take(np.array([2, 5])), points()[[2, 5]])


def test_an_array_is_not_copied():
    X = points()
    assert np.shares_memory(as_rows(X).data, X)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, np.float64),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (bool, np.float64),
    ],
)
def test_rows_come_in_floating_point(dtype, expected):
    X = np.ones((4, 2), dtype=dtype)
    assert as_rows(X).take(slice(None)).dtype == expected


def test_as_float_leaves_floats_alone():
    X = points()
    assert as_float(X) is X


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.ones(5), r"shape \(5,\).*Reshape your data"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (3.0, r"shape \(\)"),
        (np.empty((0, 3)), "nothing to approximate"),
        (np.empty((3, 0)), "nothing to approximate"),
        ([["a", "b"]], "does not convert to numbers"),
        (np.ones((2, 2), dtype=complex), "Complex data not supported"),
        (sparse.csr_matrix(np.ones((2, 2), dtype=complex)), "Complex data not supported"),
    ],
)
def test_what_is_no_table_of_numbers_gets_a_sentence(X, words):
    with pytest.raises(ValueError, match=words):
        as_rows(X)


@pytest.mark.parametrize("scan_bytes", [100, 64 * 2**20])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_the_first_bad_value_is_named_in_whatever_block_it_is(make, scan_bytes, monkeypatch):
    monkeypatch.setattr(rows_module, "SCAN_BYTES", scan_bytes)
    X = points()
    X[17, 1], X[25, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match="X contains NaN, first at row 17, column 1"):
        as_rows(make(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_data_whose_sum_overflows_are_finite(dtype):
    X = np.full((10, 2), 0.9 * np.finfo(dtype).max, dtype=dtype)
    assert as_rows(X).n == 10


def test_a_scan_reads_every_row_once(monkeypatch):
    monkeypatch.setattr(rows_module, "SCAN_BYTES", 1000)
    rows = as_rows(points(200))
    blocks = list(scan(rows))
    assert len(blocks) > 1
    np.testing.assert_array_equal(np.vstack(blocks), rows.data)


@pytest.mark.parametrize(("n", "at_most"), [(1, 5), (5, 5), (100, 7), (10**9, 1000)])
def test_spread_indices_are_distinct_and_span_the_range(n, at_most):
    where = spread_indices(n, at_most)
    assert len(np.unique(where)) == min(n, at_most)
    assert where[0] == 0
    assert where[-1] == n - 1
