"""Methods that look at columns in rounds, or at all of G, against the dense formulas."""

import market
import numpy as np
import pytest
from peaks import peak_bytes
from scipy.stats import chisquare

import nysboost as nb
from nysboost.boosting.state import Pool
from nysboost.gram import make_gram
from nysboost.methods import adaptive
from nysboost.numerics.checks import Budget


def basis(C):
    """Orthonormal columns that span those of C, to thirteen digits."""
    U, s, _ = np.linalg.svd(C, full_matrices=False)
    return U[:, s > 1e-13 * s[0]]


@pytest.mark.parametrize("case", market.FLOAT64)
def test_the_exact_residual_is_what_the_projection_leaves(case):
    problem = market.problem(case, n=60)
    G, chosen = problem.G, np.array([3, 17, 40, 8])
    C = G[:, chosen]
    scale = np.abs(G).max()
    projection = C @ np.linalg.lstsq(C / scale, G / scale, rcond=1e-14)[0]
    expected = (((G - projection) / scale) ** 2).sum(axis=0)
    found = adaptive.exact_residuals(problem.gram, chosen) / scale**2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_the_partial_residual_is_that_of_a_low_rank_nystrom_in_the_columns_seen():
    problem = market.problem("Gaussian", n=60)
    chosen = np.array([3, 17, 40, 8, 22, 51])
    C, W = problem.G[:, chosen], problem.G[np.ix_(chosen, chosen)]
    values, U = np.linalg.eigh(W)
    best = U[:, -3:] / values[-3:] @ U[:, -3:].T
    expected = ((C - C @ best @ W) ** 2).sum(axis=1)
    np.testing.assert_allclose(
        adaptive.partial_residuals(problem.gram, chosen), expected, atol=1e-12
    )


def test_columns_are_drawn_in_proportion_to_what_they_leave_and_none_twice():
    left, chosen, rng = np.array([3.0, 1.0, 9.0, 2.0, 0.0]), np.array([2]), np.random.default_rng(1)
    pool = Pool(5)
    pool.remove(chosen)
    drawn = [int(pool.sample(1, rng, left)[0]) for _ in range(3000)]
    counts = np.bincount(drawn, minlength=5)
    assert counts[2] == counts[4] == 0
    assert chisquare(counts[[0, 1, 3]], 3000 * np.array([3, 1, 2]) / 6).pvalue > 1e-3


@pytest.mark.parametrize("weights", [np.zeros(5), np.array([0, 0, 1.0, 0, 0])])
def test_columns_of_no_weight_are_drawn_where_there_are_no_others(weights):
    drawn = Pool(5).sample(3, np.random.default_rng(0), weights)
    assert len(set(drawn)) == 3
    assert set(np.flatnonzero(weights)) <= set(drawn)


def test_partial_rounds_do_not_look_at_the_whole_matrix():
    gram = market.problem("Gaussian", n=300).gram
    adaptive.adaptive_partial(gram, 10, np.random.default_rng(0))
    assert gram.entries_evaluated < 300 * 60


@pytest.mark.parametrize("case", market.FLOAT64)
def test_modified_is_the_optimal_core_of_its_columns(case):
    problem = market.problem(case, n=60)
    G, scale = problem.G, np.abs(problem.G).max()
    approx = nb.approximate(problem.X, "modified", problem.kernel, n_components=9, random_state=2)
    Q = basis(G[:, approx.learners[0].landmarks.indices] / scale)
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


def test_a_multiple_of_the_identity_has_no_low_rank_part_and_its_systems_are_solved():
    found = nb.approximate(3 * np.eye(40), "spectral-shift", "precomputed", n_components=5)
    assert (found.rank, found.shift) == (0, 3.0)
    assert found.is_psd
    eigenvalues, vectors = found.eigh()
    assert eigenvalues.shape == (0,)
    assert vectors.shape == (40, 0)
    np.testing.assert_allclose(found.solve(np.ones(40), 1.0), 1 / 4)


