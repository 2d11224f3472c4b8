"""One Nyström approximation, on the whole market."""

import market
import numpy as np
import oracle
import pytest
import smooth
from hypothesis import given
from hypothesis import strategies as st
from learners import dense

import nysboost as nb
from nysboost.features.factor import residual_diagonal, truncate
from nysboost.features.feature_map import features_of, fit_learner
from nysboost.gram import make_gram

cases = pytest.mark.parametrize("case", market.NAMES)


def fit(problem, columns, rank=None):
    gram = problem.gram
    return gram, fit_learner(gram, gram.landmarks(np.asarray(columns)), rank or len(columns))


@cases
@given(st.integers(1, 20), st.integers(0, 10**6))
def test_a_full_rank_learner_has_its_columns_and_leaves_what_is_positive_semidefinite(
    case, m, seed
):
    problem = market.problem(case, n=40)
    J = np.random.default_rng(seed).choice(40, size=m, replace=False)
    left = problem.G - dense(*fit(problem, J))
    np.testing.assert_allclose(left[:, J], 0, atol=10 * problem.tolerance)
    assert np.linalg.eigvalsh(left)[0] > -40 * problem.tolerance


@pytest.mark.parametrize("case", market.FLOAT64)
@pytest.mark.parametrize("rank", [1, 3, 8])
def test_a_learner_is_c_times_the_pseudoinverse_of_w_k_times_c(case, rank):
    problem = market.problem(case, n=60)
    J = np.arange(0, 48, 6)
    if case in ("few distinct rows", "flat spectrum", "rank below m", "narrow Gaussian"):
        rank = 8  # equal eigenvalues: the best rank-k matrix is not unique
    K = dense(*fit(problem, J, rank))
    np.testing.assert_allclose(
        K, oracle.nystrom(problem.G, J, rank), rtol=0, atol=problem.tolerance
    )


@pytest.mark.parametrize("case", ["decaying spectrum", "Gaussian", "linear", "constant columns"])
@pytest.mark.parametrize("rank", [1, 4, 8])
def test_truncation_is_the_best_approximation_of_the_learners_matrix(case, rank):
    problem = market.problem(case, n=60)
    J = np.arange(0, 48, 6)
    gram, learner = fit(problem, J)
    K = dense(gram, truncate(gram, learner, rank))
    np.testing.assert_allclose(K, oracle.fixed_rank(problem.G, J, rank), atol=problem.tolerance)


@pytest.mark.parametrize(
    "kernel",
    [nb.Gaussian(sigma=0.3), nb.Gaussian(sigma=30.0), nb.Matern(nu=0.5, sigma=1.0), *smooth.SMOOTH],
    ids=str,
)
@pytest.mark.parametrize("clusters", [None, 5])
@pytest.mark.parametrize("half", [60, 300])
def test_doubled_rows_in_float32_with_more_columns_than_distinct_rows_are_exact(
    kernel, half, clusters
):
    rng = np.random.default_rng(half)
    distinct = rng.normal(size=(half, 4))
    if clusters:
        distinct = (
            0.1 * distinct + 5 * rng.normal(size=(clusters, 4))[rng.integers(clusters, size=half)]
        )
    X = np.repeat(distinct, 2, axis=0).astype(np.float32)
    approx = nb.approximate(X, "nystrom", kernel, n_columns=2 * half - 1, random_state=0)
    wide = X.astype(np.float64)
    G = kernel.resolve(approx.gram.rows)(wide, wide)
    assert approx.relative_error() <= 1e-5
    assert np.linalg.norm(approx.to_dense() - G) <= 1e-5 * np.linalg.norm(G)


def test_landmarks_at_which_the_kernel_vanishes_give_rank_zero():
    gram = make_gram(np.vstack([np.zeros((5, 2)), np.ones((5, 2))]), "linear")
    learner = fit_learner(gram, gram.landmarks(np.arange(5)), 5)
    assert learner.rank == 0
    assert features_of(gram, learner).shape == (10, 0)


@pytest.mark.parametrize("method", oracle.METHODS)
def test_many_empty_rows_do_no_harm(method):
    """Nine rows in ten are zero, so that most learners see nothing of the linear kernel."""
    X = np.random.default_rng(0).normal(size=(120, 3))
    X[np.arange(120) % 10 > 0] = 0
    sizes = {"n_learners": 4, "n_columns": 8, "n_fit": 5, "n_tune": 5, "random_state": 1}
    approx = nb.approximate(X, method, "linear", **sizes)
    assert approx.relative_error() <= 1.1
    for found in (approx.features(), approx.solve(np.ones(120), 1000.0), approx.eigh()[1]):
        assert np.isfinite(found).all()


@pytest.mark.parametrize("rank", [2, 6])
def test_landmarks_of_different_weights_are_the_weighted_equation(rank):
    problem, rng = market.problem("Gaussian", n=40), np.random.default_rng(0)
    J, D = rng.choice(40, size=6, replace=False), rng.uniform(0.2, 5.0, size=6)
    gram = problem.gram
    learner = fit_learner(gram, gram.landmarks(J), rank, D)
    values, U = np.linalg.eigh(np.sqrt(np.outer(D, D)) * problem.G[np.ix_(J, J)])
    inverse = (U[:, -rank:] / values[-rank:]) @ U[:, -rank:].T
    C = problem.G[:, J] * np.sqrt(D)
    np.testing.assert_allclose(dense(gram, learner), C @ inverse @ C.T, atol=1e-9)


def test_in_float32_a_learner_has_the_features_that_are_known_there():
    """The others would be rounding errors, divided by the root of a tiny eigenvalue."""
    X = np.random.default_rng(0).uniform(size=(60, 1))
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    learner = fit_learner(gram, gram.landmarks(np.arange(20)), 20)
    eigenvalues = np.linalg.eigvalsh(gram.within(learner.landmarks))
    known = int(np.sum(eigenvalues > 4 * np.finfo(np.float32).eps * eigenvalues[-1]))
    F, exact = (features_of(one, learner.round_to(one.eps)) for one in (gram.in_float32(), gram))
    assert known < learner.rank
    assert F.shape == (60, known)
    np.testing.assert_allclose(F @ F.T, exact @ exact.T, atol=1e-3)


@cases
def test_the_diagonal_is_that_of_the_dense_residual(case):
    problem = market.problem(case, n=90)
    for J in (np.arange(0, 90, 9), np.arange(90)):
        gram, learner = fit(problem, J)
        expected = np.abs(np.diag(problem.G - dense(gram, learner)))
        ours = residual_diagonal(gram, learner)
        np.testing.assert_allclose(ours, expected, atol=10 * problem.tolerance)
