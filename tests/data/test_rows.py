"""Where data rows come from."""

import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import nysboost as nb
from nysboost.data.recognise import as_rows, rows_of, stream_of
from nysboost.data.rows import EncodedRows, as_float, spread_indices


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


def test_neither_an_array_nor_a_memory_map_is_copied(tmp_path):
    for X in (points(), memory_map(points(), tmp_path)):
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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_finite_data_whose_sum_overflows_are_finite(dtype):
    X = np.full((10, 2), 0.9 * np.finfo(dtype).max, dtype=dtype)
    assert as_rows(X).n == 10


def test_a_bad_value_is_named_by_its_row_among_all():
    X = np.zeros((9_000_000, 1))  # more than is scanned at a time
    X[8_700_000] = np.nan
    with pytest.raises(ValueError, match="X contains NaN, first at row 8700000, column 0"):
        as_rows(X)


@pytest.mark.parametrize(("n", "at_most"), [(1, 5), (5, 5), (100, 7), (10**9, 1000)])
def test_spread_indices_are_distinct_and_span_the_range(n, at_most):
    where = spread_indices(n, at_most)
    assert len(np.unique(where)) == min(n, at_most)
    assert where[0] == 0
    assert where[-1] == n - 1


def hdf5(X, folder, **how):
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, **how)


def zarr_array(X, folder):
    stored = zarr.create_array(folder / "X.zarr", shape=X.shape, chunks=(7, 2), dtype=X.dtype)
    stored[...] = X
    return stored


def memory_map(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


STORES = {
    "memory map": memory_map,
    "HDF5, contiguous": hdf5,
    "HDF5, chunked": lambda X, folder: hdf5(X, folder, chunks=(7, 2), compression="gzip"),
    "Zarr": zarr_array,
}
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
    rows, expected = as_rows(there), as_float(X)
    taken = rows.take(np.array(wanted, dtype=int))
    assert taken.dtype == rows.form.dtype == expected.dtype
    assert type(taken) is np.ndarray or store == "memory map"
    np.testing.assert_array_equal(taken, expected[wanted])
    np.testing.assert_array_equal(rows.take(slice(3, 20)), expected[3:20])
    pieces = list(rows.pieces(size))
    np.testing.assert_array_equal(np.vstack(pieces), X)
    assert max(map(len, pieces)) <= max(size, 7)
    assert not rows.in_memory


@stores
@pytest.mark.parametrize("method", ["joint", "URB-mean", "kmeans", "rpcholesky", "greedy", "rls"])
def test_every_method_finds_on_disk_what_it_finds_in_memory(store, method, tmp_path):
    X = points(200)
    how = {"n_learners": 2, "n_columns": 10, "random_state": 0}
    here, there = (
        nb.approximate(data, method, nb.Gaussian(sigma=2.0), **how)
        for data in (X, STORES[store](X, tmp_path))
    )
    np.testing.assert_allclose(here.to_dense(), there.to_dense(), atol=1e-12)
    np.testing.assert_allclose(here @ X[:, 0], there @ X[:, 0], atol=1e-10)
    assert here.relative_error() == pytest.approx(there.relative_error(), rel=1e-9)


CONTAINERS = STORES | {
    "an array": lambda X, _: X, "CSR": lambda X, _: sparse.csr_matrix(X),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTAINERS)
def test_the_first_bad_value_is_named_wherever_it_is(kind, tmp_path):
    X = points(50)
    X[17, 1], X[41, 0] = np.nan, np.inf
    with pytest.raises(ValueError, match="X contains NaN, first at row 17, column 1"):
        as_rows(CONTAINERS[kind](X, tmp_path))


def test_some_of_the_rows_of_a_view_are_seen_through_it():
    doubled = EncodedRows(as_rows(points()), lambda block, start: 2 * block)
    some = doubled.only(np.array([4, 2])).only(np.array([1]))
    np.testing.assert_array_equal(some.take(slice(None)), 2 * points()[[2]])


def test_a_store_of_complex_numbers_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Complex data not supported"):
        as_rows(hdf5(points() * 1j, tmp_path))


@given(st.lists(st.integers(0, 30), max_size=10), st.integers(1, 40))
def test_an_iterator_gives_its_rows_once_in_order(lengths, size):
    tables = [points(n, seed=n) for n in [0, *lengths, 5]]  # those without rows are passed over
    rows = stream_of(iter(tables))
    assert (rows.n, rows.n_features, rows.in_memory) == (None, 3, False)
    pieces = list(rows.pieces(size))
    assert max(map(len, pieces)) <= size
    np.testing.assert_array_equal(np.vstack(pieces), np.vstack(tables))


@pytest.mark.parametrize("fit", [as_rows, lambda X: nb.StandardNystroem().fit(X), nb.approximate])
def test_an_iterator_is_not_to_fit_on(fit):
    with pytest.raises(TypeError, match="X is an iterator, which gives each row once"):
        fit(iter([points()]))


def test_an_iterator_without_blocks_or_with_a_vector_gets_a_sentence():
    with pytest.raises(ValueError, match="X is an iterator that gave no block of rows"):
        stream_of(iter([]))
    with pytest.raises(ValueError, match=r"A block of X has shape \(3,\)"):
        list(stream_of(iter([points(), np.ones(3)])).pieces(5))


def test_arrays_of_an_unknown_library_are_named():
    class Foreign:
        shape, dtype = (3, 2), np.dtype(float)

        def __array_namespace__(self, api_version=None):
            return np

    with pytest.raises(TypeError, match=r"X is a \S*Foreign, but NumPy, PyTorch and CuPy arrays"):
        as_rows(Foreign())


def test_many_rows_of_a_map_are_those_of_the_array(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", X)
    stored = rows_of(np.load(tmp_path / "x.npy", mmap_mode="r"))
    some = np.random.default_rng(1).permutation(2000)[:1300]
    np.testing.assert_array_equal(stored.take(some), X[some])
    np.testing.assert_array_equal(stored.take(some[:512]), X[some[:512]])
    np.testing.assert_array_equal(stored.take(slice(3, 1999)), X[3:1999])
