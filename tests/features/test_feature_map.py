"""Feature maps: k(x, Z) N, however it is cut into blocks."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.features.feature_map import (
    BlockDiagonal,
    FeatureMap,
    features_of,
    make_triangular,
)
from nysboost.features.feature_pass import make_product
from nysboost.gram import make_gram
from nysboost.numerics.checks import Budget
from nysboost.rows.rows import ArrayRows


def a_map(case="Gaussian", rotated=False):
    problem, rng = market.problem(case, n=40), np.random.default_rng(0)
    gram = problem.gram
    landmarks = gram.landmarks(np.arange(12))
    parts = tuple(rng.normal(size=shape) for shape in ((4, 3), (6, 2), (2, 2)))
    transform = FeatureMap(gram.kernel, landmarks, BlockDiagonal(parts))
    return problem, transform.times(rng.normal(size=(7, 5))) if rotated else transform


@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum", "linear"])
def test_the_map_is_the_kernel_times_the_normalization(case, rotated):
    problem, transform = a_map(case, rotated)
    dense = problem.G[:, :12] @ transform.normalization
    np.testing.assert_allclose(transform(problem.X[15:30]), dense[15:30], atol=1e-10)
    assert transform.rank == transform.normalization.shape[1]
    assert transform.projection.shape == transform.normalization.shape
    for rows in (np.array([7, 3, 3]), np.arange(1), slice(5, 20), np.arange(0)):
        np.testing.assert_allclose(
            features_of(problem.gram, transform, rows), dense[rows], atol=1e-10
        )


@pytest.mark.parametrize("shape", ["triangular", "beside it a number", "tall", "two of them"])
def test_a_triangular_projection_gives_the_same_features_as_any_other(shape):
    rng = np.random.default_rng(0)
    gram = make_gram(rng.normal(size=(400, 3)), "rbf", gamma=0.3)
    P = np.triu(rng.normal(size=(300, 300)))
    if shape == "beside it a number":
        P[299, 3] = 1.0
    parts = {"tall": (P[:, :170],), "two of them": (P[:200, :200], P[200:, 200:])}.get(shape, (P,))
    transform = FeatureMap(gram.kernel, gram.landmarks(np.arange(300)), BlockDiagonal(parts))
    expected = gram.block(np.arange(400), np.arange(300)) @ transform.normalization
    np.testing.assert_allclose(transform(gram.rows.data), expected, atol=1e-9)


@pytest.mark.parametrize("width", [20, 150, 200])
def test_a_projection_made_triangular_approximates_the_same(width):
    rng = np.random.default_rng(0)
    N, values = rng.normal(size=(200, width)), rng.normal(size=(5, 200))
    R = make_triangular(N)
    np.testing.assert_allclose(R @ R.T, N @ N.T, atol=1e-10)
    np.testing.assert_allclose(make_product([R], values)(values, None), values @ R, atol=1e-10)
    assert width < 128 or not np.tril(R, -(200 - width) - 1).any()


def test_without_a_projection_it_is_the_kernel_and_values_of_the_gram_are_counted():
    problem, _ = a_map()
    gram = problem.gram
    transform = FeatureMap(gram.kernel, gram.landmarks(np.arange(12)))
    np.testing.assert_allclose(transform(problem.X), problem.G[:, :12], atol=1e-12)
    np.testing.assert_allclose(features_of(gram, transform), problem.G[:, :12], atol=1e-12)
    assert gram.entries_evaluated == 40 * 12
    np.testing.assert_array_equal(transform.normalization, np.eye(12))


@given(st.integers(1, 4000), st.integers(1, 4), st.integers(25_000, 10**6))
def test_features_do_not_depend_on_threads_or_memory(n, threads, max_memory):
    problem, transform = a_map()
    X = np.random.default_rng(n).normal(size=(n, problem.X.shape[1]))
    found = transform.write(ArrayRows(X), budget=Budget(max_memory, threads))
    dense = problem.gram.evaluate(X, transform.landmarks) @ transform.normalization
    np.testing.assert_allclose(found, dense, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_rows_have_no_features_of_any_number(dtype):
    gram = market.problem("Gaussian", n=40).gram
    alone = FeatureMap(gram.kernel, gram.landmarks(np.arange(4)), np.ones((4, 3)))
    for transform in (alone, a_map()[1], a_map(rotated=True)[1]):
        nothing = transform(np.empty((0, 3), dtype))
        assert nothing.shape == (0, transform.rank)
        assert nothing.dtype == dtype
