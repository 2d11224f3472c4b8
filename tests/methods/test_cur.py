"""CUR against its dense formulas."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.methods.cur import indefinite
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
    C, R = G[:, J], G[rows]
    if "cross" in method:
        U = np.linalg.pinv(G[np.ix_(rows, J)], rcond=CROSSING)
    else:
        U = np.linalg.pinv(C) @ G @ np.linalg.pinv(R)
    dense = C @ U @ R
    expected = scale * (dense + dense.T) / 2
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=10 * problem.tolerance)


def test_a_low_rank_matrix_is_its_own_cur():
    A = np.random.default_rng(0).normal(size=(70, 4))
    for method in METHODS:
        approx = nb.approximate(A @ A.T, method, "precomputed", n_components=16, random_state=0)
        assert approx.relative_error() < 1e-8


def test_an_indefinite_core_is_kept_as_it_is_and_said_to_be_one():
    problem = market.problem("Gaussian", n=50)
    landmarks = problem.gram.landmarks(np.arange(6))
    A = np.random.default_rng(0).normal(size=(6, 6))
    M = A + A.T
    approx = nb.Approximation(problem.gram, indefinite(problem.gram, landmarks, M))
    C = problem.G[:, :6]
    np.testing.assert_allclose(approx.to_dense(), C @ M @ C.T, atol=1e-9)
    assert not approx.is_psd
