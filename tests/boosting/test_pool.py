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
