"""Distances to full relative accuracy, near and far."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from nysboost.kernels.distances import (
    GaussianExponents,
    cityblock_distances,
    inner_products,
    squared_distances,
    squared_norms,
    sum_of_gaussians,
)

forms = pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])


def points(n=20, d=4, seed=0, *, spread=1.0, offset=0.0, gap=1.0):
    """Five clusters: `spread` apart, `gap` wide, `offset` from the origin."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(5, d))
    return offset + centres[rng.integers(5, size=n)] + gap * rng.normal(size=(n, d))


@forms
@given(
    st.sampled_from([0.0, 1.0, 1e4]),
    st.sampled_from([0.0, 1.0, 1e6]),
    st.sampled_from([1e-8, 1e-3, 1.0]),
    st.integers(0, 20),
)
def test_squared_distances_are_right_in_relative_terms(make, spread, offset, gap, seed):
    X = points(20, seed=seed, spread=spread, offset=offset, gap=gap)
    Y = points(15, seed=seed, spread=spread, offset=offset, gap=gap)
    exact = cdist(X, Y, "sqeuclidean")
    np.testing.assert_allclose(squared_distances(make(X), make(Y)), exact, rtol=1e-8, atol=0)


@forms
def test_equal_points_have_no_distance(make):
    X = points(offset=1e6)
    assert (np.diagonal(squared_distances(make(X), make(X))) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.sampled_from([1e-3, 1.0, 30.0, 1e4]), st.sampled_from([0.0, 1e3]), st.integers(0, 20))
def test_exponents_are_never_positive_and_right_where_they_matter(dtype, spread, offset, seed):
    X = points(20, seed=seed, spread=spread, offset=offset).astype(dtype)
    wide = X.astype(np.float64)
    exact = -0.5 * cdist(wide, wide, "sqeuclidean")
    exponents = GaussianExponents(X, 0.5)(X)
    assert exponents.dtype == dtype
    assert exponents.max() <= 0
    tolerance = 5e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(np.exp(exponents), np.exp(exact), rtol=0, atol=tolerance)


@forms
def test_products_norms_and_city_blocks_are_those_of_the_dense_points(make):
    X, Y = points(20), points(15, seed=1)
    np.testing.assert_allclose(inner_products(make(X), make(Y)), X @ Y.T)
    np.testing.assert_allclose(squared_norms(make(X)), (X * X).sum(axis=1))
    np.testing.assert_allclose(cityblock_distances(make(X), make(Y)), cdist(X, Y, "cityblock"))
    expected = np.exp(-2.0 * (X[:, None] - Y[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(sum_of_gaussians(make(X), make(Y), 2.0), expected)


def test_the_points_are_left_as_they_were():
    X, Y = points(20), points(15, seed=1)
    before = X.copy(), Y.copy()
    squared_distances(X, Y), GaussianExponents(Y, 1e9)(X), cityblock_distances(X, Y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])


def test_points_whose_squares_overflow_in_float32_are_far_apart():
    X = (1e20 * points(20)).astype(np.float32)
    np.testing.assert_array_equal(np.exp(GaussianExponents(X, 0.5)(X)), np.eye(20))
