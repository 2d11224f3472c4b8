"""Gaussian process classification against scikit-learn's exact one."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import nysboost as nb

MOONS = make_moons(200, noise=0.25, random_state=0)
IRIS = load_iris(return_X_y=True)
GRID = np.random.default_rng(0).uniform(-2, 3, size=(300, 2))


def gap(data, rows, sigma, variance, **how):
    """How far the probabilities at some rows are from those of the exact process."""
    theirs = GaussianProcessClassifier(ConstantKernel(variance) * RBF(sigma), optimizer=None)
    ours = nb.GaussianProcessClassifier(
        nb.Gaussian(sigma=sigma), variance=variance, random_state=0, **how
    )
    return np.abs(ours.fit(*data).predict_proba(rows) - theirs.fit(*data).predict_proba(rows))


@pytest.mark.parametrize(("data", "variance"), [(MOONS, 1.0), (MOONS, 30.0), (IRIS, 5.0)])
def test_with_every_row_as_landmark_the_probabilities_are_scikit_learns(data, variance):
    X, y = data
    train = np.arange(len(X)) % 3 > 0
    found = gap((X[train], y[train]), X, 0.7, variance, method="uniform")
    assert max(found[train].mean(), found[~train].mean()) < 0.005


def test_what_the_features_do_not_see_of_a_new_row_makes_it_less_sure():
    """Between the rows a narrow kernel knows little, and its features nothing of that."""
    assert gap(MOONS, GRID, 0.15, 30.0, method="uniform").max() < 0.02


def test_few_landmarks_are_nearly_as_good():
    assert gap(MOONS, GRID, 0.7, 10.0, n_landmarks=30).mean() < 0.02


def test_the_coefficients_are_the_minimum_of_the_penalised_loss_and_labels_of_any_kind_come_back():
    X, y = MOONS
    names = np.array(["no", "yes"])[y]
    ours = nb.GaussianProcessClassifier(gamma=1.0, n_landmarks=20, random_state=0).fit(X, names)
    assert set(ours.predict(X)) == {"no", "yes"}
    assert ours.score(X, names) > 0.85
    np.testing.assert_allclose(ours.predict_proba([[100.0, 100.0]]), 0.5, atol=1e-6)  # far out
    F = ours.features_.transform(X)
    margins = np.where(y == 1, 1, -1) * (F @ ours.coef_[0])
    gradient = ours.coef_[0] - F.T @ (np.where(y == 1, 1, -1) / (1 + np.exp(margins)))
    np.testing.assert_allclose(gradient, 0, atol=1e-3)


def test_class_weights_make_up_for_a_class_that_was_drawn_less_often():
    """Bayes' rule: with odds times 5 the rows of a class might have come 5 times as often."""
    X, y = make_moons(1200, noise=0.4, random_state=0)
    rare = np.flatnonzero((y == 0) | (np.arange(1200) % 5 == 0))
    how = {"kernel": nb.Gaussian(sigma=0.7), "variance": 10.0, "n_landmarks": 60, "random_state": 0}
    wanted = nb.GaussianProcessClassifier(**how).fit(X, y).predict_proba(X)
    plain = nb.GaussianProcessClassifier(**how).fit(X[rare], y[rare])
    odds = plain.predict_proba(X) @ np.array([[1.0, 0.0], [0.0, 5.0]])
    for weight in ({1: 5.0}, "balanced"):
        model = nb.GaussianProcessClassifier(class_weight=weight, **how).fit(X[rare], y[rare])
        found = model.predict_proba(X)
        np.testing.assert_allclose(found, odds / odds.sum(axis=1, keepdims=True), atol=1e-2)
        assert np.abs(found - wanted).mean() < 0.5 * np.abs(plain.predict_proba(X) - wanted).mean()
