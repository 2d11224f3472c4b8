"""The search as learners use it: scalings, mixtures, weights, and what it refuses."""

from types import SimpleNamespace

import numpy as np
import pytest
from learners import wave as table
from scipy.sparse import random as random_sparse
from sklearn.linear_model import LogisticRegression, Ridge

import nysboost as nb
from nysboost.kernels.metric import SCALINGS
from nysboost.learn.search.candidates import Solution
from nysboost.learn.search.data import Data
from nysboost.learn.search.model import mixture_weights
from nysboost.learn.search.regimes import MATERN32, make_candidates
from nysboost.learn.search.search import run_search
from nysboost.numerics.checks import Budget
from nysboost.rows.recognise import make_rows

QUICK = {"kernel": "matern", "metric": "each", "random_state": 0}


def rows(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) * [1, 1e4, 1e-3, 0] + [0, 50, 9, 7]


@pytest.mark.parametrize("scaling", SCALINGS.values())
@pytest.mark.parametrize("A", [np.array(0.5), np.full(4, 0.5), np.eye(4) / 2, np.eye(4)[:, :2]])
def test_features_in_the_coordinates_of_a_search_are_those_of_the_rows(scaling, A):
    X, fresh = rows(), rows(seed=1)
    scale = scaling(X)
    found = Solution(MATERN32, scale(X[:9]), A, 1.0).features(scale)
    kernel = nb.Matern(1.5, 1.0, metric=nb.Metric(A))
    expected = kernel(scale(fresh), scale(X[:9])) @ found.normalization
    np.testing.assert_allclose(found(fresh), expected, atol=1e-5)


@pytest.mark.parametrize(("n", "d", "noise"), [(150, 40, 0.5), (300, 8, 0.3)])
def test_a_linear_target_is_predicted_about_as_well_as_by_ridge_regression(n, d, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 500, d))
    y = X @ rng.normal(size=d) + noise * rng.normal(size=n + 500)
    errors = [
        np.std(model.fit(X[:n], y[:n]).predict(X[n:]) - y[n:])
        for model in (nb.NystroemRegressor(random_state=0), Ridge())
    ]
    assert errors[0] < 1.1 * errors[1]


def counts(seed: int, n: int = 500, d: int = 1000):
    """Sparse counts with a linear target, of which a fifth is noise; as many test rows."""
    draw = random_sparse(2 * n, d, density=0.02, format="csr", random_state=seed)
    X = draw.ceil()
    y = X @ np.random.default_rng(seed).normal(size=d)
    y = y / y.std() + 0.5 * np.random.default_rng(seed + 1).normal(size=2 * n)
    return X[:n], y[:n], X[n:], y[n:]


def test_a_wide_sparse_table_of_a_linear_target_is_predicted_as_ridge_regression_does():
    X, y, fresh, truth = counts(0)
    model = nb.NystroemRegressor(random_state=0)
    with pytest.warns(UserWarning, match="1,000 columns and only 500 rows, and a linear model"):
        model.fit(X, y)
    assert model.score(fresh, truth) > 0.97 * Ridge().fit(X, y).score(fresh, truth) > 0.1


def test_labels_of_a_wide_sparse_table_are_predicted_as_logistic_regression_does():
    X, y, fresh, truth = counts(0)
    with pytest.warns(UserWarning, match="and a linear model"):
        model = nb.NystroemClassifier(random_state=0).fit(X, y > 0)
    linear = LogisticRegression().fit(X, y > 0)
    assert model.score(fresh, truth > 0) > 0.94 * linear.score(fresh, truth > 0) > 0.58


def test_a_number_of_landmarks_bounds_those_of_a_wide_table_too():
    X, y, _, _ = counts(0, n=100, d=200)
    model = nb.NystroemRegressor(20, random_state=0).fit(X, y)
    assert model.n_components_ <= 20
    linear = nb.NystroemRegressor(20, kernel="linear", random_state=0).fit(X[:, :30], y)
    assert len(linear.candidates_) > 0


