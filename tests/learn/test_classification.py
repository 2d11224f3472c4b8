"""Classification in one line: laws, calibration and bad input."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

import nysboost as nb
from nysboost.learn import input as base

TRAINED = {"kernel": "matern", "metric": "each", "random_state": 0}
QUICK = TRAINED | {"scale": "standard", "local": False}


def table(n=300, seed=0, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    inside = np.hypot(X[:, 0], X[:, 1]) + noise * rng.normal(size=n) < 1.1
    return X, np.where(inside, "inside", "outside")


GIVEN = {"kernel": "gaussian", "metric": None, "landmarks": "uniform", "random_state": 0}


@pytest.mark.parametrize("n", [300, 5200])
def test_it_tells_classes_apart_and_says_how_sure_it_is(n):
    (X, y), (fresh, truth) = table(n, noise=0.3), table(2000, seed=1, noise=0.3)
    model = nb.NystroemClassifier(25, **TRAINED | {"local": n < 1000 and "auto"}).fit(X, y)
    proba = model.predict_proba(fresh)
    assert model.score(fresh, truth) > 0.83
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    # reliability: of what is called 70 to 90 % likely, about that share is so
    called = (proba[:, 1] > 0.7) & (proba[:, 1] < 0.9)
    assert 0.55 < np.mean(truth[called] == "outside") < 0.95
    share = np.mean(truth == "outside")
    assert log_loss(truth, proba) < 0.7 * log_loss(truth, np.tile([1 - share, share], (2000, 1)))
    np.testing.assert_array_equal(model.predict(fresh), model.classes_[proba.argmax(axis=1)])
    np.testing.assert_array_equal(model.decision_function(fresh) > 0, proba[:, 1] > 0.5)
    assert model.feature_importances_[2] < 0.2


def test_several_classes():
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 4], y[y < 4]
    model = nb.NystroemClassifier(30, **QUICK).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.88
    assert model.decision_function(X[:5]).shape == (5, 4)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_far_from_all_rows_the_shares_of_the_classes_are_left():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], [-0.5, 0.7])
    model = nb.NystroemClassifier(32, random_state=0).fit(X, y)
    far = model.predict_proba(1e6 * X[:3])
    np.testing.assert_allclose(far, np.tile(np.bincount(y) / 400, (3, 1)), atol=0.05)


def test_blocks_of_rows_and_labels_may_come_from_an_iterator(monkeypatch):
    X, y = table(600)
    whole = nb.NystroemClassifier(15, **GIVEN).fit(X, y)
    model = nb.NystroemClassifier(15, **GIVEN)
    model.fit((X[rows], y[rows]) for rows in np.array_split(np.arange(600), 4))
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    monkeypatch.setattr(base, "BUFFER_BYTES", 1)  # the first block alone finds landmarks
    model.fit((X[rows], y[rows]) for rows in np.array_split(np.arange(600), 4))
    assert float(model._members[0].model.moments.weight) == 600
    assert model.score(X, y) > 0.9
    with pytest.raises(ValueError, match="iterator was empty"):
        model.fit(iter([]))


def test_torch_rows_give_labels_and_probabilities():
    torch = pytest.importorskip("torch")
    X, y = table(600)
    codes = (y == "outside").astype(np.int64)
    model = nb.NystroemClassifier(15, **QUICK).fit(torch.asarray(X), torch.asarray(codes))
    assert np.mean(model.predict(torch.asarray(X)) == codes) > 0.9
    assert model.predict_proba(torch.asarray(X[:5])).shape == (5, 2)


def test_rows_of_weight_zero_have_no_classes():
    X = np.arange(12.0)[:, None]
    weights = np.r_[np.ones(4), np.zeros(8)]
    model = nb.NystroemClassifier(8, **TRAINED).fit(X, list("abcdefghijkl"), weights)
    assert model.predict_proba(X).shape == (12, 4)
    assert list(model.predict(X[:4])) == list("abcd")  # as many classes as rows
