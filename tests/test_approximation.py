"""An approximation is its dense matrix, in every way it can be asked."""

import pickle

import market
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, cg, eigsh

import nysboost as nb
from nysboost.numerics.checks import Budget


def cases(*methods):
    """Every matrix of the market, whole and sampled, with one of the methods in turn."""
    each = [
        (case, limits, methods[(i + j) % len(methods)])
        for i, case in enumerate(market.NAMES)
        for j, limits in enumerate(({}, market.SAMPLED))
    ]
    ids = [f"{case}-{'sampled' if limits else 'whole'}-{method}" for case, limits, method in each]
    return pytest.mark.parametrize(("case", "limits", "method"), each, ids=ids)


def approximate(case, method="ensemble-ridge", n=60, **settings):
    problem = market.problem(case, n=market.MANY if "row_cap" in settings else n)
    sizes = {"n_learners": 3, "n_columns": 8, "rank": 5, "n_fit": 4, "n_tune": 4, "random_state": 0}
    return problem, nb.approximate(problem.X, method, problem.kernel, **sizes | settings)


def with_negative_weights(case="Gaussian", **settings):
    """A mixture that has learned a negative weight: such runs are common under ridge."""
    runs = (approximate(case, random_state=seed, **settings) for seed in range(100))
    return next((problem, approx) for problem, approx in runs if approx.weights.min() < -0.05)


def dense(approx):
    """K̂ from its definition, in float64."""
    total = 0
    for weight, learner in zip(approx.weights, approx.learners, strict=True):
        C = approx.gram.cross(slice(None), learner.landmarks).astype(np.float64)
        P = learner.projection.astype(np.float64)
        total = total + weight * (C @ P) @ (C @ P).T
    return total


def close(actual, desired, problem, times=1.0):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=times * problem.tolerance)


@cases("nystrom", "nystrom-fixed-rank", "ensemble-ridge", "UEB-mean")
def test_every_way_of_asking_for_entries_agrees_with_the_definition(case, limits, method):
    problem, approx = approximate(case, method, **limits)
    n = len(problem.G)
    K = dense(approx)
    close(approx.to_dense(), K, problem)
    close(approx.diag(), np.diagonal(K), problem)
    rows, cols = np.array([3, n - 1, 0, 3]), np.array([7, 7, 1])
    close(approx.block(rows, cols), K[np.ix_(rows, cols)], problem)
    close(approx.block([2], [5, 6]), K[np.ix_([2], [5, 6])], problem)
    assert approx.shape == (n, n)


@cases("ensemble-ridge", "joint")
def test_products_are_products_with_the_dense_matrix(case, limits, method):
    problem, approx = approximate(case, method, **limits)
    n = len(problem.G)
    K = approx.to_dense()
    V = np.random.default_rng(0).normal(size=(n, 3))
    close(approx @ V, K @ V, problem, n)
    close(approx @ V[:, 0], K @ V[:, 0], problem, n)
    close(approx.matvec(V[:, 0]), K @ V[:, 0], problem, n)
    close(V.T @ approx, V.T @ K, problem, n)
    close(approx.T @ V, K @ V, problem, n)
    close(approx.H @ V, K @ V, problem, n)
    close((2 * approx) @ V, 2 * K @ V, problem, 2 * n)


def test_an_approximation_is_a_linear_operator_for_scipys_solvers():
    _, approx = approximate("Gaussian", "nystrom")
    assert isinstance(approx, LinearOperator)
    K = approx.to_dense()
    top = eigsh(approx, k=3, return_eigenvectors=False, v0=np.ones(60))
    np.testing.assert_allclose(np.sort(top), np.linalg.eigvalsh(K)[-3:], rtol=1e-8)
    b = np.ones(60)
    shifted = LinearOperator((60, 60), matvec=lambda v: approx @ v + 0.1 * v, dtype=float)
    solution, status = cg(shifted, b, rtol=1e-12)
    assert status == 0
    np.testing.assert_allclose(solution, approx.solve(b, 0.1), rtol=1e-7)


