"""Landmarks of any method, for comparison with those that know the target."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.learn.input import place_of


def table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=n)


KINDS = ["joint", "kmeans", "rpcholesky", "greedy", "rls", "URB-mean", "ensemble-uniform"]


@pytest.mark.parametrize("name", KINDS)
def test_the_features_are_those_of_the_method(name):
    X, _ = table()
    kernel = nb.Gaussian(sigma=1.0)
    Z, N = place_of(name)(make_gram(X, kernel), 12, np.random.default_rng(3))
    expected = nb.Nystroem(kernel, method=name, n_components=12, random_state=3).fit(X)
    np.testing.assert_allclose(kernel(X, Z) @ N, expected.transform(X), atol=1e-9)


@pytest.mark.parametrize("name", ["joint", "kmeans", "rpcholesky", "URB-mean"])
@pytest.mark.parametrize("learner", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_learners_stand_on_the_landmarks_of_any_method(name, learner, tmp_path):
    X, y = table()
    y = y > 0 if learner is nb.NystroemClassifier else y
    model = clone(learner(16, landmarks=name, random_state=0)).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.7
    assert [entry[0] for entry in model.candidates_] == [f"Gaussian, {name} landmarks"]
    nb.save(model, tmp_path / "model")
    np.testing.assert_array_equal(nb.load(tmp_path / "model").predict(X), model.predict(X))


def test_the_weights_are_those_of_ridge_regression_on_the_features():
    X, y = table(3200)
    model = nb.NystroemRegressor(10, landmarks="kmeans", random_state=0).fit(X, y)
    part = model._members[0].model
    F = part.features(X)
    ridge = Ridge(alpha=part.gamma, fit_intercept=False).fit(F, y - y.mean())
    np.testing.assert_allclose(model.predict(X), y.mean() + F @ ridge.coef_, atol=1e-6)
    assert model.components_.shape == (10, 2)
