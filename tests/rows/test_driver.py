"""The driver: memory shared out, every row worked on once, results in the order of the rows."""

import operator
import threading
import time

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from nysboost.numerics.arrays import gather
from nysboost.numerics.checks import Budget
from nysboost.numerics.threads import usable_threads
from nysboost.rows import recognise
from nysboost.rows.driver import BlockTask, Cost, Plan, Task, in_order, run_blocks
from nysboost.rows.pairs import PairTask

pytestmark = pytest.mark.usefixtures("_in_this_thread")
rows = st.integers(1, 10**7)
sizes = st.integers(1, 10**5)


@given(rows, st.integers(0, 10**6), sizes, st.integers(0, 10**5), sizes, st.integers(1, 16))
def test_a_plan_keeps_to_the_memory_or_says_what_is_needed(
    n, fixed, block_row, piece_row, more, threads
):
    cost = Cost(fixed, block_row, piece_row)
    hardware = {"cache_bytes": 2**22, "parallel": threads > 1}
    least = min(n, 64)
    needed = fixed + least * (block_row + piece_row)
    with pytest.raises(ValueError, match=r"is too small: one block of \d+ rows needs"):
        cost.plan(n, Budget(needed - 1), **hardware)
    for max_memory in (needed, needed + more, 100 * needed):
        found = cost.plan(n, Budget(max_memory, threads), **hardware)
        assert 1 <= found.threads <= threads
        assert found.block >= least
        assert found.piece >= least
        assert found.block * block_row <= max(2**22, least * block_row)
        if max_memory >= fixed + 4 * least * (block_row + piece_row):
            held = fixed + found.threads * found.block * block_row + found.piece * piece_row
            assert held <= max_memory


@given(st.integers(0, 3000), st.integers(1, 500), st.integers(1, 4))
def test_every_row_is_worked_on_once_and_blocks_are_alike(n, block, threads):
    found = Plan(max(1, n), block, threads).cut(n)
    assert [at.start for at in found] == [0, *(at.stop for at in found[:-1])][: len(found)]
    assert sum(at.stop - at.start for at in found) == n
    assert all(0 < at.stop - at.start <= block for at in found)
    lengths = {at.stop - at.start for at in found[:-1]}
    assert len(lengths) <= 1


class Threaded(Task):
    """Sums of blocks of seven rows, by three threads."""

    name = "sums"

    def prepare(self, form):
        assert form.shape[0] == 1
        return lambda block, *others: np.array([block.sum(), *(other.sum() for other in others)])

    def plan(self, rows, streamed):
        assert streamed is not rows.in_memory  # those of a chunk are
        return Plan(3000, 700, 3)


def make_rows(X, chunk):
    """Rows in memory, or of a Dask array in chunks of this size."""
    return recognise.make_rows(X if chunk is None else da.from_array(X, chunks=(chunk, -1)))


everywhere = pytest.mark.parametrize("chunk", [None, 30, 700, 2000])


@everywhere
def test_a_fold_has_the_sums_of_rows_and_of_what_stands_beside_them(chunk):
    X, V = np.arange(4000.0).reshape(2000, 2), np.arange(2000)[:, None]
    for beside in (V, da.from_array(V, chunks=(999, 1))) if chunk else (V,):
        found = make_rows(X, chunk).fold(Threaded(), operator.add, beside)
        np.testing.assert_array_equal(found, [X.sum(), V.sum()])


@everywhere
def test_a_fold_merges_in_the_order_of_the_rows(chunk):
    task = BlockTask("all", lambda _, block: block[:, 0].tolist(), size=300)
    assert make_rows(np.arange(1000.0)[:, None], chunk).fold(task, operator.add) == list(
        range(1000)
    )


@everywhere
def test_a_map_stacks_results_whatever_their_dtype(chunk):
    X = np.arange(2000, dtype=np.int32).reshape(1000, 2)
    task = BlockTask("half", lambda half, block, other: half * block + other, 0.5, size=300)
    found = gather(make_rows(X, chunk).map(task, 2, np.ones((1000, 1))))
    np.testing.assert_array_equal(found, X / 2 + 1)


@everywhere
def test_tables_of_other_lengths_are_refused(chunk):
    task = BlockTask("sum", lambda _, block, other: block.sum() + other.sum())
    other = np.ones((900, 1)) if chunk is None else da.ones((900, 1))
    with pytest.raises(ValueError, match="1000 rows, but 900 came with them"):
        make_rows(np.ones((1000, 2)), chunk).fold(task, operator.add, other)


class WeightedSquares(PairTask):
    """Squares of inner products, each times the sum of two numbers."""

    def load(self, block, *aligned):
        return block, *aligned

    def evaluate(self, upper, lower):
        return ((upper[0] @ lower[0].T) ** 2 * (upper[1] + lower[1].T)).sum()


@pytest.mark.parametrize("chunk", [None, 300, 2000])  # pairs of chunks grow as their square
@pytest.mark.parametrize("size", [400, 5000])
def test_pairs_of_rows_are_seen_once_and_count_for_their_mirror_image(size, chunk):
    x, v = np.random.default_rng(0).normal(size=(1300, 1)), np.arange(1300.0)[:, None]
    task = WeightedSquares(size, Budget(threads=3))
    exact = ((x @ x.T) ** 2 * (v + v.T)).sum()
    assert make_rows(x, chunk).fold_pairs(task, v) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order_and_threads_start_no_others(threads):
    here, seen = threading.get_ident(), []

    def work(item):
        seen.append(threading.get_ident() == here)
        time.sleep(0.001 * (item % 3))
        return 10 * item, usable_threads(Budget()) if threads > 1 else 1

    items = [3, 1, 2] * 10
    assert list(in_order(work, items, threads)) == [(10 * item, 1) for item in items]
    assert set(seen) == {threads == 1}
    assert list(in_order(work, [], threads)) == []


@pytest.mark.parametrize("which", [0, 7])
def test_an_error_in_one_thread_ends_them_all(which):
    seen = []

    def work(item):
        seen.append(item)
        if item == which:
            msg = "this block"
            raise ArithmeticError(msg)
        time.sleep(0.001)

    with pytest.raises(ArithmeticError, match="this block"):
        list(in_order(work, range(3000), 2))
    assert len(seen) < 3000


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_blas_has_one_thread_inside_and_few_rows_are_not_shared_among_threads():
    before, inside = blas_threads(), []
    list(run_blocks(lambda _: inside.extend(blas_threads()), 2000, Plan(2000, 500, 2)))
    assert blas_threads() == before
    assert set(inside) == {1}
    here, seen = threading.get_ident(), []
    list(run_blocks(lambda _: seen.append(threading.get_ident()), 200, Plan(200, 200, 4)))
    assert seen == [here]
