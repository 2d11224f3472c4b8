"""Threads: afterwards what there was before."""

import contextlib
import multiprocessing
import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

import nysboost as nb
from nysboost.numerics import threads as threads_module
from nysboost.numerics.checks import Budget
from nysboost.numerics.threads import limit_blas, limit_threads, one_blas_thread, usable_threads


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
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + X[:, 1] ** 2
    before = thread_counts()
    nb.NystroemRegressor(n_components=8, kernel="gaussian", metric=None).fit(X, y).predict(X)
    assert thread_counts() == before
    nb.approximate(X, "joint", n_components=20, random_state=0).relative_error()
    assert thread_counts() == before
    with pytest.raises(ValueError, match="the same number of both"):
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


def test_without_a_library_that_says_how_many_threads_it_has_a_pass_has_one(monkeypatch):
    monkeypatch.setattr(threads_module, "_libraries", lambda: ())
    assert usable_threads(Budget()) == usable_threads(Budget(threads=8)) == 1


def test_a_limit_that_is_left_while_another_is_applied_is_no_longer_there(monkeypatch):
    threads, left = [16, 8], []

    def get(i):
        while left:
            left.pop().__exit__()
        return threads[i]

    made = tuple((partial(get, i), partial(threads.__setitem__, i)) for i in (0, 1))
    monkeypatch.setattr(threads_module, "_libraries", lambda: made)
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
