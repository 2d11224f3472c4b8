"""The pool never yields a column twice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.boosting.pool import Pool


@given(st.integers(1, 60), st.lists(st.integers(1, 12), max_size=12), st.integers(0, 100))
def test_no_column_leaves_the_pool_twice(n, sizes, seed):
    pool, rng, seen = Pool(n), np.random.default_rng(seed), set()
    for size in sizes:
        if size > len(pool):
            with pytest.raises(
                ValueError, match=f"Only {len(pool)} columns are left.*needs {size}"
            ):
                pool.draw(size, rng)
            continue
        columns = pool.draw(size, rng)
        assert len(set(columns)) == size
        assert not seen & set(columns)
        seen |= set(columns)
    assert len(pool) == n - len(seen)


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 100))
def test_a_sample_stays_in_the_pool_and_shrinks_with_it(n, size, seed):
    pool = Pool(n)
    sample = pool.sample(size, np.random.default_rng(seed))
    assert len(set(sample)) == len(sample) == min(size, n)
    assert len(pool) == n
    pool.remove(sample)
    assert len(pool) == n - len(sample)


def test_a_failed_draw_takes_nothing():
    pool = Pool(5)
    with pytest.raises(ValueError, match="Only 5 columns are left"):
        pool.draw(6, np.random.default_rng(0))
    assert len(pool) == 5


def test_columns_are_drawn_by_their_shares_and_those_without_come_last():
    pool, rng = Pool(10), np.random.default_rng(0)
    shares = np.array([0, 0, 5.0, 0, 1.0, 0, 0, 3.0, 0, 0])
    drawn = pool.sample(3, rng, shares)
    assert set(drawn) == {2, 4, 7}
    more = pool.sample(6, rng, shares)
    assert set(more[:3]) == {2, 4, 7}
    assert len(set(more)) == 6
    pool.remove(np.array([2, 4, 7]))
    assert not set(pool.sample(7, rng, shares)) & {2, 4, 7}


def test_a_part_is_free_in_rising_order_and_all_where_there_is_no_more():
    pool, rng, nothing = Pool(30), np.random.default_rng(0), np.arange(0)
    pool.remove(np.arange(0, 30, 3))
    part = pool.part(8, rng, nothing)
    assert len(part) == 8
    assert np.all(np.diff(part) > 0)
    assert not np.any(part % 3 == 0)
    for size in (20, 99):
        free = np.flatnonzero(np.arange(30) % 3)
        np.testing.assert_array_equal(pool.part(size, rng, np.arange(9)), free)


def test_a_part_keeps_apart_from_some_rows_where_enough_others_are_free():
    pool, rng = Pool(30), np.random.default_rng(0)
    pool.remove(np.arange(5))
    assert set(pool.part(15, rng, apart_from=np.arange(15))) == set(range(15, 30))
    assert set(pool.part(16, rng, apart_from=np.arange(15))) & set(range(5, 15))


def test_a_sample_among_some_columns_takes_those_that_are_free():
    pool, rng = Pool(30), np.random.default_rng(0)
    pool.remove(np.array([4, 5]))
    assert set(pool.sample(9, rng, among=np.arange(3, 8))) == {3, 6, 7}
    np.testing.assert_array_equal(pool.left_of(np.arange(3, 8)), [3, 6, 7])
