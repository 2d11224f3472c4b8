"""Probabilities from scores, against probabilities that are known."""

import numpy as np
import pytest
from scipy.special import log_softmax

from nysboost.learn.calibration import by_margins, calibrated, logits_of
from nysboost.target.judged import Judged


@pytest.mark.parametrize("sure", [1.0, 3.0])
def test_scores_that_are_probabilities_stay_what_they_are(sure):
    rng = np.random.default_rng(0)
    true = np.exp(log_softmax(sure * rng.normal(size=(20_000, 3)) - [0, 1, 3], axis=1))
    drawn = np.array([rng.multinomial(1, p) for p in true], dtype=float)
    h = slice(0, 4000)
    judged = Judged([], np.ones(1), drawn[h], true[h], 0 * true[h], None, [])
    found = calibrated(judged, shares=True)
    losses = [
        -np.mean(np.sum(true * log, axis=1))
        for log in (
            log_softmax(logits_of(true, *found), axis=1),
            log_softmax(logits_of(true, *calibrated(judged, shares=False)), axis=1),
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
    return Judged([], np.ones(1), np.eye(3)[labels], scores, 0 * scores, None, [])


def test_machines_keep_their_own_intercepts_where_these_are_right():
    _, power, bias = by_margins(machines(0.0))
    assert power == 0
    np.testing.assert_array_equal(bias, 0)


@pytest.mark.parametrize("shift", [-1.5, 1.5])
def test_intercepts_that_are_wrong_are_made_good(shift):
    judged = machines(shift)
    labels = judged.truth.argmax(axis=1)
    found = logits_of(judged.mean, *by_margins(judged)).argmax(axis=1)
    assert np.mean(found == labels) > np.mean(judged.mean.argmax(axis=1) == labels) + 0.05


def test_rows_of_no_weight_have_no_say_in_the_biases():
    judged = machines(1.5)
    weights = np.zeros(len(judged.mean))
    weights[:3] = 1.0
    _, _, bias = by_margins(
        Judged([], np.ones(1), judged.truth, judged.mean, judged.spread, weights, [])
    )
    np.testing.assert_array_equal(bias, 0)
