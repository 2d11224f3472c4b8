"""Namespaces, dtypes and blocks of rows."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nysboost.numerics.arrays import place, row_blocks, take


@example(5, 10, 1)
@given(st.integers(0, 5000), st.integers(1, 10**6), st.integers(1, 10**8))
def test_row_blocks_cover_every_row_once_in_order(n, row_bytes, budget):
    if n * row_bytes / budget > 10**4:
        budget = n * row_bytes
    blocks = list(row_blocks(n, row_bytes, budget))
    assert [i for block in blocks for i in range(block.start, block.stop)] == list(range(n))
    assert all((block.stop - block.start) * row_bytes <= max(budget, row_bytes) for block in blocks)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
def test_indices_that_are_placed_take_what_those_on_the_host_do(library):
    xp = pytest.importorskip(library)
    A = xp.asarray(np.arange(12.0).reshape(4, 3))
    at = np.array([3, 0, 0])[::-1]
    there = place(at, A)
    np.testing.assert_array_equal(np.asarray(take(A, there))[:, 0], [0, 0, 9])
    np.testing.assert_array_equal(np.asarray(take(A, place(at[:2], A), axis=1))[1], [3, 3])
    assert place(there, A) is there
