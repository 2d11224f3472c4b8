"""Ensemble Nyström."""

import market
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nysboost.boosting.algorithm import ensemble
from nysboost.settings import Settings


def run(p, m, n, seed=0):
    gram = market.problem("Gaussian", n=n).gram
    settings = Settings(n_learners=p, n_columns=m, n_fit=3, n_tune=2)
    return ensemble(gram, settings, np.random.default_rng(seed))


@given(st.integers(1, 6), st.integers(1, 8), st.integers(0, 20), st.integers(0, 100))
def test_learners_and_validation_sets_share_no_column(p, m, spare, seed):
    trajectory = run(p, m, p * m + 5 + spare, seed)
    used = [learner.landmarks.indices for learner in trajectory.learners]
    used = np.concatenate([*used, trajectory.found.fit.cols, trajectory.found.tune.cols])
    assert len(used) == len(set(used)) == p * m + 5


def test_uniform_columns_are_uniform():
    counts = np.zeros(20)
    for seed in range(400):
        for learner in run(2, 3, 20, seed).learners:
            counts[learner.landmarks.indices] += 1
    expected = 400 * 6 / 20
    assert ((counts - expected) ** 2 / expected).sum() < 40  # χ² with 19 degrees of freedom
