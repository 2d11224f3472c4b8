"""Regression in one line: laws, tables as they come, and bad input."""

import copy
import re
from decimal import Decimal
from functools import cache

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from containers import CONTAINERS, memory_map
from hypothesis import given
from hypothesis import strategies as st
from learners import wave as table
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

import nysboost as nb
from nysboost.learn.distribution import calibrate_distribution
from nysboost.learn.search.search import SearchResult

TRAINED = {"kernel": "matern", "metric": "each", "random_state": 0}
QUICK = TRAINED | {"scale": "standard", "local": False}
GIVEN = {"kernel": "gaussian", "metric": None, "landmarks": "uniform", "random_state": 0}
"""Landmarks trained on y; the same without other scalings and leaves; none that are trained."""


NUMERICAL_CHECKS = (
    "fit_idempotent", "methods_sample_order_invariance", "methods_subset_invariance",
    "sample_weight_equivalence_on_dense_data", "regressors_train", "regressors_int",
    "estimators_pickle", "fit2d_1sample", "fit2d_1feature",
)  # fmt: skip


@pytest.mark.parametrize("check", NUMERICAL_CHECKS)
def test_landmarks_trained_on_y_keep_what_the_contract_says_of_numbers(check):
    check = getattr(estimator_checks, f"check_{check}")
    check("NystroemRegressor", nb.NystroemRegressor(4, **QUICK))


@pytest.mark.parametrize("n", [250, 5200])
def test_it_predicts_and_its_intervals_cover(n):
    (X, y), (fresh, truth) = table(n), table(1000, seed=1)
    model = nb.NystroemRegressor(30, **TRAINED | {"local": n < 1000 and "auto"}).fit(X, y)
    mean, std = model.predict(fresh, return_std=True)
    assert model.score(fresh, truth) > 0.98
    assert 0.85 < np.mean(np.abs(mean - truth) < 1.96 * std) < 0.99
    assert model.feature_importances_.argmax() == 0
    assert model.feature_importances_[2] < 0.1
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert model.kernel_.metric is not None
    assert model.approximation_.shape == (n, n)


def test_far_rows_get_the_mean_and_a_wide_interval():
    X, y = table()
    model = nb.NystroemRegressor(20, **QUICK).fit(X, y + 100)
    near, far = model.predict(X[:1], True), model.predict(np.full((1, 3), 1e9), True)
    np.testing.assert_allclose(far[0], y.mean() + 100, atol=1e-6)
    assert np.isfinite(far[1]).all()
    assert far[1] > 3 * near[1]
    assert far[1] == pytest.approx(y.std(), rel=0.1)


def test_the_scales_of_features_and_of_y_do_not_matter():
    (X, y), model = table(150), nb.NystroemRegressor(15, **TRAINED | {"local": False})
    expected, scaled = model.fit(X, y).predict(X), X * np.array([1e3, 1e-4, 1.0]) + 5
    for found in (
        (model.fit(X, 50 * y - 7).predict(X) + 7) / 50,
        model.fit(scaled, y).predict(scaled),
    ):
        assert np.sqrt(np.mean((found - expected) ** 2)) < 0.05 * y.std()


@pytest.mark.parametrize("n", [250, 600])
def test_quantiles_do_not_see_rising_functions_of_features(n):
    X, y = table(n)
    bent = np.column_stack([np.exp(3 * X[:, 0]), X[:, 1] ** 3, X[:, 2]])
    model = nb.NystroemRegressor(15, **QUICK | {"scale": "quantile"})
    one, other = clone(model).fit(X, y), clone(model).fit(bent, y)
    np.testing.assert_allclose(other.feature_importances_, one.feature_importances_, atol=0.02)
    gap = other.predict(bent) - one.predict(X)
    assert np.sqrt(np.mean(gap**2)) < (1e-6 if n <= 512 else 0.03) * y.std()
    assert one.kernel_.metric.warp is not None
    near, far = one.predict(X[:1], True), one.predict(np.full((1, 3), 1e9), True)
    np.testing.assert_allclose(far[0], y.mean(), atol=1e-3)
    assert far[1] > 3 * near[1]