def test_a_wide_table_has_a_metric_of_each_feature_too_where_there_are_rows_enough():
    def shapes(n, metric="auto"):
        rows = SimpleNamespace(n=n, n_features=100)
        groups = make_candidates("auto", metric, "auto", None, "", rows)
        return [one.shape for group in groups for one in group if one.place is None]

    assert shapes(100) == ["full", "full", "each"]
    assert shapes(99) == ["full", "full"]
    assert shapes(99, "each") == ["each"]


def test_a_spike_is_seen_by_codes_and_a_file_keeps_them(tmp_path):
    rng = np.random.default_rng(0)
    X = np.exp(9 * rng.uniform(size=(6000, 2)))
    y = np.floor(np.log(X[:, 0])) % 2 + 0.1 * rng.normal(size=6000)
    model = nb.NystroemRegressor(32, kernel="matern", random_state=0).fit(X[:5500], y[:5500])
    assert any(member.codes is not None for member in model._members)
    assert model.score(X[5500:], y[5500:]) > 0.8
    assert model.feature_importances_.shape == (2,)
    assert model.feature_importances_[0] > 0.9
    nb.save(model, tmp_path / "model")
    np.testing.assert_array_equal(nb.load(tmp_path / "model").predict(X), model.predict(X))


def test_mixture_weights_are_those_of_ridge_regression_of_sum_one():
    rng = np.random.default_rng(1)
    y = rng.normal(size=(200, 1))
    means = [y + 0.5 * rng.normal(size=y.shape) for _ in range(2)]
    ridge = Ridge(1e-12, fit_intercept=False).fit(means[0] - means[1], y - means[1])
    found = mixture_weights(means, y, np.ones(200))
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found[0], ridge.coef_[0], rtol=0.02)
    np.testing.assert_array_equal(mixture_weights([*means, y], y, np.ones(200)), [0, 0, 1])


def test_a_held_out_row_that_counts_twice_is_two_rows_in_a_mixture():
    rng = np.random.default_rng(1)
    y, counts = rng.normal(size=(40, 1)), rng.integers(0, 3, size=40)
    means = [y + 0.5 * rng.normal(size=y.shape) for _ in range(3)]
    twice = mixture_weights(
        [np.repeat(m, counts, axis=0) for m in means],
        np.repeat(y, counts, 0),
        np.ones(counts.sum()),
    )
    np.testing.assert_allclose(mixture_weights(means, y, counts.astype(float)), twice, rtol=1e-8)


def test_rows_of_little_weight_hardly_change_what_is_learned():
    rng = np.random.default_rng(0)
    X, fresh = rng.uniform(-2, 2, size=(2, 400, 2))
    light = np.arange(400) % 2 == 1
    y = np.where(light, 3 * rng.normal(size=400), np.sin(3 * X[:, 0]))
    model = nb.NystroemRegressor(16, kernel="gaussian", metric="each", random_state=0)
    predicted = model.fit(X, y, sample_weight=np.where(light, 1e-4, 1.0)).predict(fresh)
    assert np.sqrt(np.mean((predicted - np.sin(3 * fresh[:, 0])) ** 2)) < 0.01


@pytest.mark.parametrize("n", [300, 5200])
def test_only_ratios_of_weights_matter_and_rows_without_weight_do_not(n):
    X, y = table(n)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, n)
    how = QUICK | {"local": n < 1000 and "auto"}
    models = [
        nb.NystroemRegressor(8, **how).fit(X, y, weights),
        nb.NystroemRegressor(8, **how).fit(X, y, 1000 * weights),
        nb.NystroemRegressor(8, **how).fit(
            np.vstack([X, X[:9] + 5]), np.r_[y, 99 + y[:9]], np.r_[weights, np.zeros(9)]
        ),
    ]
    first, scaled, zeros = (model.predict(X[:20]) for model in models)
    np.testing.assert_allclose(scaled, first, atol=1e-4)
    np.testing.assert_allclose(zeros, first, atol=1e-4)


