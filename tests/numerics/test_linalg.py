"""Factors, bases and spectra against NumPy's."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.numerics import linalg
from nysboost.numerics.arrays import epsilon


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 20), st.integers(0, 100))
def test_the_triangular_factor_does_not_depend_on_the_blocks(n, k, size, seed):
    A = np.random.default_rng(seed).normal(size=(n, k))
    R = linalg.triangular_factor(*(A[i : i + size] for i in range(0, n, size)))
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=1e-10)
    whole = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(np.linalg.svd(R, compute_uv=False)[: len(whole)], whole, atol=1e-10)


def with_singular_values(values, rows=90, columns=30, seed=0):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(n, len(values))))[0] for n in (rows, columns))
    return (U * values) @ V.T


HARD = {
    "flat": with_singular_values(np.ones(30)),
    "six digits": with_singular_values(np.logspace(0, -6, 30)),
    "twelve digits": with_singular_values(np.logspace(0, -12, 30)),
    "beyond rounding": with_singular_values(np.logspace(0, -40, 30)),
    "low rank": with_singular_values(np.logspace(0, -3, 7)),
    "duplicates": np.repeat(with_singular_values(np.logspace(0, -5, 15), columns=15), 2, axis=1),
    "graded columns": np.random.default_rng(0).normal(size=(90, 30)) * np.logspace(0, -25, 30),
    "wide": with_singular_values(np.logspace(0, -2, 12), rows=12),
    "huge": 1e200 * with_singular_values(np.logspace(0, -8, 30)),
    "tiny": 1e-200 * with_singular_values(np.logspace(0, -8, 30)),
    "zero": np.zeros((90, 30)),
}


@pytest.mark.parametrize("case", HARD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_basis_of_a_range_is_orthonormal_as_wide_as_the_rank_and_misses_nothing(case, dtype):
    A = HARD[case]
    A = (A / (np.abs(A).max() or 1.0) if dtype == np.float32 else A).astype(dtype)
    Q, T = linalg.range_basis(A)
    s = np.linalg.svd(A.astype(np.float64), compute_uv=False)
    smallest = max(4 * epsilon(A), 30 * 2.0**-52) * s[0]
    assert np.sum(s > 2 * smallest) <= Q.shape[1] == T.shape[1] <= np.sum(s > smallest / 2)
    assert Q.dtype == T.dtype == np.float64
    np.testing.assert_allclose(Q.T @ Q, np.eye(Q.shape[1]), atol=1e-14)
    scale = float(np.abs(A).max()) or 1.0
    A, T = A.astype(np.float64) / scale, T * scale
    cut_off, weakest = 1e-6 * (dtype == np.float32), np.linalg.norm(T, axis=0).max(initial=1.0)
    np.testing.assert_allclose(Q @ (Q.T @ A), A, atol=1e-13 + cut_off)
    # directions that are cut off leave A T by their share in T, which depends on LAPACK
    np.testing.assert_allclose(A @ T, Q, atol=1e-14 * weakest + 100 * cut_off)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 8), st.integers(0, 1000))
def test_the_basis_gives_the_pseudoinverse(rows, columns, digits, seed):
    values = np.logspace(0, -digits, min(rows, columns))
    A = with_singular_values(values, rows, columns, seed)
    Q, T = linalg.range_basis(A)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    tolerance = 1e-13 * 10.0 ** (2 * digits)  # what a change of A by 1e-13 can bring
    np.testing.assert_allclose(T @ Q.T, (Vt.T / s) @ U.T, atol=tolerance)


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 200))
def test_the_spectrum_is_that_of_the_dense_product(n, K, seed):
    rng = np.random.default_rng(seed)
    Z, signs = rng.normal(size=(n, K)), rng.normal(size=K)
    R = np.linalg.qr(Z, mode="r")
    eigenvalues, basis = linalg.spectrum(R, signs, float(np.finfo(float).eps))
    dense = (Z * signs) @ Z.T
    vectors = Z @ basis
    assert (np.diff(eigenvalues) <= 0).all()
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(eigenvalues)), atol=1e-6)
    np.testing.assert_allclose((vectors * eigenvalues) @ vectors.T, dense, atol=1e-6)


def test_a_product_is_made_in_the_precision_of_the_matrix():
    rng = np.random.default_rng(0)
    G, Q = rng.normal(size=(20, 20)), rng.normal(size=(20, 3))
    single = linalg.times(G.astype(np.float32), Q)
    assert single.dtype == np.float64
    assert 0 < np.abs(single - G @ Q).max() < 1e-5
    np.testing.assert_array_equal(linalg.times(G, Q), G @ Q)


@pytest.mark.parametrize("condition", [1e1, 1e4])
@pytest.mark.parametrize("step", [0.0, 1e-8, 1e-4])
def test_a_basis_from_a_matrix_nearby_is_as_good_as_a_fresh_one(condition, step):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(60, 8)))[0] for _ in range(2))
    A = (U * np.geomspace(1, 1 / condition, 8)) @ V[:8].T
    _, T = linalg.range_basis(A)
    moved = A + step * rng.normal(size=A.shape)
    found = linalg.orthonormalise(moved.T @ moved, T)
    assert found is not None
    Q = moved @ found
    np.testing.assert_allclose(Q.T @ Q, np.eye(8), atol=1e-7)
    np.testing.assert_allclose(Q @ (Q.T @ moved), moved, atol=1e-7)


def test_a_matrix_that_lost_its_rank_is_not_orthonormalised():
    A = np.random.default_rng(0).normal(size=(30, 5))
    _, T = linalg.range_basis(A)
    A[:, 4] = A[:, 3]
    assert linalg.orthonormalise(A.T @ A, T) is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_norms_stay_in_range(dtype, scale):
    A = np.random.default_rng(0).normal(size=(7, 4)).astype(dtype)
    A[2], A[:, 1] = 0, 0
    A = A * dtype(scale)
    wide = A.astype(np.float64)
    assert float(linalg.norms(A)) == pytest.approx(np.linalg.norm(wide), rel=1e-6)
    for axis in (0, 1):
        np.testing.assert_allclose(
            linalg.norms(A, axis), np.linalg.norm(wide, axis=axis), rtol=1e-6
        )
    assert float(linalg.norms(0 * A)) == 0


@pytest.mark.parametrize("c", [1, 63, 64, 65, 128, 150, 257])
@pytest.mark.parametrize("xp", [np, strict])
def test_the_inverse_of_a_triangle_is_its_inverse(c, xp):
    B = np.random.default_rng(c).normal(size=(c, 2 * c + 3))
    L = np.linalg.cholesky(B @ B.T)
    found = np.asarray(linalg.triangular_inverse(xp.asarray(L)))
    np.testing.assert_allclose(found @ L, np.eye(c), atol=1e-10)
    assert (np.triu(found, 1) == 0).all()


def test_eigenvectors_have_the_sign_of_their_largest_entry():
    vectors = np.random.default_rng(0).normal(size=(7, 5))
    found = linalg.fix_signs(vectors)
    largest = np.abs(vectors).argmax(axis=0)
    assert (found[largest, np.arange(5)] > 0).all()
    np.testing.assert_array_equal(np.abs(found), np.abs(vectors))
    np.testing.assert_allclose(np.abs(np.sum(found * vectors, axis=0)), np.sum(vectors**2, axis=0))


@pytest.mark.parametrize("asarray", [np.asarray, strict.asarray], ids=["NumPy", "strict"])
def test_symmetric_systems_are_solved_and_left_as_they_are(asarray):
    A, B = np.random.default_rng(0).normal(size=(40, 6)), np.arange(12.0).reshape(6, 2)
    for exact in (A.T @ A, np.fliplr(np.eye(6)) + 0.5 * np.eye(6)):  # the other is indefinite
        M = asarray(exact)
        found = np.asarray(linalg.solve_positive(M, asarray(B)))
        np.testing.assert_allclose(exact @ found, B, atol=1e-9)
        np.testing.assert_array_equal(np.asarray(M), exact)
