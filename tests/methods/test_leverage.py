"""Ridge leverage scores, recursive and bottom-up, against the exact ones."""

from itertools import pairwise

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import leverage
from nysboost.methods.leverage import bless, leverage_scores, rls, tail_ridge
from nysboost.numerics.arrays import row_blocks
from nysboost.numerics.memory import Budget


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


def recorded_levels(monkeypatch, gram, c, stub=None):
    """Return what each level of `rls` asked: rows, sample, weights and scores, and its k."""
    levels, ranks = [], []

    def scores_of(gram, rows, sample, weights, ridge):
        scores = (stub or leverage_scores)(gram, rows, sample, weights, ridge)
        levels.append((rows, sample, weights, scores))
        return scores

    def ridge_of(gram, sample, weights, k):
        ranks.append(k)
        return tail_ridge(gram, sample, weights, k)

    monkeypatch.setattr(leverage, "leverage_scores", scores_of)
    monkeypatch.setattr(leverage, "tail_ridge", ridge_of)
    rls(gram, c, np.random.default_rng(0))
    return levels, ranks


@pytest.mark.parametrize("rare", [0, 3])
def test_levels_double_and_weights_undo_the_probabilities_of_the_level_before(monkeypatch, rare):
    """Rare rows have scores of nearly one, and are drawn for certain."""
    X, c = np.random.default_rng(0).normal(size=(1000, 3)) * (0.01 if rare else 1.0), 20
    X[:rare] += 100 * (1 + np.arange(rare))[:, None]
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    levels, ranks = recorded_levels(monkeypatch, gram, c)
    assert [len(rows) for rows, *_ in levels] == [62, 125, 250, 500, 1000]
    assert set(ranks) == {int(np.ceil(c / (4 * np.log(c + 2))))}
    first = levels[0]
    assert len(first[1]) == c
    np.testing.assert_allclose(first[2], np.sqrt(31 / c))  # 20 rows stand for 31
    for (rows, _, _, scores), (_, sample, weights, _) in pairwise(levels):
        places = [rows.tolist().index(row) for row in sample]
        probabilities = np.minimum(np.log(c + 2) * scores[places], 1)
        np.testing.assert_allclose(weights, 1 / np.sqrt(probabilities))
    assert (rare == 0) or any(np.log(c + 2) * scores.max() > 1.1 for *_, scores in levels[:-1])


@pytest.mark.parametrize(
    ("n", "c", "sizes"),
    [
        (800, 25, [100, 200, 400, 800]),
        (1000, 25, [62, 125, 250, 500, 1000]),
        (500, 60, [125, 250, 500]),
    ],
)
def test_rows_are_halved_until_twice_the_columns_are_left(monkeypatch, n, c, sizes):
    levels, ranks = recorded_levels(monkeypatch, market.problem("Gaussian", n=n).gram, c)
    assert [len(rows) for rows, *_ in levels] == sizes
    assert set(ranks) == {int(np.ceil(c / (4 * np.log(c + 2))))}


def test_one_column_has_a_ridge_of_rank_one(monkeypatch):
    _, ranks = recorded_levels(monkeypatch, market.problem("Gaussian", n=60).gram, 1)
    assert set(ranks) == {1}


def test_where_no_row_is_drawn_the_one_with_the_largest_score_is_the_sample(monkeypatch):
    def tiny(gram, rows, *_):
        return 1e-30 * (1.0 + np.arange(len(rows)) % 7)

    levels, _ = recorded_levels(monkeypatch, market.problem("Gaussian", n=300).gram, 10, tiny)
    for (rows, *_), (_, sample, *_) in pairwise(levels):
        assert sample.tolist() == [rows[6]]


def test_as_many_columns_as_rows_are_all_of_them_in_order():
    gram = market.problem("Gaussian", n=30).gram
    np.testing.assert_array_equal(rls(gram, 30, np.random.default_rng(0)).indices, np.arange(30))


@pytest.mark.parametrize("scale", [1 / 64, 64.0])
def test_bottom_up_columns_do_not_depend_on_the_scale_of_the_kernel(scale):
    X = np.random.default_rng(0).normal(size=(300, 3)) * np.linspace(0.1, 1, 300)[:, None]
    G = X @ X.T + np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    plain, scaled = (make_gram(A, "precomputed") for A in (G, scale * G))
    np.testing.assert_array_equal(
        bless(plain, 15, np.random.default_rng(0)).indices,
        bless(scaled, 15, np.random.default_rng(0)).indices,
    )


def test_the_path_of_ridges_starts_at_n_times_the_largest_diagonal(monkeypatch):
    X = np.random.default_rng(0).normal(size=(200, 3))
    asked = []

    def recorded(gram, rows, sample, weights, ridge):
        asked.append((len(rows), len(sample), ridge))
        return leverage_scores(gram, rows, sample, weights, ridge)

    monkeypatch.setattr(leverage, "leverage_scores", recorded)
    bless(make_gram(X, "linear"), 10, np.random.default_rng(0))
    ridges = [ridge for *_, ridge in asked]
    start = 200 * (X**2).sum(axis=1).max()
    np.testing.assert_allclose(ridges, start / 2.0 ** np.arange(len(ridges)))
    sizes = [min(200, 10 * 2**step) for step in range(len(ridges))]
    assert [size for size, *_ in asked] == sizes
    assert asked[0][1] == 0


@pytest.mark.parametrize("max_memory", [40_000, 10**9])
def test_blocks_of_scores_take_a_quarter_of_the_memory_and_fit_the_cache(monkeypatch, max_memory):
    problem, asked = market.problem("Gaussian", n=60), []

    def watched(n, held, budget):
        asked.append((held, budget))
        return row_blocks(n, held, budget)

    monkeypatch.setattr(leverage, "row_blocks", watched)
    gram = make_gram(problem.X, problem.kernel, budget=Budget(max_memory))
    leverage_scores(gram, np.arange(60), np.arange(9), np.ones(9), 1.0)
    held = 8 * (4 * 9 + 2 * problem.X.shape[1])
    assert asked == [(held, min(leverage.CACHE_BYTES, max_memory // 4))]


def test_where_the_dimension_is_nearly_nothing_one_column_is_drawn(monkeypatch):
    """One row far longer than all others, which the first sample of ten does not contain."""
    X, asked = np.full((4000, 1), 1e-3), []
    X[-1] = 1.0

    def recorded(gram, rows, sample, weights, ridge):
        asked.append(len(sample))
        return leverage_scores(gram, rows, sample, weights, ridge)

    monkeypatch.setattr(leverage, "leverage_scores", recorded)
    bless(make_gram(X, "linear"), 10, np.random.default_rng(0))
    assert asked[:3] == [0, 1, 1]
