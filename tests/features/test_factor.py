"""F = k(X, Z) N, the same in any memory, and sums over rows."""

from functools import cache

import market
import numpy as np
import pytest
from containers import CONTAINERS
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.features.factor import Factor
from nysboost.features.feature_map import BlockDiagonal, FeatureMap
from nysboost.features.linear import Moments, moments_of
from nysboost.gram import make_gram
from nysboost.numerics.checks import Budget
from nysboost.rows.recognise import make_rows, make_stream

N, K = 600, 7
KEPT, ANEW = 10**6, 2 * 8 * N * K - 8
"""Budgets of which F takes up less than half, and just more than half."""


@cache
def problem_of(case, n=N):
    return market.problem(case, n=n)


def a_factor(case="Gaussian", max_memory=KEPT, n=N):
    problem, rng = problem_of(case, n), np.random.default_rng(0)
    gram = make_gram(problem.X, problem.kernel, budget=Budget(max_memory, 1))
    parts = tuple(rng.normal(size=shape) for shape in ((8, 4), (4, 3)))
    factor = Factor(
        gram, FeatureMap(gram.kernel, gram.landmarks(np.arange(12)), BlockDiagonal(parts))
    )
    dense = np.concatenate([problem.G[:, :8] @ parts[0], problem.G[:, 8:12] @ parts[1]], axis=1)
    return factor, dense


budgets = pytest.mark.parametrize("max_memory", [KEPT, ANEW], ids=["kept", "anew"])


@budgets
@pytest.mark.parametrize("case", ["Gaussian", "decaying spectrum", "linear"])
def test_every_way_to_the_features_agrees_with_the_dense_product(case, max_memory):
    factor, F = a_factor(case, max_memory)
    rows = np.array([3, N - 1, 3])
    close = {"rtol": 0, "atol": 1e-9 * np.abs(F).max()}
    np.testing.assert_allclose(factor.at(rows), F[rows], **close)
    np.testing.assert_allclose(factor.all(), F, **close)
    np.testing.assert_allclose(factor.at(rows), F[rows], **close)
    V = np.random.default_rng(1).normal(size=(N, 2))
    np.testing.assert_allclose(factor.inner(V), F.T @ V, atol=1e-8 * np.abs(F).max())
    R = factor.triangular()
    np.testing.assert_allclose(R.T @ R, F.T @ F, atol=1e-9 * np.abs(F.T @ F).max())
    assert factor.shape == (N, K)


def test_what_fits_in_half_of_the_memory_is_kept_and_nothing_else():
    kept, _ = a_factor(max_memory=2 * 8 * N * K)
    anew, _ = a_factor(max_memory=ANEW)
    assert kept.fits(N)
    assert not anew.fits(N)
    for factor, again in ((kept, 0), (anew, 12 * N)):
        factor.all()
        before = factor.gram.entries_evaluated
        factor.all()
        assert factor.gram.entries_evaluated - before == again


@pytest.mark.parametrize("max_memory", [KEPT, 2 * 8 * 250 * K - 8], ids=["kept", "anew"])
@given(st.lists(st.floats(-2, 2), min_size=K, max_size=K).map(np.array))
def test_the_positive_part_is_that_of_the_dense_matrix(max_memory, weights):
    factor, F = a_factor(max_memory=max_memory, n=250)
    weights = np.where(np.abs(weights) < 0.1, 0.1, weights)
    values, vectors = np.linalg.eigh((F * weights) @ F.T)
    rotation, mass = Factor(factor.gram, factor.transform, weights).positive_part(None)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    scale = np.abs(values).max()
    np.testing.assert_allclose(
        (F @ rotation) @ (F @ rotation).T, expected, rtol=0, atol=1e-8 * scale
    )
    assert mass == pytest.approx(-values[values < 0].sum() / np.abs(values).sum(), abs=1e-8)


@pytest.mark.parametrize("n", [10, 2 * K, 20, N])
@pytest.mark.parametrize("cap", [1, 40, N])
def test_a_capped_projection_sees_rows_spread_over_all_two_for_each_feature_at_least(n, cap):
    problem, weights = problem_of("Gaussian"), np.array([1.0, -0.5, 1, 1, -0.2, 1, 1])
    gram = make_gram(problem.X[:n], problem.kernel)
    transform = FeatureMap(gram.kernel, gram.landmarks(np.arange(K)), np.eye(K))
    factor = Factor(gram, transform, weights)
    F = problem.G[np.linspace(0, n - 1, min(n, max(cap, 2 * K))).astype(int), :K]
    values = np.linalg.eigvalsh((F * weights) @ F.T)
    _, mass = factor.positive_part(cap)
    assert mass == pytest.approx(-values[values < 0].sum() / np.abs(values).sum(), abs=1e-8)


def test_eigenvalues_at_the_rounding_level_are_no_positive_part():
    factor, F = a_factor()
    for positive in (1, 2, 3):
        weights = np.where(np.arange(K) < positive, 1.0, 0.0)
        rotation, _ = Factor(factor.gram, factor.transform, weights).positive_part(None)
        assert rotation.shape == (K, positive)
        expected = (F * weights) @ F.T
        found = (F @ rotation) @ (F @ rotation).T
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(expected).max())


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    basis = FeatureMap.of(nb.Matern(1.5, 2.0), X[:9].copy())
    return X, rng.normal(size=(3000, 2)), rng.uniform(size=3000), basis


def assert_same(found, expected, tolerance=1e-9):
    for name in ("weight", "F", "Y", "FF", "FY", "YY"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=tolerance)


SOURCES = CONTAINERS | {"blocks": lambda X, _: iter(np.array_split(X, 7))}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("budget", [Budget(), Budget(2 * 10**5)])
def test_streamed_sums_equal_those_in_memory(problem, tmp_path, kind, budget):
    X, Y, weights, basis = problem
    rows = make_stream(SOURCES[kind](X, tmp_path))
    found = moments_of(basis, rows, Y, weights=weights, budget=budget)
    assert_same(found, Moments.of(basis(X), Y, weights))


def test_float32_rows_are_summed_in_float64_and_weights_are_repetitions(problem):
    X, Y, _, basis = problem
    narrow = X.astype(np.float32)
    found = moments_of(basis, make_rows(narrow), Y)
    assert found.FF.dtype == np.float64
    assert_same(found, Moments.of(basis(narrow.astype(np.float64)), Y), 1e-8)
    counts = np.arange(len(X)) % 3
    weighed = moments_of(basis, make_rows(X), Y, weights=counts.astype(float))
    doubled = np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    assert_same(weighed, Moments.of(basis(doubled[0]), doubled[1]))


def test_moments_add_and_subtract(problem):
    X, Y, _, basis = problem
    one, other = Moments.of(basis(X[:99]), Y[:99]), Moments.of(basis(X[99:]), Y[99:])
    whole = Moments.of(basis(X), Y)
    assert_same(one + other, whole)
    assert_same(whole - other, one)
    np.testing.assert_allclose(whole.mean, Y.mean(axis=0))
