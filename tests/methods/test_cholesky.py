"""Pivoted Cholesky: greedy against LAPACK-style elimination, random against its law."""

from itertools import permutations

import market
import numpy as np
import oracle
import pytest
from scipy.stats import chisquare, ks_2samp

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods import cholesky
from nysboost.numerics.checks import Budget


def plain_pivots(G, c, rng=None):
    """Eliminate one column at a time: the largest diagonal, or one drawn in proportion."""
    F, pivots, diag = np.zeros((len(G), c)), [], np.diag(G).copy()
    for i in range(c):
        j = int(np.argmax(diag)) if rng is None else rng.choice(len(G), p=diag / diag.sum())
        F[:, i] = (G[:, j] - F[:, :i] @ F[j, :i]) / np.sqrt(diag[j])
        diag = np.maximum(diag - F[:, i] ** 2, 0)
        diag[[*pivots, j]] = 0
        pivots.append(j)
    return pivots


each = pytest.mark.parametrize(
    "method", [cholesky.greedy, cholesky.rpcholesky, cholesky.sparse_greedy]
)


def residual_trace(G, pivots):
    """Return what is left of the trace of G, relative to it, after these pivots."""
    lower = np.linalg.cholesky(G[np.ix_(pivots, pivots)])
    return 1 - np.linalg.norm(np.linalg.solve(lower, G[pivots])) ** 2 / np.trace(G)


@pytest.mark.parametrize(
    ("n", "max_memory"), [(2200, 2**30), (1000, 10**6)], ids=["factor kept", "factor found again"]
)
def test_random_pivots_have_the_errors_of_one_pivot_at_a_time(n, max_memory):
    """Two samples of 100 seeds; 2,200 rows have several steps of proposals between two passes."""
    X = np.random.default_rng(0).normal(size=(n, 6)) * 0.7 ** np.arange(6)
    gram = make_gram(X, nb.Gaussian(sigma=1.5), budget=Budget(max_memory, 1))
    G = gram.block(np.arange(n), np.arange(n))
    ours, plain = (
        [residual_trace(G, pivots(np.random.default_rng(start + seed))) for seed in range(100)]
        for start, pivots in (
            (0, lambda rng: cholesky.rpcholesky(gram, 70, rng)),
            (1000, lambda rng: plain_pivots(G, 70, rng)),
        )
    )
    assert ks_2samp(ours, plain).pvalue > 0.01
    assert np.mean(ours) == pytest.approx(np.mean(plain), rel=0.03)


def ordered_probabilities(G, c):
    """Return the probability of each sequence of c pivots, by enumeration."""
    law = {}
    for pivots in permutations(range(len(G)), c):
        probability, residual = 1.0, G.copy()
        for j in pivots:
            diag = np.maximum(np.diag(residual), 0)
            probability *= diag[j] / diag.sum()
            residual = residual - np.outer(residual[:, j], residual[j]) / residual[j, j]
        law[pivots] = probability
    return law


def test_random_pivots_have_the_distribution_that_enumeration_gives():
    X = np.array([[0.0], [0.3], [1.0], [1.4], [3.0]])
    gram = make_gram(X, nb.Gaussian(sigma=0.7))
    law = ordered_probabilities(gram.block(np.arange(5), np.arange(5)), 3)
    assert sum(law.values()) == pytest.approx(1)
    rng, runs, counts = np.random.default_rng(0), 3000, dict.fromkeys(law, 0)
    for _ in range(runs):
        counts[tuple(cholesky.rpcholesky(gram, 3, rng).tolist())] += 1
    expected = runs * np.array(list(law.values()))
    assert chisquare(list(counts.values()), expected).pvalue > 0.01


@pytest.mark.parametrize(("d", "sigma", "share"), [(20, 3.0, 0.05), (3, 1.5, 0.5)])
def test_random_pivots_evaluate_few_columns(d, sigma, share):
    """None in full where the residual falls slowly; where it falls fast, rejection is cheaper."""
    gram = make_gram(np.random.default_rng(0).normal(size=(20_000, d)), nb.Gaussian(sigma=sigma))
    assert len(cholesky.rpcholesky(gram, 200, np.random.default_rng(0))) == 200
    assert gram.entries_evaluated < share * 200 * 20_000


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
    np.testing.assert_array_equal(found, chosen)


def test_greedy_pivots_among_many_rows_are_those_of_plain_elimination():
    problem = market.problem("Gaussian", n=300)
    X = problem.X * np.linspace(0.2, 2, 300)[:, None]
    for kernel in (nb.Gaussian(sigma=1.0), nb.Polynomial(degree=3)):
        gram = make_gram(X, kernel)
        G = gram.block(np.arange(300), np.arange(300))
        found = cholesky.greedy(gram, 15, np.random.default_rng(0))
        np.testing.assert_array_equal(found, plain_pivots(G, 15))


@each
def test_pivots_are_the_same_whether_the_factor_is_kept_or_not(method):
    problem, factor = market.problem("decaying spectrum", n=400), 8 * 400 * 20
    kept, anew = (  # half of the memory just holds the factor, or not
        make_gram(problem.X, problem.kernel, budget=Budget(2 * factor - less, 1)) for less in (0, 2)
    )
    pivots = (method(gram, 20, np.random.default_rng(0)) for gram in (kept, anew))
    np.testing.assert_array_equal(*pivots)
    assert kept.entries_evaluated <= anew.entries_evaluated


@each
def test_rows_of_zeros_do_not_hide_that_the_residual_is_gone(method):
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[::4] = 0
    assert len(method(make_gram(X, "linear"), 20, np.random.default_rng(0))) == 3
