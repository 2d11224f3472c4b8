"""Namespaces, dtypes and blocks of rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from nysboost.numerics.arrays import (
    apply_in_place,
    dtype_name,
    epsilon,
    like,
    namespace,
    place,
    product_into,
    row_blocks,
    take,
)


@given(st.integers(0, 5000), st.integers(1, 10**6), st.integers(1, 10**8))
def test_row_blocks_cover_every_row_once_in_order(n, row_bytes, budget):
    if n * row_bytes / budget > 10**4:
        budget = n * row_bytes
    blocks = list(row_blocks(n, row_bytes, budget))
    assert [i for block in blocks for i in range(block.start, block.stop)] == list(range(n))
    assert all((block.stop - block.start) * row_bytes <= max(budget, row_bytes) for block in blocks)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_names_and_epsilons_of_dtypes(dtype):
    array = np.ones(2, dtype=dtype)
    assert dtype_name(array) == np.dtype(dtype).name
    assert epsilon(array) == np.finfo(dtype).eps
    assert like([1, 2], array).dtype == dtype
    assert like([1, 2], sparse.csr_matrix(array[None, :])).dtype == dtype


def test_functions_are_applied_in_place():
    array = np.zeros((2, 2))
    assert apply_in_place("exp", array) is array
    assert (array == 1).all()
    assert apply_in_place("minimum", array, 0) is array
    assert (array == 0).all()
    out = np.empty((2, 3))
    product_into(np.ones((2, 4)), np.ones((4, 3)), out[:, :])
    assert (out == 4).all()


def test_the_namespace_of_sparse_rows_is_numpys():
    assert namespace(sparse.csr_matrix(np.eye(2))) is namespace(np.eye(2))


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
def test_indices_that_are_placed_take_what_those_on_the_host_do(library):
    xp = pytest.importorskip(library)
    A = xp.asarray(np.arange(12.0).reshape(4, 3))
    at = np.array([3, 0, 0])[::-1]
    there = place(at, A)
    np.testing.assert_array_equal(np.asarray(take(A, there))[:, 0], [0, 0, 9])
    np.testing.assert_array_equal(np.asarray(take(A, place(at[:2], A), axis=1))[1], [3, 3])
    assert place(there, A) is there