@cases("nystrom", "ensemble-ridge", "RRB-med")
def test_eigenpairs_are_those_of_the_dense_matrix(case, limits, method):
    problem, approx = approximate(case, method, **limits)
    n = len(problem.G)
    K = approx.to_dense().astype(np.float64)
    eigenvalues, vectors = approx.eigh()
    assert (np.diff(eigenvalues) <= 0).all()
    close((vectors * eigenvalues) @ vectors.T, K, problem, 10)
    rounding = 1e-3 if problem.X.dtype == np.float32 else 1e-6
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(eigenvalues)), atol=rounding)
    expected = np.linalg.eigvalsh(K)[::-1]
    positive = eigenvalues > n * problem.tolerance
    close(eigenvalues[positive], expected[: positive.sum()], problem, n)
    few, first = approx.eigh(2)
    assert few.shape == (2,)
    assert first.shape == (n, 2)
    np.testing.assert_array_equal(few, eigenvalues[:2])


@cases("UUB-mean")
def test_solve_is_the_dense_solution(case, limits, method):
    problem, approx = approximate(case, method, **limits)
    n = len(problem.G)
    K = approx.to_dense().astype(np.float64)
    b = np.random.default_rng(0).normal(size=(n, 2))
    rounding = 1e-2 if problem.X.dtype == np.float32 else 1e-7
    for alpha in (1e-3 * np.trace(K) / n, np.trace(K) / n):
        expected = np.linalg.solve(K + alpha * np.eye(n), b)
        for right, exact in ((b, expected), (b[:, 0], expected[:, 0])):
            solution = approx.solve(right, alpha)
            assert solution.shape == right.shape
            assert np.linalg.norm(solution - exact) <= rounding * np.linalg.norm(exact)


def test_solve_needs_an_alpha_that_makes_the_matrix_positive_definite():
    _, approx = with_negative_weights()
    lowest = np.linalg.eigvalsh(approx.to_dense())[0]
    with pytest.raises(ValueError, match="alpha"):
        approx.solve(np.ones(60), -lowest * 0.99)
    b = np.ones(60)
    solution = approx.solve(b, -lowest * 1.5)
    np.testing.assert_allclose(approx @ solution - 1.5 * lowest * solution, b, atol=1e-8)


@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum", "float32 Gaussian"])
def test_negative_weights_are_projected_and_their_share_is_told(case):
    problem, approx = with_negative_weights(case)
    K = approx.to_dense().astype(np.float64)
    transform, mass = approx.feature_map()
    F = transform(problem.X).astype(np.float64)
    close(F @ F.T, market.positive_part(K), problem, 10)
    assert approx.features().dtype == problem.X.dtype
    eigenvalues = np.linalg.eigvalsh(K)
    expected = -eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum()
    assert mass == pytest.approx(expected, abs=1e-4 if problem.X.dtype == np.float32 else 1e-9)
    assert mass > 0


@pytest.mark.parametrize("tail", [1e-6, 1e-9, 1e-11])
def test_tiny_errors_are_told_apart_from_rounding(tail):
    rng = np.random.default_rng(0)
    eigenvalues = np.where(np.arange(80) < 5, 1.0, tail)
    G = market.with_spectrum(eigenvalues, rng)
    approx = nb.approximate(G, "nystrom", "precomputed", n_columns=20, rank=5, random_state=0)
    exact = np.linalg.norm(G - approx.to_dense()) / np.linalg.norm(G)
    assert approx.relative_error() == pytest.approx(exact, rel=1e-3)
    assert tail < exact < 1e3 * tail


def test_entries_are_those_that_the_method_looked_at_and_not_those_of_an_error():
    _, approx = approximate("Gaussian")
    before = approx.entries_evaluated
    approx.relative_error()
    assert approx.entries_evaluated == before
    assert approx.prefix(2).entries_evaluated == before
    _, approx = approximate("Gaussian", "nystrom")
    assert approx.entries_evaluated == 64
    _, approx = approximate("decaying spectrum", "nystrom-fixed-rank")
    assert approx.entries_evaluated == 64 + 60 * 8


