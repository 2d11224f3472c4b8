"""The first look at Dask rows: one pass, and everything before the sample is known."""

import dask
import dask.array as da
import numpy as np
import pytest

from nysboost.data.dask_tables import survey_rows
from nysboost.data.recognise import as_rows, rows_of


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.mark.parametrize(("row", "what"), [(0, np.nan), (57, np.inf), (99, -np.inf)])
def test_the_first_entry_that_is_not_finite_is_named(row, what):
    X = np.ones((100, 3))
    X[row:, 1] = what
    with pytest.raises(ValueError, match=rf"X contains .*, first at row {row}, column 1\."):
        as_rows(da.from_array(X, chunks=((40, 0, 17, 43), (2, 1))))


def test_rows_that_every_fit_asks_for_come_with_the_first_look(chunks_are_read):
    seen = []

    def read(block_info=None):
        (start, stop), _ = block_info[None]["array-location"]
        seen.append(start)
        return np.arange(start, stop, dtype=float)[:, None]

    X = da.map_blocks(read, chunks=((50,) * 4, (1,)), dtype=float, meta=np.empty((0, 0)))
    rows = survey_rows(rows_of(X), (3, 7))
    for wanted in ([0, 99, 199], [0, 33, 66, 99, 132, 165, 199]):
        np.testing.assert_array_equal(rows.take(np.array(wanted))[:, 0], wanted)
    assert sorted(seen) == [0, 50, 100, 150]
    np.testing.assert_array_equal(rows.take(np.array([1, 99]))[:, 0], [1, 99])
    assert len(seen) == 6


def test_few_rows_all_come_with_the_first_look():
    X = np.arange(30.0).reshape(10, 3)
    rows = as_rows(da.from_array(X, chunks=(4, 3)))
    assert rows.lazy
    np.testing.assert_array_equal(rows.take(slice(2, 9, 3)), X[2:9:3])
    np.testing.assert_array_equal(np.concatenate(list(rows.pieces(3))), X)
    assert [len(piece) for piece in rows.pieces(4)] == [4, 4, 2]


def test_chunks_that_are_no_numpy_arrays_although_dask_says_so_are_refused():
    torch = pytest.importorskip("torch")
    X = da.from_array(np.ones((10, 2)), chunks=(5, 2))
    tensors = X.map_blocks(torch.asarray, dtype=X.dtype, meta=np.empty((0, 2)))
    with pytest.raises(ValueError, match="but one is a PyTorch array on cpu"):
        as_rows(tensors)
    assert as_rows(tensors.map_blocks(np.asarray, meta=np.empty((0, 2)))).n == 10
