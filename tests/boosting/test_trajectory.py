"""Step 1 of the algorithm, and the mixtures of a run."""

import market
import numpy as np

from nysboost.boosting.algorithm import ensemble
from nysboost.boosting.rules import UniformWeights
from nysboost.boosting.trajectory import start
from nysboost.settings import Settings


def begin(n=100, seed=0, **settings):
    gram = market.problem("Gaussian", n=n).gram
    sizes = Settings(n_learners=3, n_columns=8, n_fit=5, n_tune=4, **settings).resolve(n)
    return start(gram, sizes, np.random.default_rng(seed))


def test_columns_are_whole_or_square_as_the_settings_say():
    _, _, found = begin()
    np.testing.assert_array_equal(found.fit.rows, np.arange(100))
    _, _, found = begin(validation_shape="square")
    np.testing.assert_array_equal(found.fit.rows, found.fit.cols)
    np.testing.assert_array_equal(found.tune.rows, found.tune.cols)


def test_beyond_the_cap_the_rows_observed_are_a_sample():
    _, _, found = begin(row_cap=30)
    assert len(np.unique(found.observed)) == 30
    assert found.observed.max() < 100
    np.testing.assert_array_equal(found.fit.rows, found.observed)


def test_the_learners_of_a_sample_are_learners_of_the_whole_matrix():
    problem = market.problem("Gaussian", n=300)
    run = ensemble(
        problem.gram, Settings(n_learners=2, n_columns=5, row_cap=30), np.random.default_rng(0)
    )
    assert len(run.found.sample) < 300
    for learner in (*run.learners, *run.mixture(UniformWeights()).learners):
        np.testing.assert_array_equal(
            learner.landmarks.points, problem.X[learner.landmarks.indices]
        )