@pytest.mark.parametrize("method", ["URB-mean", "ensemble-ridge", "nystrom", "nystrom-fixed-rank"])
def test_results_do_not_depend_on_the_size_of_a_block(method):
    def everything(max_memory=2**30):
        _, approx = approximate("Gaussian", method, n=300)
        approx.gram.budget = Budget(max_memory)
        v = np.ones(300)
        return {
            "dense": approx.to_dense(),
            "product": approx @ v,
            "diag": approx.diag(),
            "solve": approx.solve(v, 0.5),
            "eigenvalues": approx.eigh()[0],
            "features": approx.features() @ approx.features().T,
            "error": approx.relative_error(),
            "trace error": approx.relative_error(norm="trace"),
        }

    whole = everything()
    for name, value in everything(max_memory=80_000).items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum"])
def test_a_pickled_approximation_is_the_same(case):
    _, approx = approximate(case)
    approx.eigh(), approx.relative_error()
    again = pickle.loads(pickle.dumps(approx))
    np.testing.assert_array_equal(again.to_dense(), approx.to_dense())
    assert again.relative_error() == approx.relative_error()


def test_a_detached_approximation_says_that_its_rows_are_gone():
    _, approx = approximate("Gaussian")
    approx.relative_error()
    detached = approx.without_data()
    np.testing.assert_array_equal(detached.weights, approx.weights)
    assert detached.entries_evaluated == approx.entries_evaluated
    for ask in (
        detached.relative_error,
        detached.to_dense,
        detached.diag,
        detached.features,
        lambda: detached @ np.ones(60),
        lambda: detached.block([0], [1]),
    ):
        with pytest.raises(RuntimeError, match="needs the 60 training rows"):
            ask()


def test_many_float32_features_keep_the_digits_that_float32_has():
    X = np.random.default_rng(0).normal(size=(500, 4)).astype(np.float32)
    sizes = {"n_learners": 6, "n_columns": 60}
    runs = (
        nb.approximate(X, "ensemble-ridge", nb.Gaussian(sigma=2.0), random_state=seed, **sizes)
        for seed in range(40)
    )
    approx = next(approx for approx in runs if approx.weights.min() < 0)
    F, K = (part.astype(np.float64) for part in (approx.features(), approx.to_dense()))
    difference = np.linalg.norm(F @ F.T - market.positive_part(K))
    assert difference <= 2e-5 * np.linalg.norm(K)


@pytest.mark.parametrize("method", ["UUB-mean", "EEB-SF"])
def test_the_features_of_a_mixture_multiply_to_it(method):
    X = np.random.default_rng(0).normal(size=(120, 3))
    sizes = {"n_learners": 3, "n_columns": 12, "sigma": 1.5, "random_state": 0}
    approx = nb.approximate(X, method, **sizes)
    F = approx.features()
    np.testing.assert_allclose(F @ F.T, approx.to_dense(), atol=1e-9)


def test_products_take_numbers_in_any_form_and_refuse_masked_values():
    _, approx = approximate("Gaussian")
    V = np.arange(60.0)
    expected = approx @ V
    for same in (V.tolist(), csr_array(V[:, None]), V.astype(np.int64), V[:, None]):
        np.testing.assert_allclose(np.ravel(approx @ same), expected)
    np.testing.assert_allclose(approx @ (1j * V), 1j * expected)

    for wrong, says in (
        (np.ma.masked_array(V, V < 3), "V is a masked array"),
        (["red"] * 60, "does not convert to numbers"),
        (None, "V is a NoneType"),
        (np.ones((60, 1, 1)), "cannot multiply an array of shape"),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            approx @ wrong


def test_features_of_negative_weights_need_the_training_rows_and_say_so(tmp_path):
    problem, approx = with_negative_weights()
    assert approx.has_features
    nb.save(approx, tmp_path / "rows", with_rows=True)
    nb.save(approx, tmp_path / "none")

    again = nb.load(tmp_path / "rows")
    assert again.has_features
    np.testing.assert_array_equal(
        again.feature_map()[0](problem.X), approx.feature_map()[0](problem.X)
    )

    without = nb.load(tmp_path / "none")
    assert not without.has_features
    with pytest.raises(RuntimeError, match=r"negative weights.* with_rows=True\)\.$"):
        without.feature_map()