def test_quantiles_are_saved_searched_and_go_with_any_rows(tmp_path):
    X, y = table(200)
    X = np.exp(2 * X)
    how = QUICK | {"scale": "quantile", "max_memory": "1MB"}
    model = nb.NystroemRegressor(15, **how).fit(X, y)
    expected = model.predict(X)
    np.testing.assert_array_equal(_saved(model, tmp_path).predict(X), expected)
    for rows in (memory_map(X, tmp_path), da.from_array(X, 500)):
        again = clone(model).fit(rows, y)
        np.testing.assert_allclose(np.asarray(again.predict(rows)), expected, atol=1e-6)
    grid = {"scale": ["standard", "quantile", None]}
    found = GridSearchCV(nb.NystroemRegressor(8, **QUICK), grid, cv=2).fit(X[:100], y[:100])
    assert found.best_params_ == {"scale": "quantile"}


@cache
def predictions_in_memory(n):
    X, y = table(n)
    return nb.NystroemRegressor(15, max_memory="1MB", **QUICK).fit(X, y).predict(X)


@pytest.mark.parametrize("kind", [*CONTAINERS, "float32", "blocks"])
def test_rows_may_come_from_anywhere(tmp_path, kind):
    (X, y), expected = table(400), predictions_in_memory(400)
    model = nb.NystroemRegressor(15, max_memory="1MB", **QUICK)
    rows = CONTAINERS[kind](X, tmp_path) if kind in CONTAINERS else X
    if kind == "blocks":
        model.fit((X[rows], y[rows]) for rows in np.array_split(np.arange(400), 5))
    else:
        model.fit(rows.astype(np.float32) if kind == "float32" else rows, y)
    gap = model.predict(rows) - expected
    assert np.sqrt(np.mean(gap**2)) < (0.05 if kind == "float32" else 1e-6)


def test_torch_rows_stay_torch():
    torch = pytest.importorskip("torch")
    X, y = table(400)
    model = nb.NystroemRegressor(15, **TRAINED).fit(torch.asarray(X), torch.asarray(y))
    mean, std = model.predict(torch.asarray(X), return_std=True)
    assert isinstance(mean, torch.Tensor)
    assert isinstance(std, torch.Tensor)
    assert np.corrcoef(np.asarray(mean), y)[0, 1] > 0.98


@pytest.mark.parametrize("kind", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_more_rows_later_change_the_weights_as_if_they_had_been_there(kind):
    X, y = table(600)
    y = y if kind is nb.NystroemRegressor else y > 0
    model = kind(15, **QUICK).partial_fit(X[:300], y[:300])
    before, weights = model.score(X[300:], y[300:]), model._members[0].model.moments.weight
    model.partial_fit(X[300:], y[300:])
    assert model._members[0].model.moments.weight == weights + 300
    assert model.score(X[300:], y[300:]) >= before - 0.01


def test_rows_of_another_region_leave_the_predictions_of_the_first():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(900, 2))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])
    first = X[:, 0] < 0
    model = nb.NystroemRegressor(32, local=True, **TRAINED | {"scale": "standard"})
    model.fit(X[first], y[first])
    assert model.mixture_weights_.sum() == pytest.approx(1)
    inner = X[:, 0] < -0.3
    known = np.std(model.predict(X[inner]) - y[inner])
    model.partial_fit(X[~first], y[~first])
    assert np.std(model.predict(X[inner]) - y[inner]) < 2 * known + 1e-3
    assert np.std(model.predict(X[~first]) - y[~first]) < 0.3


def test_rows_without_weights_count_as_rows_of_weight_one():
    X, y = table(200)
    model = nb.NystroemRegressor(10, **GIVEN).fit(X[:100], y[:100], np.full(100, 0.01))
    without, ones = copy.deepcopy(model), copy.deepcopy(model)
    without.partial_fit(X[100:], y[100:])
    ones.partial_fit(X[100:], y[100:], np.ones(100))
    np.testing.assert_array_equal(without.predict(X), ones.predict(X))
    heavy = nb.NystroemRegressor(10, **GIVEN).fit(X[:100], y[:100])
    heavy.partial_fit(X[100:], y[100:], np.full(100, 100.0))
    np.testing.assert_allclose(without.predict(X), heavy.predict(X), atol=1e-9)


