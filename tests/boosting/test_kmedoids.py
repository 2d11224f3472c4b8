"""k-medoids against the kmedoids package and literal, slow implementations."""

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from nysboost.boosting.kmedoids import pam, park_jun


def distances(n, seed, *, distinct=None, d=3):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    if distinct is not None:
        points = points[rng.integers(min(distinct, n), size=n)]
    return cdist(points, points)


def grid_distances(n, seed):
    """Whole numbers on a line: nothing but ties."""
    points = np.random.default_rng(seed).integers(6, size=(n, 1)).astype(float)
    return cdist(points, points)


@pytest.mark.parametrize("seed", range(20))
def test_pam_has_the_loss_of_the_kmedoids_package(seed):
    """On matrices without ties, between which rounding would choose."""
    kmedoids, D = pytest.importorskip("kmedoids"), distances(12 + seed, seed)
    for k in (1, 4, 9):
        theirs = kmedoids.pam(D, k, init="build")
        assert oracle.loss(D, pam(D, k)) == pytest.approx(theirs.loss, rel=1e-9)


@given(st.integers(3, 30), st.integers(1, 10), st.integers(0, 1000), st.integers(1, 6))
def test_no_single_swap_improves_pam_even_with_duplicates(n, k, seed, distinct):
    k, D = min(k, n), distances(n, seed, distinct=distinct)
    medoids = pam(D, k)
    best = oracle.loss(D, medoids)
    for i in range(k):
        for j in set(range(n)) - set(medoids):
            swapped = [*medoids[:i], j, *medoids[i + 1 :]]
            assert oracle.loss(D, swapped) >= best - 1e-12 * D.sum()


@given(st.integers(4, 30), st.integers(1, 8), st.integers(0, 1000))
def test_pam_on_ties_loses_nothing_to_a_literal_pam_that_starts_alike(n, k, seed):
    k, D = min(k, n), grid_distances(n, seed)
    ours, literal = oracle.loss(D, pam(D, k)), oracle.loss(D, oracle.pam(D, k))
    assert ours == literal


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 1000))
def test_park_jun_takes_the_steps_of_the_paper(n, k, seed):
    k, D = min(k, n), distances(n, seed)
    assert sorted(park_jun(D, k)) == sorted(oracle.park_jun(D, k))


@given(st.integers(2, 30), st.integers(1, 8), st.integers(0, 1000), st.sampled_from([-60, 60]))
def test_medoids_do_not_depend_on_the_unit_of_the_distances(n, k, seed, power):
    k, D = min(k, n), distances(n, seed)
    for cluster in (pam, park_jun):
        np.testing.assert_array_equal(cluster(D, k), cluster(D * 2.0**power, k))
