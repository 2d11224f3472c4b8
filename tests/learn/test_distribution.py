"""Predictive distributions: intervals, quantiles, samples, densities and scores."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import trapezoid
from scipy.stats import expon, norm

import nysboost as nb
from nysboost.learn.distribution import calibrate_distribution
from nysboost.learn.search.search import SearchResult

FAST = {"kernel": "gaussian", "metric": None, "landmarks": "uniform", "random_state": 0}


def skewed(n, seed=0):
    """Return rows and targets whose noise is exponential, and larger where y is large."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    spread = 0.1 + 0.2 * (X[:, 0] + 2)
    return X, X[:, 0] + np.sin(X[:, 1]) + spread * (rng.exponential(size=n) - 1)


@pytest.fixture(scope="module")
def model():
    return nb.NystroemRegressor(25, **FAST).fit(*skewed(3000))


@pytest.fixture(scope="module")
def fresh():
    return skewed(4000, seed=1)


def pinball(y, quantiles, levels):
    missed = y[:, None] - quantiles
    return np.mean(np.maximum(levels * missed, (levels - 1) * missed))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.98])
def test_intervals_of_every_level_cover_also_where_noise_is_skewed(model, fresh, coverage):
    X, y = fresh
    lower, upper = model.predict_interval(X, coverage)
    assert np.mean((lower <= y) & (y <= upper)) == pytest.approx(coverage, abs=0.04)
    for side in (y < lower, y > upper):
        assert np.mean(side) == pytest.approx((1 - coverage) / 2, abs=0.04)


def test_quantiles_do_not_cross_and_are_better_than_normal_ones(model, fresh):
    X, y = fresh
    levels = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
    found = model.predict_quantiles(X, levels)
    assert found.shape == (4000, 7)
    assert (np.diff(found, axis=1) > 0).all()
    mean, std = model.predict(X, return_std=True)
    normal = mean[:, None] + std[:, None] * norm.ppf(levels)
    assert pinball(y, found, levels) < 0.9 * pinball(y, normal, levels)
    lower, upper = model.predict_interval(X, 0.9)
    ends = np.stack([lower, upper], axis=1)
    assert (np.abs(ends - found[:, [1, 5]]) < 0.02 * std[:, None]).all()


def test_noise_that_grows_with_the_prediction_has_intervals_that_grow(model):
    low, high = [[-1.9, 0.0]], [[1.9, 0.0]]
    widths = [np.subtract(*model.predict_interval(rows, 0.8)[::-1])[0] for rows in (low, high)]
    assert widths[1] > 2.5 * widths[0]  # the noise is seven times as large


def test_samples_have_the_quantiles_and_the_same_seed_the_same_samples(model):
    X = skewed(3, seed=2)[0]
    drawn = model.sample(X, 20_000, random_state=0)
    assert drawn.shape == (3, 20_000)
    levels = np.array([0.05, 0.5, 0.95])
    expected = model.predict_quantiles(X, levels)
    np.testing.assert_allclose(np.quantile(drawn, levels, axis=1).T, expected, atol=0.05)
    np.testing.assert_array_equal(drawn, model.sample(X, 20_000, random_state=0))


def test_the_density_adds_up_to_one_and_is_that_of_the_quantiles(model):
    row = skewed(1, seed=3)[0]
    y = np.linspace(-15, 15, 60_001)  # noise begins abruptly: the density is narrow there
    density = np.exp(model.log_prob(np.repeat(row, len(y), axis=0), y))
    assert trapezoid(density, y) == pytest.approx(1, abs=0.01)
    lower, upper = (float(end[0]) for end in model.predict_interval(row, 0.8))
    inside = (y >= lower) & (y <= upper)
    assert trapezoid(density[inside], y[inside]) == pytest.approx(0.8, abs=0.02)


def test_densities_of_new_rows_are_higher_than_normal_ones(model, fresh):
    X, y = fresh
    mean, std = model.predict(X, return_std=True)
    assert model.log_prob(X, y).mean() > norm.logpdf(y, mean, std).mean() + 0.1
    far = model.log_prob(X[:1], [1e6])
    assert np.isfinite(far).all()


