"""Refinement: the loss in dense form, gradients by finite differences, steps that only help."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from smooth import factor, finite_difference, kernels, sample

import nysboost as nb
from nysboost.gram import Landmarks, Sample, make_gram
from nysboost.joint.core import fit_landmarks, project_sample
from nysboost.joint.refinement import ProjectionLoss, low_rank_factor, refine


def dense_loss(kernel, X, G, Z):
    """‖G − P G P‖² / ‖G‖² with P the projector onto the range of k(X, Z)."""
    P = (C := kernel(X, Z)) @ np.linalg.pinv(C)
    return np.linalg.norm(G - P @ G @ P) ** 2 / np.linalg.norm(G) ** 2


@kernels
@example(seed=338)
@given(seed=st.integers(0, 1000))
def test_the_gradient_of_the_loss_agrees_with_finite_differences(kernel, seed):
    kernel, X, G, Z = sample(kernel, seed, n=15, c=3, d=4)
    _, ours = ProjectionLoss(kernel, X, factor(G))(Z)
    theirs = finite_difference(lambda moved: dense_loss(kernel, X, G, moved), Z)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * max(1e-3, np.abs(theirs).max()))


@kernels
@pytest.mark.parametrize("outside", [0.0, 0.3])
def test_the_loss_is_the_squared_error_of_the_optimal_core_and_what_is_outside(kernel, outside):
    kernel, X, G, Z = sample(kernel)
    loss, _ = ProjectionLoss(kernel, X, factor(G), outside=outside)(Z)
    expected = dense_loss(kernel, X, G, Z) + outside
    np.testing.assert_allclose(loss, expected, rtol=1e-6, atol=1e-14)


def test_a_loss_near_rounding_keeps_its_digits():
    X = np.random.default_rng(0).normal(size=(80, 1))
    kernel = nb.Gaussian(sigma=1.5)
    Z, F = np.linspace(-2.5, 2.5, 9)[:, None], factor(kernel(X, X))
    Q, _ = np.linalg.qr(kernel(X, Z))
    missed = F - Q @ (Q.T @ F)
    left, whole = missed.T @ missed, F.T @ Q @ (Q.T @ F)
    expected = np.sum((2 * whole + left) * left) / np.linalg.norm(F @ F.T) ** 2
    loss, _ = ProjectionLoss(kernel, X, F)(Z)
    assert 1e-20 < expected < 1e-10
    np.testing.assert_allclose(loss, expected, rtol=0.05)


@pytest.mark.parametrize("gap", [1e-6, 1e-7])
def test_nor_where_two_landmarks_are_almost_one(gap):
    rng, kernel = np.random.default_rng(0), nb.Gaussian(sigma=1.0)
    X, Z = rng.normal(size=(80, 2)), rng.normal(size=(6, 2))
    Z[1] = Z[0] + gap
    F, moved = factor(kernel(X, X)), Z + 1e-3 * gap * rng.normal(size=(6, 2))
    loss = ProjectionLoss(kernel, X, F)
    loss(Z)
    fresh, again = ProjectionLoss(kernel, X, F)(moved), loss(moved)
    np.testing.assert_allclose(again[0], fresh[0], rtol=1e-7)
    np.testing.assert_allclose(again[1], fresh[1], atol=1e-6 * np.abs(fresh[1]).max())


@pytest.mark.parametrize("step", [1e-6, 1e-2, 3.0])
def test_an_evaluation_does_not_depend_on_the_one_before(step):
    kernel, X, G, Z = sample(nb.Gaussian(sigma=1.3), n=60, c=8)
    loss = ProjectionLoss(kernel, X, factor(G))
    loss(Z + step)
    fresh, again = ProjectionLoss(kernel, X, factor(G))(Z), loss(Z)
    np.testing.assert_allclose(again[0], fresh[0], rtol=1e-7)
    np.testing.assert_allclose(again[1], fresh[1], atol=1e-6 * np.abs(fresh[1]).max())


def errors_of_refinement(kernel, X, Z):
    """The error on the sample before and after, and the landmarks after."""
    gram = make_gram(X, kernel)
    rows, before = Sample.of(gram, np.arange(len(X))), Landmarks(None, Z)
    fit = fit_landmarks(rows, before)
    after = refine(rows, fit, project_sample(rows, before))
    return fit.error, fit_landmarks(rows, after).error, after.points


@kernels
def test_refinement_lowers_the_error(kernel):
    kernel, X, _, Z = sample(kernel)
    before, after, _ = errors_of_refinement(kernel, X, Z)
    assert after < before


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_refinement_does_not_depend_on_the_unit_of_the_data(scale):
    _, X, _, Z = sample(nb.Gaussian(sigma=1.0))
    _, _, ours = errors_of_refinement(nb.Gaussian(sigma=1.0), X, Z)
    _, _, scaled = errors_of_refinement(nb.Gaussian(sigma=scale), X * scale, Z * scale)
    np.testing.assert_allclose(scaled / scale, ours, atol=0.05)


def test_landmarks_without_rows_nearby_leave_the_others_free_to_move():
    kernel, X, _, Z = sample(nb.Gaussian(sigma=1.0), n=200, c=12, d=3)
    lonely = np.concatenate([Z, [[5.5, 5.5, 5.5], [40.0, 40.0, 40.0]]])
    with_them, without = (errors_of_refinement(kernel, X, start)[1] for start in (lonely, Z))
    assert with_them < 1.02 * without


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_factor_reaches_the_leading_eigenvectors(dtype):
    X = np.random.default_rng(0).normal(size=(200, 3)).astype(dtype)
    gram = make_gram(X, nb.Gaussian(sigma=1.5))
    rows = Sample.of(gram, np.arange(200))
    core = project_sample(rows, gram.landmarks(np.arange(60)))
    F = low_rank_factor(rows.matrix, core, 40)
    values = np.linalg.eigvalsh(rows.matrix.astype(float))[::-1]
    np.testing.assert_allclose(np.linalg.eigvalsh(F.T @ F)[::-1][:30], values[:30], rtol=1e-3)
    assert F.shape[1] < 60
    error = np.linalg.norm(rows.matrix - F @ F.T)
    assert error < 1.5 * np.linalg.norm(values[F.shape[1] :]) + 1e-4


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**40])
def test_the_factor_scales_with_the_matrix_also_where_eigenvalues_are_rounding(scale):
    X = np.random.default_rng(0).normal(size=(200, 3))
    kernel, products = nb.Gaussian(sigma=8.0), []
    for size in (1.0, scale):
        gram = make_gram(size * kernel(X, X), "precomputed")
        rows = Sample.of(gram, np.arange(200))
        core = project_sample(rows, gram.landmarks(np.arange(80)))
        F = low_rank_factor(rows.matrix, core, 80)
        products.append((F.shape, F @ F.T / size))
    assert products[0][0] == products[1][0]
    np.testing.assert_allclose(products[0][1], products[1][1], atol=1e-9)