@pytest.mark.parametrize(("kernel", "height"), [(nb.Gaussian(gamma=0.5), 1), (nb.Anova(), 3)])
def test_how_far_out_a_row_is_is_the_share_of_its_variance_that_the_rows_leave(kernel, height):
    X, y = table(300)
    how = {"landmarks": "uniform", "local": False, "random_state": 0}
    model = nb.NystroemRegressor(20, kernel=kernel, **how).fit(X, y)._members[0].model
    rows = X * np.linspace(0.5, 3, 300)[:, None]

    def left(rows):
        return (model.spread(model.features(rows)) - 1) * model.doubt / height

    usual = min(4 * left(X).mean(), 0.75)
    expected = np.maximum((left(rows) - usual) / (1 - usual), 0)
    assert 0 < np.count_nonzero(expected) < 300
    np.testing.assert_allclose(model.outlying(model.features(rows), 4), expected, atol=1e-6)


def test_the_order_of_few_rows_and_a_row_twice_change_nothing():
    X, y = table(120)
    order = np.random.default_rng(3).permutation(120)
    expected = nb.NystroemRegressor(8, **QUICK).fit(X, y).predict(X[:20])
    found = nb.NystroemRegressor(8, **QUICK).fit(X[order], y[order]).predict(X[:20])
    np.testing.assert_allclose(found, expected, atol=1e-8)
    twice = nb.NystroemRegressor(8, **QUICK).fit(np.vstack([X, X]), np.r_[y, y]).predict(X[:20])
    np.testing.assert_allclose(twice, expected, atol=1e-8)


def test_landmarks_that_memory_cannot_hold_are_refused_before_any_work():
    X, y = table(400)
    with pytest.raises(ValueError, match=r"6000 landmarks need about .* max_memory is 1\.0 MB"):
        nb.NystroemRegressor(6000, max_memory="1MB").fit(np.tile(X, (20, 1)), np.tile(y, 20))


def test_wide_sparse_rows_are_learned_among_their_principal_components():
    X = random_sparse(100, 3000, density=0.02, format="csr", random_state=0)
    y = np.asarray(X[:, :300].sum(axis=1)).ravel()
    model = nb.NystroemRegressor(10, **QUICK | {"local": False}).fit(X[:80], y[:80])
    assert np.isfinite(model.predict(X[80:])).all()
    assert model.components_.shape[1] == 3000


@pytest.mark.parametrize("seed", [3, 4])
def test_predictions_in_a_gap_between_rows_stay_near_the_range_of_y(seed: int) -> None:
    rng, grid = np.random.default_rng(seed), np.linspace(-6.5, 6.5, 261)
    K = nb.Matern(nu=1.5, sigma=0.8)(grid[:, None], grid[:, None])
    truth = np.linalg.cholesky(K + 1e-9 * np.eye(len(grid))) @ rng.normal(size=len(grid))
    x = np.concatenate([rng.uniform(-4, -0.5, 120), rng.uniform(1.5, 4, 80)])
    y = np.interp(x, grid, truth) + 0.15 * rng.normal(size=200)
    model = nb.NystroemRegressor(random_state=0).fit(x[:, None], y)
    assert np.abs(model.predict(np.linspace(-0.5, 1.5, 50)[:, None])).max() < 2 * np.abs(y).max()


