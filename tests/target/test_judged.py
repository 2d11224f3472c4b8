"""What a judge hands over."""

from dataclasses import replace

import numpy as np

from nysboost.target.judged import Judged


def test_rows_that_landmarks_have_seen_are_missed_twice():
    truth, mean = np.array([[1.0], [2.0]]), np.array([[0.5], [1.0]])
    judged = Judged([], np.ones(1), truth, mean, np.ones((2, 1)), None, [])
    np.testing.assert_array_equal(judged.missed, [[[0.5], [1.0]]])
    both = replace(judged, seen=truth - 0.25).missed
    np.testing.assert_array_equal(both, [[[0.5], [1.0]], [[0.25], [0.25]]])
