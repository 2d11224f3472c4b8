"""Probabilities from scores, against probabilities that are known."""

import numpy as np
import pytest
from scipy.special import log_softmax

from nysboost.learn.calibration import by_margins, calibrate, logits_of
from nysboost.search.search import Fitted


@pytest.mark.parametrize("sure", [1.0, 3.0])
def test_scores_that_are_probabilities_stay_what_they_are(sure):
    rng = np.random.default_rng(0)
    true = np.exp(log_softmax(sure * rng.normal(size=(20_000, 3)) - [0, 1, 3], axis=1))
    drawn = np.array([rng.multinomial(1, p) for p in true], dtype=float)
    h = slice(0, 4000)
    fitted = Fitted([], drawn[h], true[h], 0 * true[h], None, [])
    found = calibrate(fitted, shares=True)
    losses = [
        -np.mean(np.sum(true * log, axis=1))
        for log in (
            log_softmax(logits_of(true, *found), axis=1),
            log_softmax(logits_of(true, *calibrate(fitted, shares=False)), axis=1),
        )
    ]
    entropy = -np.mean(np.sum(true * np.log(true), axis=1))
    assert losses[0] < entropy + 0.01
    assert losses[0] - entropy < (losses[1] - entropy) / 2


def machines(shift, n=2000):
    """Scores of three classes whose own intercepts are wrong by `shift`."""
    rng = np.random.default_rng(1)
    labels = rng.integers(3, size=n)
    scores = 2.0 * np.eye(3)[labels] + rng.normal(size=(n, 3)) + [0.0, shift, 0.0]
    return Fitted([], np.eye(3)[labels], scores, 0 * scores, None, [])


def test_machines_keep_their_own_intercepts_where_these_are_right():
    _, power, bias = by_margins(machines(0.0))
    assert power == 0
    np.testing.assert_array_equal(bias, 0)


@pytest.mark.parametrize("shift", [-1.5, 1.5])
def test_intercepts_that_are_wrong_are_made_good(shift):
    fitted = machines(shift)
    labels = fitted.truth.argmax(axis=1)
    found = logits_of(fitted.mean, *by_margins(fitted)).argmax(axis=1)
    assert np.mean(found == labels) > np.mean(fitted.mean.argmax(axis=1) == labels) + 0.05


def test_rows_of_no_weight_have_no_say_in_the_biases():
    fitted = machines(1.5)
    weights = np.zeros(len(fitted.mean))
    weights[:3] = 1.0
    _, _, bias = by_margins(Fitted([], fitted.truth, fitted.mean, fitted.spread, weights, []))
    np.testing.assert_array_equal(bias, 0)