def test_rows_of_few_categories_are_held_out_one_by_one():
    """Labels of four cells: merged rows, held out, would take all of one label with them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 2)).astype(float)
    chance = np.array([[0.1, 0.8], [0.6, 0.3]])[X[:, 0].astype(int), X[:, 1].astype(int)]
    y = rng.random(400) < chance
    found = nb.NystroemClassifier(8, **QUICK).fit(X, y).predict_proba(X)[:, 1]
    assert np.abs(found - chance).max() < 0.12
    weighed = nb.NystroemClassifier(8, **QUICK)
    cells, counts = np.unique(np.c_[X, y], axis=0, return_counts=True)
    weighed.fit(cells[:, :2], cells[:, 2] > 0, sample_weight=counts)
    np.testing.assert_allclose(weighed.predict_proba(X)[:, 1], found, atol=1e-8)


def held_out(n, **how):
    """Rows of each fold, of a table whose first column numbers the rows."""
    X = np.stack([np.arange(n), np.ones(n)], axis=1).astype(float)
    rng = np.random.default_rng(0)
    data = Data.draw(make_rows(X), X[:, :1], None, rng, Budget(2**26), **how)
    numbers = X[:, 0] if data.rows.n == n else None
    assert numbers is not None
    return [(data.sample(s.train).X[:, 0], data.sample(s.held).X[:, 0]) for s in data.splits]


@pytest.mark.parametrize("n", [300, 6000])
def test_the_last_rows_are_held_out_in_the_order_of_time(n):
    for train, held in held_out(n, cv="time"):
        assert train.max() < held.min()
        assert held.max() == n - 1


@pytest.mark.parametrize("n", [300, 6000])
def test_a_group_is_held_out_as_a_whole(n):
    groups = np.arange(n) % 30
    for train, held in held_out(n, groups=groups):
        assert len(train) > len(held) > 0
        assert not set(train % 30) & set(held % 30)


def test_rows_of_equal_features_are_held_out_together():
    X = np.repeat(np.random.default_rng(0).normal(size=(40, 2)), 4, axis=0)
    Y = np.random.default_rng(1).normal(size=(160, 1))
    data = Data.draw(make_rows(X), Y, None, np.random.default_rng(0), Budget(2**26))
    assert len(data.folds) == 5
    for split in data.splits:
        train, held = (set(data.sample(part).X[:, 0]) for part in split)
        assert not train & held


def test_one_group_cannot_be_held_out():
    with pytest.raises(ValueError, match="All rows belong to one group"):
        held_out(300, groups=np.zeros(300, dtype=int))


def test_a_search_that_has_no_time_returns_a_model():
    X, y = table(400)
    rows, Y = make_rows(X), y[:, None] / y.std()
    groups = make_candidates("auto", "auto", "auto", None, "target", rows)
    how = {"local": "auto", "budget": Budget(2**28), "max_time": 1e-9}
    found = run_search(rows, Y, None, groups, 64, np.random.default_rng(0), **how)
    assert found.members
    missed = np.sqrt(np.mean((found.mean - found.truth) ** 2))
    assert np.isfinite(missed)


@pytest.fixture(scope="module")
def of_steep():
    """A model of a steep effect of one column, and weaker ones of two others together."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(66_500, 4))
    weaker = np.sin(5 * X[:, 1]) * np.cos(5 * X[:, 2])
    y = 100 * np.abs(X[:, 0]) + weaker + 0.1 * rng.normal(size=66_500)
    train, fresh = np.split(np.arange(66_500), [66_000])
    model = nb.NystroemRegressor(24, local=False, random_state=0).fit(X[train], y[train])
    return model, X[fresh], y[fresh], weaker[fresh]


def test_a_steep_effect_of_one_column_does_not_hide_weaker_ones_of_others(of_steep):
    model, fresh, truth, weaker = of_steep
    missed = truth - model.predict(fresh)
    assert np.std(missed) < 0.5 * np.std(weaker)


def test_a_row_outside_the_range_of_a_column_has_a_wide_interval_there_too(of_steep):
    model, fresh, truth, _ = of_steep
    far = fresh[:5] + np.array([9, 0, 0, 0])
    _, std = model.predict(np.concatenate([fresh, far]), return_std=True)
    nearly_all = np.quantile(std[:-5], 0.95)
    assert nearly_all < 0.1 * truth.std() < truth.std() < std[-5:].min()


def test_a_model_after_a_linear_one_is_kept_in_a_file_and_takes_new_rows(of_steep, tmp_path):
    model, fresh, truth, _ = of_steep
    assert any(member.base is not None for member in model._members)
    nb.save(model, tmp_path / "model")
    kept = nb.load(tmp_path / "model")
    np.testing.assert_array_equal(kept.predict(fresh), model.predict(fresh))
    before = model.predict(fresh)
    after = kept.partial_fit(fresh, truth).predict(fresh)
    assert np.mean((after - truth) ** 2) < np.mean((before - truth) ** 2)


def test_a_model_after_a_linear_one_is_exported(of_steep, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model, fresh, *_ = of_steep
    nb.to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    name = session.get_inputs()[0].name
    found = session.run(None, {name: fresh})[0]
    np.testing.assert_allclose(found.ravel(), model.predict(fresh), atol=1e-6)