def test_rows_added_as_lists_leave_the_shape_of_predictions():
    X, y = table(60)
    model = nb.NystroemRegressor(5, **GIVEN).fit(X, y)
    model.partial_fit(X.tolist(), y[:, None].tolist())
    assert model.predict(X).shape == (60,)


def test_several_outputs():
    X, y = table()
    Y = np.stack([y, X[:, 1] ** 2], axis=1)
    model = nb.NystroemRegressor(30, **QUICK).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert model.score(X, Y) > 0.97


def _saved(model, folder):
    nb.save(model, folder / "model")
    return nb.load(folder / "model")


@pytest.mark.parametrize("n", [1, 2, 3, 7, 45])
def test_few_rows_and_more_landmarks_than_rows(n):
    X, y = table(60)
    model = nb.NystroemRegressor(50, kernel="matern", random_state=0).fit(X[:n], y[:n])
    assert np.isfinite(model.predict(X, return_std=True)).all()
    if n > 1:
        labels = np.r_[["low", "high"], np.where(y > 0, "high", "low")][:n]
        classifier = nb.NystroemClassifier(50, **TRAINED).fit(X[:n], labels)
        assert np.isfinite(classifier.predict_proba(X)).all()
        assert set(classifier.predict(X)) <= {"low", "high"}


def test_a_constant_target_is_predicted_as_it_is():
    X, _ = table(60)
    for n in (60, 20):
        model = nb.NystroemRegressor(10, **TRAINED).fit(X[:n], np.full(n, 4.25))
        np.testing.assert_allclose(model.predict(X * 3), 4.25)


def test_there_are_no_more_landmarks_than_different_rows():
    X, y = table(40)
    model = nb.NystroemRegressor(20, **QUICK).fit(np.repeat(X[:5], 8, axis=0), y)
    assert len(model.components_) == 5


def test_constant_and_duplicate_columns_do_no_harm():
    X, y = table(200)
    worse = np.c_[X, X[:, 0], np.full(200, 7.0), np.full(200, 1e30)]
    model = nb.NystroemRegressor(20, **QUICK).fit(worse, y)
    assert model.score(worse, y) > 0.97
    assert model.feature_importances_[4:].sum() == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_the_interval_in_a_gap_between_rows_is_wide(seed):
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(-4, -0.5, 120), rng.uniform(1.5, 4, 80)])
    y = np.sin(4 * x) * np.cos(x) + 0.15 * rng.normal(size=len(x))
    gap = np.linspace(-0.5, 1.5, 200)
    model = nb.NystroemRegressor(50, random_state=0).fit(x[:, None], y)
    mean, std = model.predict(gap[:, None], return_std=True)
    assert std.max() > 0.9 * y.std()
    assert np.mean(np.abs(np.sin(4 * gap) * np.cos(gap) - mean) < 1.96 * std) > 0.6


def test_the_number_of_landmarks_may_be_left_to_it_and_a_file_keeps_that(tmp_path):
    X, y = table(100)
    model = clone(nb.NystroemRegressor("auto", **GIVEN)).fit(X, y)
    expected = nb.NystroemRegressor(**GIVEN).fit(X, y).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert _saved(model, tmp_path).n_components == "auto"
    assert nb.NystroemRegressor(**GIVEN).fit(*table(300)).n_components_ == 256


@pytest.mark.parametrize("n", [60, 5200])
def test_progress_is_printed_if_asked_for(capsys, n):
    X, y = table(n)
    nb.NystroemRegressor(5, verbose=1, **QUICK).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert "held-out error" in lines[0]
    assert all(re.match(r"NystroemRegressor .* s  .*", line) for line in lines)
    nb.NystroemRegressor(5, **GIVEN).fit(X, y)
    assert capsys.readouterr() == ("", "")


