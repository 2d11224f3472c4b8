"""Feature maps: k(x, Z) N, however it is cut into blocks."""

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.data.rows import ArrayRows
from nysboost.engine import blocks
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.memory import Budget


def a_map(case="Gaussian", rotation=None, r=5):
    problem, rng = market.problem(case, n=40), np.random.default_rng(0)
    gram = problem.gram
    landmarks = gram.landmarks(np.arange(12))
    parts = tuple(rng.normal(size=shape) for shape in ((4, 3), (6, 2), (2, 2)))
    turn = None if rotation is None else rng.normal(size=(7, r))
    return problem, FeatureMap(gram, landmarks, parts, turn)


@pytest.mark.parametrize("rotation", [None, "some"])
@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum", "linear"])
def test_the_map_is_the_kernel_times_the_normalization(case, rotation):
    problem, transform = a_map(case, rotation)
    X = problem.X[15:30]
    C = problem.G[15:30, :12]
    np.testing.assert_allclose(transform(X), C @ transform.normalization, atol=1e-10)
    assert transform.n_features_out == transform.normalization.shape[1]
    assert transform(X).shape == (15, transform.n_features_out)


@pytest.mark.parametrize("r", [1, 2, 5, 7])
def test_a_simplified_map_is_the_same_map(r):
    problem, transform = a_map(rotation="some", r=r)
    short = transform.simplified()
    np.testing.assert_allclose(short(problem.X), transform(problem.X), atol=1e-10)
    np.testing.assert_allclose(short.normalization, transform.normalization, atol=1e-12)


def test_float32_rows_have_float32_features():
    problem, transform = a_map()
    single = transform(problem.X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, transform(problem.X), atol=1e-4)


@pytest.mark.parametrize("rotation", [None, "some"])
@given(st.integers(1, 700), st.integers(1, 4), st.integers(8_000, 60_000))
def test_features_do_not_depend_on_threads_or_memory(rotation, n, threads, max_memory):
    _, transform = a_map(rotation=rotation)
    X = np.random.default_rng(n).normal(size=(n, transform.gram.rows.n_features))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nysboost.numerics.threads._threads_now", lambda: threads)
        patch.setattr(blocks, "SHARED_ROWS", 20)
        patch.setattr(blocks, "LEAST_ROWS", 5)
        found = transform.write(ArrayRows(X), budget=Budget(max_memory))
    dense = transform.gram.evaluate(X, transform.landmarks) @ transform.normalization
    np.testing.assert_allclose(found, dense, atol=1e-9)
