"""Selectors: m distinct columns, the same however the residual is written."""

import market
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from nysboost.boosting.selectors import _squared_distances, kmeans_of_distances
from nysboost.boosting.variants import SELECTORS

selectors = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)


def residual(rows, columns, seed, distinct=None):
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(rows, columns))
    return E if distinct is None else E[:, rng.integers(min(distinct, columns), size=columns)]


sizes, scales = st.integers(1, 30), st.sampled_from([0.0, 1e-60, 1.0, 1e60])


@selectors
@given(sizes, sizes, sizes, st.integers(0, 100), st.sampled_from([None, 1, 2, 5]), scales)
def test_a_selector_returns_m_distinct_positions(selector, rows, s, m, seed, distinct, scale):
    m = min(m, s)
    chosen = selector(scale * residual(rows, s, seed, distinct), m, np.random.default_rng(seed))
    assert chosen.shape == (m,)
    assert len(set(chosen)) == m
    assert 0 <= chosen.min() <= chosen.max() < s


@selectors
@given(st.integers(2, 25), st.integers(1, 10), st.integers(0, 100))
def test_a_selector_sees_only_distances_so_a_rotation_changes_nothing(selector, s, m, seed):
    E, m = residual(30, s, seed), min(m, s)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(30, 30)))[0]
    first, turned = (selector(A, m, np.random.default_rng(1)) for A in (E, Q @ E))
    np.testing.assert_array_equal(first, turned)


@pytest.mark.parametrize("case", market.WITHOUT_TIES)
@pytest.mark.parametrize(("name", "literal"), [("med", oracle.pam), ("SF", oracle.park_jun)])
def test_medoids_are_as_good_as_those_of_the_literal_algorithm(name, literal, case):
    """Both members of a group of two are as good: losses are compared, not positions."""
    E = market.problem(case, n=40).G[:, :24]
    distances = cdist(E.T, E.T)
    ours = SELECTORS[name](E, 6, np.random.default_rng(3)).tolist()
    expected = oracle.loss(distances, literal(distances, 6))
    assert oracle.loss(distances, ours) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("case", market.WITHOUT_TIES)
@pytest.mark.parametrize("m", [2, 6, 15, 24])
def test_each_centre_of_k_means_has_the_nearest_column_that_is_free(case, m):
    E = market.problem(case, n=40).G[:, :24]
    E = E / np.abs(E).max()
    points = E.T
    chosen = SELECTORS["mean"](E, m, np.random.default_rng(3))
    squared = cdist(points, points, "sqeuclidean")
    owner = kmeans_of_distances(squared, m, np.random.default_rng(3)).argmin(axis=0)
    centres = np.array([points[owner == j].mean(axis=0) for j in range(m)])
    away = cdist(centres, points, "sqeuclidean")
    free = np.setdiff1d(np.arange(24), chosen)
    for centre, column in enumerate(chosen):
        nearest = away[centre].min()
        if away[centre, column] > nearest + 1e-12:  # the nearest is another centre's
            assert np.argmin(away[centre]) in chosen
            assert (away[centre, column] <= away[centre, free] + 1e-12).all()


def test_columns_that_differ_by_rounding_alone_have_no_distance():
    E = residual(20, 15, 0) + 1e-17
    E[:, 3], E[:, 7], E[:, 8] = 0, E[:, 2] * (1 + 1e-15), E[:, 2]
    squared, _ = _squared_distances(E)
    assert squared[2, 7] == squared[2, 8] == squared[7, 8] == 0
    assert (squared >= 0).all()
