"""The loss of landmarks: the dense formula, finite differences, and few digits lost."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from smooth import finite_difference, kernels, sample, split

import nysboost as nb
from nysboost.joint import losses
from nysboost.joint.losses import MatrixLoss


@kernels
@example(seed=338)
@given(seed=st.integers(0, 1000))
def test_the_gradient_of_the_loss_agrees_with_finite_differences(kernel, seed):
    kernel, X, G, Z = sample(kernel, seed, n=15, c=3, d=4)
    _, ours = MatrixLoss(kernel, X, split(G))(Z)

    def loss(moved):
        P = (C := kernel(X, moved)) @ np.linalg.pinv(C)
        return np.linalg.norm(G - P @ G @ P) ** 2 / np.linalg.norm(G) ** 2

    theirs = finite_difference(loss, Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * max(1e-3, np.abs(theirs).max()))


@kernels
def test_the_loss_is_the_squared_error_of_the_optimal_core(kernel):
    kernel, X, G, Z = sample(kernel)
    P = (C := kernel(X, Z)) @ np.linalg.pinv(C)
    expected = np.linalg.norm(G - P @ G @ P) ** 2 / np.linalg.norm(G) ** 2
    loss, _ = MatrixLoss(kernel, X, split(G))(Z)
    np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=1e-14)


@pytest.mark.parametrize("step", [1e-6, 1e-2, 3.0])
def test_an_evaluation_does_not_depend_on_the_one_before(step):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.3), n=60, c=8)
    loss = MatrixLoss(kernel, X, split(G))
    loss(Z + step)
    fresh = MatrixLoss(kernel, X, split(G))(Z)
    again = loss(Z)
    np.testing.assert_allclose(again[0], fresh[0], rtol=1e-7)
    np.testing.assert_allclose(again[1], fresh[1], atol=1e-6 * np.abs(fresh[1]).max())


def test_a_basis_serves_the_next_evaluation_nearby(monkeypatch):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.3), n=60, c=8)
    calls, range_basis = [], losses.range_basis
    monkeypatch.setattr(losses, "range_basis", lambda A: calls.append(1) or range_basis(A))
    loss = MatrixLoss(kernel, X, split(G))
    for step in range(5):
        loss(Z + 0.01 * step)
    assert len(calls) == 1
    assert loss.evaluations == 5


@kernels
def test_stiffness_is_the_second_order_of_the_loss_in_dense_form(kernel):
    kernel, X, G, Z = sample(kernel, n=40, c=4)
    ours = MatrixLoss(kernel, X, split(G)).stiffness(Z)
    C, along = kernel(X, Z), X.std(axis=0)
    J = (kernel(X, Z + 1e-5 * along) - kernel(X, Z - 1e-5 * along)) / 2e-5
    P, hanging = C @ np.linalg.pinv(C), np.linalg.pinv(C) @ G @ C @ np.linalg.pinv(C)
    theirs = np.linalg.norm(J - P @ J, axis=0) * np.linalg.norm(hanging, axis=1)
    scale = max(theirs.max(), 1e-7 * np.linalg.norm(J))
    np.testing.assert_allclose(ours / np.abs(ours).max(), theirs / scale, atol=1e-2)
