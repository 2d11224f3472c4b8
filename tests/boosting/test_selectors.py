"""Selectors: m distinct columns, the same however the residual is written."""

import market
import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nysboost.boosting.selectors import KMeansSelector, PAMSelector, ParkJunSelector
from nysboost.boosting.variants import SELECTORS

selectors = pytest.mark.parametrize("selector", SELECTORS.values(), ids=SELECTORS)


def residual(rows, columns, seed, distinct=None):
    rng = np.random.default_rng(seed)
    E = rng.normal(size=(rows, columns))
    return E if distinct is None else E[:, rng.integers(min(distinct, columns), size=columns)]


@selectors
@given(
    st.integers(1, 40),
    st.integers(1, 25),
    st.integers(1, 25),
    st.integers(0, 100),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([0.0, 1e-60, 1.0, 1e60]),
)
def test_a_selector_returns_m_distinct_positions(selector, rows, s, m, seed, distinct, scale):
    m = min(m, s)
    chosen = selector(scale * residual(rows, s, seed, distinct), m, np.random.default_rng(seed))
    assert chosen.shape == (m,)
    assert len(set(chosen)) == m
    assert chosen.min() >= 0
    assert chosen.max() < s


@selectors
@given(st.integers(2, 25), st.integers(1, 10), st.integers(0, 100))
def test_a_selector_sees_only_distances_so_a_rotation_changes_nothing(selector, s, m, seed):
    E, m = residual(30, s, seed), min(m, s)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(30, 30)))[0]
    first, turned = (selector(A, m, np.random.default_rng(1)) for A in (E, Q @ E))
    np.testing.assert_array_equal(first, turned)


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("case", market.WITHOUT_TIES)
def test_a_selector_finds_what_its_dense_oracle_finds(name, case):
    E = market.problem(case, n=40).G[:, :24]
    ours = SELECTORS[name](E, 6, np.random.default_rng(3))
    literal = oracle.CLUSTERINGS[name](E.T, 6, np.random.default_rng(3))
    np.testing.assert_array_equal(ours, literal)


@selectors
def test_separated_groups_give_one_column_each(selector):
    rng = np.random.default_rng(0)
    centres = 100 * rng.normal(size=(20, 4))
    E = np.repeat(centres, 6, axis=1) + 0.01 * rng.normal(size=(20, 24))
    chosen = selector(E, 4, np.random.default_rng(0))
    if selector != ParkJunSelector():  # it starts from central points, and may stay there
        assert sorted(chosen // 6) == [0, 1, 2, 3]


@pytest.mark.parametrize("selector", [PAMSelector(), ParkJunSelector()])
def test_k_medoids_needs_no_random_numbers(selector):
    E = residual(20, 15, 0)
    first, second = (selector(E, 5, np.random.default_rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(first, second)


@selectors
def test_a_float32_residual_is_clustered_in_float64(selector):
    E = residual(20, 15, 0).astype(np.float32)
    single, double = (selector(A, 5, np.random.default_rng(0)) for A in (E, E.astype(np.float64)))
    np.testing.assert_array_equal(single, double)


def test_k_means_with_fewer_distinct_columns_than_groups_is_silent():
    chosen = KMeansSelector()(residual(10, 12, 0, distinct=2), 7, np.random.default_rng(0))
    assert len(set(chosen)) == 7
