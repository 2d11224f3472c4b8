"""Tables as they come."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from nysboost.learn.table import MOST_CATEGORIES, Table

FRAME = pd.DataFrame(
    {"a": [1.0, np.nan, 3.0, 5.0], "b": ["x", "y", None, "x"], "c": [True, False, True, True]}
)


def test_numbers_stay_gaps_are_filled_and_categories_become_columns():
    table = Table.of(FRAME, "fill")
    expected = [
        #  a, gap, (missing), x, y, False, True
        [1, 0, 0, 1, 0, 0, 1],
        [3, 1, 0, 0, 1, 1, 0],
        [3, 0, 1, 0, 0, 0, 1],
        [5, 0, 0, 1, 0, 0, 1],
    ]
    np.testing.assert_array_equal(table(FRAME), expected)
    np.testing.assert_array_equal(table.origins, [0, 0, 1, 1, 1, 2, 2])


def test_frames_of_polars_and_pandas_are_the_same_table():
    plain = FRAME.fillna({"b": "z"})
    theirs = pl.DataFrame(plain.to_dict("list"))
    ours = Table.of(plain, "fill")(plain)
    np.testing.assert_array_equal(Table.of(theirs, "fill")(theirs), ours)


def test_rare_and_new_categories_are_zero_everywhere():
    names = [f"v{i}" for i in range(MOST_CATEGORIES + 5)]
    frame = pd.DataFrame({"b": [*names, *names[:MOST_CATEGORIES]]})
    table = Table.of(frame, "fill")
    assert table(frame).shape[1] == MOST_CATEGORIES
    assert table(pd.DataFrame({"b": ["unheard of"]})).sum() == 0


def test_arrays_with_gaps():
    X = np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 9.0]])
    np.testing.assert_array_equal(Table.of(X, "fill")(X), [[1, 0, 2], [2, 1, 4], [3, 0, 9]])
    with pytest.raises(ValueError, match="Column 0 has 1 missing"):
        Table.of(X, "raise")


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="'a' contains infinity"):
        Table.of(pd.DataFrame({"a": [1.0, np.inf]}), "fill")
