"""Nuclear scores against traces of dense residuals."""

import market
import numpy as np
import oracle
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.methods.nuclear_scores import ScoredResidual, nuclear_scores


def trace_left(G, columns):
    return np.trace(G - oracle.nystrom(G, np.array(columns), len(columns)))


@pytest.mark.parametrize("case", ["Gaussian", "linear", "decaying spectrum", "constant columns"])
def test_each_column_is_the_one_after_which_the_trace_is_smallest(case):
    problem = market.problem(case, n=70)
    chosen = []
    for _ in range(5):
        others = [j for j in range(70) if j not in chosen]
        chosen.append(min(others, key=lambda j: trace_left(problem.G, [*chosen, j])))
    found = nuclear_scores(problem.gram, 5, np.random.default_rng(0), 4096)
    np.testing.assert_array_equal(found.indices, chosen)


@pytest.mark.parametrize("case", market.FLOAT64)
def test_scores_are_those_of_the_dense_residual_down_to_rounding(case):
    """Also after many columns, where the residual is a millionth of what it was."""
    problem = market.problem(case, n=60)
    G = problem.G / np.abs(problem.G).max()
    residual = ScoredResidual(G, 30, np.finfo(float).eps)
    R = G.copy()
    while not residual.is_exhausted and np.trace(R) > 1e-8 * np.trace(G):
        diag = np.diag(R)
        eligible = diag > 1e-9 * np.trace(G)
        expected = (R**2).sum(axis=0)[eligible] / diag[eligible]
        np.testing.assert_allclose(
            residual.scores()[eligible], expected, rtol=1e-3, atol=1e-6 * expected.max()
        )
        residual.eliminate_best()
        r = R[:, residual.pivots[-1]]
        R = R - np.outer(r, r) / r[residual.pivots[-1]]


def test_it_beats_random_candidates_and_leaves_other_rows_alone():
    X = np.random.default_rng(0).normal(size=(600, 4))
    errors = {
        method: np.mean([
            nb.approximate(
                X, method, nb.Gaussian(sigma=2.0), n_components=30, random_state=seed
            ).relative_error(norm="trace")
            for seed in range(3)
        ])
        for method in ("nuclear-scores", "sparse-greedy", "uniform")
    }  # fmt: skip
    assert errors["nuclear-scores"] <= errors["sparse-greedy"] < errors["uniform"]


def test_beyond_the_cap_of_rows_the_cost_does_not_depend_on_n():
    counts = []
    for n in (3000, 30_000):
        gram = make_gram(np.random.default_rng(0).normal(size=(n, 3)), nb.Gaussian(sigma=2.0))
        assert len(nuclear_scores(gram, 20, np.random.default_rng(0), 500)) == 20
        counts.append(gram.entries_evaluated)
    assert counts[0] == counts[1] < 500**2


def test_it_ends_where_the_residual_is_gone():
    X = np.random.default_rng(0).normal(size=(80, 3))
    X[::4] = 0
    found = nuclear_scores(make_gram(X, "linear"), 20, np.random.default_rng(0), 4096)
    assert len(found) == 3
