"""Gradients against finite differences, and steps that only ever help."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from smooth import SMOOTH, finite_difference, kernels, sample, split

import nysboost as nb
from nysboost.joint import refinement
from nysboost.joint.losses import MatrixLoss
from nysboost.joint.refinement import Ground, _softened, refine
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
    moved, evaluations = refine(kernel, Z, X, split(G), (15, 15))
    assert loss_at(kernel, moved, X, G) < loss_at(kernel, Z, X, G)
    assert 4 <= evaluations <= 18  # two of them to see the ground


@kernels
def test_what_is_pinned_stays_and_the_rest_still_gains(kernel):
    kernel, X, G, Z = sample(kernel)
    moved, _ = refine(kernel, Z, X, split(G), (15, 15), pinned=len(Z) - 1)
    np.testing.assert_allclose(moved[:-1], Z[:-1], rtol=1e-12)
    assert loss_at(kernel, moved, X, G) < loss_at(kernel, Z, X, G)


def test_what_is_enough_ends_the_descent():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    before = loss_at(kernel, Z, X, G)
    whole = loss_at(kernel, refine(kernel, Z, X, split(G), (30, 30))[0], X, G)
    goal = (before * whole) ** 0.25  # half of the way, as an error
    moved, evaluations = refine(kernel, Z, X, split(G), (30, 30), goal=goal)
    assert whole < loss_at(kernel, moved, X, G) <= goal**2 < before
    assert evaluations < 31


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_refinement_does_not_depend_on_the_unit_of_the_data(scale):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    same = nb.Gaussian(sigma=scale)
    np.testing.assert_allclose(
        refine(same, Z * scale, X * scale, split(G), (8, 8))[0] / scale,
        refine(kernel, Z, X, split(G), (8, 8))[0],
        rtol=1e-4,
    )


def test_refinement_does_not_depend_on_the_scale_of_the_kernel():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0))
    F = np.linalg.cholesky(G + 1e-9 * np.eye(len(G)))[:, :3]
    plain, scaled = (SplitMatrix.of(size * G, size**0.5 * F) for size in (1.0, 1e-8))
    np.testing.assert_allclose(
        refine(kernel, Z, X, plain, (8, 8))[0], refine(kernel, Z, X, scaled, (8, 8))[0], rtol=1e-3
    )


def test_kernels_say_whether_they_have_a_derivative():
    assert all(kernel.differentiable for kernel in SMOOTH)
    assert not nb.Matern(nu=0.5).differentiable


def test_where_nothing_is_left_to_gain_nothing_moves():
    kernel, X, G, Z = sample(nb.Linear(), c=6, d=4)  # six landmarks span four dimensions
    moved, evaluations = refine(kernel, Z, X, SplitMatrix.of(G, X), (15, 15))
    np.testing.assert_allclose(moved, Z, rtol=1e-12)
    assert evaluations == 3


def test_landmarks_without_rows_nearby_leave_the_others_free_to_move():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0), n=200, c=12, d=3)
    lonely = np.concatenate([Z, [[5.5, 5.5, 5.5], [40.0, 40.0, 40.0]]])
    with_them, without = (
        loss_at(kernel, refine(kernel, start, X, split(G), (16, 16))[0], X, G)
        for start in (lonely, Z)
    )
    assert with_them < 1.02 * without


def test_a_second_descent_knows_the_ground():
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0), n=120, c=8, d=3)
    ground = Ground()
    Z, first = refine(kernel, Z, X[::2], split(G[::2, ::2]), (6, 6), ground)
    units, steps = ground.units, len(ground.pairs)
    assert units.shape == (8, 1)
    moved, second = refine(kernel, Z, X, split(G), (6, 6), ground)
    assert (first, second) == (9, 7)
    assert ground.units is units
    assert len(ground.pairs) > steps > 0
    assert loss_at(kernel, moved, X, G) < loss_at(kernel, Z, X, G)


def test_stiff_landmarks_are_measured_in_smaller_units_within_limits():
    units = _softened(np.array([1.0, 1.0, 2.0, 0.0, 3.0]))[:, 0]
    assert units[0] == units[1] > units[2] > units[4]
    assert units[3] == 2
    assert _softened(np.array([1e-9, 1.0]))[1, 0] == pytest.approx(2**-0.4)
    for nothing in (0.0, np.inf, np.nan):
        np.testing.assert_array_equal(_softened(np.full(3, nothing)), 1)


def test_steps_go_on_as_long_as_they_are_worth_it(monkeypatch):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.0), n=120, c=8, d=3)
    taken = []
    for worth in (0.0, 0.02, np.inf):
        monkeypatch.setattr(refinement, "WORTH", worth)
        taken.append(refine(kernel, Z, X, split(G), (4, 40))[1] - 3)
    assert 40 == taken[0] > taken[1] > taken[2] == 4
