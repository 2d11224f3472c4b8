"""Leverage scores against the exact ones."""

from itertools import combinations, pairwise

import market
import numpy as np
import pytest
from scipy.stats import chisquare

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import leverage
from nysboost.methods.adaptive import adaptive, adaptive_partial
from nysboost.methods.cholesky import greedy, rpcholesky, sparse_greedy
from nysboost.methods.determinantal import dpp
from nysboost.methods.leverage import WeightedSample, bless, leverage_scores, rls, tail_ridge

PIVOTS = [greedy, rpcholesky, sparse_greedy]


@pytest.mark.parametrize("method", [adaptive, adaptive_partial, dpp, rls, bless, *PIVOTS])
@pytest.mark.parametrize("case", market.NAMES)
def test_columns_are_distinct_on_every_matrix(method, case):
    gram = market.problem(case, n=60).gram
    for c in (1, 7, 40, 60):
        found = method(gram, c, np.random.default_rng(0))
        assert len(set(found)) == len(found)
        assert 1 <= len(found) <= c if method in PIVOTS else len(found) == c  # or the rank


def exact_scores(G, k):
    eigenvalues, U = np.linalg.eigh(G)
    ridge = eigenvalues[:-k].sum() / k
    return (U**2) @ (eigenvalues / (eigenvalues + ridge))


@pytest.mark.parametrize("size", [20, 60])
def test_a_weighted_sample_gives_the_scores_of_its_lemma_and_all_rows_exact_ones(size):
    problem, rng = market.problem("Gaussian", n=60), np.random.default_rng(0)
    sample, weights = rng.permutation(60)[:size], rng.uniform(0.5, 3.0, size=size)
    weights = np.ones(60) if size == 60 else weights
    drawn = WeightedSample(sample, weights)
    S = np.zeros((60, size))
    S[sample, np.arange(size)] = weights
    G, k = problem.G, 4
    inner = S.T @ G @ S
    ridge = np.linalg.eigvalsh(inner)[:-k].sum() / k
    taken = G @ S @ np.linalg.solve(inner + ridge * np.eye(size), S.T @ G)
    expected = np.diagonal(G - taken) / ridge if size < 60 else exact_scores(G, k)
    assert tail_ridge(problem.gram, drawn, k) == pytest.approx(ridge, rel=1e-9)
    g = np.diagonal(G)
    ours = leverage_scores(problem.gram, np.arange(60), drawn, ridge, g)
    np.testing.assert_allclose(ours, expected, rtol=1e-8)


