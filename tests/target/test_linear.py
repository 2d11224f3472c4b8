"""The linear model on features, against scikit-learn's exact Gaussian process."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import nysboost as nb
from nysboost.engine.moments import Moments
from nysboost.target.linear import Basis, LinearModel, chosen, errors_along


def problem(n=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n))[:, None]


def test_means_and_variances_are_the_exact_process_with_all_rows_as_landmarks():
    X, Y = problem()
    Y = Y - Y.mean()
    basis = Basis.of(nb.Gaussian(sigma=1.0), X)
    model = LinearModel.fit(basis, Moments.of(basis(X), Y), gamma=0.05)
    noise = float(model.noise[0])
    fresh = np.random.default_rng(1).normal(size=(30, 2)) * 2

    def process(amplitude):
        kernel = ConstantKernel(amplitude, "fixed") * RBF(1.0, "fixed")
        kernel += WhiteKernel(noise, "fixed")
        exact = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, Y[:, 0])
        return exact.predict(fresh, return_std=True)

    mean, _ = process(noise / 0.05)
    np.testing.assert_allclose(model.predict(basis(fresh))[:, 0], mean, atol=2e-3)
    _, std = process(Y.var())  # deviations are those of a process as wide as y
    found = np.sqrt(model.spread(basis(fresh)) * noise)
    np.testing.assert_allclose(found, std, rtol=2e-3)


def test_far_from_all_landmarks_the_mean_and_the_amplitude_are_left():
    X, Y = problem()
    basis = Basis.of(nb.Matern(1.5, 1.0), X[:20])
    model = LinearModel.fit(basis, Moments.of(basis(X), Y + 7), gamma=0.1)
    far = basis(np.array([[1e8, -1e8]]))
    np.testing.assert_allclose(model.predict(far), [[7 + Y.mean()]], atol=1e-9)
    np.testing.assert_allclose(model.spread(far) * model.noise, [model.noise[0] + Y.var()])
    cautious = LinearModel.fit(basis, Moments.of(basis(X), Y + 7), gamma=10.0)
    np.testing.assert_allclose(cautious.spread(far) * cautious.noise, cautious.noise + Y.var())


def test_no_deviation_is_far_above_that_of_the_target_however_small_the_penalty():
    X, Y = problem()
    basis = Basis.of(nb.Gaussian(sigma=0.5), X[:20])
    model = LinearModel.fit(basis, Moments.of(basis(X), Y), gamma=1e-9)
    noise, places = float(model.noise[0]), np.random.default_rng(1).normal(size=(300, 2)) * 3
    variance = noise * model.spread(basis(places))
    assert variance.max() <= 1.01 * (Y.var() + noise)
    np.testing.assert_allclose(noise * model.spread(basis(places + 1e6)), Y.var() + noise)
    kernel = ConstantKernel(Y.var()) * RBF(0.5)  # a process of this amplitude, on the landmarks
    process = GaussianProcessRegressor(kernel, alpha=1e-6 * Y.var(), optimizer=None)
    prior = process.fit(X[:20], Y[:20]).predict(places, return_std=True)[1] ** 2
    unknown = noise * np.clip(1 - np.sum(basis(places) ** 2, axis=1), 0, None) / model.doubt
    np.testing.assert_allclose(unknown, prior, rtol=1e-3, atol=1e-5)


def test_rows_are_strange_beyond_those_seen_and_not_among_them():
    X, Y = problem(n=400)
    basis = Basis.of(nb.Matern(1.5, 1.0), X[:60])
    model = LinearModel.fit(basis, Moments.of(basis(X), Y), gamma=0.1)
    among, far = model.strange(basis(X)), model.strange(basis(X + 1e6))
    assert np.median(among) == 0
    assert among.mean() < 0.02
    np.testing.assert_allclose(far, 1)
    outward = model.strange(basis(np.outer(np.arange(12.0), [1.0, 1.0])))
    assert (np.diff(outward) >= 0).all()


def test_variances_are_positive_and_finite_everywhere():
    X, Y = problem()
    Z = np.concatenate([X[:20], X[:20], X[:5] + 1e-9])  # landmarks that meet
    basis = Basis.of(nb.Gaussian(sigma=3.0), Z)
    model = LinearModel.fit(basis, Moments.of(basis(X), Y), gamma=1e-6)
    places = np.concatenate([X, X * 10, X + 1e-7, Z])
    spread = model.spread(basis(places))
    assert np.isfinite(spread).all()
    assert (spread >= 1).all()


def test_more_rows_later_are_as_good_as_all_at_once():
    X, Y = problem()
    basis = Basis.of(nb.Gaussian(sigma=1.0), X[:10])
    parts = [Moments.of(basis(X[rows]), Y[rows]) for rows in (slice(0, 30), slice(30, None))]
    later = LinearModel.fit(basis, parts[0], 0.1).updated(parts[1])
    at_once = LinearModel.fit(basis, Moments.of(basis(X), Y), 0.1)
    np.testing.assert_allclose(later.w, at_once.w)
    np.testing.assert_allclose(later.without(parts[1]).w, LinearModel.fit(basis, parts[0], 0.1).w)


def test_errors_along_the_penalties_are_those_of_a_model_each():
    X, Y = problem()
    basis = Basis.of(nb.Gaussian(sigma=1.0), X[:10])
    train, F = Moments.of(basis(X[:50]), Y[:50]), basis(X[50:])
    gammas = np.array([1.0, 0.1, 1e-4])
    expected = [
        np.mean((LinearModel.fit(basis, train, g).predict(F) - Y[50:]) ** 2) for g in gammas
    ]
    np.testing.assert_allclose(errors_along(train, F, Y[50:], None, gammas), expected)
    np.testing.assert_allclose(errors_along(train, F, Y[50:], np.zeros(len(F)), gammas), expected)
    twice, counts = np.repeat(np.arange(len(F)), 2)[:-3], np.full(len(F), 2.0)
    counts[-2:] = 1, 0
    counted = errors_along(train, F, Y[50:], counts, gammas)
    repeated = errors_along(train, F[twice], Y[50:][twice], None, gammas)
    np.testing.assert_allclose(counted, repeated)


@pytest.mark.parametrize(
    ("errors", "expected"),
    [([3.0, 2.0, 1.0], 2), ([1.0005, 2.0, 1.0], 0), ([np.nan, 1.0, 5.0], 1)],
)
def test_of_penalties_that_are_as_good_the_largest_is_chosen(errors, expected):
    assert chosen(np.array([1.0, 0.1, 0.01]), np.array(errors)) == expected
