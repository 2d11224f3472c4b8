"""G = F Fᵀ + E: products as exact as the missing part is small."""

import numpy as np
import pytest

from nysboost.numerics.split import SplitMatrix


def matrix(miss, seed=0, n=80, r=6):
    rng = np.random.default_rng(seed)
    F, rest = rng.normal(size=(n, r)), rng.normal(size=(n, n))
    return F @ F.T + miss * (rest @ rest.T), F, rng.normal(size=(n, 4))


@pytest.mark.parametrize("miss", [1e-1, 1e-5, 1e-9])
def test_a_product_loses_float32s_share_of_the_missing_part(miss):
    G, F, Q = matrix(miss)
    exact = G @ Q
    off = np.abs(SplitMatrix.of(G, F).times(Q) - exact).max()
    assert off < 1e-4 * miss * np.abs(exact).max() + 1e-13 * np.abs(exact).max()


@pytest.mark.parametrize("miss", [1e-1, 1e-6, 1e-8])
def test_the_loss_and_the_error_are_those_of_the_dense_matrix(miss):
    G, F, Q = matrix(miss)
    split = SplitMatrix.of(G, F)
    Q = np.linalg.qr(np.hstack([F, Q]))[0]
    H = Q.T @ G @ Q
    expected = np.linalg.norm(G - Q @ H @ Q.T) / np.linalg.norm(G)
    np.testing.assert_allclose(split.loss(Q, H, split.towards(Q)) ** 0.5, expected, rtol=1e-4)
    np.testing.assert_allclose(split.relative_error(Q @ np.linalg.cholesky(H)), expected, rtol=1e-4)


def test_a_single_precision_matrix_keeps_what_it_knows():
    G, F, Q = matrix(1e-2)
    split = SplitMatrix.of(G.astype(np.float32), F.astype(np.float32))
    np.testing.assert_allclose(split.times(Q), G @ Q, atol=1e-5 * np.abs(G @ Q).max())
    assert split.E.dtype == np.float32
    assert split.F.dtype == np.float64


@pytest.mark.parametrize(("miss", "width"), [(10.0, 0), (0.05, 3), (1e-9, 6)])
def test_features_are_kept_as_far_as_they_are_worth_a_product(miss, width):
    """The more is missing, the less the first approximation has to take off."""
    G, F, _ = matrix(miss * 1e-2, r=6)
    F = F * np.array([1.0, 0.8, 0.6, 1e-3, 1e-3, 1e-3])
    G = F @ F.T + (G - matrix(0.0, r=6)[0])
    split = SplitMatrix.of(G, F)
    assert split.F.shape[1] == width
    np.testing.assert_allclose(split.F @ split.F.T + split.E * split.unit, G, atol=1e-6)


@pytest.mark.parametrize("reach", [1.0, 1e-3, 0.0])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_a_small_loss_is_that_of_what_a_projector_misses_of_both_parts(reach, scale):
    """The projector has turned away from F by more, and by less, than E is large."""
    G, F, Q = matrix(1e-7)
    split = SplitMatrix.of(scale * G, scale**0.5 * F)
    Q = np.linalg.qr(np.hstack([F + reach * 1e-6 * matrix(0.0, seed=1)[1], Q]))[0]
    H = Q.T @ G @ Q
    expected = np.linalg.norm(G - Q @ H @ Q.T) ** 2 / np.linalg.norm(G) ** 2
    assert expected < 1e-10
    np.testing.assert_allclose(split.loss(Q, scale * H, split.towards(Q)), expected, rtol=1e-5)


def test_a_projector_that_reaches_all_of_the_rest_leaves_nothing():
    G, F, _ = matrix(1e-7)
    split, Q = SplitMatrix.of(G, F), np.linalg.qr(G)[0]
    assert split.loss(Q, Q.T @ G @ Q, split.towards(Q)) < 1e-25


@pytest.mark.parametrize("off", [0.0, 1e-7, 1e-2])
@pytest.mark.parametrize("miss", [1e-2, 1e-7])
def test_the_error_of_any_core_in_any_basis_is_that_of_the_dense_matrix(miss, off):
    G, F, Q = matrix(miss)
    split, turn = SplitMatrix.of(G, F), matrix(1.0, seed=2, n=10)[0]
    U = np.linalg.qr(np.hstack([F, Q]))[0]
    H = np.linalg.inv(turn) @ (U.T @ G @ U + off * np.eye(10)) @ np.linalg.inv(turn).T
    Q = U @ turn
    expected = np.linalg.norm(G - Q @ H @ Q.T) / np.linalg.norm(G)
    np.testing.assert_allclose(split.error(Q, H, Q.T @ G @ Q), expected, rtol=1e-4)
