"""What a learner says: importances, a summary, HTML, probabilities, in enough digits."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import log_softmax
from sklearn.base import clone

import nysboost as nb
from nysboost.learn.base import float32_suffices
from nysboost.learn.calibration import calibrate
from nysboost.learn.report import permutation_importances
from nysboost.learn.search.loss import TrainingRows
from nysboost.learn.search.search import SearchResult
from nysboost.rows.recognise import make_rows

QUICK = {"n_components": 16, "kernel": "gaussian", "random_state": 0}


def table(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["colour"] = rng.choice(["red", "green", "blue"], size=n)
    return X, 2 * X["b"].to_numpy() + (X["colour"] == "red").to_numpy()


def test_pickling_leaves_a_learner_as_it_was():
    model = nb.NystroemRegressor(**QUICK).fit(*table())
    importances = model.feature_importances_
    before = dict(vars(model))
    again = pickle.loads(pickle.dumps(model))
    assert all(vars(model)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(again.feature_importances_, importances)


@pytest.mark.parametrize("change", [{"metric": "each"}, {"metric": None}, {"landmarks": "uniform"}])
def test_importances_of_columns_are_those_of_y(change):
    X, y = table()
    model = nb.NystroemRegressor(**QUICK | change).fit(X, y)
    a, b, c, colour = model.feature_importances_
    assert b > colour > 2 * max(a, c)
    assert model.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_importances_of_margins_are_those_of_the_labels(loss):
    X, y = table()
    model = nb.NystroemClassifier(loss=loss, metric="each", **QUICK).fit(X, y > 0.5)
    assert model.feature_importances_.argmax() == 1


def test_permutation_importances_of_a_linear_function_are_its_squared_weights():
    X = np.random.default_rng(0).normal(size=(1000, 3))
    weights = np.array([[3.0], [0.0], [1.0]])
    origins = np.array([0, 1, 1])
    found = permutation_importances(
        lambda rows: rows @ weights, TrainingRows(X, X @ weights), origins, 2
    )
    np.testing.assert_allclose(found, [0.9, 0.1], atol=0.03)
    nothing = permutation_importances(
        lambda rows: 0 * rows[:, :1], TrainingRows(X, X[:, :1]), np.arange(3), 3
    )
    np.testing.assert_allclose(nothing, 1 / 3)


def test_of_very_many_columns_few_are_shuffled_and_the_right_ones_among_them():
    X, shuffles = np.random.default_rng(0).normal(size=(50, 3000)), []

    def predict(rows):
        shuffles.append(0)
        return rows[:, 2998:] @ np.ones((2, 1))

    found = permutation_importances(predict, TrainingRows(X, predict(X)), np.arange(3000), 3000)
    assert len(shuffles) < 1100
    assert set(np.flatnonzero(found)) == {2998, 2999}


@pytest.mark.parametrize("kind", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_a_summary_says_in_ten_lines_what_was_tried_and_chosen(kind, capsys):
    X, y = table()
    model = kind(metric="each", **QUICK).fit(X, y > 0 if kind is nb.NystroemClassifier else y)
    model.summary()
    told = capsys.readouterr().out
    lines = told.splitlines()
    assert len(lines) <= 10
    assert lines[0] == f"{kind.__name__}: 200 rows, 4 columns"
    best = min(model.candidates_, key=lambda tried: tried[1])
    assert lines[2] == f"  {best[1]:.3g}  {best[0]}"
    assert f"RMSE {model.validation_error_:.3g}" in told
    assert "columns that matter most: b " in told
    assert lines[0] in model._repr_html_()
    assert lines[0] not in clone(model)._repr_html_()


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_a_weight_of_a_class_counts_its_rows_so_often(loss):
    X, y = table()
    rare = y + np.random.default_rng(1).normal(size=len(y)) * 2 > 2.5
    labels = np.where(rare, "rare", "usual")
    settings = {"metric": "each", "loss": loss, "local": False, **QUICK}
    by_class = nb.NystroemClassifier(class_weight={"rare": 3}, **settings).fit(X, labels)
    by_row = nb.NystroemClassifier(**settings).fit(X, labels, np.where(rare, 3.0, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)
    plain = nb.NystroemClassifier(**settings).fit(X, labels)
    balanced = nb.NystroemClassifier(class_weight="balanced", **settings).fit(X, labels)
    assert balanced.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean() + 0.05


def test_balanced_weights_of_rows_that_come_later_are_not_known():
    X, y = table(60)
    model = nb.NystroemClassifier(class_weight="balanced", metric="each", **QUICK).fit(X, y > 0)
    with pytest.raises(ValueError, match="for partial_fit, give a dict"):
        model.partial_fit(X, y > 0)


def test_one_core_gives_the_predictions_of_all():
    X, y = table(80)
    few, all_ = (
        nb.NystroemRegressor(metric="each", n_jobs=jobs, **QUICK).fit(X, y).predict(X)
        for jobs in (1, None)
    )
    np.testing.assert_allclose(few, all_, rtol=1e-6)


@pytest.mark.parametrize("sure", [1.0, 3.0])
def test_scores_that_are_probabilities_stay_what_they_are(sure):
    rng = np.random.default_rng(0)
    true = np.exp(log_softmax(sure * rng.normal(size=(20_000, 3)) - [0, 1, 3], axis=1))
    drawn = np.array([rng.multinomial(1, p) for p in true], dtype=float)
    h = slice(0, 4000)
    fitted = SearchResult([], drawn[h], true[h], None, [])
    as_shares, as_scores = (
        log_softmax(calibrate(fitted, shares=shares)[0].logits(true), axis=1)
        for shares in (True, False)
    )
    excess = [np.mean(np.sum(true * (np.log(true) - log), 1)) for log in (as_shares, as_scores)]
    assert excess[0] < min(0.01, excess[1] / 2)


def machines(shift, n=2000):
    """Scores of three classes whose own intercepts are wrong by `shift`."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=n)
    scores = 2.0 * np.eye(3)[labels] + rng.normal(size=(n, 3)) + [0.0, shift, 0.0]
    return SearchResult([], np.eye(3)[labels], scores, None, [])


