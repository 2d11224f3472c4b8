"""Landmarks, kernel and metric trained on y, against those that do not know it."""

import numpy as np
import pytest
from market import points
from sklearn.linear_model import Ridge

import nysboost as nb
from nysboost.learn.target import indicators

X = points(200, 4)
Y = np.sin(3 * X[:, 0]) + X[:, 1]
HOW = {"n_components": 12, "random_state": 0}


def test_features_trained_on_y_serve_it_far_better_than_others():
    errors = {}
    for method, more in (("target", {"y": Y[:120]}), ("kmeans", {})):
        features, _ = nb.approximate(X[:120], method, **HOW, **more).feature_map()
        ridge = Ridge(1e-3).fit(features(X[:120]), Y[:120])
        errors[method] = np.std(ridge.predict(features(X[120:])) - Y[120:])
    assert errors["target"] < 0.3 * errors["kmeans"]


def test_it_is_the_largest_member_of_a_regressor_without_leaves_and_keeps_a_family_of_kernels():
    kernel = nb.Matern(nu=0.5)
    found = nb.approximate(X, "target", kernel, y=Y, **HOW)
    how = {"kernel": kernel, "scale": "standard", "local": False, "random_state": 0}
    model = nb.NystroemRegressor(12, **how).fit(X, Y)
    np.testing.assert_allclose(found.landmarks.points, model.components_, atol=1e-6)
    assert found.kernel.nu == 0.5
    assert found.kernel.metric.relevance(4)[2:].max() < 0.1


def test_labels_are_indicators_and_numbers_have_unit_spread():
    codes = np.arange(60) % 3
    for labels in (np.array(["a", "b", "c"])[codes], codes):
        np.testing.assert_array_equal(indicators(labels, 60), np.eye(3)[codes])
    many = indicators(np.arange(60), 60)  # whole numbers, each of them once
    np.testing.assert_allclose([many.mean(), many.std()], [0, 1], atol=1e-12)
    np.testing.assert_array_equal(indicators(np.ones((60, 2)), 60), 0)


@pytest.mark.parametrize(
    ("y", "kernel", "says"),
    [
        (None, "rbf", "needs y, the target"),
        (Y[1:], "rbf", "X has 200 rows, but y has 199"),
        (np.where(Y > 1, np.nan, Y), "rbf", "y contains NaN, first at row"),
        (Y, nb.Linear(), "learns a metric, but Linear"),
    ],
)
def test_what_it_cannot_use_is_a_sentence(y, kernel, says):
    with pytest.raises(ValueError, match=says):
        nb.approximate(X, "target", kernel, y=y, **HOW)
