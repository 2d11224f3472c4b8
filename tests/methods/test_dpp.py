"""A determinantal point process against the determinants themselves, and against DPPy."""

from itertools import combinations

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.dpp import _exchanged, _ratio, dpp, spread_columns, swap_chain


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


def test_another_package_samples_the_same_columns_as_often():
    dppy = pytest.importorskip("dppy.finite_dpps")
    problem = market.problem("Gaussian", n=8)
    process = dppy.FiniteDPP("likelihood", L=problem.G)
    rng, exact = np.random.RandomState(0), np.zeros(8)
    for _ in range(600):
        exact[process.sample_exact_k_dpp(size=3, random_state=rng)] += 1 / 600
    ours = np.zeros(8)
    for J, times in long_run(problem.gram, 3, 3000, np.random.default_rng(1)).items():
        ours[list(J)] += times / 3000
    np.testing.assert_allclose(ours, exact, atol=0.07)


def test_an_exchange_knows_the_determinant_and_keeps_the_inverse():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(6, 9))
    K = A @ A.T
    before, after = np.array([0, 1, 2, 3]), np.array([0, 5, 2, 3])
    inverse = np.linalg.inv(K[np.ix_(before, before)])
    determinants = [np.linalg.det(K[np.ix_(J, J)]) for J in (before, after)]
    ratio = _ratio(inverse, 1, K[before, 5], K[5, 5])
    assert ratio == pytest.approx(determinants[1] / determinants[0])
    found = _exchanged(inverse, 1, K[before, 5], K[5, 5])
    np.testing.assert_allclose(found, np.linalg.inv(K[np.ix_(after, after)]), rtol=1e-9)


@pytest.mark.parametrize("case", market.NAMES)
@pytest.mark.parametrize("c", [1, 7, 60])
def test_columns_are_distinct_on_every_matrix(case, c):
    found = dpp(market.problem(case, n=60).gram, c, np.random.default_rng(0)).indices
    assert len(set(found)) == len(found) == c


def test_the_start_is_spread_over_clusters():
    X = np.repeat(10 * np.eye(4), 20, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=(80, 4))
    gram = market.Problem(X, nb.Gaussian(sigma=1.0), X).gram
    for seed in range(20):
        found = spread_columns(gram, 4, np.random.default_rng(seed))
        assert set(found // 20) == {0, 1, 2, 3}


def test_the_cost_hardly_depends_on_the_number_of_rows():
    counts = []
    for n in (9000, 90_000):
        gram = make_gram(np.random.default_rng(0).normal(size=(n, 1)), "rbf")
        dpp(gram, 5, np.random.default_rng(0))
        counts.append(gram.entries_evaluated)
    assert counts[1] < 1.1 * counts[0]
