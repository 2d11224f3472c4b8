"""The target as a loss, against dense equations and finite differences."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.learn.search.loss import Point, TrainingRows, for_landmarks, map_rows, target_loss

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


def loss(kernel, rows, Z, A, log_gamma, **how):
    """Return the loss, and its gradient with respect to landmarks, metric and log γ."""
    point = Point(map_rows(Z, A), A, log_gamma)
    value, gradient = target_loss(kernel, TrainingRows(*rows), point, **how)
    return value, for_landmarks(Z, A, gradient)


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("A", MAPS, ids=lambda A: str(A.shape))
@pytest.mark.parametrize("trace", [0.0, 0.1, 1.0])
def test_the_gradient_agrees_with_finite_differences(kernel, A, trace):
    X, Y, Z, rng = problem()
    rows = X, Y, rng.uniform(0.5, 2.0, len(X))
    to_Z, to_A, to_gamma = rng.normal(size=Z.shape), rng.normal(size=A.shape), 0.3

    def at(step):
        there = Z + step * to_Z, A + step * to_A, -2.0 + step * to_gamma
        return loss(kernel, rows, *there, trace=trace)

    (_, gradient), step = at(0.0), 1e-5
    found = (at(step)[0] - at(-step)[0]) / (2 * step)
    along = sum(np.sum(g * to) for g, to in zip(gradient, (to_Z, to_A, to_gamma), strict=True))
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
    above, equal = (loss(kernel, (X, Y), at, np.array(1.0), np.log(0.1))[0] for at in (Z, X))
    assert above > truth
    assert equal == pytest.approx(truth, abs=1e-4)


@pytest.mark.parametrize("kernel", RADIAL, ids=str)
def test_the_bound_never_falls_when_landmarks_are_added(kernel):
    X, Y, Z, _ = problem(c=20)
    values = [loss(kernel, (X, Y), Z[:c], np.array(1.0), -1.0)[0] for c in range(1, 21)]
    assert np.all(np.diff(values) <= 1e-6)


def test_several_outputs_are_their_mean_with_one_noise():
    X, Y, Z, _ = problem()
    twice, once = (
        loss(RADIAL[2], (X, Y[:, columns]), Z, np.array(1.0), -1.0) for columns in ([0, 0], [0])
    )
    assert twice[0] == pytest.approx(once[0])
    np.testing.assert_allclose(twice[1].U, once[1].U, atol=1e-12)


def test_landmarks_that_meet_leave_a_finite_loss():
    X, Y, Z, _ = problem()
    for kernel in RADIAL:
        value, gradient = loss(kernel, (X, Y), Z * 0, MAPS[2], -3.0)
        assert np.isfinite(value)
        assert np.isfinite(gradient.U).all()


@pytest.mark.parametrize("backend", ["torch", "array_api_strict"])
@pytest.mark.parametrize("kernel", RADIAL, ids=str)
@pytest.mark.parametrize("A", MAPS, ids=lambda A: str(A.shape))
def test_other_arrays_give_the_same(backend, kernel, A):
    xp = pytest.importorskip(backend)
    X, Y, Z, rng = problem()
    weights = rng.uniform(0.5, 2.0, len(X))
    value, gradient = loss(kernel, (X, Y, weights), Z, A, -2.0)
    theirs = [xp.asarray(part) for part in (X, Y, weights, Z, A)]
    other, found = loss(kernel, theirs[:3], *theirs[3:], -2.0)
    assert other == pytest.approx(value)
    # W's condition is 5e4, and not every library rounds its triangular systems alike
    np.testing.assert_allclose(np.asarray(found.U), gradient.U, atol=1e-9)
    np.testing.assert_allclose(np.asarray(found.A), gradient.A, atol=1e-9)


def test_weights_and_copies_are_repetitions():
    X, Y, Z, rng = problem(n=60, c=7)
    counts = rng.integers(0, 3, 60)

    def weighed(repeats, weights, copies=1.0):
        rows = np.repeat(np.arange(60), repeats)
        sample = X[rows], Y[rows], weights
        return loss(RADIAL[2], sample, Z, MAPS[2], -2.0, trace=0.1, copies=copies)

    for (value, gradient), (other, slope) in (
        (weighed(counts, None), weighed(1, counts.astype(float))),
        (weighed(3, None), weighed(1, None, copies=3.0)),
        (weighed(3, None), weighed(1, np.full(60, 1.5), copies=2.0)),
    ):
        assert value == pytest.approx(other, rel=1e-10)
        np.testing.assert_allclose(gradient.U, slope.U, atol=1e-10)
        np.testing.assert_allclose(gradient.A, slope.A, atol=1e-10)
        assert gradient.log_gamma == pytest.approx(slope.log_gamma, rel=1e-8)
