"""Support vector machines and logistic regression on features, against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_moons
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import nysboost as nb
from nysboost.features.factor import Factor
from nysboost.learn.margins import LOSSES, Hinge, Logistic, Objective, fit_margins

X, Y = make_moons(300, noise=0.2, random_state=0)
SIGNS = np.where(Y == 1, 1.0, -1.0)[:, None]
EXACT = Objective(Logistic(), tolerance=1e-9)


def narrow(C):
    """Return the objective of a hinge whose corner is nearly sharp, to many digits."""
    return Objective(Hinge(1e-3), C, tolerance=1e-7, max_iter=300)


def fitted(**how):
    return nb.Nystroem(gamma=2.0, method="uniform", n_components=300, random_state=0, **how).fit(X)


def factor_of(transformer):
    return Factor(transformer.approximation_.gram, transformer._transform)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_logistic_regression_is_scikit_learns_on_the_same_features(C):
    transformer = fitted()
    w, b, _ = fit_margins(factor_of(transformer), SIGNS, Objective(Logistic(), C, tolerance=1e-9))
    F = transformer.transform(X)
    theirs = LogisticRegression(C=C, tol=1e-8, max_iter=5000).fit(F, Y)
    np.testing.assert_allclose(F @ w[:, 0] + b, theirs.decision_function(F), atol=1e-3)


@pytest.mark.parametrize("landmarks", [20, 300], ids=["more rows than features", "fewer"])
@pytest.mark.parametrize("C", [0.1, 10.0, 300.0])
def test_the_objective_is_no_higher_than_where_libsvm_ends(C, landmarks):
    transformer = nb.Nystroem(gamma=2.0, method="uniform", n_components=landmarks, random_state=0)
    F = transformer.fit(X).transform(X)
    w, b, _ = fit_margins(factor_of(transformer), SIGNS, narrow(C))
    theirs = SVC(kernel="linear", C=C, tol=1e-6).fit(F, Y)

    def objective(w, b):
        return w @ w / 2 + C * np.maximum(0, 1 - SIGNS[:, 0] * (F @ w + b)).sum()

    ours, least = objective(w[:, 0], b[0]), objective(theirs.coef_[0], theirs.intercept_[0])
    assert ours < 1.001 * least


def test_weights_are_repetitions_and_rows_of_none_have_no_part():
    counts = np.random.default_rng(0).integers(0, 3, size=len(X))
    transformer = fitted()
    w, b, _ = fit_margins(factor_of(transformer), SIGNS, narrow(1.0), counts * 1.0)
    many = np.repeat(np.arange(len(X)), counts)
    F = transformer.transform(X)
    theirs = SVC(kernel="linear", tol=1e-6).fit(F[many], Y[many])
    np.testing.assert_allclose(F @ w[:, 0] + b, theirs.decision_function(F), atol=0.02)


def test_a_class_of_one_row_and_rows_that_are_all_alike_have_a_machine():
    alike = np.ones((50, 2))
    transformer = nb.Nystroem(gamma=1.0, method="uniform", n_components=5, random_state=0)
    features = factor_of(transformer.fit(alike))
    signs = np.where(np.arange(50)[:, None] == 0, 1.0, -1.0)
    for loss in LOSSES.values():
        w, b, _ = fit_margins(features, signs, Objective(loss, 10.0))
        assert np.isfinite(w).all()
        assert np.isfinite(b).all()


def test_several_problems_at_once_are_those_problems_alone():
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:400] / 16, y[:400]
    signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    transformer = nb.Nystroem(gamma=0.05, n_components=40, method="uniform", random_state=0)
    features = factor_of(transformer.fit(digits))
    together = fit_margins(features, signs, EXACT)
    for i in range(3):
        w, b, _ = fit_margins(features, signs[:, [i]], EXACT)
        np.testing.assert_allclose(together.w[:, i], w[:, 0], atol=1e-4)
        assert together.b[i] == pytest.approx(b[0], abs=1e-4)


def test_a_descent_that_begins_where_it_ended_stays_there():
    features = factor_of(fitted())
    end = fit_margins(features, SIGNS, EXACT)
    again = fit_margins(features, SIGNS, Objective(Logistic(), max_iter=1), start=end)
    np.testing.assert_allclose(again[0], end[0], atol=1e-6)
    np.testing.assert_allclose(again[1], end[1], atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_other_arrays_than_numpys_give_the_same_machine(name):
    strict = pytest.importorskip("array_api_strict")
    how = {"gamma": 2.0, "method": "uniform", "n_components": 40, "random_state": 0}
    plain, other = (nb.Nystroem(**how).fit(rows) for rows in (X, strict.asarray(X)))
    expected = fit_margins(factor_of(plain), SIGNS, Objective(LOSSES[name]))
    w, b, _ = fit_margins(factor_of(other), SIGNS, Objective(LOSSES[name]))
    assert type(w) is type(strict.asarray(X))
    np.testing.assert_allclose(np.asarray(w), expected[0], atol=1e-6)
    np.testing.assert_allclose(np.asarray(b), expected[1], atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
@given(margin=st.floats(-5, 5))
def test_slope_and_curve_are_the_derivatives_of_a_loss(name, margin):
    loss, around = LOSSES[name], np.array([margin - 1e-6, margin, margin + 1e-6])
    values, slopes, curves = loss.value(around), loss.slope(around), loss.curve(around)
    assert slopes[1] == pytest.approx((values[2] - values[0]) / 2e-6, abs=1e-4)
    if curves.max() == pytest.approx(curves.min(), abs=0.1):  # away from a parabola's ends
        assert curves[1] == pytest.approx((slopes[2] - slopes[0]) / 2e-6, abs=1e-3)
    assert (values >= 0).all()
    assert (slopes <= 0).all()
    assert (curves >= 0).all()
    if name == "hinge" and abs(margin - 1) > 0.11:  # away from its corner the hinge is the hinge
        assert values[1] == pytest.approx(max(0, 1 - margin), abs=1e-12)
