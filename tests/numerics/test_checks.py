"""Positions as NumPy understands them, and what is said when an argument is wrong."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.numerics.checks import (
    positions,
    real_numbers,
    require_count,
    require_number,
    require_positive,
    shown,
    unknown,
)


def test_the_nearest_names_come_first_in_their_own_spelling():
    assert "Did you mean 'URB-mean'" in unknown("variant", "urb-meen", ["UUB-SF", "URB-mean"])


def test_where_nothing_is_near_all_names_are_listed():
    sentence = unknown("kernel", "zzzzzz", ["rbf", "linear"])
    assert "Did you mean" not in sentence
    assert sentence.endswith("Known are rbf, linear.")


def test_what_is_no_string_can_be_unknown_too():
    assert "no kernel 3.5" in unknown("kernel", 3.5, ["rbf"])


@st.composite
def indexers(draw):
    """A length, and what NumPy can index a vector of that length with, or not."""
    n = draw(st.integers(1, 12))
    anything = st.integers(-n - 2, n + 1)
    kinds = [
        st.lists(anything, max_size=6),
        st.lists(st.booleans(), min_size=n - 1, max_size=n + 1).map(np.array),
        st.lists(anything, max_size=6).map(lambda numbers: np.array(numbers, dtype=np.int8)),
        st.lists(st.integers(0, n + 1), max_size=6).map(lambda x: np.array(x, dtype=np.uint64)),
        st.slices(n + 3),
    ]
    return n, draw(st.one_of(kinds))


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


def test_an_empty_mask_of_an_empty_length_and_an_empty_list_are_no_positions():
    for rows in ([], np.array([], dtype=bool), np.array([], dtype=float), slice(0, 0)):
        assert positions(rows, 0).shape == (0,)


@pytest.mark.parametrize("rows", [[0.0, 1.0], [[0, 1]], 3, "12", [None]])
def test_what_numpy_cannot_index_with_gets_a_sentence(rows):
    with pytest.raises(ValueError, match="chosen must be a slice, a mask or a sequence"):
        positions(rows, 5, "chosen")


def test_what_was_given_is_left_as_it_was():
    rows = np.array([-1, 2])
    positions(rows, 5)
    np.testing.assert_array_equal(rows, [-1, 2])


@pytest.mark.parametrize("value", [0, -1, np.inf, np.nan, True, None, "1"])
def test_a_positive_number_is_required(value):
    with pytest.raises(ValueError, match="sigma must be a positive number, but sigma="):
        require_positive("sigma", value)


@pytest.mark.parametrize("value", [0, -1, 1.0, True, None, "1"])
def test_a_positive_whole_number_is_required(value):
    with pytest.raises(ValueError, match="k must be a positive whole number, but k="):
        require_count("k", value)


def test_numbers_of_every_library_are_numbers():
    for value in (1, np.int8(1), np.uint64(7)):
        require_count("k", value)
    for value in (1e-300, np.float32(2.5), np.int64(3)):
        require_positive("sigma", value)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64, np.intp])
def test_narrow_row_numbers_may_point_into_long_data(dtype):
    """Row numbers of eight bits among 100 000 rows, whose number has more."""
    rows = np.array([3, 7, 100], dtype=dtype)
    np.testing.assert_array_equal(positions(rows, 100_000), [3, 7, 100])
    if np.issubdtype(dtype, np.signedinteger):
        np.testing.assert_array_equal(positions(-rows, 100_000), [99_997, 99_993, 99_900])


def test_the_first_and_the_last_row_have_two_numbers_each():
    np.testing.assert_array_equal(positions([-5, 0, -1, 4], 5), [0, 0, 4, 4])
    for outside in (-6, 5):
        with pytest.raises(IndexError, match=f"contains {outside}, .* numbered from 0 to 4"):
            positions([outside], 5)


def test_at_most_three_names_are_suggested():
    sentence = unknown("method", "aaaa", ["aaab", "aaac", "aaad", "aaae"])
    assert sentence.partition("?")[0].count(" or ") == 2


def test_a_message_shows_an_array_by_its_shape_and_a_number_as_it_is():
    assert shown(np.ones((3, 2))) == "<array of shape (3, 2)>"
    assert shown("1") == "'1'"
    assert shown(np.float64(2.5)) == repr(np.float64(2.5))


@pytest.mark.parametrize("value", [True, None, "1", np.inf, -np.inf, np.nan, np.ones(2)])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(ValueError, match="shift must be a number, but shift="):
        require_number("shift", value)


def test_a_finite_number_is_a_number_whatever_its_sign():
    for value in (0, -1.5, np.float32(3), np.int8(-4)):
        require_number("shift", value)


def test_real_numbers_are_arrays_in_floating_point():
    for values in ([1, 2], np.array([True, False]), np.array([1, 2], dtype=np.uint8)):
        assert real_numbers("y", values).dtype == np.float64
    single = np.ones(3, dtype=np.float32)
    assert real_numbers("y", single) is single
    for values in (["a"], [[1], [2, 3]], [1j]):
        with pytest.raises(ValueError, match="y must be an array of real numbers"):
            real_numbers("y", values)


def test_arrays_of_other_libraries_are_taken_as_they_are():
    xp = pytest.importorskip("array_api_strict")
    values = xp.ones(3)
    assert real_numbers("y", values) is values
