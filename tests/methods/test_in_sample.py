"""F S Fᵀ + δI against its dense form."""

import pickle

import numpy as np
import pytest

from nysboost.gram import make_gram
from nysboost.methods.in_sample import InSample

RNG = np.random.default_rng(0)
F = RNG.normal(size=(40, 5))
SIGNS = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
DELTA = 0.7
DENSE = (F * SIGNS) @ F.T + DELTA * np.eye(40)


@pytest.fixture
def approx():
    A = RNG.normal(size=(40, 40))
    return InSample(make_gram(A @ A.T, "precomputed"), F, SIGNS, shift=DELTA)


def test_entries_products_eigenpairs_and_systems_are_those_of_the_dense_matrix(approx):
    rows, cols = np.array([3, 7, 7, 20]), np.array([7, 3, 39])
    np.testing.assert_allclose(approx.to_dense(), DENSE)
    np.testing.assert_allclose(approx.block(rows, cols), DENSE[np.ix_(rows, cols)])
    np.testing.assert_allclose(approx.diag(), np.diag(DENSE))
    V = RNG.normal(size=(40, 3))
    np.testing.assert_allclose(approx @ V, DENSE @ V)
    np.testing.assert_allclose(approx @ V[:, 0], DENSE @ V[:, 0])
    np.testing.assert_allclose(approx.T @ V, DENSE @ V)
    values, vectors = approx.eigh()
    np.testing.assert_allclose(DENSE @ vectors, vectors * values, atol=1e-9)
    np.testing.assert_allclose(values[0], np.linalg.eigvalsh(DENSE)[-1])
    b = RNG.normal(size=40)
    alpha = 50.0
    expected = np.linalg.solve(DENSE + alpha * np.eye(40), b)
    np.testing.assert_allclose(approx.solve(b, alpha), expected)
    least = -np.linalg.eigvalsh(DENSE)[0]
    with pytest.raises(ValueError, match=f"alpha above {least:.3g}, .* but alpha=0.1 was given"):
        approx.solve(b, 0.1)


def test_it_survives_a_pickle_and_leaves_its_data_behind(approx):
    again = pickle.loads(pickle.dumps(approx.without_data()))
    np.testing.assert_allclose(again.to_dense(), DENSE)
    with pytest.raises(RuntimeError, match="needs the 40 training rows"):
        again.relative_error()
