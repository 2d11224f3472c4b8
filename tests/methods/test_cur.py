"""CUR against its dense formulas, and a low-rank matrix recovered from wrong entries."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.numerics.tolerances import CROSSING

METHODS = ("cur", "cur-uniform", "cur-cross", "cur-cross-uniform")


@pytest.mark.parametrize("case", market.WITHOUT_TIES)
@pytest.mark.parametrize("method", METHODS)
def test_it_is_the_symmetric_part_of_the_dense_formula(method, case):
    problem = market.problem(case, n=60)
    scale = np.abs(problem.G).max()
    G = problem.G / scale
    approx = nb.approximate(problem.X, method, problem.kernel, n_components=9, random_state=1)
    both = approx.learners[0].landmarks.indices
    J, rows = both[:5], both[5:]
    assert len(rows) == 4
    C, R = G[:, J], G[rows]
    if "cross" in method:
        U = np.linalg.pinv(G[np.ix_(rows, J)], rcond=CROSSING)
    else:
        U = np.linalg.pinv(C) @ G @ np.linalg.pinv(R)
    dense = C @ U @ R
    expected = scale * (dense + dense.T) / 2
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=10 * problem.tolerance)
    assert not approx.is_psd


def test_a_low_rank_matrix_is_its_own_cur():
    A = np.random.default_rng(0).normal(size=(70, 4))
    for method in METHODS:
        approx = nb.approximate(A @ A.T, method, "precomputed", n_components=16, random_state=0)
        assert approx.relative_error() < 1e-8


@pytest.mark.parametrize("method", [*METHODS, "robust-cur"])
def test_columns_that_reach_no_other_row_leave_a_system_of_the_multiple_alone(method):
    """G is the identity but for rounding, and its approximation zero, or nearly."""
    X = 1e4 * np.arange(60.0)[:, None]
    approx = nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=8, random_state=0)
    expected = np.linalg.solve(approx.to_dense() + 5 * np.eye(60), np.ones(60))
    np.testing.assert_allclose(approx.solve(np.ones(60), 5.0), expected)


def corrupted(n, rank, share, seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    G = A @ A.T
    wrong = np.triu(rng.uniform(size=(n, n)) < share, 1)
    noise = np.where(wrong, rng.uniform(-5, 5, size=(n, n)) * np.abs(G).mean(), 0)
    return G, G + noise + noise.T, wrong | wrong.T


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_corrupted_low_rank_matrix_is_recovered_and_the_corruption_found(rank, share):
    G, given, wrong = corrupted(400, rank, share, seed=rank)
    found = nb.approximate(given, "robust-cur", "precomputed", n_components=120, random_state=0)
    error = np.linalg.norm(found.to_dense() - G) / np.linalg.norm(G)
    assert error < 1e-3
    called = np.zeros((400, 400), dtype=bool)
    called[found.corrupted.row, found.corrupted.col] = True
    assert not (called & ~wrong).any()
    assert (wrong & ~called).sum() <= 0.01 * wrong.sum()
    large = np.abs(given - G) > 0.01 * np.abs(G).max()
    assert not (large & ~called).any()
    repaired = given.copy()
    repaired[found.corrupted.row, found.corrupted.col] -= found.corrupted.data
    assert np.linalg.norm(repaired - G) / np.linalg.norm(G) < 1e-3
