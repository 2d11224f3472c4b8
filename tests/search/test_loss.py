"""The target as a loss, against dense equations and finite differences."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.search.loss import Point, TargetLoss

RADIAL = [nb.Gaussian(gamma=0.5), nb.Matern(0.5, 1.0), nb.Matern(1.5, 1.0), nb.Matern(2.5, 1.0)]
MAPS = [
    np.array(0.7),
    np.array([0.5, 1.0, 0.8]),
    np.array([[0.7, 0.1, 0.0], [0.0, 0.6, 0.2], [0.3, 0.0, 0.9]]),
    np.array([[0.7, 0.1], [0.0, 0.6], [0.3, 0.5]]),
]


def problem(n=300, c=12, d=3, t=2, seed=0):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(c, d))
    Y = np.sin(X[:, :t] * 2) + 0.1 * rng.normal(size=(n, t))
    return X, Y - Y.mean(axis=0), Z, rng


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("A", MAPS, ids=lambda A: str(A.shape))
@pytest.mark.parametrize("trace", [0.0, 0.1, 1.0])
def test_the_gradient_agrees_with_finite_differences(kernel, A, trace):
    X, Y, Z, rng = problem()
    loss = TargetLoss(kernel, X, Y, rng.uniform(0.5, 2.0, len(X)), trace)
    _, gradient = loss(Point(Z, A, -2.0))
    to_Z, to_A, to_gamma = rng.normal(size=Z.shape), rng.normal(size=A.shape), 0.3

    def value(step):
        return loss(Point(Z + step * to_Z, A + step * to_A, -2.0 + step * to_gamma))[0]

    step = 1e-5
    found = (value(step) - value(-step)) / (2 * step)
    along = np.sum(gradient.Z * to_Z) + np.sum(gradient.A * to_A) + gradient.log_gamma * to_gamma
    kink = getattr(kernel, "nu", 1.5) == 0.5  # there, where a row meets a landmark
    assert found == pytest.approx(along, rel=2e-5, abs=1e-5 if kink else 1e-6)


def exact(kernel, X, y, gamma):
    """Return −log marginal likelihood of a Gaussian process, less ½n log 2πe, s² at its best."""
    n = len(X)
    K = kernel(X, X) / gamma + np.eye(n)
    noise = y @ np.linalg.solve(K, y) / n
    return (n * np.log(noise) + np.linalg.slogdet(K)[1]) / 2


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
def test_the_bound_is_below_the_likelihood_and_equal_with_all_rows_as_landmarks(kernel):
    X, Y, Z, _ = problem(n=60, t=1)
    truth = exact(kernel, X, Y[:, 0], 0.1) / 60
    loss = TargetLoss(kernel, X, Y)
    above, _ = loss(Point(Z, np.array(1.0), np.log(0.1)))
    equal, _ = loss(Point(X, np.array(1.0), np.log(0.1)))
    assert above > truth
    assert equal == pytest.approx(truth, abs=1e-4)


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
def test_the_bound_never_falls_when_landmarks_are_added(kernel):
    X, Y, Z, _ = problem(c=20)
    loss = TargetLoss(kernel, X, Y)
    values = [loss(Point(Z[:c], np.array(1.0), -1.0))[0] for c in range(1, 21)]
    assert np.all(np.diff(values) <= 1e-6)


def test_several_outputs_are_their_mean_with_one_noise():
    X, Y, Z, _ = problem()
    point = Point(Z, np.array(1.0), -1.0)
    twice = TargetLoss(RADIAL[2], X, np.concatenate([Y[:, :1], Y[:, :1]], axis=1))
    once = TargetLoss(RADIAL[2], X, Y[:, :1])
    assert twice(point)[0] == pytest.approx(once(point)[0])
    np.testing.assert_allclose(twice(point)[1].Z, once(point)[1].Z, atol=1e-12)


def test_landmarks_that_meet_leave_a_finite_loss():
    X, Y, Z, _ = problem()
    for kernel in RADIAL:
        value, gradient = TargetLoss(kernel, X, Y)(Point(Z * 0, MAPS[2], -3.0))
        assert np.isfinite(value)
        assert np.isfinite(gradient.Z).all()


@pytest.mark.parametrize("backend", ["torch", "array_api_strict"])
@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("A", MAPS, ids=lambda A: str(A.shape))
def test_other_arrays_give_the_same(backend, kernel, A):
    xp = pytest.importorskip(backend)
    X, Y, Z, rng = problem()
    weights = rng.uniform(0.5, 2.0, len(X))
    value, gradient = TargetLoss(kernel, X, Y, weights)(Point(Z, A, -2.0))
    theirs = [xp.asarray(part) for part in (X, Y, weights, Z, A)]
    other, found = TargetLoss(kernel, *theirs[:3])(Point(*theirs[3:], -2.0))
    assert other == pytest.approx(value)
    # W's condition is 5e4, and not every library rounds its triangular systems alike
    np.testing.assert_allclose(np.asarray(found.Z), gradient.Z, atol=1e-9)
    np.testing.assert_allclose(np.asarray(found.A), gradient.A, atol=1e-9)


def test_weights_and_copies_are_repetitions():
    X, Y, Z, rng = problem(n=60, c=7)
    counts, point = rng.integers(0, 3, 60), Point(Z, MAPS[2], -2.0)

    def loss(repeats, weights, copies=1.0):
        rows = np.repeat(np.arange(60), repeats)
        return TargetLoss(RADIAL[2], X[rows], Y[rows], weights, 0.1, copies=copies)(point)

    for (value, gradient), (other, slope) in (
        (loss(counts, None), loss(1, counts.astype(float))),
        (loss(3, None), loss(1, None, copies=3.0)),
        (loss(3, None), loss(1, np.full(60, 1.5), copies=2.0)),
    ):
        assert value == pytest.approx(other, rel=1e-10)
        np.testing.assert_allclose(gradient.Z, slope.Z, atol=1e-10)
        np.testing.assert_allclose(gradient.A, slope.A, atol=1e-10)
        assert gradient.log_gamma == pytest.approx(slope.log_gamma, rel=1e-8)
