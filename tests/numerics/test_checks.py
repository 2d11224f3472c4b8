"""Positions as NumPy understands them, memory in words, and what is said of a wrong argument."""

import os
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix
from sklearn.impute import SimpleImputer

from nysboost.numerics.checks import (
    Budget,
    as_bytes,
    positions,
    refuse_non_finite,
    require_count,
    require_number,
    require_positive,
    to_numbers,
)
from nysboost.numerics.messages import format_bytes, unknown


def test_the_nearest_names_are_suggested_and_all_listed_where_none_is_near():
    assert "Did you mean 'URB-mean'" in unknown("variant", "urb-meen", ["UUB-SF", "URB-mean"])
    far = unknown("kernel", "zzzzzz", ["rbf", "linear"])
    assert "Did you mean" not in far
    assert far.endswith("Choose one of rbf, linear.")
    assert "no kernel 3.5" in unknown("kernel", 3.5, ["rbf"])
    near = unknown("method", "aaaa", ["aaab", "aaac", "aaad", "aaae"])
    assert near.partition("?")[0].count(" or ") == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, csr_matrix, csr_array])
def test_the_first_value_that_is_not_finite_is_named_by_row_and_column(make, bad):
    X = np.eye(5)
    X[3, 1] = X[4, 0] = bad
    what = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=f"X contains {what}, first at row 103, column 1"):
        refuse_non_finite(make(X), 100)
    refuse_non_finite(make(np.eye(5)), 100)


def test_what_an_error_advises_for_values_of_x_makes_them_fit():
    X = np.eye(5)
    beyond = X / 0.1
    beyond[3, 1] = np.inf
    gaps = np.where(X == 0, np.nan, X)
    masked = np.ma.masked_array(X, X == 0)

    with pytest.raises(ValueError, match="clip them first") as found:
        refuse_non_finite(beyond, 0)
    assert "Imputer" not in str(found.value)
    refuse_non_finite(np.clip(beyond, 0, 10), 0)

    with pytest.raises(ValueError, match="SimpleImputer"):
        refuse_non_finite(gaps, 0)
    refuse_non_finite(SimpleImputer().fit_transform(gaps), 0)

    with pytest.raises(ValueError, match=r"numpy\.ma\.filled\(X, numpy\.nan\) and .*SimpleImputer"):
        to_numbers(masked, "X")
    filled = SimpleImputer().fit_transform(np.ma.filled(masked, np.nan))
    np.testing.assert_array_equal(to_numbers(filled, "X"), 1.0)


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
    "a positive number": (require_positive, POSITIVE, [0, -1, 1j, [1.0], 10**400]),
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


UNITS = {"B": 1, "kB": 1000, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNITS |= {"KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4, "": 1}


@pytest.mark.parametrize("unit", UNITS)
def test_memory_is_given_in_bytes_or_in_words(unit):
    for written in (f"250{unit}", f" 250 {unit.lower()} "):
        assert as_bytes(written) == 250 * UNITS[unit]
    assert as_bytes(np.int64(7)) == as_bytes(7) == 7
    assert as_bytes("0.5kB") == 500


@pytest.mark.parametrize("bad", ["", "lots", "-1", -1, None, True, "5 apples", "1e3", [1]])
def test_memory_that_is_no_amount_gets_a_sentence(bad):
    with pytest.raises(ValueError, match="max_memory is a number of bytes or a text such as"):
        as_bytes(bad)


def test_sizes_are_readable():
    sizes = {0: "0.0 kB", 1: "0.1 kB", 1000: "1.0 kB", 38_152: "38.2 kB", 999_900: "999.9 kB"}
    for size, text in (sizes | {10**6: "1.0 MB", 2_500_000_000: "2.5 GB"}).items():
        assert format_bytes(size) == text


@given(st.integers(0, 10**13))
def test_a_size_in_words_is_at_least_the_size_and_at_most_a_tenth_of_its_unit_more(size):
    text = format_bytes(size)
    unit = as_bytes("1" + text.split()[1])
    assert size <= as_bytes(text) + 1e-6 * size
    assert as_bytes(text) <= size + 0.1001 * unit + 1e-6 * size + 1000 * (unit > 1000)


def test_a_budget_is_what_the_user_asked_for():
    assert Budget() == Budget.of() == Budget(as_bytes("1GiB"), None)
    assert Budget.of(5, n_jobs=0).threads is None
    assert Budget.of("2MB", 3) == Budget(2_000_000, 3)
    assert Budget.of(5, n_jobs=-1) == Budget.of(5, n_jobs=None) == Budget(5, None)
    assert Budget.of(5, n_jobs=1).threads == 1


PAGES = """
import resource, sys
import numpy as np
from nysboost.numerics.checks import keep_freed_memory

def step():
    arrays = [np.ones(500_000) for _ in range(4)]

if sys.argv[1] == "keep":
    keep_freed_memory()
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other ways")
def test_pages_that_were_freed_are_not_fetched_from_the_system_again():
    """In processes of their own: what the library has learned before would count as well.

    Without MALLOC_TRIM_THRESHOLD_, which Dask's workers set, and with which it learns nothing.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    how_to = {"text": True, "env": environment}
    fetched = {
        how: int(subprocess.check_output([sys.executable, "-c", PAGES, how], **how_to))
        for how in ("keep", "give back")
    }
    assert fetched["keep"] < 0.1 * fetched["give back"]


@pytest.mark.parametrize("cell", [date(2020, 1, 1), Path("data"), "red"])
def test_tables_of_other_objects_are_refused_with_what_to_do(cell):
    table = np.full((2, 1), cell, dtype=object)
    with pytest.raises((TypeError, ValueError), match=r"X has dtype object.* pass a data frame"):
        to_numbers(table, "X")
