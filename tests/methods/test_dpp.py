"""A determinantal point process against the determinants themselves."""

from itertools import combinations

import market
import numpy as np

from nysboost.gram import make_gram
from nysboost.methods.sampling import dpp, swap_chain


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
    seen = long_run(problem.gram, 3, 6000, np.random.default_rng(0))
    found = np.array([seen.get(J, 0) for J in names]) / 6000
    assert np.abs(found - expected).sum() / 2 < 0.06
    assert np.abs(found - expected).max() < 0.02


def test_the_cost_hardly_depends_on_the_number_of_rows():
    counts = []
    for n in (9000, 90_000):
        gram = make_gram(np.random.default_rng(0).normal(size=(n, 1)), "rbf")
        dpp(gram, 5, np.random.default_rng(0))
        counts.append(gram.entries_evaluated)
    assert counts[1] < 1.1 * counts[0]
