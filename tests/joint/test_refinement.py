"""Gradients against finite differences, and steps that only ever help."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smooth import SMOOTH, finite_difference, kernels, sample, split

import nysboost as nb
from nysboost.joint.losses import MatrixLoss
from nysboost.joint.refinement import refine
from nysboost.numerics.split import SplitMatrix


def loss_at(kernel, Z, X, G):
    return MatrixLoss(kernel, X, split(G))(Z)[0]


@kernels
@given(seed=st.integers(0, 1000))
def test_a_kernels_derivative_agrees_with_finite_differences(kernel, seed):
    kernel, X, _, Z = sample(kernel, seed, n=9, c=3, d=3)
    A = np.random.default_rng(seed).normal(size=(9, 3))
    ours = kernel.pullback(X, Z, kernel(X, Z), A)
    theirs = finite_difference(lambda moved: float((A * kernel(X, moved)).sum()), Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-6 * max(1, np.abs(theirs).max()))


@kernels
def test_refinement_lowers_the_loss(kernel):
    kernel, X, G, Z = sample(kernel)
    moved, evaluations = refine(kernel, Z, X, split(G), 15)
    assert loss_at(kernel, moved, X, G) < loss_at(kernel, Z, X, G)
    assert 2 <= evaluations <= 16


@kernels
def test_what_is_pinned_stays_and_the_rest_still_gains(kernel):
    kernel, X, G, Z = sample(kernel)
    moved, _ = refine(kernel, Z, X, split(G), 15, pinned=len(Z) - 1)
    np.testing.assert_allclose(moved[:-1], Z[:-1], rtol=1e-12)
    assert loss_at(kernel, moved, X, G) < loss_at(kernel, Z, X, G)


def test_what_is_enough_ends_the_descent():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    before = loss_at(kernel, Z, X, G)
    whole = loss_at(kernel, refine(kernel, Z, X, split(G), 30)[0], X, G)
    goal = (before * whole) ** 0.25  # half of the way, as an error
    moved, evaluations = refine(kernel, Z, X, split(G), 30, goal=goal)
    assert whole < loss_at(kernel, moved, X, G) <= goal**2 < before
    assert evaluations < 31


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_refinement_does_not_depend_on_the_unit_of_the_data(scale):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    same = nb.Gaussian(sigma=scale)
    np.testing.assert_allclose(
        refine(same, Z * scale, X * scale, split(G), 8)[0] / scale,
        refine(kernel, Z, X, split(G), 8)[0],
        rtol=1e-4,
    )


def test_refinement_does_not_depend_on_the_scale_of_the_kernel():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    F = np.linalg.cholesky(G + 1e-9 * np.eye(len(G)))[:, :3]
    plain, scaled = (SplitMatrix.of(size * G, size**0.5 * F) for size in (1.0, 1e-8))
    np.testing.assert_allclose(
        refine(kernel, Z, X, plain, 8)[0], refine(kernel, Z, X, scaled, 8)[0], rtol=1e-3
    )


def test_kernels_say_whether_they_have_a_derivative():
    assert all(kernel.differentiable for kernel in SMOOTH)
    assert not nb.Matern(nu=0.5).differentiable


def test_where_nothing_is_left_to_gain_nothing_moves():
    kernel, X, G, Z = sample(nb.Linear(), c=6, d=4)  # six landmarks span four dimensions
    moved, evaluations = refine(kernel, Z, X, SplitMatrix.of(G, X), 15)
    np.testing.assert_allclose(moved, Z, rtol=1e-12)
    assert evaluations == 1


def test_landmarks_without_rows_nearby_leave_the_others_free_to_move():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0), n=200, c=12, d=3)
    lonely = np.concatenate([Z, [[5.5, 5.5, 5.5], [40.0, 40.0, 40.0]]])
    with_them, without = (
        loss_at(kernel, refine(kernel, start, X, split(G), 16)[0], X, G) for start in (lonely, Z)
    )
    assert with_them < 1.02 * without
