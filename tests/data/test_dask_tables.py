"""Dask's collections: which are tables of numbers, and what is said about the others."""

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from nysboost.data.dask_tables import dask_rows, with_known_sizes


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="sync"):
        yield


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (da.zeros(5), ValueError, r"X has shape \(5,\); a table of shape \(n, d\)"),
        (da.zeros((0, 2)), ValueError, "nothing to approximate"),
        (da.zeros((4, 2), dtype=complex), ValueError, "Complex data not supported"),
        (da.from_array(np.full((4, 2), "a")), ValueError, "No numbers: X has dtype <U1"),
        (db.from_sequence([1, 2]), TypeError, "arrays and data frames are what NysBoost works"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused_with_a_sentence(X, error, message):
    with pytest.raises(error, match=message):
        dask_rows(X, "X")


def test_columns_of_text_are_named():
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


def test_missing_values_of_nullable_columns_are_nan():
    frame = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [True, False, True]})
    rows = with_known_sizes(dask_rows(dd.from_pandas(frame, npartitions=1), "X"))
    expected = [[1, 1], [np.nan, 0], [3, 1]]
    np.testing.assert_array_equal(rows.take(np.arange(3)), expected)


def test_frames_of_float32_stay_float32():
    frame = pd.DataFrame(np.ones((4, 2), dtype=np.float32))
    assert dask_rows(dd.from_pandas(frame, npartitions=2), "X").form.dtype == np.float32
