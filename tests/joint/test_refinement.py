"""Gradients against finite differences, and steps that only ever help."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.data.recognise import as_rows
from nysboost.joint.losses import loss_and_gradient
from nysboost.joint.refinement import refine
from nysboost.numerics.tolerances import SINGLE

SMOOTH = [
    nb.Gaussian(sigma=1.3),
    nb.Linear(),
    nb.Polynomial(degree=2),
    nb.Polynomial(degree=3, coef0=0.5),
    nb.Laplacian(gamma=0.4),
    nb.Matern(nu=1.5, sigma=1.5),
    nb.Matern(nu=2.5, sigma=1.5),
    nb.Cosine(),
    nb.Anova(gamma=0.5, degree=2),
]
kernels = pytest.mark.parametrize("kernel", SMOOTH, ids=repr)


def sample(kernel, seed=0, n=40, c=5, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    kernel = kernel.resolve(as_rows(X))
    return kernel, X, kernel(X, X), X[:c] + 0.3 * rng.normal(size=(c, d))


def finite_difference(function, Z, step=1e-6):
    gradient = np.zeros_like(Z)
    for where in np.ndindex(Z.shape):
        shift = np.zeros_like(Z)
        shift[where] = step
        gradient[where] = (function(Z + shift) - function(Z - shift)) / (2 * step)
    return gradient


@kernels
@given(seed=st.integers(0, 1000))
def test_a_kernels_derivative_agrees_with_finite_differences(kernel, seed):
    kernel, X, _, Z = sample(kernel, seed, n=9, c=3, d=3)
    A = np.random.default_rng(seed).normal(size=(9, 3))
    ours = kernel.pullback(X, Z, kernel(X, Z), A)
    theirs = finite_difference(lambda moved: float((A * kernel(X, moved)).sum()), Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * max(1, np.abs(theirs).max()))


@kernels
@given(seed=st.integers(0, 1000))
def test_the_gradient_of_the_loss_agrees_with_finite_differences(kernel, seed):
    kernel, X, G, Z = sample(kernel, seed, n=15, c=3, d=4)
    squared = float((G * G).sum())
    _, ours = loss_and_gradient(kernel, Z, X, G, squared)
    theirs = finite_difference(lambda moved: loss_and_gradient(kernel, moved, X, G, squared)[0], Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * max(1e-3, np.abs(theirs).max()))


@kernels
def test_the_loss_is_the_squared_error_of_the_optimal_core(kernel):
    kernel, X, G, Z = sample(kernel)
    C = kernel(X, Z)
    P = C @ np.linalg.pinv(C)
    expected = np.linalg.norm(G - P @ G @ P) ** 2 / np.linalg.norm(G) ** 2
    loss, _ = loss_and_gradient(kernel, Z, X, G, float((G * G).sum()))
    np.testing.assert_allclose(loss, expected, rtol=1e-8, atol=1e-14)


@kernels
def test_refinement_lowers_the_loss(kernel):
    kernel, X, G, Z = sample(kernel)
    squared = float((G * G).sum())
    before, _ = loss_and_gradient(kernel, Z, X, G, squared)
    after, _ = loss_and_gradient(kernel, refine(kernel, Z, X, G, 15)[0], X, G, squared)
    assert after < before


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_refinement_does_not_depend_on_the_unit_of_the_data(scale):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    same = nb.Gaussian(sigma=scale)
    np.testing.assert_allclose(
        refine(same, Z * scale, X * scale, G, 8)[0] / scale,
        refine(kernel, Z, X, G, 8)[0],
        rtol=1e-4,
    )


def test_kernels_say_whether_they_have_a_derivative():
    assert all(kernel.differentiable for kernel in SMOOTH)
    assert not nb.Matern(nu=0.5).differentiable


@pytest.mark.parametrize(("c", "small"), [(10, False), (60, True)])
def test_a_matrix_in_float32_finds_landmarks_as_good(c, small):
    """With 60 landmarks the loss is too small for float32, and float64 takes over."""
    kernel, X, _, Z = sample(nb.Gaussian(sigma=3.0), n=200, c=c, d=3)
    X = X.astype(np.float32).astype(np.float64)
    G = kernel(X, X)
    squared = float((G * G).sum())
    start = loss_and_gradient(kernel, Z, X, G, squared)[0]
    losses = [
        loss_and_gradient(kernel, refine(kernel, Z, X, matrix, 16)[0], X, G, squared)[0]
        for matrix in (G, kernel(X.astype(np.float32), X.astype(np.float32)))
    ]
    assert (start < SINGLE) == small
    assert losses[1] < 1.1 * losses[0] < start


def test_landmarks_without_rows_nearby_leave_the_others_free_to_move():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0), n=200, c=12, d=3)
    lonely = np.concatenate([Z, [[5.5, 5.5, 5.5], [40.0, 40.0, 40.0]]])
    single = G.astype(np.float32)
    squared = float((G * G).sum())
    with_them, without = (
        loss_and_gradient(kernel, refine(kernel, start, X, single, 16)[0], X, G, squared)[0]
        for start in (lonely, Z)
    )
    assert with_them < 1.02 * without
