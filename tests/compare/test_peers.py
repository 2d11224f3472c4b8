"""Learners of other libraries behind one interface."""

import numpy as np
import pyarrow as pa
import pytest

from nysboost.compare.peers import CodedRows, make_peers


def test_categories_are_integers_and_gaps_are_nan():
    train = pa.table({"size": [1.0, None, 3.0, 4.0], "colour": ["red", "blue", None, "red"]})
    test = pa.table({"size": [None, 2.0], "colour": ["green", "blue"]})
    rows = CodedRows.of(train, test)
    np.testing.assert_array_equal(rows.train, [[1, 1], [np.nan, 0], [3, np.nan], [4, 1]])
    np.testing.assert_array_equal(rows.test, [[np.nan, np.nan], [2, 0]])
    assert (rows.categories, rows.numbers) == ([1], [0])


@pytest.mark.filterwarnings("ignore")  # of theirs, as the command does
@pytest.mark.parametrize("classify", [False, True])
def test_every_peer_learns_a_table_with_categories_and_gaps(classify):
    rng = np.random.default_rng(0)
    size, colour = rng.normal(size=90), rng.choice(["red", "green", "blue"], size=90)
    table = pa.table({"size": np.where(size > 2, np.nan, size), "colour": colour})
    y = np.sin(size) + 2 * (colour == "red")
    y = np.where(y > 1, "high", "low") if classify else y
    rows = CodedRows.of(table.slice(0, 60), table.slice(60))
    for name, peer in make_peers(rows, classify, 0).items():
        found = np.ravel(peer.fit(rows.train, y[:60]).predict(rows.test))
        error = np.mean(found != y[60:]) if classify else np.mean((found - y[60:]) ** 2)
        allowed = 0.5 if classify else 1.5 * np.var(y)
        assert error < allowed, name
