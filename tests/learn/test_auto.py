"""Learners that find the number of landmarks themselves."""

import numpy as np
import pytest
from sklearn.base import clone

import nysboost as nb
from nysboost.target import size

QUICK = {"kernel": "matern", "metric": "each", "random_state": 0}


def table(n, frequency=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    y = np.sin(frequency * X[:, 0]) * np.cos(frequency * X[:, 1])
    return X, y + 0.05 * rng.normal(size=n)


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    monkeypatch.setattr(size, "MOST", 128)


@pytest.mark.parametrize("n", [500, 3200])
def test_the_fit_is_the_one_with_the_number_that_was_found(n):
    X, y = table(n)
    found = nb.NystroemRegressor("auto", **QUICK).fit(X, y)
    assert found.n_components == "auto"
    assert found.n_components_ == found.components_.shape[0] <= 64
    given = nb.NystroemRegressor(found.n_components_, **QUICK).fit(X, y)
    assert given.n_components_ == found.n_components_
    np.testing.assert_array_equal(found.predict(X[:50]), given.predict(X[:50]))


def test_a_rough_target_gets_more_landmarks_and_is_predicted():
    X, y = table(800, 9.0)
    model = nb.NystroemRegressor("auto", **QUICK).fit(X, y)
    fewest = nb.NystroemRegressor(size.LEAST, **QUICK).fit(X, y)
    fresh, truth = table(500, 9.0, seed=1)
    assert model.n_components_ > size.LEAST
    assert model.score(fresh, truth) > fewest.score(fresh, truth)
    assert np.isfinite(model.predict(fresh, return_std=True)[1]).all()


def test_a_classifier_finds_it_too_and_a_file_keeps_it(tmp_path):
    X, _ = table(400)
    y = np.where(np.hypot(*X.T) < 0.7, "inside", "outside")
    model = clone(nb.NystroemClassifier("auto", **QUICK)).fit(X, y)
    assert model.score(X, y) > 0.95
    nb.save(model, tmp_path / "model")
    again = nb.load(tmp_path / "model")
    assert again.n_components == "auto"
    assert again.n_components_ == model.n_components_ >= size.LEAST
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("n", [60, 3200])
def test_a_constant_target_and_rows_of_no_weight_need_no_search(n):
    X, y = table(n)
    flat = nb.NystroemRegressor("auto", **QUICK).fit(X, np.full(n, 2.5))
    np.testing.assert_allclose(flat.predict(X[:5]), 2.5)
    weights = np.r_[np.ones(n - 20), np.zeros(20)]
    model = nb.NystroemRegressor("auto", landmarks="uniform", random_state=0).fit(X, y, weights)
    assert model.n_components_ >= min(size.LEAST, (n - 20) // 2)


def test_another_word_is_refused_in_a_sentence():
    X, y = table(60)
    for learner in (nb.NystroemRegressor, nb.NystroemClassifier):
        with pytest.raises(ValueError, match=r"no number of landmarks 'many'.*Known are auto"):
            learner("many").fit(X, y > 0)
