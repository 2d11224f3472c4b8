"""Dask's collections: which are tables of numbers, what is said about others, the first look."""

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from containers import CountedChunks

from nysboost.data.dask_tables import dask_rows, survey_rows, with_known_sizes
from nysboost.data.recognise import as_rows, rows_of

pytestmark = pytest.mark.usefixtures("_in_this_thread")


def test_other_collections_and_columns_of_text_are_refused_with_a_sentence():
    with pytest.raises(TypeError, match="arrays and data frames are what NysBoost works"):
        dask_rows(db.from_sequence([1, 2]), "X")
    frame = pd.DataFrame({"size": [1.0, 2.0], "town": ["a", "b"]})
    with pytest.raises(ValueError, match=r"no numbers: town\. Leave them out, X.drop"):
        dask_rows(dd.from_pandas(frame, npartitions=1), "X")


def test_unknown_sizes_are_counted_and_empty_partitions_count_as_none():
    frame = pd.DataFrame({"a": np.arange(10.0), "b": np.arange(10)})
    parts = dd.from_pandas(frame, npartitions=4)
    some = parts[parts.a > 4]
    rows = dask_rows(some, "X")
    assert np.isnan(rows.data.shape[0])
    known = with_known_sizes(rows)
    assert known.data.chunks == ((0, 1, 2, 2), (2,))
    np.testing.assert_array_equal(known.take(np.arange(5)), frame[frame.a > 4].to_numpy())
    assert np.isnan(rows.data.shape[0])  # what the user passed in is as it was


def test_missing_values_of_nullable_columns_are_nan_and_float32_stays_float32():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    rows = with_known_sizes(dask_rows(dd.from_pandas(frame, npartitions=1), "X"))
    expected = [[1, 1], [np.nan, 0], [3, 1]]
    np.testing.assert_array_equal(rows.take(np.arange(3)), expected)
    frame = pd.DataFrame(np.ones((4, 2), dtype=np.float32))
    assert dask_rows(dd.from_pandas(frame, npartitions=2), "X").form.dtype == np.float32


@pytest.mark.parametrize(("row", "what"), [(0, np.nan), (57, np.inf), (99, -np.inf)])
def test_the_first_entry_that_is_not_finite_is_named(row, what):
    X = np.ones((100, 3))
    X[row:, 1] = what
    with pytest.raises(ValueError, match=rf"X contains .*, first at row {row}, column 1\."):
        as_rows(da.from_array(X, chunks=((40, 0, 17, 43), (2, 1))))


def test_rows_that_every_fit_asks_for_come_with_the_first_look(chunks_are_read):
    source = CountedChunks(np.arange(200.0)[:, None], 50)
    rows = survey_rows(rows_of(source.array), (3, 7))
    for wanted in ([0, 99, 199], [0, 33, 66, 99, 132, 165, 199]):
        np.testing.assert_array_equal(rows.take(np.array(wanted))[:, 0], wanted)
    assert source.reads == {0: 1, 50: 1, 100: 1, 150: 1}
    np.testing.assert_array_equal(rows.take(np.array([1, 99]))[:, 0], [1, 99])
    assert source.reads.total() == 6


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
