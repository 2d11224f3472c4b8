"""Support vector machines and logistic regression on features, against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import nysboost as nb
from nysboost.learn.margins import LOSSES, Hinge, Logistic, fit_margins
from nysboost.learn.on_features import features_of

X, Y = make_moons(300, noise=0.2, random_state=0)
SIGNS = np.where(Y == 1, 1.0, -1.0)[:, None]


def fitted(**how):
    return nb.Nystroem(gamma=2.0, method="uniform", n_components=300, random_state=0, **how).fit(X)


@pytest.mark.parametrize("name", LOSSES)
@given(margin=st.floats(-5, 5))
def test_a_slope_is_the_derivative_of_its_loss(name, margin):
    around = np.array([margin - 1e-6, margin, margin + 1e-6])
    values, slopes = LOSSES[name](around)
    assert slopes[1] == pytest.approx((values[2] - values[0]) / 2e-6, abs=1e-4)
    assert (values >= 0).all()
    assert (slopes <= 0).all()


def test_away_from_its_corner_the_hinge_is_the_hinge():
    margins = np.array([-2.0, 0.0, 0.89, 1.11, 3.0])
    np.testing.assert_allclose(Hinge()(margins)[0], np.maximum(0, 1 - margins), atol=1e-12)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_logistic_regression_is_scikit_learns_on_the_same_features(C):
    transformer = fitted()
    w, b = fit_margins(features_of(transformer), SIGNS, Logistic(), C, max_iter=500)
    F = transformer.transform(X)
    theirs = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(F, Y)
    np.testing.assert_allclose(F @ w[0] + b, theirs.decision_function(F), atol=0.02)


@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
def test_with_every_row_as_landmark_the_machine_is_svc(C):
    transformer = fitted()
    w, b = fit_margins(features_of(transformer), SIGNS, Hinge(0.02), C, max_iter=2000)
    theirs = SVC(C=C, gamma=2.0, tol=1e-6).fit(X, Y)
    grid = np.random.default_rng(0).uniform(-1.5, 2.5, size=(400, 2))
    ours = transformer.transform(grid) @ w[0] + b
    assert np.mean((ours > 0) == (theirs.decision_function(grid) > 0)) > 0.96


def test_several_problems_at_once_are_those_problems_alone():
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:400] / 16, y[:400]
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    transformer = nb.Nystroem(gamma=0.05, n_components=40, method="uniform", random_state=0)
    features = features_of(transformer.fit(digits))
    together = fit_margins(features, signs, Logistic(), 1.0, max_iter=500)
    for i in range(3):
        w, b = fit_margins(features, signs[:, [i]], Logistic(), 1.0, max_iter=500)
        np.testing.assert_allclose(together[0][i], w[0], atol=1e-2)
        assert together[1][i] == pytest.approx(b[0], abs=1e-2)


def test_blocks_of_features_change_nothing():
    found = [
        fit_margins(features_of(fitted(max_memory=memory)), SIGNS, Logistic(), 1.0, max_iter=300)
        for memory in (2**30, 10**6)
    ]
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-4)


def test_a_descent_that_begins_where_it_ended_stays_there():
    features = features_of(fitted())
    end = fit_margins(features, SIGNS, Logistic(), 1.0, max_iter=500)
    again = fit_margins(features, SIGNS, Logistic(), 1.0, max_iter=1, start=end)
    np.testing.assert_allclose(again[0], end[0], atol=1e-3)
    elsewhere = fit_margins(features, SIGNS, Logistic(), 1.0, max_iter=0, start=end)
    np.testing.assert_allclose(elsewhere[0], end[0], atol=1e-9)
    np.testing.assert_allclose(elsewhere[1], end[1], atol=1e-9)


@pytest.mark.parametrize("name", LOSSES)
def test_other_arrays_than_numpys_give_the_same_machine(name):
    strict = pytest.importorskip("array_api_strict")
    how = {"gamma": 2.0, "method": "uniform", "n_components": 40, "random_state": 0}
    plain, other = (nb.Nystroem(**how).fit(rows) for rows in (X, strict.asarray(X)))
    expected = fit_margins(features_of(plain), SIGNS, LOSSES[name], 1.0)
    w, b = fit_margins(features_of(other), SIGNS, LOSSES[name], 1.0)
    assert type(w) is type(strict.asarray(X))
    np.testing.assert_allclose(np.asarray(w), expected[0], atol=1e-6)
    np.testing.assert_allclose(np.asarray(b), expected[1], atol=1e-6)


def test_rows_in_single_precision_give_nearly_the_same_machine():
    how = {"gamma": 2.0, "method": "uniform", "n_components": 40, "random_state": 0}
    scores = []
    for precision in (np.float64, np.float32):
        transformer = nb.Nystroem(**how).fit(X.astype(precision))
        w, b = fit_margins(features_of(transformer), SIGNS, Hinge(), 1.0)
        assert w.dtype == np.float64
        scores.append(transformer.transform(X.astype(precision)) @ w[0] + b)
    np.testing.assert_allclose(scores[1], scores[0], atol=0.05)
