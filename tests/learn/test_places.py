"""Landmarks of any method, and ANOVA kernels, for comparison with what learners choose."""

import numpy as np
import pytest
from learners import wave
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.learn.input import place_of

KINDS = ["joint", "kmeans", "rpcholesky", "greedy", "rls", "URB-mean", "ensemble-uniform"]


@pytest.mark.parametrize("name", KINDS)
def test_the_features_are_those_of_the_method(name):
    X, _ = wave(150, d=2)
    kernel = nb.Gaussian(sigma=1.0)
    Z, N = place_of(name)(make_gram(X, kernel), 12, np.random.default_rng(3))
    expected = nb.Nystroem(kernel, method=name, n_components=12, random_state=3).fit(X)
    np.testing.assert_allclose(kernel(X, Z) @ N, expected.transform(X), atol=1e-9)


# eight learners of two columns each would see little of a wave: they have four
@pytest.mark.parametrize(
    ("name", "c"), [("joint", 16), ("kmeans", 16), ("rpcholesky", 16), ("URB-mean", 32)]
)
@pytest.mark.parametrize("learner", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_learners_stand_on_the_landmarks_of_any_method(name, c, learner, tmp_path):
    X, y = wave(150, d=2)
    y = y > 0 if learner is nb.NystroemClassifier else y
    model = clone(learner(c, landmarks=name, random_state=0)).fit(X[:100], y[:100])
    assert model.score(X[100:], y[100:]) > 0.7
    assert [entry[0] for entry in model.candidates_] == [f"Gaussian, {name} landmarks"]
    nb.save(model, tmp_path / "model")
    np.testing.assert_array_equal(nb.load(tmp_path / "model").predict(X), model.predict(X))


def test_the_weights_are_those_of_ridge_regression_on_the_features():
    X, y = wave(3200, d=2)
    model = nb.NystroemRegressor(10, landmarks="kmeans", random_state=0).fit(X, y)
    part = model._members[0].model
    F = part.features(X)
    ridge = Ridge(alpha=part.gamma, fit_intercept=False).fit(F, y - y.mean())
    np.testing.assert_allclose(model.predict(X), y.mean() + F @ ridge.coef_, atol=1e-6)
    assert model.components_.shape == (10, 2)


RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 4))
Y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + X[:, 2] * X[:, 3] + 0.05 * RNG.normal(size=300)
KERNEL = nb.Anova(gamma=1.0, degree=2)


@pytest.mark.parametrize("landmarks", ["target", "uniform"])
def test_the_regressor_is_as_good_as_the_dense_one_on_its_kernel(landmarks):
    """Kernel ridge regression with all rows, its penalty by cross-validation."""
    model = nb.NystroemRegressor(60, kernel=KERNEL, landmarks=landmarks, random_state=0)
    model.fit(X[:200], Y[:200])
    assert model.kernel_.degree == 2
    ridge, mean = KernelRidge(kernel="precomputed"), Y[:200].mean()
    search = GridSearchCV(ridge, {"alpha": 10.0 ** np.arange(-4, 2)}, cv=5)
    search.fit(KERNEL(X[:200], X[:200]), Y[:200] - mean)
    dense = search.predict(KERNEL(X[200:], X[:200])) + mean
    assert np.std(model.predict(X[200:]) - Y[200:]) < 1.1 * np.std(dense - Y[200:])


def test_many_rows_go_through_the_same_kernel():
    rng = np.random.default_rng(1)
    many = rng.uniform(-1, 1, size=(6000, 4))
    y = np.sin(3 * many[:, 0]) + many[:, 1] ** 2 + many[:, 2] * many[:, 3]
    y += 0.05 * rng.normal(size=6000)
    how = {"kernel": KERNEL, "local": False, "random_state": 0}
    model = nb.NystroemRegressor(80, **how).fit(many[:5500], y[:5500])
    mean, std = model.predict(many[5500:], return_std=True)
    assert np.std(mean - y[5500:]) < 0.06
    assert 0.9 < np.mean(np.abs(mean - y[5500:]) < 1.96 * std) < 0.99


def test_a_sum_of_single_features_is_found_by_degree_one_and_not_by_a_gaussian():
    """Of 12 features with 150 rows: what an additive kernel is for."""
    rng = np.random.default_rng(2)
    wide = rng.uniform(-2, 2, size=(400, 12))
    y = np.sin(2 * wide).sum(axis=1)
    error = {}
    for name, kernel in (("anova", nb.Anova()), ("gaussian", "gaussian")):
        model = nb.NystroemRegressor(100, kernel=kernel, landmarks="uniform", random_state=0)
        error[name] = np.std(model.fit(wide[:150], y[:150]).predict(wide[150:]) - y[150:])
    assert error["anova"] < 0.5 * error["gaussian"]