def test_the_ranked_probability_score_is_that_of_samples(model):
    X, y = skewed(20, seed=4)
    drawn = model.sample(X, 4000, random_state=0)
    # E|Y − y| − E|Y − Y′|/2 (Gneiting and Raftery 2007)
    from_samples = np.mean(np.abs(drawn - y[:, None]), axis=1)
    from_samples -= np.mean(np.abs(drawn[:, :2000] - drawn[:, 2000:]), axis=1) / 2
    np.testing.assert_allclose(model.crps(X, y), from_samples, atol=0.03)


def test_several_outputs_have_distributions_of_their_own():
    X, y = skewed(600)
    model = nb.NystroemRegressor(15, **FAST).fit(X, np.stack([y, 10 * y], axis=1))
    lower, upper = model.predict_interval(X[:7], 0.9)
    assert lower.shape == upper.shape == (7, 2)
    quantiles = model.predict_quantiles(X[:7], [0.05, 0.5, 0.95])
    assert quantiles.shape == (7, 2, 3)
    np.testing.assert_allclose(quantiles[:, :, 0], lower, atol=0.2)
    np.testing.assert_allclose(quantiles[:, 1], 10 * quantiles[:, 0], rtol=1e-6, atol=1e-6)
    assert model.sample(X[:7], 5).shape == (7, 2, 5)
    Y = np.stack([y, 10 * y], axis=1)[:7]
    assert model.log_prob(X[:7], Y).shape == model.crps(X[:7], Y).shape == (7, 2)


def test_lazy_rows_have_lazy_quantiles_and_files_keep_them(model, tmp_path):
    X = skewed(40, seed=5)[0]
    rows = da.from_array(X, chunks=(15, 2))
    levels = [0.1, 0.9]
    expected = model.predict_quantiles(X, levels)
    found = model.predict_quantiles(rows, levels)
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), expected)
    assert all(isinstance(end, da.Array) for end in model.predict_interval(rows))
    with pytest.raises(ValueError, match="X is lazy"):
        model.sample(rows)
    nb.save(model, tmp_path / "model")
    restored = nb.load(tmp_path / "model")
    np.testing.assert_array_equal(restored.predict_quantiles(X, levels), expected)


def test_torch_rows_have_torch_quantiles():
    torch = pytest.importorskip("torch")
    X, y = map(torch.asarray, skewed(300))
    model = nb.NystroemRegressor(15, **FAST).fit(X, y)
    found = model.predict_quantiles(X[:5])
    assert isinstance(found, torch.Tensor)
    assert isinstance(model.predict_interval(X[:5])[0], torch.Tensor)
    assert model.sample(X[:5], 3).shape == (5, 3)


def test_a_single_row_says_nothing_about_the_noise():
    model = nb.NystroemRegressor(5, **FAST).fit([[1.0, 2.0]], [7.0])
    assert model.predict([[1.0, 2.0]], return_std=True)[1] > 1
    lower, upper = model.predict_interval([[1.0, 2.0]], 0.9)
    assert lower < 7 < upper


@pytest.mark.parametrize("coverage", [0.0, 1.0, 90, -0.5])
def test_coverages_that_are_no_shares_are_refused(model, coverage):
    with pytest.raises(ValueError, match="coverage should be between 0 and 1"):
        model.predict_interval([[0.0, 0.0]], coverage)


def distribution_of(residuals, weights=None):
    mean = np.zeros_like(residuals)
    fitted = SearchResult([], residuals, mean, weights, [], variance=lambda: mean + 1)
    return calibrate_distribution(fitted, np.zeros(len(mean), dtype=bool))


@pytest.mark.parametrize("n", [19, 99])
def test_quantiles_are_those_of_conformal_prediction(n):
    """Of n residuals the i-th is the quantile of level i/(n + 1)."""
    levels = np.arange(1, n + 1) / (n + 1)
    residuals = expon.ppf(levels) - 1
    fitted = distribution_of(residuals[:, None])
    std = np.sqrt(fitted.without_gaps(np.ones((1, 1))))
    found = fitted.quantiles(np.zeros((1, 1)), std, levels)[0, 0]
    np.testing.assert_allclose(found, residuals, atol=0.02)


