"""Memory in words and numbers; threads: afterwards what there was before."""

import contextlib
import multiprocessing
import platform
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import nysboost as nb
from nysboost.numerics import resources
from nysboost.numerics.resources import (
    Budget,
    as_bytes,
    format_bytes,
    limit_blas,
    limit_threads,
    one_blas_thread,
    usable_threads,
)

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
from nysboost.numerics.resources import keep_freed_memory

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
    """In processes of their own: what the library has learned before would count as well."""
    fetched = {
        how: int(subprocess.check_output([sys.executable, "-c", PAGES, how], text=True))
        for how in ("keep", "give back")
    }
    assert fetched["keep"] < 0.1 * fetched["give back"]


def thread_counts():
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def _four_threads():
    with threadpool_limits(4):
        before = thread_counts()
        yield
        assert thread_counts() == before


CONTEXTS = {
    "ours": one_blas_thread,
    "ours of two": partial(limit_blas, 2),
    "ours on one core": partial(limit_threads, 1),
    "scikit-learn's": lambda: threadpool_limits(1, user_api="blas"),
    "the user's": lambda: threadpool_limits(2),
}


def nest(names, fails):
    """Enter the contexts one inside the other, and fail in the innermost if asked to."""
    before = thread_counts()
    if not names:
        if fails:
            raise KeyboardInterrupt
        return
    with CONTEXTS[names[0]]():
        nest(names[1:], fails)
    assert thread_counts() == before


@example([["ours", "the user's", "ours"]], False)
@given(st.lists(st.lists(st.sampled_from(sorted(CONTEXTS)), max_size=5), max_size=3), st.booleans())
def test_contexts_in_any_order_give_back_every_library_s_threads(runs, fails):
    before = thread_counts()
    for names in runs:
        with contextlib.suppress(KeyboardInterrupt):
            nest(names, fails)
        assert thread_counts() == before


@pytest.mark.parametrize("seed", range(3))
def test_threads_that_overlap_in_any_order_give_them_back(seed):
    rng = np.random.default_rng(seed)
    plans = [list(rng.integers(1, 4, size=20)) for _ in range(4)]
    seen = []

    def work(depths):
        for depth in depths:
            entered = [limit_threads(1) if depth % 2 else limit_blas(i + 2) for i in range(depth)]
            for context in entered:
                context.__enter__()
            seen.append(max(blas_threads()) <= (1 if depth % 2 else 2))
            for context in reversed(entered):
                context.__exit__(None, None, None)

    before = thread_counts()
    threads = [threading.Thread(target=work, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert thread_counts() == before
    assert all(seen)


def test_a_context_that_never_ended_ends_when_it_is_collected():
    cut_off = one_blas_thread()
    cut_off.__enter__()
    assert blas_threads() == {1}
    del cut_off
    assert blas_threads() == {4}


def test_fits_of_all_kinds_give_them_back():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + X[:, 1] ** 2
    before = thread_counts()
    nb.NystroemRegressor(n_components=12, kernel="gaussian", metric=None).fit(X, y).predict(X)
    assert thread_counts() == before
    nb.approximate(X, "joint", n_components=20, random_state=0).relative_error()
    assert thread_counts() == before
    with pytest.raises(ValueError, match="as many of one"):
        nb.NystroemRegressor(n_components=12).fit(X, y[:5])
    assert thread_counts() == before


def test_what_runs_on_one_core_has_one_thread_and_others_have_theirs():
    elsewhere = []
    with limit_threads(1):
        assert usable_threads(Budget(threads=8)) == 1
        with limit_threads(1):
            assert usable_threads(Budget()) == 1
        assert usable_threads(Budget()) == 1
        other = threading.Thread(target=lambda: elsewhere.append(usable_threads(Budget())))
        other.start()
        other.join()
    assert elsewhere == [usable_threads(Budget())] == [4]
    for most, threads in ((1, 1), (2, 2), (None, 4)):
        with limit_threads(most):
            assert (usable_threads(Budget()), blas_threads()) == (threads, {threads})
    assert usable_threads(Budget(threads=1)) == 1


def test_a_limit_that_is_left_while_another_is_applied_is_no_longer_there(monkeypatch):
    threads, left = [16, 8], []

    def get(i):
        while left:
            left.pop().__exit__()
        return threads[i]

    made = tuple((partial(get, i), partial(threads.__setitem__, i)) for i in (0, 1))
    monkeypatch.setattr(resources, "_libraries", lambda: made)
    outer, inner = limit_blas(2), limit_blas(1)
    with outer, inner:
        assert threads == [1, 1]
        left.append(outer)  # as if it were collected when inner is left
    assert threads == [16, 8]


def _count_in_child(queue):
    queue.put(blas_threads())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
def test_a_forked_child_has_the_user_s_threads():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with one_blas_thread():
        child = context.Process(target=_count_in_child, args=(queue,))
        child.start()
        found = queue.get()
        child.join()
    assert found == {4}
