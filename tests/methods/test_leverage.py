"""Ridge leverage scores, recursive and bottom-up, against the exact ones."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.leverage import bless, leverage_scores, rls, tail_ridge


def exact_scores(G, k):
    eigenvalues, U = np.linalg.eigh(G)
    ridge = eigenvalues[:-k].sum() / k
    return (U**2) @ (eigenvalues / (eigenvalues + ridge))


def test_with_every_row_in_the_sample_the_scores_are_exact():
    problem = market.problem("Gaussian", n=60)
    gram, everything = make_gram(problem.X, problem.kernel), np.arange(60)
    ridge = tail_ridge(gram, everything, np.ones(60), k=5)
    scores = leverage_scores(gram, everything, everything, np.ones(60), ridge)
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


@pytest.mark.parametrize("method", [rls, bless])
@pytest.mark.parametrize("case", market.NAMES)
@pytest.mark.parametrize("c", [1, 7, 40, 60])
def test_columns_are_distinct_on_every_matrix(method, case, c):
    problem = market.problem(case, n=60)
    found = method(make_gram(problem.X, problem.kernel), c, np.random.default_rng(0)).indices
    assert len(set(found)) == len(found) == c


def test_bottom_up_scores_are_within_a_constant_of_the_exact_ones(monkeypatch):
    """The last scores that BLESS asks for, beside those of the whole matrix at its ridge."""
    rng = np.random.default_rng(0)
    X = np.concatenate([0.3 * rng.normal(size=(900, 2)), 3 + rng.normal(size=(100, 2))])
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    everything = np.arange(1000)
    eigenvalues, U = np.linalg.eigh(gram.block(everything, everything))
    asked = []

    def recorded(gram, rows, sample, weights, ridge):
        scores = leverage_scores(gram, rows, sample, weights, ridge)
        asked.append((rows, scores, ridge))
        return scores

    monkeypatch.setattr("nysboost.methods.leverage.leverage_scores", recorded)
    for seed in range(10):
        bless(gram, 60, np.random.default_rng(seed))
        rows, scores, ridge = asked[-1]
        ratio = scores / ((U**2) @ (eigenvalues / (eigenvalues + ridge)))[rows]
        assert 0.2 < ratio.min() <= ratio.max() < 6
        assert 0.6 < np.median(ratio) < 2.2


def test_rare_rows_are_chosen_more_often_than_uniformly():
    rng = np.random.default_rng(0)
    X = np.concatenate([0.05 * rng.normal(size=(1900, 2)), 3 + rng.normal(size=(100, 2))])
    gram = make_gram(X, nb.Gaussian(sigma=0.5))
    rare = [np.sum(bless(gram, 20, np.random.default_rng(s)).indices >= 1900) for s in range(30)]
    assert np.mean(rare) > 10  # uniformly there would be one


def test_the_cost_of_bottom_up_scores_hardly_depends_on_the_number_of_rows():
    counts = []
    for n in (4000, 40_000):
        gram = make_gram(np.random.default_rng(0).normal(size=(n, 2)), nb.Gaussian(sigma=2.0))
        bless(gram, 20, np.random.default_rng(0))
        counts.append(gram.entries_evaluated)
    assert counts[1] < 1.5 * counts[0]


def test_a_weighted_sample_gives_the_scores_of_its_lemma():
    problem, rng = market.problem("Gaussian", n=60), np.random.default_rng(0)
    sample, weights = rng.choice(60, size=20, replace=False), rng.uniform(0.5, 3.0, size=20)
    S = np.zeros((60, 20))
    S[sample, np.arange(20)] = weights
    G, k = problem.G, 4
    inner = S.T @ G @ S
    ridge = np.linalg.eigvalsh(inner)[:-k].sum() / k
    taken = G @ S @ np.linalg.solve(inner + ridge * np.eye(20), S.T @ G)
    expected = np.diagonal(G - taken) / ridge
    assert tail_ridge(problem.gram, sample, weights, k) == pytest.approx(ridge, rel=1e-9)
    ours = leverage_scores(problem.gram, np.arange(60), sample, weights, ridge)
    np.testing.assert_allclose(ours, expected, rtol=1e-8)
