"""J: one core for all learners' columns, some of which others have replaced."""

import market
import numpy as np
import pytest

import nysboost as nb


def error_on(G, columns):
    C = G[:, columns]
    P = C @ np.linalg.pinv(C)
    return np.linalg.norm(G - P @ G @ P)


@pytest.mark.parametrize("clustering", ["mean", "med", "SF"])
@pytest.mark.parametrize("x", "UERJ")
def test_j_as_the_final_rule_is_no_worse_than_the_columns_that_x_found(x, clustering):
    problem = market.problem("Gaussian", n=90)
    sizes = {"n_learners": 3, "n_columns": 6, "n_candidates": 20, "n_fit": 5, "n_tune": 5}
    run = nb.approximate(problem.X, f"{x}JB-{clustering}", problem.kernel, **sizes, random_state=1)
    found = np.concatenate([learner.landmarks.indices for learner in run.trajectory.learners])
    for p in (2, 3):
        (learner,) = run.prefix(p).learners
        columns = learner.landmarks.indices
        assert len(set(columns)) == 6 * p
        ours = np.linalg.norm(problem.G - run.prefix(p).to_dense())
        np.testing.assert_allclose(ours, error_on(problem.G, columns), rtol=1e-5)
        assert ours <= error_on(problem.G, found[: 6 * p]) * (1 + 1e-6)


def test_an_outlying_column_is_among_the_candidates_wherever_it_is():
    X = np.random.default_rng(0).normal(size=(600, 2))
    X[345] = 40.0
    sizes = {"n_learners": 2, "n_columns": 30, "n_candidates": 60}
    for seed in range(3):
        run = nb.approximate(X, "JJB-mean", nb.Gaussian(sigma=1.0), **sizes, random_state=seed)
        boosted = run.trajectory.learners[1].landmarks.indices
        assert 345 in boosted


def test_weight_rules_draw_their_candidates_uniformly():
    from nysboost.boosting.rules import UniformWeights

    assert UniformWeights().missing(None, None) is None
