"""Columns in rounds, by their residuals, against the dense residual and its probabilities."""

import market
import numpy as np
import pytest
from scipy.stats import chisquare

from nysboost.methods.adaptive import (
    adaptive,
    adaptive_partial,
    draw,
    exact_residuals,
    partial_residuals,
)


@pytest.mark.parametrize("case", market.FLOAT64)
def test_the_exact_residual_is_what_the_projection_leaves(case):
    problem = market.problem(case, n=60)
    G, chosen = problem.G, np.array([3, 17, 40, 8])
    C = G[:, chosen]
    scale = np.abs(G).max()
    projection = C @ np.linalg.lstsq(C / scale, G / scale, rcond=1e-14)[0]
    expected = (((G - projection) / scale) ** 2).sum(axis=0)
    found = exact_residuals(problem.gram, chosen) / scale**2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_partial_residual_is_that_of_a_low_rank_nystrom_in_the_columns_seen():
    problem = market.problem("Gaussian", n=60)
    chosen = np.array([3, 17, 40, 8, 22, 51])
    C, W = problem.G[:, chosen], problem.G[np.ix_(chosen, chosen)]
    values, U = np.linalg.eigh(W)
    best = U[:, -3:] / values[-3:] @ U[:, -3:].T
    expected = ((C - C @ best @ W) ** 2).sum(axis=1)
    np.testing.assert_allclose(partial_residuals(problem.gram, chosen), expected, atol=1e-12)


@pytest.mark.parametrize("residuals", [exact_residuals, partial_residuals])
def test_the_second_round_follows_the_exact_probabilities(residuals):
    """The first column is drawn uniformly, the second by what the first leaves."""
    n, gram = 6, market.problem("decaying spectrum", n=6).gram
    expected = np.zeros((n, n))
    for first in range(n):
        rest = residuals(gram, np.array([first, (first + 1) % n]))
        rest[[first, (first + 1) % n]] = 0
        expected[first] = rest / rest.sum()
    rng, counts, runs = np.random.default_rng(1), np.zeros((n, n)), 3000
    for _ in range(runs):
        first = rng.integers(n)
        chosen = np.array([first, (first + 1) % n])
        counts[first, draw(residuals(gram, chosen), chosen, 1, rng)] += 1
    possible = expected > 0
    starts = counts.sum(axis=1, keepdims=True)
    result = chisquare(counts[possible], (starts * expected)[possible], sum_check=False)
    assert counts[~possible].sum() == 0
    assert result.pvalue > 1e-3


def test_adaptive_columns_leave_less_than_uniform_ones():
    rng = np.random.default_rng(0)
    problem = market.problem("narrow Gaussian", n=200)
    spread = np.concatenate([np.zeros((150, 3)), 5 * rng.normal(size=(50, 3))])
    gram = market.Problem(spread, problem.kernel, problem.G).gram
    left = [
        exact_residuals(gram, adaptive(gram, 20, np.random.default_rng(s)).indices).sum()
        for s in range(5)
    ]
    uniform = [
        exact_residuals(gram, np.random.default_rng(s).choice(200, 20, replace=False)).sum()
        for s in range(5)
    ]
    assert np.mean(left) < 0.8 * np.mean(uniform)


def test_partial_rounds_do_not_look_at_the_whole_matrix():
    gram = market.problem("Gaussian", n=300).gram
    adaptive_partial(gram, 10, np.random.default_rng(0))
    assert gram.entries_evaluated < 300 * 60