@pytest.mark.parametrize("case", market.FLOAT64)
def test_spectral_shift_is_the_papers_formula_in_dense_form(case):
    """With the first shift known, C̄ is, and with it δ and the core."""
    problem = market.problem(case, n=60)
    scale = np.abs(problem.G).max()
    G = problem.G / scale
    found = adaptive.spectral_shift(problem.gram, 9, np.random.default_rng(2))
    columns = adaptive.modified(problem.gram, 9, np.random.default_rng(2)).landmarks.indices
    P = np.eye(60)[:, columns]
    Q = basis(np.hstack([P, G @ P]))
    first = (np.trace(G) - np.trace(Q.T @ G @ Q)) / (60 - Q.shape[1])
    Q = basis((G - first * np.eye(60)) @ P)
    delta = (np.trace(G) - np.trace(Q.T @ G @ Q)) / (60 - Q.shape[1])
    expected = Q @ (Q.T @ G @ Q - delta * np.eye(Q.shape[1])) @ Q.T + delta * np.eye(60)
    # where C̄ is nearly singular its range is known less well than its product
    ours = np.linalg.norm(found.to_dense() / scale - G)
    assert ours <= np.linalg.norm(expected - G) * 1.01 + 1e-6


@pytest.mark.parametrize("case", ["Gaussian", "linear", "decaying spectrum", "float32 Gaussian"])
def test_optimal_has_the_error_of_the_truncated_svd(case):
    problem = market.problem(case, n=80)
    approx = nb.approximate(problem.X, "optimal", problem.kernel, n_components=6)
    values = np.linalg.svd(problem.G.astype(np.float64), compute_uv=False)
    expected = np.sqrt((values[6:] ** 2).sum() / (values**2).sum())
    np.testing.assert_allclose(approx.relative_error(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_optimal_leaves_out_eigenvalues_that_are_rounding_whatever_the_scale(scale):
    B = np.random.default_rng(0).normal(size=(40, 3))
    G = scale * B @ B.T
    learner = adaptive.optimal(make_gram(G, "precomputed"), 10, np.random.default_rng(0))
    assert learner.rank == 3
    F = G @ learner.projection
    np.testing.assert_allclose(F @ F.T, G, atol=1e-10 * scale)


@pytest.mark.parametrize("case", market.NAMES)
def test_a_product_with_g_is_the_dense_one(case):
    problem = market.problem(case, n=70)
    gram = make_gram(problem.X, problem.kernel, budget=Budget(2**14, 1))
    V = np.random.default_rng(0).normal(size=(70, 3))
    tolerance = 70 * problem.tolerance
    np.testing.assert_allclose(gram.times(V), problem.G @ V, rtol=0, atol=tolerance)


LIMITS = {
    "optimal": (10_000, "the whole n×n matrix.*a sample of the rows"),
    "robust-cur": (10_000, "lists the corrupted entries.*a principal submatrix"),
}
SEE_ALL = ("modified", "spectral-shift", "adaptive", "cur", "cur-uniform")


@pytest.mark.parametrize("method", [*LIMITS, *SEE_ALL])
def test_too_many_rows_get_a_sentence_that_names_a_way_out(method):
    n, words = LIMITS.get(method, (30_000, r"all n² entries.*\"joint\""))
    X = np.arange(n + 1.0)[:, None]
    with pytest.raises(ValueError, match=words) as refused:
        nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=5)
    assert f"at most {n} rows, but n_samples = {n + 1} were given" in str(refused.value)


@pytest.mark.parametrize("method", ["modified", "spectral-shift", "adaptive", "cur-uniform"])
def test_the_whole_matrix_is_looked_at_but_never_held(method):
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 3))
    how = {"n_components": 12, "max_memory": "8MB", "random_state": 0}
    assert peak_bytes(lambda: nb.approximate(X, method, **how)) < 8 * n * n / 3
