"""The relative error, tile by tile."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.engine import accuracy
from nysboost.gram import make_gram


@pytest.mark.parametrize("case", market.FLOAT64)
@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 20))
def test_the_error_does_not_depend_on_the_tiles(case, height, width, seed):
    problem, rng = market.problem(case, n=40), np.random.default_rng(seed)
    G, size = problem.G, np.sqrt(np.abs(problem.G).max())
    F, signs = size * rng.normal(size=(40, 3)), rng.normal(size=3)
    rows = rng.choice(40, size=rng.integers(1, 41), replace=False)
    part = G[np.ix_(rows, rows)] / size**2
    K = (F[rows] * signs) @ F[rows].T / size**2
    exact = np.linalg.norm(part - K) / np.linalg.norm(part)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "TILE_ROWS", height)
        patch.setattr(accuracy, "TILE_COLS", width)
        found = accuracy.relative_error(problem.gram, F[rows].__getitem__, signs, rows)
    assert found == pytest.approx(exact, rel=1e-7)


def test_half_of_the_off_diagonal_entries_are_enough():
    gram = market.problem("Gaussian", n=40).gram
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accuracy, "TILE_ROWS", 4)
        accuracy.relative_error(gram, np.ones((40, 1)).__getitem__, np.ones(1), np.arange(40))
    assert gram.entries_evaluated == (40 * 40 + 10 * 16) // 2


def test_where_the_matrix_is_zero_no_error_is_relative_to_it():
    gram = make_gram(np.vstack([np.zeros((3, 2)), np.eye(2)]), "linear")
    with pytest.raises(ValueError, match="zero on these rows"):
        accuracy.relative_error(gram, np.zeros((3, 1)).__getitem__, np.ones(1), np.arange(3))


@pytest.mark.parametrize("method", ["nystrom", "ensemble-ridge", "joint"])
def test_trace_and_spectral_errors_are_those_of_the_dense_matrices(method):
    problem = market.problem("Gaussian", n=90)
    approx = nb.approximate(
        problem.X, method, problem.kernel, n_learners=2, n_columns=6, random_state=0
    )
    residual = problem.G - approx.to_dense()
    trace = abs(np.trace(residual)) / np.trace(problem.G)
    spectral = np.linalg.norm(residual, 2) / np.linalg.norm(problem.G, 2)
    np.testing.assert_allclose(approx.relative_error(norm="trace"), trace, rtol=1e-8)
    np.testing.assert_allclose(approx.relative_error(norm="spectral"), spectral, rtol=1e-3)


def test_an_unknown_norm_gets_the_known_ones():
    approx = nb.approximate(market.problem("Gaussian", n=30).X, "nystrom", n_columns=3)
    with pytest.raises(ValueError, match="frobenius, trace, spectral"):
        approx.relative_error(norm="nuclear")


@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_errors_of_an_approximation_that_is_too_large_are_not_negative(scale):
    """With 3 for the scale the residual's trace and its extreme eigenvalue are negative."""
    problem, rows = market.problem("Gaussian", n=50), np.arange(50)
    values, vectors = np.linalg.eigh(problem.G)
    F = vectors[:, -6:] * np.sqrt(scale * values[-6:])
    residual = problem.G - F @ F.T
    ours = [
        error(problem.gram, F.__getitem__, np.ones(6), rows)
        for error in (accuracy.relative_trace_error, accuracy.relative_spectral_error)
    ]
    trace = abs(np.trace(residual)) / np.trace(problem.G)
    spectral = np.linalg.norm(residual, 2) / values[-1]
    np.testing.assert_allclose(ours, [trace, spectral], rtol=1e-3)
    assert (np.trace(residual) < 0) == (scale > 1)
    assert (-np.linalg.eigvalsh(residual)[0] == np.abs(np.linalg.eigvalsh(residual)).max()) == (
        scale > 1
    )