@pytest.mark.parametrize("method", [rls, bless])
def test_columns_are_chosen_about_as_often_as_their_exact_scores_say(method):
    rng = np.random.default_rng(0)
    X = np.concatenate([0.05 * rng.normal(size=(190, 2)), 3 + rng.normal(size=(10, 2))])
    gram = make_gram(X, nb.Gaussian(sigma=0.5))
    rare = [np.sum(method(gram, 20, np.random.default_rng(s)) >= 190) for s in range(200)]
    everything = np.arange(200)
    scores = exact_scores(gram.block(everything, everything), k=2)
    p, rng = scores / scores.sum(), np.random.default_rng(0)
    exact = [np.sum(rng.choice(200, 20, replace=False, p=p) >= 190) for _ in range(200)]
    np.testing.assert_allclose(np.mean(rare), np.mean(exact), rtol=0.15)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of the scores from here on: rows, sample, weights, ridge and scores."""
    calls = []

    def recorded(gram, rows, sample, ridge, g):
        scores = leverage_scores(gram, rows, sample, ridge, g)
        calls.append((rows, sample.rows, sample.weights, ridge, scores))
        return scores

    monkeypatch.setattr(leverage, "leverage_scores", recorded)
    return calls


@pytest.mark.parametrize(("method", "c", "d"), [(bless, 20, 2), (dpp, 5, 1)])
def test_the_cost_hardly_depends_on_the_number_of_rows(method, c, d):
    counts = []
    for n in (9000, 90_000):
        gram = make_gram(np.random.default_rng(0).normal(size=(n, d)), nb.Gaussian(sigma=2.0))
        method(gram, c, np.random.default_rng(0))
        counts.append(gram.entries_evaluated)
    assert counts[1] < 1.2 * counts[0]


@pytest.mark.parametrize("rare", [0, 3])
def test_levels_double_and_weights_undo_the_probabilities_of_the_level_before(asked, rare):
    """Rare rows have scores of nearly one, and are drawn for certain."""
    X, c = np.random.default_rng(0).normal(size=(1000, 3)) * (0.01 if rare else 1.0), 20
    X[:rare] += 100 * (1 + np.arange(rare))[:, None]
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    rls(gram, c, np.random.default_rng(0))
    assert [len(rows) for rows, *_ in asked] == [62, 125, 250, 500, 1000]
    k = int(np.ceil(c / (4 * np.log(c + 2))))
    for _, sample, weights, ridge, _ in asked:
        assert ridge == tail_ridge(gram, WeightedSample(sample, weights), k)
    assert len(asked[0][1]) == c
    np.testing.assert_allclose(asked[0][2], np.sqrt(31 / c))  # 20 rows stand for 31
    for (rows, *_, scores), (_, sample, weights, *_) in pairwise(asked):
        places = [rows.tolist().index(row) for row in sample]
        probabilities = np.minimum(np.log(c + 2) * scores, 1)
        np.testing.assert_allclose(weights, 1 / np.sqrt(probabilities[places]))
        expected = probabilities.sum()
        assert abs(len(sample) - expected) < 4 * np.sqrt(expected)
    assert (rare == 0) or any(np.log(c + 2) * scores.max() > 1.1 for *_, scores in asked[:-1])


@pytest.mark.parametrize("scale", [1 / 64, 64.0])
def test_bottom_up_columns_do_not_depend_on_the_scale_of_the_kernel(scale):
    X = np.random.default_rng(0).normal(size=(300, 3)) * np.linspace(0.1, 1, 300)[:, None]
    G = X @ X.T + np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    plain, scaled = (make_gram(A, "precomputed") for A in (G, scale * G))
    found = (bless(gram, 15, np.random.default_rng(0)) for gram in (plain, scaled))
    np.testing.assert_array_equal(*found)


def test_the_path_of_ridges_starts_at_n_times_the_largest_diagonal(asked):
    X = np.random.default_rng(0).normal(size=(200, 3))
    bless(make_gram(X, "linear"), 10, np.random.default_rng(0))
    ridges = [ridge for *_, ridge, _ in asked]
    start = 200 * (X**2).sum(axis=1).max()
    np.testing.assert_allclose(ridges, start / 2.0 ** np.arange(len(ridges)))
    sizes = [min(200, 10 * 2**step) for step in range(len(ridges))]
    assert [len(rows) for rows, *_ in asked] == sizes
    assert len(asked[0][1]) == 0


def left_by(G, columns):
    """Return tr(G − C W⁺ Cᵀ) and ‖G − C C⁺ G‖²."""
    C = G[:, columns]
    plain = C @ np.linalg.pinv(G[np.ix_(columns, columns)], hermitian=True) @ C.T
    Q, _ = np.linalg.qr(C)
    return np.trace(G - plain), np.linalg.norm(G - Q @ (Q.T @ G)) ** 2


@pytest.mark.parametrize(("case", "c"), [("Gaussian", 6), ("decaying spectrum", 4), ("linear", 2)])
def test_adaptive_randomised_pivoting_keeps_its_bound_over_100_seeds(case, c):
    problem = market.problem(case, n=120)
    left = [
        left_by(problem.G, leverage.arp(problem.gram, c, np.random.default_rng(seed)).indices)
        for seed in range(100)
    ]
    beyond = np.sort(np.linalg.eigvalsh(problem.G))[:-c]
    trace, squared = np.mean(left, axis=0)
    assert beyond.sum() * (1 - 1e-9) <= trace <= (c + 1) * beyond.sum()
    assert squared <= (c + 1) * (beyond**2).sum()


def test_adaptive_randomised_pivoting_draws_by_the_determinant_of_the_eigenvectors():
    """Columns J have the probability det(V[J])², here of exact eigenvectors: 2c = n."""
    X = np.array([[0.0], [0.3], [1.0], [1.4]])
    gram = make_gram(X, nb.Gaussian(sigma=0.7))
    _, U = np.linalg.eigh(gram.block(np.arange(4), np.arange(4)))
    pairs = list(combinations(range(4), 2))
    law = np.array([np.linalg.det(U[list(pair), 2:]) ** 2 for pair in pairs])
    assert law.sum() == pytest.approx(1)
    rng, runs, counts = np.random.default_rng(0), 400, dict.fromkeys(pairs, 0)
    for _ in range(runs):
        counts[tuple(sorted(leverage.arp(gram, 2, rng).indices.tolist()))] += 1
    assert chisquare(list(counts.values()), runs * law).pvalue > 0.01