def test_rows_of_a_weight_count_as_often():
    rng = np.random.default_rng(0)
    residuals, counts = rng.normal(size=(60, 1)), rng.integers(1, 4, size=60)
    one = distribution_of(residuals, counts * 1.0)
    other = distribution_of(np.repeat(residuals, counts, axis=0))
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    found = [d.quantiles(np.zeros((1, 1)), np.ones((1, 1)), levels) for d in (one, other)]
    np.testing.assert_allclose(found[0], found[1], atol=0.1)


def test_mapie_calibrates_with_our_standard_deviations(model, fresh):
    regression = pytest.importorskip("mapie.regression")
    scores = pytest.importorskip("mapie.conformity_scores")
    X, y = fresh
    conformal = regression.SplitConformalRegressor(
        model, confidence_level=0.8, conformity_score=scores.StdConformityScore(), prefit=True
    )
    _, intervals = conformal.conformalize(X[:2000], y[:2000]).predict_interval(X[2000:])
    lower, upper = intervals[:, 0, 0], intervals[:, 1, 0]
    assert np.mean((lower <= y[2000:]) & (y[2000:] <= upper)) == pytest.approx(0.8, abs=0.04)


def test_skpro_predicts_intervals_from_our_standard_deviations(fresh):
    adapters = pytest.importorskip("skpro.regression.adapters.sklearn")
    columns = ["a", "b"]
    X, y = (pd.DataFrame(part[:300]) for part in fresh)
    X.columns = columns
    adapted = adapters.SklearnProbaReg(nb.NystroemRegressor(15, **FAST)).fit(X, y)
    mean, std = adapted.estimator_.predict(X, return_std=True)
    found = adapted.predict_interval(X, coverage=0.8).to_numpy()
    expected = mean[:, None] + std[:, None] * norm.ppf([0.1, 0.9])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_intervals_of_replicated_rows_cover():
    """Ten distinct rows, each measured four times: equal rows are held out together."""
    covered = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        distinct = rng.uniform(-2, 2, size=(10, 2))
        X = np.concatenate([np.repeat(distinct, 4, axis=0), np.repeat(distinct, 25, axis=0)])
        y = np.sin(X[:, 0]) + X[:, 1] / 2 + 0.3 * rng.normal(size=len(X))
        how = {"kernel": "matern", "metric": "each", "scale": "standard", "random_state": 0}
        model = nb.NystroemRegressor(10, **how).fit(X[:40], y[:40])
        lower, upper = model.predict_interval(X[40:], 0.9)
        covered.append(np.mean((lower <= y[40:]) & (y[40:] <= upper)))
    assert 0.85 < np.mean(covered) < 0.95


def test_models_of_all_rows_are_trusted_more_than_those_of_the_folds():
    residuals = np.random.default_rng(0).normal(size=(500, 1))
    mean = np.zeros_like(residuals)
    fitted = SearchResult([], residuals, mean, None, [], variance=lambda: mean + 1)
    gaps = np.zeros(500, dtype=bool)
    whole, folds = (calibrate_distribution(fitted, gaps, share) for share in (1.0, 0.8))
    ratio = folds.without_gaps(np.ones((1, 1))) / whole.without_gaps(np.ones((1, 1)))
    assert ratio[0, 0] == pytest.approx(0.8**0.25)


def test_intervals_follow_noise_that_differs_between_dense_and_sparse_rows():
    """Predicted means are the same on both sides, predicted standard deviations are not."""
    rng = np.random.default_rng(0)
    dense = rng.random(1200) < 0.7
    X = np.where(dense[:, None], rng.uniform(-1, 0, (1200, 2)), rng.uniform(0, 6, (1200, 2)))
    noise = np.where(dense, 0.02, 0.5) * rng.standard_normal(1200)
    y = np.sin(4 * X[:, 0]) + noise
    model = nb.NystroemRegressor(30, random_state=0).fit(X[:800], y[:800])
    low, high = model.predict_interval(X[800:], 0.9)
    inside = (low <= y[800:]) & (y[800:] <= high)
    for side in (dense[800:], ~dense[800:]):
        assert 0.8 < inside[side].mean() < 0.99
