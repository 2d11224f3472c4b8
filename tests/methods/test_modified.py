"""Modified Nyström and its spectral shift, against the dense formulas."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.methods.adaptive import modified, spectral_shift


@pytest.mark.parametrize("case", market.FLOAT64)
def test_modified_is_the_optimal_core_of_its_columns(case):
    problem = market.problem(case, n=60)
    G, scale = problem.G, np.abs(problem.G).max()
    approx = nb.approximate(problem.X, "modified", problem.kernel, n_components=9, random_state=2)
    C = G[:, approx.learners[0].landmarks.indices] / scale
    Q = np.linalg.svd(C, full_matrices=False)
    Q = Q[0][:, Q[1] > 1e-13 * Q[1][0]]
    expected = Q @ (Q.T @ G @ Q) @ Q.T
    np.testing.assert_allclose(approx.to_dense(), expected, rtol=0, atol=problem.tolerance)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shift", [1e-3, 0.5, 40.0])
def test_low_rank_plus_a_multiple_of_the_identity_is_recovered_exactly(seed, shift):
    A = np.random.default_rng(seed).normal(size=(80, 6))
    G = A @ A.T + shift * np.eye(80)
    found = nb.approximate(G, "spectral-shift", "precomputed", n_components=12, random_state=seed)
    assert found.shift == pytest.approx(shift, rel=1e-8)
    np.testing.assert_allclose(found.to_dense(), G, atol=1e-9 * np.abs(G).max())


@pytest.mark.parametrize("case", market.FLOAT64)
def test_spectral_shift_is_the_papers_formula_in_dense_form(case):
    """With the first shift known, C̄ is, and with it δ and the core."""
    problem = market.problem(case, n=60)
    scale = np.abs(problem.G).max()
    G = problem.G / scale
    found = spectral_shift(problem.gram, 9, np.random.default_rng(2))
    columns = modified(problem.gram, 9, np.random.default_rng(2)).landmarks.indices
    P = np.eye(60)[:, columns]
    both = np.linalg.svd(np.hstack([P, G @ P]), full_matrices=False)
    Q = both[0][:, both[1] > 1e-13 * both[1][0]]
    first = (np.trace(G) - np.trace(Q.T @ G @ Q)) / (60 - Q.shape[1])
    C = (G - first * np.eye(60)) @ P
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    Q = U[:, s > 1e-13 * s[0]]
    delta = (np.trace(G) - np.trace(Q.T @ G @ Q)) / (60 - Q.shape[1])
    expected = Q @ (Q.T @ G @ Q - delta * np.eye(Q.shape[1])) @ Q.T + delta * np.eye(60)
    # where C̄ is nearly singular its range is known less well than its product
    ours = np.linalg.norm(found.to_dense() / scale - G)
    assert ours <= np.linalg.norm(expected - G) * 1.01 + 1e-6


@pytest.mark.parametrize("case", ["flat spectrum", "stepped spectrum", "narrow Gaussian"])
def test_on_flat_spectra_the_shift_helps(case):
    problem = market.problem(case, n=80)
    how = {"n_components": 14, "random_state": 0}
    shifted = nb.approximate(problem.X, "spectral-shift", problem.kernel, **how)
    plain = nb.approximate(problem.X, "modified", problem.kernel, **how)
    assert shifted.relative_error() <= 0.5 * plain.relative_error()
