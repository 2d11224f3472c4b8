"""The residual's diagonal against the dense residual."""

import market
import numpy as np
import pytest

from nysboost.boosting import residual
from nysboost.boosting.learner import fit_learner
from nysboost.boosting.residual import residual_diagonal


@pytest.mark.parametrize("case", market.NAMES)
@pytest.mark.parametrize("block", [2**10, 2**30])
def test_it_is_that_of_the_dense_residual_whatever_the_block(case, block, monkeypatch):
    monkeypatch.setattr(residual, "block_bytes", lambda _: block)
    problem = market.problem(case, n=90)
    gram = problem.gram
    learner = fit_learner(gram, gram.landmarks(np.arange(0, 90, 9)), 10)
    F = learner.features(gram).astype(np.float64)
    expected = np.abs(np.diag(problem.G - F @ F.T))
    ours = residual_diagonal(gram, learner)
    np.testing.assert_allclose(ours, expected, atol=10 * problem.tolerance)


def test_what_is_rounding_is_zero():
    problem = market.problem("few distinct rows", n=60)
    gram = problem.gram
    learner = fit_learner(gram, gram.landmarks(np.arange(60)), 60)
    np.testing.assert_array_equal(residual_diagonal(gram, learner), 0.0)
