"""The residual against its dense matrix, and the bounds of its entries against its entries."""

import market
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import nysboost as nb

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
