"""Positions as NumPy understands them, and what is said when an argument is wrong."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nysboost.numerics.messages import unknown
from nysboost.numerics.parameters import positions, require_count, require_number, require_positive


def test_the_nearest_names_are_suggested_and_all_listed_where_none_is_near():
    assert "Did you mean 'URB-mean'" in unknown("variant", "urb-meen", ["UUB-SF", "URB-mean"])
    far = unknown("kernel", "zzzzzz", ["rbf", "linear"])
    assert "Did you mean" not in far
    assert far.endswith("Known are rbf, linear.")
    assert "no kernel 3.5" in unknown("kernel", 3.5, ["rbf"])
    near = unknown("method", "aaaa", ["aaab", "aaac", "aaad", "aaae"])
    assert near.partition("?")[0].count(" or ") == 2


@st.composite
def indexers(draw):
    """A length, and what NumPy can index a vector of that length with, or not.

    Numbers of eight bits may point into data whose number of rows has more.
    """
    n = draw(st.sampled_from([1, 2, 5, 12, 100_000]))
    anything, narrow = st.integers(-n - 2, n + 1), st.integers(max(-n - 2, -128), min(n + 1, 127))
    length = min(n, 12)
    kinds = [
        st.lists(anything, max_size=6),
        st.lists(st.booleans(), min_size=length - 1, max_size=length + 1).map(np.array),
        st.lists(narrow, max_size=6).map(lambda numbers: np.array(numbers, dtype=np.int8)),
        st.lists(st.integers(0, n + 1), max_size=6).map(lambda x: np.array(x, dtype=np.uint64)),
        st.slices(n + 3),
    ]
    return n, draw(st.one_of(kinds))


@settings(max_examples=60)
@given(indexers())
def test_positions_are_those_that_numpy_takes(case):
    """Masks, negative, repeated, out of range and none at all: right, or an error there too."""
    n, rows = case
    empty = not isinstance(rows, slice) and len(rows) == 0
    try:
        expected = np.arange(n)[np.array(rows, dtype=np.intp) if empty else rows]
    except IndexError:
        with pytest.raises((IndexError, ValueError), match=f"there are {n} rows"):
            positions(rows, n)
        return
    found = positions(rows, n)
    assert found.dtype == np.intp
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rows", [[0.0, 1.0], [[0, 1]], 3, "12", [None]])
def test_what_numpy_cannot_index_with_gets_a_sentence(rows):
    with pytest.raises(ValueError, match="chosen must be a slice, a mask or a sequence"):
        positions(rows, 5, "chosen")


NEVER = [True, None, "1", np.inf, np.nan, np.ones(2)]
POSITIVE, NUMBERS = [1e-300, np.float32(2.5), np.int64(3)], [0, -1.5, np.float32(3), np.int8(-4)]
REQUIRED = {
    "a positive number": (require_positive, POSITIVE, [0, -1, 1j, [1.0]]),
    "a positive whole number": (require_count, [1, np.int8(1), np.uint64(7)], [0, -1, 1.0]),
    "a number": (require_number, NUMBERS, [-np.inf]),
}


@pytest.mark.parametrize("what", REQUIRED)
def test_numbers_of_every_library_are_taken_and_nothing_else(what):
    require, right, wrong = REQUIRED[what]
    for value in right:
        require("size", value)
    for value in [*wrong, *NEVER]:
        shown = "<array of shape (2,)>" if isinstance(value, np.ndarray) else repr(value)
        with pytest.raises(ValueError, match=re.escape(f"size must be {what}, but size={shown}")):
            require("size", value)
