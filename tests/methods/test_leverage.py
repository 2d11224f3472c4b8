"""Recursive ridge leverage scores against the exact ones."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.leverage import leverage_scores, rls


def exact_scores(G, k):
    eigenvalues, U = np.linalg.eigh(G)
    ridge = eigenvalues[:-k].sum() / k
    return (U**2) @ (eigenvalues / (eigenvalues + ridge))


def test_with_every_row_in_the_sample_the_scores_are_exact():
    problem = market.problem("Gaussian", n=60)
    gram, everything = make_gram(problem.X, problem.kernel), np.arange(60)
    scores = leverage_scores(gram, everything, everything, np.ones(60), k=5)
    np.testing.assert_allclose(scores, exact_scores(problem.G, 5), rtol=1e-8)


def test_columns_are_chosen_about_as_often_as_their_exact_scores_say():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.05 * rng.normal(size=(190, 2)), 3 + rng.normal(size=(10, 2))])
    gram = make_gram(X, nb.Gaussian(sigma=0.5))
    rare = [np.sum(rls(gram, 20, np.random.default_rng(s)).indices >= 190) for s in range(200)]
    everything = np.arange(200)
    scores = exact_scores(gram.block(everything, everything), k=2)
    p, rng = scores / scores.sum(), np.random.default_rng(0)
    exact = [np.sum(rng.choice(200, 20, replace=False, p=p) >= 190) for _ in range(200)]
    np.testing.assert_allclose(np.mean(rare), np.mean(exact), rtol=0.15)


@pytest.mark.parametrize("case", market.NAMES)
@pytest.mark.parametrize("c", [1, 7, 40, 60])
def test_columns_are_distinct_on_every_matrix(case, c):
    problem = market.problem(case, n=60)
    found = rls(make_gram(problem.X, problem.kernel), c, np.random.default_rng(0)).indices
    assert len(set(found)) == len(found) == c