@given(st.integers(2, 60), st.integers(0, 100))
def test_an_interval_has_the_rank_of_conformal_prediction(n, seed):
    """Of n rows the ⌈.95 (n + 1)⌉-th, or the last."""
    rng = np.random.default_rng(seed)
    truth, mean, spread = rng.normal(size=(3, n, 2)) ** 2
    rank = min(int(np.ceil(0.95 * (n + 1) - 1e-9)), n) - 1
    fitted = SearchResult([], truth, mean, None, [], variance=lambda: spread**2)
    found = calibrate_distribution(fitted, np.zeros(n, dtype=bool))
    for scale in (found.without_gaps, found.with_gaps):
        at = np.sort(np.abs(truth - mean) / np.sqrt(spread**2 + scale.b), axis=0)[rank]
        np.testing.assert_allclose(scale.a * 1.959964, at, 1e-6)


@pytest.mark.parametrize("column", ["a", "kind"])
def test_intervals_cover_rows_with_gaps_and_rows_without(column):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(900, 2)), columns=["a", "b"])
    frame["kind"] = rng.choice(["up", "down"], size=900)
    y = 2 * np.sin(2 * frame["a"]) + frame["b"] + 2 * (frame["kind"] == "up")
    y += 0.1 * rng.normal(size=900)
    frame.loc[rng.random(900) < 0.1, column] = None
    model = nb.NystroemRegressor(24, random_state=0).fit(frame[:600], y[:600])
    mean, std = model.predict(frame[600:], return_std=True)
    whole = frame[column][600:].notna().to_numpy()
    inside = np.abs(y[600:] - mean) < 1.96 * std
    for rows in (whole, ~whole):
        assert 0.85 <= inside[rows].mean() <= 1
    assert std[whole].mean() < 0.3 * std[~whole].mean()


def test_names_after_a_fit_without_names_are_warned_about_and_not_kept():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = nb.NystroemRegressor(5, **QUICK).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict(pd.DataFrame(X, columns=["a", "b"]))
    assert not hasattr(model, "feature_names_in_")


SHARES = {"a list": [0.9], "several": np.array([0.5, 0.9])}


@pytest.mark.parametrize("share", SHARES)
def test_the_coverage_of_an_interval_is_one_number(share):
    model = small_regressor()
    with pytest.raises(ValueError, match="coverage is one number"):
        model.predict_interval(np.zeros((1, 2)), SHARES[share])


def test_a_decimal_is_a_coverage_and_no_levels_are_refused():
    model = small_regressor()
    rows = np.zeros((3, 2))
    of_decimal = model.predict_interval(rows, Decimal("0.9"))
    np.testing.assert_array_equal(of_decimal, model.predict_interval(rows, 0.9))
    with pytest.raises(ValueError, match="levels should be between 0 and 1"):
        model.predict_quantiles(rows, [])


def test_blocks_of_other_widths_and_of_too_few_targets_are_refused():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = nb.NystroemRegressor(8, local=False, random_state=0)
    with pytest.raises(ValueError, match="have 1 to 2 columns"):
        model.fit(iter([(X[:, :1], X[:, 0]), (X, X[:, 0])]))
    # as many in all, of other rows
    with pytest.raises(ValueError, match="has 20 rows in X and 10 values in y"):
        model.fit(iter([(X[:20], X[:10, 0]), (X[20:], X[10:, 0])]))


def small_regressor():
    X = np.random.default_rng(0).normal(size=(40, 2))
    return nb.NystroemRegressor(8, local=False, random_state=0).fit(X, X[:, 0])


@pytest.mark.parametrize("how", [{"kernel": "linear", "local": False}, {}])
def test_few_rows_of_a_linear_target_are_predicted_as_by_ridge_regression(how):
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(396, 3))
        y = X @ [1, 2, 3] + 0.1 * rng.normal(size=396)
        errors = []
        for model in nb.NystroemRegressor(**how, random_state=0), RidgeCV(np.logspace(-4, 3, 20)):
            missed = model.fit(X[:96], y[:96]).predict(X[96:]) - y[96:]
            errors.append(np.sqrt(np.mean(missed**2)))
        ratios.append(errors[0] / errors[1])
    assert max(ratios) < 1.06
