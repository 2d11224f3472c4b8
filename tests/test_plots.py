"""Displays: what they show, drawn without a screen."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import BayesianRidge

import nysboost as nb
from nysboost import plots

mpl.use("Agg")
QUICK = {"kernel": "gaussian", "metric": "one", "random_state": 0}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(240, 2))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=240)


@pytest.fixture(scope="module")
def regressor(rows):
    X, y = rows
    return nb.NystroemRegressor(20, **QUICK).fit(X[:160], y[:160])


def test_intervals_are_counted_and_drawn(regressor, rows):
    X, y = (part[160:] for part in rows)
    shown = plots.IntervalDisplay.from_estimator(regressor, X, y)
    lower, upper = regressor.predict_interval(X, 0.9)
    inside = np.mean((lower <= y) & (y <= upper))
    assert shown.ax_.get_title() == f"90 % intervals contain {100 * inside:.0f} % of 80 rows"
    again = plots.IntervalDisplay.from_estimator(regressor, X, y, interval=0.5)
    assert again.ax_.get_title().startswith("50 %")
    with pytest.raises(ValueError, match="between 0 and 1, but interval=90"):
        plots.IntervalDisplay.from_estimator(regressor, X, y, interval=90)
    with pytest.raises(TypeError, match="use CalibrationDisplay"):
        plots.IntervalDisplay.from_estimator(nb.NystroemClassifier(), X, y > 0)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ((np.ones(3), np.ones(4), np.ones(4)), "inconsistent numbers of samples"),
        ((np.array([1.0, np.nan]), np.ones(2), np.ones(2)), "y_true contains NaN"),
        ((np.ones((2, 2)), np.ones((2, 2)), np.ones((2, 2))), "1d array"),
        ((np.ones(2), np.ones(2), -np.ones(2)), "y_std has negative values"),
    ],
)
@pytest.mark.parametrize("display", [plots.IntervalDisplay, plots.CoverageDisplay])
def test_what_cannot_be_counted_is_refused(display, values, says):
    with pytest.raises(ValueError, match=says):
        display.from_predictions(*values)


def test_coverage_of_normal_errors_is_what_is_claimed():
    rng = np.random.default_rng(1)
    truth = rng.normal(size=20_000)
    shown = plots.CoverageDisplay.from_predictions(truth, np.zeros_like(truth), np.ones_like(truth))
    np.testing.assert_allclose(shown.covered[[0, 4, 8]], (0.1, 0.5, 0.9), atol=0.01)


def test_coverage_of_a_regressor_is_that_of_its_intervals_and_not_of_normal_ones():
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(1500, 1))
        y = X[:, 0] + rng.exponential(size=1500) ** 2
        model = nb.NystroemRegressor(5, **QUICK | {"local": False}).fit(X[:1000], y[:1000])
        shown = plots.CoverageDisplay.from_estimator(model, X[1000:], y[1000:])
        covered.append(shown.covered)
    assert np.abs(np.mean(covered, axis=0) - plots.CLAIMED).max() < 0.06

    mean, std = model.predict(X[1000:], return_std=True)
    normal = plots.CoverageDisplay.from_predictions(y[1000:], mean, std)
    assert normal.covered[4] > 0.7


def test_other_regressors_with_standard_deviations_have_normal_intervals(rows):
    X, y = rows
    model = BayesianRidge().fit(X, y)
    shown = plots.IntervalDisplay.from_estimator(model, X, y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(shown.upper, mean + 1.6448536 * std)


def test_error_falls_with_landmarks_of_transformers_and_learners(rows):
    X, y = (part[:120] for part in rows)
    shown = plots.LandmarksDisplay.from_estimator(nb.Nystroem(random_state=0), X, sizes=(4, 32))
    assert shown.errors[1] < shown.errors[0] / 10
    assert (shown.seconds > 0).all()
    for model, targets, measure in (
        (nb.NystroemRegressor(**QUICK), y, "root mean squared error"),
        (nb.NystroemClassifier(**QUICK), y > 0, "log loss"),
    ):
        shown = plots.LandmarksDisplay.from_estimator(model, X, targets, sizes=(2, 16))
        assert shown.axes_[0].get_ylabel() == measure
        assert shown.errors[1] < shown.errors[0]


def test_displays_of_scikit_learn_take_our_learners(regressor, rows):
    X, y = rows
    model = nb.NystroemClassifier(10, **QUICK).fit(X, y > 0)
    assert plots.CalibrationDisplay.from_estimator(model, X, y > 0).ax_ is not None
    effects = plots.PartialDependenceDisplay.from_estimator(
        regressor, X[:20], [0, 1, (0, 1)], grid_resolution=5
    )
    assert effects.axes_.size == 3


class Memory(RegressorMixin, BaseEstimator):
    """Knows the targets of the rows that it has seen, and predicts zero for all others."""

    def __init__(self, n_components=1):
        self.n_components = n_components

    def fit(self, X, y):
        self.known_ = dict(zip(map(tuple, X), y, strict=True))
        return self

    def predict(self, X):
        return np.array([self.known_.get(tuple(row), 0.0) for row in X])


def test_errors_of_a_learner_are_those_of_rows_that_it_has_not_seen():
    X = np.random.default_rng(0).normal(size=(80, 2))
    shown = plots.LandmarksDisplay.from_estimator(Memory(), X, np.full(80, 3.0), sizes=(2, 4))
    np.testing.assert_allclose(shown.errors, 3.0)


def test_every_run_has_a_line_also_of_the_same_method(rows):
    X, _ = rows
    how = {"sigma": 1.0, "n_learners": 3, "random_state": 0}
    runs = [nb.approximate(X, "URB-mean", n_columns=m, **how) for m in (5, 20)]
    shown = plots.ErrorPathDisplay.from_approximations(*runs)
    assert list(shown.errors) == ["URB-mean", "URB-mean (2)"]
    assert len(shown.ax_.lines) == 2
    assert shown.errors["URB-mean (2)"][-1] < shown.errors["URB-mean"][-1]


def test_estimators_on_features_are_measured_by_their_landmarks(rows):
    X, y = (part[:80] for part in rows)
    sizes = (4, 32)
    expected = plots.LandmarksDisplay.from_estimator(nb.Nystroem(random_state=0), X, sizes=sizes)
    shown = plots.LandmarksDisplay.from_estimator(nb.KernelPCA(random_state=0), X, sizes=sizes)
    np.testing.assert_allclose(shown.errors, expected.errors)

    classifier = nb.GaussianProcessClassifier(random_state=0)
    shown = plots.LandmarksDisplay.from_estimator(classifier, X, y > 0, sizes=sizes)
    assert shown.measure == "log loss"
