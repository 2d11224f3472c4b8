"""A classifier whose weights minimise a loss of margins."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

import nysboost as nb

X, Y = make_moons(300, noise=0.2, random_state=0)
HOW = {
    "n_components": 20,
    "kernel": "gaussian",
    "metric": "one",
    "landmarks": "uniform",
    "random_state": 0,
}


@pytest.fixture(scope="module", params=["hinge", "log"])
def model(request):
    return nb.NystroemClassifier(loss=request.param, **HOW).fit(X[:200], Y[:200])


def test_it_tells_the_classes_apart_and_says_how_surely(model):
    assert model.score(X[200:], Y[200:]) > 0.9
    probabilities = model.predict_proba(X[200:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    right = probabilities[np.arange(100), Y[200:]]
    assert -np.log(right).mean() < 0.35


def test_the_scores_of_two_classes_are_mirrored(model):
    scores = np.asarray(model._mean(X[200:]))
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1], atol=1e-8)


def test_more_rows_cannot_be_added_to_a_loss_of_margins(model):
    with pytest.raises(ValueError, match="partial_fit adds rows to squared errors alone"):
        model.partial_fit(X[200:], Y[200:])


@pytest.mark.parametrize("loss", ["hinge", "log"])
def test_several_classes_and_weights_are_taken(loss):
    flowers, kinds = load_iris(return_X_y=True)
    weights = np.where(kinds == 2, 0.0, 1.0)
    model = nb.NystroemClassifier(loss=loss, **HOW).fit(flowers, kinds)
    assert model.score(flowers, kinds) > 0.9
    without = nb.NystroemClassifier(loss=loss, **HOW).fit(flowers, kinds, sample_weight=weights)
    assert (without.predict(flowers[kinds < 2]) == kinds[kinds < 2]).mean() > 0.95
