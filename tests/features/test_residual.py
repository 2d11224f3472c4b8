"""The residual, the bounds of its entries and its norms, against dense matrices."""

import market
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.features.factor import Factor
from nysboost.features.feature_map import BlockDiagonal, FeatureMap
from nysboost.features.residual import ERRORS, Residual, mixture_errors
from nysboost.gram import Landmarks, make_gram

METHODS = ["uniform", "joint", "ensemble-ridge", "URB-mean", "random-fourier", "spectral-shift"]


def fitted(method, X, seed=0, sigma=1.0):
    return nb.approximate(
        X, method, nb.Gaussian(sigma=sigma), n_components=12, n_learners=3, random_state=seed
    )


def everything(approx):
    """R whole, its diagonal and the bounds a, from the library."""
    residual = approx._residual(None)
    n = approx.shape[0]
    F, g = residual.factor.all(), np.asarray(approx.gram.diag(), dtype=np.float64)
    d, a = residual.diagonals(F, g)
    rows = np.arange(n)
    return residual, residual.block(approx.gram.block(rows, rows), F, F), d, a


@pytest.mark.parametrize("method", METHODS)
def test_entries_and_diagonal_are_those_of_the_dense_matrices(method):
    X = market.cloud(150, np.random.default_rng(0))
    approx = fitted(method, X)
    _, R, d, _ = everything(approx)
    dense = market.gaussian(1.0, lambda *_: X)(150, np.random.default_rng(0)).G - approx.to_dense()
    off = ~np.eye(150, dtype=bool)
    np.testing.assert_allclose(R[off], dense[off], atol=1e-9)
    np.testing.assert_allclose(d, np.diagonal(dense), atol=1e-9)


@example("joint", 234, 19.0, 50)
@example("joint", 982669, 19.0, 50)
@example("joint", 569098, 12.50355719116751, 50)
@example("uniform", 142674, 0.5, 50)
@example("joint", 16507, 1 / 3, 1)  # a step of the descent takes all landmarks out of sight
@given(
    st.sampled_from(METHODS), st.integers(0, 10**6), st.floats(0.05, 20), st.sampled_from([1, 50])
)
def test_no_entry_is_above_the_bound_of_its_rows(method, seed, sigma, tail):
    X = market.cloud(100, np.random.default_rng(seed))
    X[::10] *= tail
    _, R, d, a = everything(fitted(method, X, seed, sigma))
    np.fill_diagonal(R, 0.0)
    rounding = 1e-12  # of values of about 1, of rows that are 300 widths from the origin
    assert (np.sqrt(np.outer(a, a)) + rounding >= np.abs(R)).all()
    assert (d <= a + rounding).all()


def test_plain_nystrom_leaves_a_positive_semidefinite_residual_and_its_diagonal_is_the_bound():
    residual, R, d, a = everything(fitted("uniform", market.cloud(150, np.random.default_rng(0))))
    assert residual.positive_semidefinite
    np.testing.assert_allclose(d, a, atol=1e-12)
    np.fill_diagonal(R, d)
    assert np.linalg.eigvalsh(R).min() > -1e-10


@pytest.mark.parametrize("case", market.NAMES)
def test_what_is_called_positive_semidefinite_is(case):
    problem = market.problem(case)
    scale = np.abs(problem.G).max()
    for method in ("uniform", "ensemble-uniform", "ensemble-ridge", "joint"):
        approx = nb.approximate(
            problem.X, method, problem.kernel, n_components=12, n_learners=3, random_state=0
        )
        residual, R, d, _ = everything(approx)
        np.fill_diagonal(R, d)
        if residual.positive_semidefinite:
            assert np.linalg.eigvalsh(R / scale).min() > -len(R) * max(problem.digits, 1e-7)
        elif method == "uniform":
            pytest.fail("plain Nyström is positive semidefinite")


DENSE = {
    "frobenius": np.linalg.norm,
    "trace": lambda A: abs(np.trace(A)),
    "spectral": lambda A: np.linalg.norm(A, 2),
}


def residual_of(gram, F, weights, rows, shift=0.0):
    """Return the residual of an approximation whose features at some rows are known."""
    transform = FeatureMap(gram.kernel, Landmarks(np.arange(F.shape[1]), None))
    return Residual(gram, Factor(gram, transform, weights, gram.rows.only(rows), F), shift=shift)


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


def test_the_error_of_a_mixture_that_leaves_nothing_is_rounding():
    """G = x xᵀ + y yᵀ, of which each learner has one part, so that both errors alone are large."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    gram = make_gram(X, "linear")
    parts = BlockDiagonal((np.ones((1, 1)), np.ones((1, 1))))
    factor = Factor(gram, FeatureMap(gram.kernel, Landmarks(None, np.eye(2)), parts))
    alone, both = mixture_errors(factor, [1, 1], [np.ones(1), np.ones(2)])
    rest = np.outer(X[:, 1], X[:, 1])
    assert alone == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(X @ X.T))
    assert both < 1e-15
