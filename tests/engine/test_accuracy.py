"""The relative error, tile by tile."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.engine import accuracy
from nysboost.gram import make_gram
from nysboost.numerics.memory import Budget


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


@pytest.mark.parametrize("shift", [-0.7, 0.0, 0.3])
def test_a_shift_of_the_diagonal_is_part_of_the_approximation_in_every_norm(monkeypatch, shift):
    problem, rng = market.problem("Gaussian", n=60), np.random.default_rng(0)
    rows, weights = rng.permutation(60)[:50], np.array([1.0, -0.2, 0.5])
    F = rng.normal(size=(50, 3)) / 2
    G = problem.G[np.ix_(rows, rows)]
    residual = G - (F * weights) @ F.T - shift * np.eye(50)
    monkeypatch.setattr(accuracy, "TILE_ROWS", 7)
    monkeypatch.setattr(accuracy, "TILE_COLS", 16)
    for error, dense in (
        (accuracy.relative_error, np.linalg.norm(residual) / np.linalg.norm(G)),
        (accuracy.relative_trace_error, abs(np.trace(residual)) / np.trace(G)),
        (accuracy.relative_spectral_error, np.linalg.norm(residual, 2) / np.linalg.norm(G, 2)),
    ):
        found = error(problem.gram, F.__getitem__, weights, rows, shift)
        assert found == pytest.approx(dense, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_spectral_error_on_a_few_rows_is_that_of_the_dense_matrix(n):
    problem, rows = market.problem("Gaussian", n=40), np.arange(n)
    F = np.random.default_rng(0).normal(size=(n, 2))
    G = problem.G[:n, :n]
    dense = np.linalg.norm(G - F @ F.T, 2) / np.linalg.norm(G, 2)
    found = accuracy.relative_spectral_error(problem.gram, F.__getitem__, np.ones(2), rows)
    assert found == pytest.approx(dense, rel=1e-3)


def test_an_eigenvalue_with_close_neighbours_is_right_to_three_digits():
    values = np.linspace(1.0, 2.0, 2000)
    assert accuracy._largest_eigenvalue(lambda v: values * v, 2000) == pytest.approx(2.0, rel=5e-4)


@given(st.integers(1, 3000), st.integers(1, 400), st.integers(20_000, 10**7))
def test_a_tile_is_as_wide_as_the_memory_allows(K, d, max_memory):
    """Four tiles, and three times the rows and features of a side, at eight bytes a number."""
    gram = make_gram(np.ones((2, d)), "linear", budget=Budget(max_memory))
    column = 8 * (4 * accuracy.TILE_ROWS + 3 * K + 3 * d)
    width = accuracy._tile_width(gram, K)
    assert width == 1 or width * column <= max_memory
    assert width == accuracy.TILE_COLS or (width + 1) * column > max_memory


def test_a_tile_has_a_column_at_least_and_is_not_wider_than_it_has_to_be():
    for max_memory, width in ((1, 1), (10**12, accuracy.TILE_COLS)):
        gram = make_gram(np.ones((2, 3)), "linear", budget=Budget(max_memory))
        assert accuracy._tile_width(gram, 5) == width


@pytest.mark.parametrize("norm", [None, "nuc", 2], ids=["frobenius", "trace", "spectral"])
def test_a_shift_counts_wherever_a_row_that_is_asked_for_twice_meets_itself(norm, monkeypatch):
    monkeypatch.setattr(accuracy, "TILE_ROWS", 4)
    monkeypatch.setattr(accuracy, "TILE_COLS", 8)
    problem, rng = market.problem("Gaussian", n=30), np.random.default_rng(0)
    F, weights, shift = rng.normal(size=(30, 3)), np.array([1.0, 0.5, -0.2]), 0.7
    rows = rng.integers(0, 30, size=40)
    dense = (F * weights) @ F.T + shift * np.eye(30)
    truth = problem.G[np.ix_(rows, rows)]
    residual = truth - dense[np.ix_(rows, rows)]
    error = {None: accuracy.relative_error, "nuc": accuracy.relative_trace_error}.get(
        norm, accuracy.relative_spectral_error
    )
    found = error(problem.gram, F[rows].__getitem__, weights, rows, shift)
    expected = (
        abs(np.trace(residual)) / np.trace(truth)
        if norm == "nuc"
        else np.linalg.norm(residual, norm) / np.linalg.norm(truth, norm)
    )
    assert found == pytest.approx(expected, rel=1e-3 if norm == 2 else 1e-10)
