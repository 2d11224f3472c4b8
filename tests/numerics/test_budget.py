"""Memory in words and numbers."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.numerics.budget import Budget, as_bytes
from nysboost.numerics.messages import format_bytes

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
from nysboost.numerics.budget import keep_freed_memory

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
