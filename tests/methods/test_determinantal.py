"""Sets of columns drawn by their determinants, against enumeration."""

from itertools import combinations

import market
import numpy as np

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.determinantal import spread_columns, swap_chain


def test_the_columns_at_which_the_chain_of_swaps_starts_are_of_different_groups():
    gram = make_gram(np.repeat(10.0 * np.arange(5), 20)[:, None], nb.Gaussian(sigma=1.0))
    start = spread_columns(gram, 5, np.random.default_rng(0))
    assert sorted(start // 20) == [0, 1, 2, 3, 4]


def subsets(G, c):
    names = list(combinations(range(len(G)), c))
    weights = np.array([np.linalg.det(G[np.ix_(J, J)]) for J in names])
    return names, weights / weights.sum()


def long_run(gram, c, steps, rng):
    """Count how often the chain is at each subset, looked at after every tenth proposal."""
    state, seen = np.arange(c), {}
    for _ in range(steps):
        state = swap_chain(gram, state, 10, rng)
        key = tuple(sorted(state.tolist()))
        seen[key] = seen.get(key, 0) + 1
    return seen


def test_subsets_come_as_often_as_their_determinants_say():
    problem = market.problem("decaying spectrum", n=8)
    names, expected = subsets(problem.G, 3)
    seen = long_run(problem.gram, 3, 3000, np.random.default_rng(0))
    found = np.array([seen.get(J, 0) for J in names]) / 3000
    assert np.abs(found - expected).sum() / 2 < 0.08
    assert np.abs(found - expected).max() < 0.03
