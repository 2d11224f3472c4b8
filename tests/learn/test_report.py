"""What a learner says about itself: importances, a summary, HTML."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import nysboost as nb
from nysboost.learn.base import permutation_importances

QUICK = {"n_components": 16, "kernel": "gaussian", "random_state": 0}


def table(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    X["colour"] = rng.choice(["red", "green", "blue"], size=n)
    return X, 2 * X["b"].to_numpy() + (X["colour"] == "red").to_numpy()


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
    found = permutation_importances(lambda rows: rows @ weights, X, X @ weights, origins, 2)
    np.testing.assert_allclose(found, [0.9, 0.1], atol=0.03)
    nothing = permutation_importances(lambda rows: 0 * rows[:, :1], X, X[:, :1], np.arange(3), 3)
    np.testing.assert_allclose(nothing, 1 / 3)


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
    settings = {"metric": "each", "loss": loss, **QUICK}
    by_class = nb.NystroemClassifier(class_weight={"rare": 3}, **settings).fit(X, labels)
    by_row = nb.NystroemClassifier(**settings).fit(X, labels, np.where(rare, 3.0, 1.0))
    np.testing.assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), atol=1e-12)
    plain = nb.NystroemClassifier(**settings).fit(X, labels)
    balanced = nb.NystroemClassifier(class_weight="balanced", **settings).fit(X, labels)
    assert balanced.predict_proba(X)[:, 0].mean() > plain.predict_proba(X)[:, 0].mean() + 0.05


def test_balanced_weights_of_rows_that_come_later_are_not_known():
    X, y = table(60)
    model = nb.NystroemClassifier(class_weight="balanced", metric="each", **QUICK).fit(X, y > 0)
    with pytest.raises(ValueError, match="give a dict to partial_fit"):
        model.partial_fit(X, y > 0)


def test_one_core_gives_the_predictions_of_all():
    X, y = table(80)
    few, all_ = (
        nb.NystroemRegressor(metric="each", n_jobs=jobs, **QUICK).fit(X, y).predict(X)
        for jobs in (1, None)
    )
    np.testing.assert_allclose(few, all_, rtol=1e-6)
