"""Distances to full relative accuracy, near and far."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from nysboost.kernels.distances import (
    cityblock_distances,
    directions,
    inner_products,
    minus_squared_distances,
    squared_distances,
    squared_norms,
    sum_of_gaussians,
)
from nysboost.numerics.arrays import convert_like, dense, to_host

forms = pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, sparse.csr_array])


def points(n=20, d=4, seed=0, *, spread=1.0, offset=0.0, gap=1.0):
    """Five clusters: `spread` apart, `gap` wide, `offset` from the origin."""
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(5, d))
    return offset + centres[rng.integers(5, size=n)] + gap * rng.normal(size=(n, d))


@forms
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(
    st.sampled_from([0.0, 1.0, 1e4]),
    st.sampled_from([0.0, 1.0, 1e6]),
    st.sampled_from([1e-8, 1e-3, 1.0]),
    st.integers(0, 20),
)
def test_squared_distances_are_right_in_relative_terms(make, dtype, spread, offset, gap, seed):
    X, Y = (
        points(n, seed=seed, spread=spread, offset=offset, gap=gap).astype(dtype) for n in (20, 15)
    )
    exact = cdist(X.astype(np.float64), Y.astype(np.float64), "sqeuclidean")
    found = squared_distances(make(X), make(Y))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, exact, rtol=1e-8, atol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.sampled_from([1e-3, 1.0, 30.0, 1e4]), st.sampled_from([0.0, 1e3]), st.integers(0, 20))
def test_exponents_are_never_positive_and_right_where_they_matter(dtype, spread, offset, seed):
    X = points(20, seed=seed, spread=spread, offset=offset).astype(dtype)
    wide = X.astype(np.float64)
    exact = -0.5 * cdist(wide, wide, "sqeuclidean")
    exponents = minus_squared_distances(X, 0.5)(X)
    assert exponents.dtype == dtype
    assert exponents.max() <= 0
    tolerance = 5e-5 if dtype == np.float32 else 1e-10
    np.testing.assert_allclose(np.exp(exponents), np.exp(exact), rtol=0, atol=tolerance)


FORMS = [np.asarray, sparse.csr_matrix, sparse.csr_array, strict.asarray]
MIXED = [pair for form in FORMS[1:3] for pair in ((form, np.asarray), (np.asarray, form))]


@pytest.mark.parametrize(("left", "right"), [*zip(FORMS, FORMS, strict=True), *MIXED])
def test_products_and_distances_are_those_of_the_dense_points_also_where_forms_meet(left, right):
    X, Y = points(20), points(15, seed=1)
    A, B = left(X), right(Y)
    for found, exact in (
        (inner_products(A, B), X @ Y.T),
        (squared_norms(A), (X * X).sum(axis=1)),
        (squared_distances(A, B), cdist(X, Y, "sqeuclidean")),
        (cityblock_distances(A, B), cdist(X, Y, "cityblock")),
        (sum_of_gaussians(A, B, 2.0), np.exp(-2.0 * (X[:, None] - Y[None]) ** 2).sum(axis=2)),
        (minus_squared_distances(convert_like(A, B), 3.0)(A), -3.0 * cdist(X, Y, "sqeuclidean")),
        (dense(directions(A)), X / np.linalg.norm(X, axis=1, keepdims=True)),
        (dense(convert_like(A, B)), Y),
    ):
        np.testing.assert_allclose(np.asarray(found), exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "array_api_strict", "torch"])
@pytest.mark.parametrize("far", [[0], [3, 17, 39], list(range(40))])
def test_rows_far_out_are_done_again_on_every_backend(library, far):
    xp = pytest.importorskip(library)
    X, Y = points(40).astype(np.float32), points(15, seed=1).astype(np.float32)
    X[far] += 3000.0
    Y[0] = X[far[0]] + 1.0
    found = minus_squared_distances(xp.asarray(Y), 0.5)(xp.asarray(X))
    exact = -0.5 * cdist(X.astype(np.float64), Y.astype(np.float64), "sqeuclidean")
    np.testing.assert_allclose(np.exp(to_host(found)), np.exp(exact), rtol=0, atol=5e-5)
    np.testing.assert_allclose(to_host(found)[far], exact[far], rtol=1e-6)


@forms
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 0.1, 1.0, 1e30])
def test_directions_have_length_one_whatever_the_scale(make, dtype, scale):
    X = (scale * points(20)).astype(dtype)
    X[3], X[4] = 0, [0, -scale, 0, 0]
    wide = X.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    expected = wide / np.where(lengths > 0, lengths, 1)
    found = directions(make(X))
    assert found.dtype == dtype
    assert sparse.issparse(found) == sparse.issparse(make(X))
    found = found.toarray() if sparse.issparse(found) else found
    np.testing.assert_allclose(found, expected, atol=1e-6 if dtype == np.float32 else 1e-14)
