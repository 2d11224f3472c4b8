"""The precision in which predictions are evaluated, against float64."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import nysboost as nb
from nysboost.data.recognise import rows_of
from nysboost.learn.base import single_is_enough


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
        piece = rows.take(slice(None)).astype(rows.form.dtype)
        return piece @ w.astype(rows.form.dtype)

    assert single_is_enough(predict, rows_of(kind(X)), np.array([0.1])) is enough


def test_numbers_beyond_float32_need_double():
    X = np.array([[1e300], [1.0], [2.0]])
    assert not single_is_enough(lambda rows: rows.take(slice(None)), rows_of(X), np.ones(1))


@pytest.mark.parametrize("kind", [nb.NystroemRegressor, nb.NystroemClassifier])
def test_predictions_of_float32_rows_move_by_less_than_a_hundredth_of_the_error(kind):
    (X, y), n = data(400), 200
    regression = kind is nb.NystroemRegressor
    y = y if regression else y > 0
    model = kind(16, kernel="gaussian", metric="each", local=False, random_state=0)
    model.fit(X[:n], y[:n])
    single = X[n:].astype(np.float32)
    outcome = model.predict if regression else model.decision_function
    moved = np.abs(outcome(single) - outcome(single.astype(np.float64)))
    assert model._single
    assert 0 < moved.max() < (0.01 * np.std(y[n:] - model.predict(single)) if regression else 1e-3)


def test_scores_of_machines_are_evaluated_in_float32_where_it_moves_them_little():
    X, y = data(200)
    how = {"kernel": "gaussian", "metric": "each", "random_state": 0}
    model = nb.NystroemClassifier(16, loss="hinge", **how).fit(X, y > 0)
    assert model._single
    scores = [
        np.asarray(model._evaluate(X.astype(dtype), type(model)._predict_mixture))
        for dtype in (np.float32, np.float64)
    ]
    assert np.abs(scores[0] - scores[1]).max() > 0
    np.testing.assert_allclose(scores[0], scores[1], atol=0.02)
