"""The relative error, tile by tile."""

import market
import numpy as np
import pytest

from nysboost.engine import residual as errors
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Landmarks, make_gram
from nysboost.numerics.resources import Budget


def factor_of(gram, F, rows):
    """Return a factor whose features at some rows are known."""
    landmarks = Landmarks(np.arange(F.shape[1]), None)
    return Factor(FeatureMap(gram, landmarks), gram.rows.only(rows), F)


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
    found = errors.relative_error(problem.gram, factor_of(problem.gram, F[rows], rows), signs, rows)
    assert found == pytest.approx(exact, rel=1e-7)


def test_where_the_matrix_is_zero_no_error_is_relative_to_it():
    gram = make_gram(np.vstack([np.zeros((3, 2)), np.eye(2)]), "linear")
    factor = factor_of(gram, np.zeros((3, 1)), np.arange(3))
    with pytest.raises(ValueError, match="zero on these rows"):
        errors.relative_error(gram, factor, np.ones(1), np.arange(3))


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_errors_of_an_approximation_that_is_too_large_are_not_negative(scale):
    """With 3 for the scale the residual's trace and its extreme eigenvalue are negative."""
    problem, rows = market.problem("Gaussian", n=50), np.arange(50)
    values, vectors = np.linalg.eigh(problem.G)
    F = vectors[:, -6:] * np.sqrt(scale * values[-6:])
    residual = problem.G - F @ F.T
    ours = [
        error(problem.gram, factor_of(problem.gram, F, rows), np.ones(6), rows)
        for error in (errors.relative_trace_error, errors.relative_spectral_error)
    ]
    trace = abs(np.trace(residual)) / np.trace(problem.G)
    spectral = np.linalg.norm(residual, 2) / values[-1]
    np.testing.assert_allclose(ours, [trace, spectral], rtol=1e-3)
    assert (np.trace(residual) < 0) == (scale > 1)
    assert (-np.linalg.eigvalsh(residual)[0] == np.abs(np.linalg.eigvalsh(residual)).max()) == (
        scale > 1
    )


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.3])
def test_a_shift_of_the_diagonal_is_part_of_the_approximation_in_every_norm(shift):
    problem, rng = market.problem("Gaussian", n=60), np.random.default_rng(0)
    rows, weights = rng.permutation(60)[:50], np.array([1.0, -0.2, 0.5])
    F = rng.normal(size=(50, 3)) / 2
    G = problem.G[np.ix_(rows, rows)]
    residual = G - (F * weights) @ F.T - shift * np.eye(50)
    for error, dense in (
        (errors.relative_error, np.linalg.norm(residual) / np.linalg.norm(G)),
        (errors.relative_trace_error, abs(np.trace(residual)) / np.trace(G)),
        (errors.relative_spectral_error, np.linalg.norm(residual, 2) / np.linalg.norm(G, 2)),
    ):
        found = error(problem.gram, factor_of(problem.gram, F, rows), weights, rows, shift)
        assert found == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_spectral_error_on_a_few_rows_is_that_of_the_dense_matrix(n):
    problem, rows = market.problem("Gaussian", n=40), np.arange(n)
    F = np.random.default_rng(0).normal(size=(n, 2))
    G = problem.G[:n, :n]
    dense = np.linalg.norm(G - F @ F.T, 2) / np.linalg.norm(G, 2)
    found = errors.relative_spectral_error(
        problem.gram, factor_of(problem.gram, F, rows), np.ones(2), rows
    )
    assert found == pytest.approx(dense, rel=1e-3)


@pytest.mark.parametrize("norm", [None, "nuc", 2], ids=["frobenius", "trace", "spectral"])
def test_a_shift_counts_wherever_a_row_that_is_asked_for_twice_meets_itself(norm):
    problem, rng = market.problem("Gaussian", n=30), np.random.default_rng(0)
    F, weights, shift = rng.normal(size=(30, 3)), np.array([1.0, 0.5, -0.2]), 0.7
    rows = rng.integers(0, 30, size=40)
    dense = (F * weights) @ F.T + shift * np.eye(30)
    truth = problem.G[np.ix_(rows, rows)]
    residual = truth - dense[np.ix_(rows, rows)]
    error = {None: errors.relative_error, "nuc": errors.relative_trace_error}.get(
        norm, errors.relative_spectral_error
    )
    found = error(problem.gram, factor_of(problem.gram, F[rows], rows), weights, rows, shift)
    expected = (
        abs(np.trace(residual)) / np.trace(truth)
        if norm == "nuc"
        else np.linalg.norm(residual, norm) / np.linalg.norm(truth, norm)
    )
    assert found == pytest.approx(expected, rel=1e-3 if norm == 2 else 1e-10)
