"""The blockwise engine: memory shared out, every row worked on once, by every core."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from nysboost.engine import blocks
from nysboost.engine.blocks import Plan, Scratch, each_block, plan, side_by_side
from nysboost.numerics.memory import Budget
from nysboost.numerics.threads import usable_threads


@pytest.fixture(autouse=True)
def _few_rows_are_shared_too(monkeypatch):
    monkeypatch.setattr(blocks, "SHARED_ROWS", 1)


rows = st.integers(1, 10**7)
sizes = st.integers(1, 10**5)


@given(rows, st.integers(0, 10**6), sizes, st.integers(0, 10**5), sizes, st.integers(1, 16))
def test_a_plan_keeps_to_the_memory_or_says_what_is_needed(
    n, fixed, block_row, piece_row, more, threads
):
    how = {"fixed": fixed, "block_row": block_row, "piece_row": piece_row}
    hardware = {"cache_bytes": 2**22, "parallel": threads > 1}
    needed = fixed + min(n, 64) * (block_row + piece_row)
    with pytest.raises(ValueError, match=r"is too small: one block of \d+ rows needs"):
        plan(n, **how, **hardware, budget=Budget(needed - 1))
    for max_memory in (needed, needed + more, 100 * needed):
        found = plan(n, **how, **hardware, budget=Budget(max_memory, threads))
        least = min(n, 64)
        assert 1 <= found.threads <= threads
        assert found.block >= least
        assert found.piece >= least
        if max_memory >= fixed + 4 * least * (block_row + piece_row):
            held = fixed + found.threads * found.block * block_row + found.piece * piece_row
            assert held <= max_memory


@given(st.integers(0, 3000), st.integers(1, 500), st.integers(1, 4))
def test_every_row_is_worked_on_once(n, block, threads):
    seen = np.zeros(n, dtype=int)

    def work(at):
        seen[at] += 1
        assert 0 < at.stop - at.start <= block

    each_block(work, n, Plan(n, block, threads))
    assert (seen == 1).all()


def test_an_error_in_one_thread_ends_them_all():
    seen = []

    def work(at):
        seen.append(at.start)
        if at.start == 0:
            msg = "the first block"
            raise ArithmeticError(msg)

    with pytest.raises(ArithmeticError, match="the first block"):
        each_block(work, 10**6, Plan(10**6, 1, 2))
    assert len(seen) < 10**6


def test_an_error_in_the_last_thread_ends_the_first():
    seen = []

    def work(at):
        seen.append(at.start)
        if threading.current_thread().name.endswith("_1"):
            msg = "the second thread"
            raise ArithmeticError(msg)
        time.sleep(0.001)

    with pytest.raises(ArithmeticError, match="the second thread"):
        each_block(work, 3000, Plan(3000, 1, 2))
    assert len(seen) < 3000


def blas_threads():
    return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info()}


def test_blas_has_one_thread_inside_and_its_own_number_afterwards():
    before, inside = blas_threads(), []
    each_block(lambda _: inside.append(blas_threads()), 4, Plan(4, 1, 2))
    assert blas_threads() == before
    libraries = [lib["filepath"] for lib in threadpool_info() if lib["user_api"] == "blas"]
    assert {found[name] for found in inside for name in libraries} == {1}


def test_passes_that_overlap_restore_what_was_there_before_the_first():
    before, outside = blas_threads(), blocks.usable_threads(Budget())
    begun, end = threading.Barrier(3), threading.Event()

    def work(_):
        begun.wait(timeout=30)
        end.wait(timeout=30)

    long_one = threading.Thread(target=each_block, args=(work, 2, Plan(2, 1, 2)))
    long_one.start()
    begun.wait(timeout=30)
    each_block(lambda _: None, 4, Plan(4, 1, 2))
    assert blocks.usable_threads(Budget()) == outside
    end.set()
    long_one.join()
    assert blas_threads() == before


class TestPlansByHand:
    """With four cores, the figures of a plan worked out by hand."""

    @pytest.fixture(autouse=True)
    def _four_cores(self, monkeypatch):
        monkeypatch.setattr(blocks, "usable_threads", lambda _: 4)

    @staticmethod
    def plan(n, max_memory, **how):
        usual = {"fixed": 1000, "block_row": 10, "piece_row": 0}
        usual |= {"cache_bytes": 2**30, "parallel": True}
        return plan(n, **(usual | how), budget=Budget(max_memory))

    def test_the_threads_share_the_memory(self):
        assert self.plan(10_000, 21_000) == Plan(10_000, 500, 4)
        assert self.plan(10_000, 21_000, parallel=False) == Plan(10_000, 2000, 1)

    def test_there_are_no_more_threads_than_smallest_blocks_in_memory(self):
        assert self.plan(10_000, 1000 + 2 * 640 + 100) == Plan(10_000, 69, 2)

    def test_there_are_no_more_threads_than_rows_to_share(self, monkeypatch):
        monkeypatch.setattr(blocks, "SHARED_ROWS", 256)
        assert self.plan(600, 10**9) == Plan(600, 300, 2)
        assert self.plan(250, 10**9) == Plan(250, 250, 1)

    def test_a_block_stays_in_the_cache(self):
        assert self.plan(10_000, 10**9, cache_bytes=1000) == Plan(10_000, 100, 4)

    def test_blocks_take_half_of_the_memory_and_pieces_the_rest(self):
        assert self.plan(10_000, 21_000, piece_row=20) == Plan(500, 250, 4)

    def test_a_piece_is_no_larger_than_a_disk_needs(self):
        found = self.plan(10**7, 10**10, piece_row=1024, cache_bytes=2**20)
        assert found == Plan(4 * blocks.PIECE_BYTES // 1024, 2**20 // 10, 4)

    def test_one_row_or_none_has_a_plan(self):
        assert self.plan(0, 10**6) == self.plan(1, 10**6) == Plan(1, 1, 1)


def blocks_of(n, how):
    """Return the sizes of the blocks, in order, and whether all ran in this very thread."""
    seen, here = [], threading.get_ident()
    each_block(
        lambda at: seen.append((at.start, at.stop - at.start, threading.get_ident())), n, how
    )
    return [size for _, size, _ in sorted(seen)], all(one == here for *_, one in seen)


def test_blocks_are_alike_and_as_many_for_each_thread():
    assert blocks_of(100, Plan(100, 30, 1)) == ([25, 25, 25, 25], True)
    assert blocks_of(90, Plan(90, 30, 2)) == ([23, 23, 23, 21], False)
    assert blocks_of(20, Plan(20, 30, 1)) == ([20], True)


def test_few_rows_are_not_shared(monkeypatch):
    monkeypatch.setattr(blocks, "SHARED_ROWS", 256)
    assert blocks_of(300, Plan(300, 50, 4)) == ([50] * 6, True)
    assert blocks_of(600, Plan(600, 100, 4)) == ([100] * 6, False)


@pytest.mark.parametrize("threads", [1, 3])
def test_searches_side_by_side_come_in_order_and_start_no_threads_of_their_own(threads):
    here, seen = threading.get_ident(), []

    def work(item):
        seen.append(threading.get_ident() == here)
        return 10 * item, usable_threads(Budget()) if threads > 1 else 1

    assert list(side_by_side(work, [3, 1, 2], threads)) == [(30, 1), (10, 1), (20, 1)]
    assert set(seen) == {threads == 1}
    assert next(side_by_side(work, [4], threads))[0] == 40
    assert list(side_by_side(work, [], threads)) == []


def test_one_failed_search_ends_them_all():
    tried = []

    def work(item):
        tried.append(item)
        if item == 0:
            raise ZeroDivisionError
        time.sleep(0.01)

    with pytest.raises(ZeroDivisionError):
        list(side_by_side(work, range(200), 2))
    assert len(tried) < 200


def test_a_thread_computes_block_after_block_in_memory_of_its_own():
    scratch, seen = Scratch(3, np.empty((1, 3), np.float32)), {}

    def note(name):
        first, again = scratch(5), scratch(4)
        seen[name] = (first, np.shares_memory(first, again))

    note("here")
    thread = threading.Thread(target=note, args=("there",))
    thread.start()
    thread.join()
    assert all(shared for _, shared in seen.values())
    assert not np.shares_memory(seen["here"][0], seen["there"][0])
    assert seen["here"][0].shape == (5, 3)
    assert seen["here"][0].dtype == np.float32
    assert scratch(9).shape == (9, 3)


def test_other_libraries_keep_house_for_themselves():
    assert Scratch(3, pytest.importorskip("array_api_strict").ones((1, 3)))(5) is None
