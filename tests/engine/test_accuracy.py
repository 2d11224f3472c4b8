"""Relative errors against those of dense matrices, in every norm."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.residual import ERRORS, Residual
from nysboost.gram import Landmarks, make_gram
from nysboost.numerics.resources import Budget

DENSE = {
    "frobenius": np.linalg.norm,
    "trace": lambda A: abs(np.trace(A)),
    "spectral": lambda A: np.linalg.norm(A, 2),
}


def residual_of(gram, F, weights, rows, shift=0.0):
    """Return the residual of an approximation whose features at some rows are known."""
    transform = FeatureMap(gram, Landmarks(np.arange(F.shape[1]), None))
    return Residual(gram, Factor(transform, gram.rows.only(rows), F), weights, shift=shift)


@pytest.mark.parametrize("case", market.FLOAT64)
@pytest.mark.parametrize("memory", [2**16, 2**30])
def test_the_error_is_that_of_the_dense_matrices_however_it_is_cut(case, memory):
    problem, rng = market.problem(case, n=700), np.random.default_rng(0)
    G, size = problem.G, np.sqrt(np.abs(problem.G).max())
    F, signs = size * rng.normal(size=(700, 3)), rng.normal(size=3)
    rows = rng.choice(700, size=600, replace=False)
    part = G[np.ix_(rows, rows)] / size**2
    K = (F[rows] * signs) @ F[rows].T / size**2
    exact = np.linalg.norm(part - K) / np.linalg.norm(part)
    problem.gram.budget = Budget(memory)
    found = ERRORS["frobenius"](residual_of(problem.gram, F[rows], signs, rows), rows)
    assert found == pytest.approx(exact, rel=1e-7)


def test_where_the_matrix_is_zero_no_error_is_relative_to_it():
    gram = make_gram(np.vstack([np.zeros((3, 2)), np.eye(2)]), "linear")
    residual = residual_of(gram, np.zeros((3, 1)), np.ones(1), np.arange(3))
    with pytest.raises(ValueError, match="zero on these rows"):
        ERRORS["frobenius"](residual, np.arange(3))


@pytest.mark.parametrize("norm", ERRORS)
@given(
    st.lists(st.integers(0, 29), min_size=1, max_size=50),
    st.floats(-1, 1),
    st.sampled_from([0.1, 1.0, 10.0]),
)
def test_errors_are_dense_ones_also_of_shifts_few_rows_and_repeated_ones(norm, rows, shift, size):
    """Whatever the signs of the weights, and of the residual's trace and extreme eigenvalue."""
    problem, rng, rows = market.problem("Gaussian", n=30), np.random.default_rng(0), np.array(rows)
    F, weights = size * rng.normal(size=(30, 3)), np.array([1.0, 0.5, -0.2])
    dense, both = (F * weights) @ F.T + shift * np.eye(30), np.ix_(rows, rows)
    found = ERRORS[norm](residual_of(problem.gram, F[rows], weights, rows, shift), rows)
    exact = DENSE[norm](problem.G[both] - dense[both]) / DENSE[norm](problem.G[both])
    assert found == pytest.approx(exact, rel=1e-3 if norm == "spectral" else 1e-9, abs=1e-12)
