"""Landmarks, metric and noise that go down the loss together."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.target import search
from nysboost.target.loss import Point, TargetLoss
from nysboost.target.search import annealed, improved

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


STEPS = {"batch": 200, "steps": 60, "rate": 0.05}


@pytest.mark.parametrize("A", [np.array(0.5), np.full(4, 0.5), np.eye(4) / 2, np.eye(4)[:, :2]])
def test_annealing_lowers_the_loss_whatever_the_shape_of_the_metric(A):
    X, Y, Z = problem()
    loss, start = TargetLoss(KERNEL, X, Y), Point(Z, A, -3.0)
    end = annealed(KERNEL, start, X, Y, frame=A, **STEPS)
    assert loss(end)[0] < loss(start)[0] - 0.1
    assert end.A.shape == A.shape
    assert end.Z.shape == Z.shape


def test_no_step_of_annealing_is_no_change():
    X, Y, Z = problem()
    A = np.array([[0.5, 0.1, 0, 0], [0, 0.3, 0, 0.2], [0, 0, 1, 0], [0.1, 0, 0, 0.5]])
    frame = np.eye(4) / 2
    end = annealed(KERNEL, Point(Z, A, -3.0), X, Y, frame=frame, **STEPS | {"steps": 0})
    np.testing.assert_allclose(end.Z, Z, atol=1e-10)
    np.testing.assert_allclose(end.A, A, atol=1e-12)
    assert end.log_gamma == -3.0


def test_each_step_sees_the_next_rows_and_they_stand_for_all(monkeypatch):
    X, Y, Z = problem(n=400)
    seen, plain = [], search.TargetLoss

    def spy(kernel, rows, targets, *rest):
        seen.append((targets[:, 0].tolist(), rest[-1]))
        return plain(kernel, rows, targets, *rest)

    monkeypatch.setattr(search, "TargetLoss", spy)
    A = np.array(0.5)
    annealed(KERNEL, Point(Z, A, -3.0), X, Y, frame=A, batch=150, steps=3, rate=0.01)
    assert [len(rows) for rows, _ in seen] == [150] * 3
    assert {copies for _, copies in seen} == {400 / 150}
    assert seen[1][0] == Y[150:300, 0].tolist()
    assert seen[2][0][0] == Y[300 % 251, 0]


def test_directions_that_do_not_matter_vanish():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6))
    y = np.log(1.01 + np.tanh(X[:, 0] + 2 * X[:, 1]))
    Y, start = (y - y.mean())[:, None], Point(X[:30], np.eye(6) / 6**0.5, -4.0)
    more = {"frame": start.A, "trace": 0.03, "batch": 300, "steps": 200, "rate": 0.05}
    end = annealed(KERNEL, start, X, Y, **more)
    assert nb.Metric(end.A).relevance(6)[:2].sum() > 0.999
    assert TargetLoss(KERNEL, X, Y).noise(end) < 1e-4 * Y.var()


FRAME = np.array([[0.5, 0.1, 0.0], [0.0, 0.3, 0.2], [0.0, 0.0, 1.0], [0.1, 0.4, 0.0]])
BENT = np.array([[1.1, 0.2, 0.0], [0.0, 0.8, -0.3], [0.1, 0.0, 0.9]])


def test_landmarks_behind_the_metric_have_the_slope_of_finite_differences():
    X, Y, Z = problem()
    behind = search._Apart.of(FRAME, X)
    loss, step = TargetLoss(KERNEL, behind(X), Y, None, 0.1), np.array([0.5, 1.0, 2.0])
    x = behind.start(Point(Z, FRAME @ BENT, -3.0), step)
    at = behind.point(x, step)
    found = behind.slope(loss(at)[1], at, step)
    along, h = np.random.default_rng(1).normal(size=x.shape), 1e-5
    rise = loss(behind.point(x + h * along, step))[0] - loss(behind.point(x - h * along, step))[0]
    assert rise / (2 * h) == pytest.approx(found @ along, rel=1e-5)


def test_landmarks_behind_the_metric_stay_when_it_changes():
    X, _, Z = problem()
    behind = search._Apart.of(FRAME, X)
    x = behind.start(Point(Z, FRAME @ BENT, -3.0), 1.0)
    before = behind.point(x, 1.0)
    x[-10:-1] += 0.1 * np.random.default_rng(1).normal(size=9)
    after = behind.point(x, 1.0)
    assert np.abs(after.A - before.A).max() > 0.05
    np.testing.assert_allclose(after.Z @ after.A, before.Z @ before.A, atol=1e-12)


def test_apart_or_not_no_step_is_no_change_and_steps_lower_the_loss():
    X, Y, Z = problem()
    loss, start = TargetLoss(KERNEL, X, Y), Point(Z, FRAME @ BENT, -3.0)
    stay = annealed(KERNEL, start, X, Y, frame=FRAME, apart=True, **STEPS | {"steps": 0})
    np.testing.assert_allclose(stay.A, start.A, atol=1e-12)
    np.testing.assert_allclose(stay.Z @ stay.A, Z @ start.A, atol=1e-10)
    end = annealed(KERNEL, start, X, Y, frame=FRAME, apart=True, **STEPS)
    assert loss(end)[0] < loss(start)[0] - 0.1
