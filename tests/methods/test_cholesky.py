"""Pivoted Cholesky: greedy against LAPACK-style elimination, random against its law."""

import market
import numpy as np
import oracle
import pytest
from scipy.stats import chisquare

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import cholesky
from nysboost.numerics.memory import Budget


def plain_pivots(G, c, rng=None):
    """Eliminate one column at a time: the largest diagonal, or one drawn in proportion."""
    residual, pivots = G.copy(), []
    for _ in range(c):
        diag = np.maximum(np.diag(residual), 0)
        diag[pivots] = 0
        j = np.argmax(diag) if rng is None else rng.choice(len(G), p=diag / diag.sum())
        pivots.append(int(j))
        residual -= np.outer(residual[:, j], residual[j]) / residual[j, j]
    return pivots


@pytest.mark.parametrize("case", ["Gaussian", "linear", "decaying spectrum"])
def test_greedy_pivots_are_those_of_plain_elimination(case):
    problem = market.problem(case, n=60)
    gram = make_gram(problem.X, problem.kernel)
    found = cholesky.greedy(gram, 4, np.random.default_rng(0))
    np.testing.assert_array_equal(found.indices, plain_pivots(problem.G, 4))


@pytest.mark.parametrize("case", market.NAMES)
@pytest.mark.parametrize("method", ["greedy", "rpcholesky", "sparse_greedy"])
def test_pivots_are_distinct_and_stop_at_the_numerical_rank(method, case):
    problem = market.problem(case, n=60)
    gram = make_gram(problem.X, problem.kernel)
    found = getattr(cholesky, method)(gram, 40, np.random.default_rng(0)).indices
    assert 1 <= len(set(found)) == len(found) <= 40


def pair_probabilities(G):
    """Return the law of the first two pivots, in closed form."""
    first = np.diag(G) / np.trace(G)
    law = np.zeros((len(G), len(G)))
    for i in range(len(G)):
        diag = np.maximum(np.diag(G) - G[:, i] ** 2 / G[i, i], 0)
        law[i] = first[i] * diag / diag.sum()
    return law.ravel()


def test_rpcholesky_reaches_the_error_of_the_plain_method():
    problem = market.problem("Gaussian", n=100)
    ours = nb.approximate(problem.X, "rpcholesky", problem.kernel, n_components=20, random_state=0)
    pivots = plain_pivots(problem.G, 20, np.random.default_rng(1))
    C = problem.G[:, pivots]
    plain = C @ np.linalg.pinv(problem.G[np.ix_(pivots, pivots)]) @ C.T
    theirs = np.linalg.norm(problem.G - plain) / np.linalg.norm(problem.G)
    assert ours.relative_error() < 3 * theirs


