"""Where data rows come from."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from containers import CONTAINERS, STORES, hdf5, memory_map
from hypothesis import given
from hypothesis import strategies as st
from market import points
from scipy import sparse

from nysboost.numerics.arrays import spaced_indices
from nysboost.rows.recognise import make_stream, scan_rows
from nysboost.rows.rows import EncodedRows, as_float

ARRAYS = [np.asarray, np.asfortranarray, np.matrix, np.ndarray.tolist, lambda X: X.astype(object)]
OTHERS = [pd.DataFrame, pl.DataFrame, sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array]


@pytest.mark.parametrize("make", [*ARRAYS, *OTHERS])
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_rows_of_every_container_are_the_same(make):
    X = points(30)
    rows = scan_rows(make(X))
    assert (rows.n, rows.n_features) == (30, 3)
    for where in (np.array([3, 3, 0]), slice(4, 9)):
        taken = rows.take(where)
        dense = taken.toarray() if sparse.issparse(taken) else taken
        assert sparse.issparse(taken) or type(taken) is np.ndarray
        np.testing.assert_array_equal(dense, X[where])


def test_neither_an_array_nor_a_memory_map_is_copied(tmp_path):
    for X in (points(30), memory_map(points(30), tmp_path)):
        assert np.shares_memory(scan_rows(X).data, X)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", np.longdouble, "i1", "i8", bool])
def test_rows_come_in_floating_point(dtype):
    X = np.ones((4, 2), dtype=dtype)
    assert scan_rows(X).take(slice(None)).dtype == ("f4" if dtype == "f4" else "f8")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_data_whose_sum_overflows_are_finite(dtype):
    X = np.full((10, 2), 0.9 * np.finfo(dtype).max, dtype=dtype)
    assert scan_rows(X).n == 10


def test_a_bad_value_is_named_by_its_row_among_all():
    X = np.zeros((9_000_000, 1))  # more than is scanned at a time
    X[8_700_000] = np.nan
    with pytest.raises(ValueError, match="X contains NaN, first at row 8700000, column 0"):
        scan_rows(X)


@pytest.mark.parametrize(("n", "at_most"), [(1, 5), (5, 5), (100, 7), (10**9, 1000)])
def test_spread_indices_are_distinct_and_span_the_range(n, at_most):
    where = spaced_indices(n, at_most)
    assert len(np.unique(where)) == min(n, at_most)
    assert where[0] == 0
    assert where[-1] == n - 1


stores = pytest.mark.parametrize("store", STORES)


@pytest.fixture(
    scope="module",
    params=[(store, kind) for store in STORES for kind in ("f4", "f8", "i2")],
    ids=str,
)
def stored(request, tmp_path_factory):
    """A store's name, what is in it, and the store."""
    store, dtype = request.param
    X = (100 * points(50)).astype(dtype)
    return store, X, STORES[store](X, tmp_path_factory.mktemp("store"))


@given(st.lists(st.integers(0, 49), max_size=60), st.integers(1, 60))
def test_rows_on_disk_are_those_in_memory(stored, wanted, size):
    store, X, there = stored
    wanted = wanted * (30 if store == "memory map" else 1)  # more than are looked up one by one
    rows, expected = scan_rows(there), as_float(X)
    taken = rows.take(np.array(wanted, dtype=int))
    assert taken.dtype == rows.template.dtype == expected.dtype
    assert type(taken) is np.ndarray or store == "memory map"
    np.testing.assert_array_equal(taken, expected[wanted])
    np.testing.assert_array_equal(rows.take(slice(3, 20)), expected[3:20])
    pieces = list(rows.pieces(size))
    np.testing.assert_array_equal(np.vstack(pieces), X)
    assert max(map(len, pieces)) <= max(size, 7)
    assert not rows.in_memory


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_first_bad_value_is_named_wherever_it_is(kind, tmp_path):
    X = points(50)
    X[17, 1], X[41, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match="X contains NaN, first at row 17, column 1"):
        scan_rows(CONTAINERS[kind](X, tmp_path))


def test_some_of_the_rows_of_a_view_are_seen_through_it():
    doubled = EncodedRows(scan_rows(points(30)), lambda block, start: 2 * block)
    some = doubled.only(np.array([4, 2])).only(np.array([1]))
    np.testing.assert_array_equal(some.take(slice(None)), 2 * points(30)[[2]])


@given(st.lists(st.integers(0, 30), max_size=10), st.integers(1, 40))
def test_an_iterator_gives_its_rows_once_in_order(lengths, size):
    tables = [points(n, seed=n) for n in [0, *lengths, 5]]  # those without rows are passed over
    rows = make_stream(iter(tables))
    assert (rows.n, rows.n_features, rows.in_memory) == (None, 3, False)
    pieces = list(rows.pieces(size))
    assert max(map(len, pieces)) <= size
    np.testing.assert_array_equal(np.vstack(pieces), np.vstack(tables))


class Foreign:
    shape, dtype = (3, 2), np.dtype(float)

    def __array_namespace__(self, api_version=None):
        return np


def test_rows_that_cannot_be_read_get_a_sentence(tmp_path):
    blocks = make_stream(iter([points(30), np.ones(3)]))
    for call, says in {
        lambda: scan_rows(iter([points(30)])): "an iterator, which yields each row once",
        lambda: make_stream(iter([])): "X is an iterator that gave no block of rows",
        lambda: list(blocks.pieces(5)): r"A block of X has shape \(3,\)",
        lambda: scan_rows(hdf5(points(30) * 1j, tmp_path)): "Complex data not supported",
        lambda: scan_rows(Foreign()): r"X is a \S*Foreign, but only NumPy, PyTorch and CuPy arrays",
    }.items():
        with pytest.raises((ValueError, TypeError), match=says):
            call()
