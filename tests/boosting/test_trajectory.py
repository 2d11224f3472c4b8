"""Step 1 of the algorithm, and the mixtures of a run."""

import market
import numpy as np
import pytest

from nysboost.boosting.algorithm import boost
from nysboost.boosting.ensemble import ensemble
from nysboost.boosting.rules import UniformWeights
from nysboost.boosting.trajectory import start
from nysboost.boosting.variants import RULES, SELECTORS
from nysboost.settings import Settings


def begin(n=100, seed=0, **settings):
    gram = market.problem("Gaussian", n=n).gram
    sizes = Settings(n_learners=3, n_columns=8, n_fit=5, n_tune=4, **settings).resolve(n)
    return start(gram, sizes, np.random.default_rng(seed))


def test_the_first_columns_and_the_validation_columns_are_apart():
    first, pool, found = begin()
    used = np.concatenate([first, found.fit.cols, found.tune.cols])
    assert len(used) == len(set(used)) == 17
    assert len(pool) == 83
    assert not set(used) & set(pool.sample(100, np.random.default_rng(0)))


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


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_mixture_of_a_prefix_is_that_of_the_shorter_run(rule):
    gram = market.problem("Gaussian", n=100).gram
    short, long = (
        ensemble(gram, Settings(n_learners=p, n_columns=8), np.random.default_rng(0))
        for p in (2, 4)
    )
    ours, theirs = long.mixture(rule, 2), short.mixture(rule)
    np.testing.assert_allclose(ours.weights, theirs.weights, rtol=1e-12)
    for mine, other in zip(ours.learners, theirs.learners, strict=True):
        np.testing.assert_array_equal(mine.landmarks.indices, other.landmarks.indices)
    for p in (0, 5):
        with pytest.raises(ValueError, match=f"a prefix of {p} was asked for"):
            long.mixture(rule, p)


@pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)
def test_the_order_in_which_mixtures_are_asked_for_does_not_matter(selector):
    gram = market.problem("Gaussian", n=100).gram

    def run():
        settings = Settings(n_learners=4, n_columns=8)
        return boost(gram, settings, UniformWeights(), selector, np.random.default_rng(0))

    first, second = run(), run()
    for rule in RULES.values():
        up = [first.mixture(rule, p).weights for p in (1, 2, 3, 4)]
        down = [second.mixture(rule, p).weights for p in (4, 3, 2, 1)]
        for one, other in zip(up, reversed(down), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_sample_has_four_rows_at_least_for_each_column_that_a_run_takes():
    columns = 3 * 8 + 5 + 4
    _, _, found = begin(n=300, row_cap=30)
    assert len(found.sample) == 4 * columns
    _, _, found = begin(n=300, row_cap=200)
    assert len(found.sample) == 200


def test_features_are_kept_where_columns_are_looked_at_whole():
    shapes = {"validation_shape": "square"}
    _, _, found = begin(**shapes, residual_shape="columns")
    assert set(found.table.rows) == set(range(100))
    _, _, found = begin(**shapes, residual_shape="square")
    assert set(found.table.rows) == {*found.fit.cols, *found.tune.cols}


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
