"""k-means on squared distances, against coordinates and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from nysboost.numerics.kmeans import kmeans, seeds


def points(n, d=5, seed=0, distinct=None):
    rng = np.random.default_rng(seed)
    P = rng.normal(size=(n, d))
    return P if distinct is None else P[rng.integers(min(distinct, n), size=n)]


def squared(P):
    return cdist(P, P, "sqeuclidean")


def loss(to_centres):
    return to_centres.min(axis=0).sum()


@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 6), st.integers(0, 100))
def test_centres_are_the_means_of_the_points_that_are_nearest_to_them(n, k, d, seed):
    P, k = points(n, d, seed), min(k, n)
    to_centres = kmeans(squared(P), k, np.random.default_rng(seed))
    owner = to_centres.argmin(axis=0)
    assert len(np.unique(owner)) == k
    centres = np.array([P[owner == j].mean(axis=0) for j in range(k)])
    np.testing.assert_allclose(to_centres, cdist(centres, P, "sqeuclidean"), atol=1e-12)


@given(st.integers(2, 60), st.integers(1, 12), st.integers(0, 100))
def test_the_rounds_lower_the_loss_of_the_seeds(n, k, seed):
    D, k = squared(points(n, seed=seed)), min(k, n)
    start = D[seeds(D, k, np.random.default_rng(seed))]
    assert loss(kmeans(D, k, np.random.default_rng(seed))) <= loss(start) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_from_the_same_seeds_scikit_learn_finds_the_same(seed):
    P = points(200, 8, seed)
    D = squared(P)
    start = P[seeds(D, 30, np.random.default_rng(seed))]
    theirs = KMeans(30, init=start, n_init=1, tol=0).fit(P)
    ours = kmeans(D, 30, np.random.default_rng(seed))
    assert loss(ours) == pytest.approx(theirs.inertia_)
    np.testing.assert_array_equal(ours.argmin(axis=0), theirs.labels_)


def test_the_loss_is_as_low_as_scikit_learns():
    P = points(400, 10)
    D = squared(P)
    ours = [loss(kmeans(D, 60, np.random.default_rng(seed))) for seed in range(20)]
    theirs = [KMeans(60, n_init=1, random_state=seed).fit(P).inertia_ for seed in range(20)]
    assert np.mean(ours) < 1.005 * np.mean(theirs)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 100))
def test_seeds_are_distinct_where_points_are(n, k, seed):
    k = min(k, n)
    assert len(set(seeds(squared(points(n, seed=seed)), k, np.random.default_rng(seed)))) == k


def test_seeds_find_every_group_that_is_far_from_the_others():
    P = np.repeat(1e4 * points(7), 20, axis=0) + points(140, seed=1)
    for seed in range(20):
        chosen = seeds(squared(P), 7, np.random.default_rng(seed))
        assert sorted(chosen // 20) == list(range(7))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 3), st.integers(0, 100))
def test_with_few_distinct_points_some_centres_coincide(n, k, distinct, seed):
    D = squared(points(n, seed=seed, distinct=distinct))
    to_centres = kmeans(D, min(k, n), np.random.default_rng(seed))
    assert np.isfinite(to_centres).all()
    if k >= distinct:
        assert loss(to_centres) == pytest.approx(0, abs=1e-12)