def test_a_machine_of_two_classes_keeps_its_own_intercept():
    three = machines(0.0)
    two = SearchResult([], three.truth[:, :2], three.mean[:, :2], None, [])
    calibration, _ = calibrate(two, shares=False)
    assert calibration.power == 0
    np.testing.assert_array_equal(calibration.bias, 0)


@pytest.mark.parametrize("shift", [-1.5, 1.5])
def test_intercepts_of_several_classes_that_are_wrong_are_made_good(shift):
    fitted = machines(shift)
    labels = fitted.truth.argmax(axis=1)
    calibration, _ = calibrate(fitted, shares=False)
    found = calibration.logits(fitted.mean).argmax(axis=1)
    assert np.mean(found == labels) > np.mean(fitted.mean.argmax(axis=1) == labels) + 0.05


def test_rows_of_no_weight_have_no_say_in_the_biases():
    right, wrong = machines(0.0), machines(1.5)
    n = len(right.mean)
    both = [
        np.concatenate(parts) for parts in ((right.truth, wrong.truth), (right.mean, wrong.mean))
    ]
    weights = np.repeat([1.0, 0.0], n)
    some = calibrate(SearchResult([], *both, weights, []), shares=False)
    alone = calibrate(right, shares=False)
    np.testing.assert_allclose(some[0].bias, alone[0].bias, atol=0.02)


def data(n, noise=0.1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


@pytest.mark.parametrize("kind", [np.asarray, csr_matrix])
@pytest.mark.parametrize(("size", "enough"), [(1.0, True), (1e6, False)])
def test_large_weights_that_nearly_cancel_need_double(kind, size, enough):
    """Sums of ±size are rounded by size · 6e-8 each."""
    X = data(300)[0]
    w = size * np.array([[1.0], [1.0], [-1.0], [-1.0]])

    def predict(rows):
        piece = rows.take(slice(None)).astype(rows.template.dtype)
        return piece @ w.astype(rows.template.dtype)

    assert float32_suffices(predict, make_rows(kind(X)), np.array([0.1])) is enough


def test_numbers_beyond_float32_need_double():
    X = np.array([[1e300], [1.0], [2.0]])
    assert not float32_suffices(lambda rows: rows.take(slice(None)), make_rows(X), np.ones(1))


@pytest.mark.parametrize("kind", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_predictions_of_float32_rows_move_by_less_than_a_hundredth_of_the_error(kind):
    (X, y), n = data(400), 200
    regression = kind is nb.NystroemRegressor
    y = y if regression else y > 0
    model = kind(metric="each", local=False, **QUICK).fit(X[:n], y[:n])
    single = X[n:].astype(np.float32)
    outcome = model.predict if regression else model.decision_function
    moved = np.abs(outcome(single) - outcome(single.astype(np.float64)))
    assert model._single
    assert 0 < moved.max() < (0.01 * np.std(y[n:] - model.predict(single)) if regression else 1e-3)


def test_scores_of_machines_are_evaluated_in_float32_where_it_moves_them_little():
    X, y = data(200)
    model = nb.NystroemClassifier(loss="hinge", metric="each", **QUICK).fit(X, y > 0)
    assert model._single
    single, double = (
        np.asarray(model._evaluate(X.astype(dtype), type(model)._predict_mixture))
        for dtype in (np.float32, np.float64)
    )
    assert np.abs(single - double).max() > 0
    np.testing.assert_allclose(single, double, atol=0.02)