@pytest.mark.parametrize("case", ["Gaussian", "linear", "decaying spectrum", "constant columns"])
def test_with_all_columns_as_candidates_sparse_greedy_is_brute_force(case):
    """Of all columns the one is taken after which the trace of the residual is smallest."""
    problem = market.problem(case, n=40)  # fewer than 59: all of them are candidates
    chosen = []
    for _ in range(5):
        left = {
            j: np.trace(problem.G - oracle.nystrom(problem.G, np.array([*chosen, j]), 6))
            for j in range(40)
            if j not in chosen
        }
        chosen.append(min(left, key=left.get))
    found = cholesky.sparse_greedy(problem.gram, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(found.indices, chosen)


def test_sparse_greedy_looks_at_59_columns_in_a_step():
    gram = market.problem("Gaussian", n=300).gram
    cholesky.sparse_greedy(gram, 4, np.random.default_rng(0))
    assert 0 <= gram.entries_evaluated - 300 * 4 * (59 + 1) < 10


def test_greedy_pivots_among_many_rows_are_those_of_plain_elimination():
    problem = market.problem("Gaussian", n=300)
    X = problem.X * np.linspace(0.2, 2, 300)[:, None]
    for kernel in (nb.Gaussian(sigma=1.0), nb.Polynomial(degree=3)):
        gram = make_gram(X, kernel)
        G = gram.block(np.arange(300), np.arange(300))
        found = cholesky.greedy(gram, 15, np.random.default_rng(0))
        np.testing.assert_array_equal(found.indices, plain_pivots(G, 15))


@pytest.mark.parametrize("method", ["greedy", "rpcholesky", "sparse_greedy"])
def test_pivots_are_the_same_whether_the_factor_is_kept_or_not(method):
    problem = market.problem("Gaussian", n=400)
    kept, anew = (
        make_gram(problem.X, problem.kernel, budget=Budget(size, 1)) for size in (10**8, 120_000)
    )
    assert cholesky._Factor(kept, 20).F is not None
    assert cholesky._Factor(anew, 20).F is None
    choose = getattr(cholesky, method)
    np.testing.assert_array_equal(
        choose(kept, 20, np.random.default_rng(0)).indices,
        choose(anew, 20, np.random.default_rng(0)).indices,
    )


def test_the_factor_is_kept_where_it_takes_half_of_the_memory_at_most():
    problem = market.problem("Gaussian", n=40)
    for size, is_kept in ((2 * 8 * 40 * 6, True), (2 * 8 * 40 * 6 - 2, False)):
        gram = make_gram(problem.X, problem.kernel, budget=Budget(size, 1))
        assert (cholesky._Factor(gram, 6).F is not None) == is_kept


@pytest.mark.parametrize("method", ["greedy", "rpcholesky"])
def test_blocks_of_pivots_end_at_the_number_asked_for(method):
    X = np.random.default_rng(0).normal(size=(300, 8))
    gram = make_gram(X, nb.Gaussian(sigma=0.5))
    for c in (30, 70, 101):
        found = getattr(cholesky, method)(gram, c, np.random.default_rng(0)).indices
        assert len(set(found)) == len(found) == c


@pytest.mark.parametrize("method", ["greedy", "rpcholesky", "sparse_greedy"])
def test_rows_of_zeros_do_not_hide_that_the_residual_is_gone(method):
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[::4] = 0
    found = getattr(cholesky, method)(make_gram(X, "linear"), 20, np.random.default_rng(0))
    assert len(found) == 3


def test_independent_pivots_are_eliminated_together(monkeypatch):
    passes, eliminate = [], cholesky._Factor.eliminate
    monkeypatch.setattr(
        cholesky._Factor,
        "eliminate",
        lambda self, pivots: (passes.append(len(pivots)), eliminate(self, pivots)),
    )
    cholesky.greedy(make_gram(10.0 * np.arange(60.0)[:, None]), 60, np.random.default_rng(0))
    assert passes == [60]


def test_a_quarter_of_the_columns_is_proposed_at_a_time():
    sizes = [cholesky._block_size(c) for c in (1, 3, 8, 40, 10**4)]
    assert sizes == [1, 1, 2, 10, cholesky.PROPOSALS]


def test_proposals_of_which_none_is_accepted_are_not_made_again(monkeypatch):
    """Near the numerical rank all that is proposed may be rounding."""
    problem, thin, calls = market.problem("Gaussian", n=40), cholesky._thin, []

    def picky(block, floor, rng):
        calls.append(len(block))
        return thin(block, floor, rng)[: len(calls) - 1]

    monkeypatch.setattr(cholesky, "_thin", picky)
    found = cholesky.rpcholesky(problem.gram, 12, np.random.default_rng(0)).indices
    assert len(np.unique(found)) == 12
    assert len(calls) > 4


def test_accelerated_pivots_follow_the_plain_methods_distribution(monkeypatch):
    X = np.array([[0.0], [0.1], [1.0], [1.2], [3.0], [3.05]])
    gram = make_gram(X, nb.Gaussian(sigma=0.7))
    G = gram.block(np.arange(6), np.arange(6))
    rng, runs = np.random.default_rng(0), 6000
    counts = {"plain": np.zeros(36), "accelerated": np.zeros(36)}
    for _ in range(runs):
        first, second, _ = plain_pivots(G, 3, rng)
        counts["plain"][6 * first + second] += 1
    monkeypatch.setattr(cholesky, "_block_size", lambda c: 8)
    for _ in range(runs):
        first, second, _ = cholesky.rpcholesky(gram, 3, rng).indices
        counts["accelerated"][6 * first + second] += 1
    exact = pair_probabilities(G)
    seen = exact > 1e-9
    for name in counts:
        assert counts[name][~seen].sum() == 0
        assert chisquare(counts[name][seen], runs * exact[seen]).pvalue > 1e-3, name
