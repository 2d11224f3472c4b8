"""Landmarks, metric and noise that go down the loss together."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.target.loss import Point, TargetLoss
from nysboost.target.search import improved

KERNEL = nb.Matern(1.5, 1.0)


def problem(n=400, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.sin(3 * X[:, 0] + X[:, 1]) + 0.05 * rng.normal(size=n)
    return X, (y - y.mean())[:, None], rng.normal(size=(15, d))


@pytest.mark.parametrize("A", [np.array(0.5), np.full(4, 0.5), np.eye(4) / 2, np.eye(4)[:, :2]])
def test_the_loss_falls_whatever_the_shape_of_the_metric(A):
    X, Y, Z = problem()
    loss, start = TargetLoss(KERNEL, X, Y), Point(Z, A, -3.0)
    end = improved(KERNEL, start, X, Y, max_iter=30)
    assert loss(end)[0] < loss(start)[0] - 0.1
    assert end.A.shape == A.shape


def test_no_step_is_no_change():
    X, Y, Z = problem()
    start = Point(Z, np.eye(4) / 2, -3.0)
    end = improved(KERNEL, start, X, Y, max_iter=0)
    np.testing.assert_allclose(end.Z, Z, atol=1e-10)
    np.testing.assert_allclose(end.A, start.A, atol=1e-12)


def test_the_metric_turns_to_what_matters():
    X, Y, Z = problem()
    A = improved(KERNEL, Point(Z, np.eye(4) / 2, -3.0), X, Y, trace=0.1, max_iter=60).A
    relevance = nb.Metric(A).relevance(4)
    assert relevance[:2].sum() > 0.95


def test_the_scale_of_the_features_does_not_matter():
    X, Y, Z = problem()
    units = np.array([1e3, 1e-3, 1.0, 10.0])
    one = improved(KERNEL, Point(Z, np.full(4, 0.5), -3.0), X, Y, max_iter=5)
    other = improved(KERNEL, Point(Z * units, 0.5 / units, -3.0), X * units, Y, max_iter=5)
    np.testing.assert_allclose(other.A * units, one.A, rtol=1e-4)
    np.testing.assert_allclose(other.Z / units, one.Z, rtol=1e-3, atol=1e-4)


def test_a_feature_that_is_switched_off_stays_off():
    X, Y, Z = problem()
    end = improved(KERNEL, Point(Z, np.array([0.5, 0.5, 0.0, 0.5]), -3.0), X, Y, max_iter=5)
    assert end.A[2] == 0
    assert np.isfinite(end.Z).all()
