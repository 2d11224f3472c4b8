"""CUR against its dense formulas."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import pooled
from nysboost.methods.cur import crossed, indefinite, projected
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


def test_the_symmetric_part_is_at_least_as_near_as_the_product_itself():
    problem = market.problem("Gaussian", n=60)
    gram, rng = problem.gram, np.random.default_rng(0)
    J, rows = (gram.landmarks(rng.choice(60, 6, replace=False)) for _ in range(2))
    for core in (projected, crossed):
        C, R = problem.G[:, J.indices], problem.G[rows.indices]
        dense = C @ core(gram, J, rows) @ R
        symmetric = (dense + dense.T) / 2
        assert np.linalg.norm(symmetric - problem.G) <= np.linalg.norm(dense - problem.G)


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


def test_one_column_is_enough():
    problem = market.problem("Gaussian", n=50)
    for method in METHODS:
        how = {"n_components": 1, "random_state": 0}
        assert np.isfinite(
            nb.approximate(problem.X, method, problem.kernel, **how).relative_error()
        )


def test_crossing_looks_at_few_entries():
    gram = market.problem("Gaussian", n=300).gram
    columns, rows = gram.landmarks(np.arange(8)), gram.landmarks(np.arange(20, 28))
    crossed(gram, columns, rows)
    assert gram.entries_evaluated == 64
    assert len(pooled([columns, rows])) == 16
