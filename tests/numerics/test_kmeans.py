"""k-means on squared distances, against coordinates and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from nysboost.boosting.selectors import kmeans_of_distances, seeds
from nysboost.numerics.kmeans import TRIALS, _Cloud, clusters


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
    to_centres = kmeans_of_distances(squared(P), k, np.random.default_rng(seed))
    owner = to_centres.argmin(axis=0)
    assert len(np.unique(owner)) == k
    centres = np.array([P[owner == j].mean(axis=0) for j in range(k)])
    np.testing.assert_allclose(to_centres, cdist(centres, P, "sqeuclidean"), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_from_the_same_seeds_scikit_learn_finds_the_same(seed):
    P = points(200, 8, seed)
    D = squared(P)
    start = P[seeds(D, 30, np.random.default_rng(seed))]
    theirs = KMeans(30, init=start, n_init=1, tol=0).fit(P)
    ours = kmeans_of_distances(D, 30, np.random.default_rng(seed))
    assert loss(ours) == pytest.approx(theirs.inertia_)
    np.testing.assert_array_equal(ours.argmin(axis=0), theirs.labels_)


def test_each_seed_is_the_best_of_so_many_draws():
    D, rng = squared(points(30)), np.random.default_rng(2)
    expected = [rng.integers(30)]
    while len(expected) < 9:
        nearest = D[expected].min(axis=0)
        mass = nearest.cumsum()
        drawn = np.sort(mass.searchsorted(rng.random(TRIALS) * mass[-1], side="right"))
        expected.append(drawn[np.minimum(D[drawn], nearest).sum(axis=1).argmin()])
    np.testing.assert_array_equal(seeds(D, 9, np.random.default_rng(2)), expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 7])
def test_seeds_find_every_group_that_is_far_from_the_others(k, dtype):
    P = np.repeat(1e4 * points(k), 20, axis=0) + points(20 * k, seed=1)
    for seed in range(10):
        chosen = seeds(squared(P).astype(dtype), k, np.random.default_rng(seed))
        assert sorted(chosen // 20) == list(range(k))


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 1e-30])
def test_of_seeds_that_are_as_good_the_first_is_taken_whatever_rounding_says(scale):
    """Whole numbers on a line have exact ties; scaled, rounding breaks them."""
    for seed in range(40):
        line = np.random.default_rng(seed).integers(12, size=(30, 2)).astype(float)
        exact, rounded = (
            seeds(scaled, 10, np.random.default_rng(seed))
            for scaled in (squared(line), squared(line) * scale)
        )
        np.testing.assert_array_equal(exact, rounded)


class TestCentroids:
    @staticmethod
    def loss(P, Z):
        return float(((P[:, None] - Z[None]) ** 2).sum(-1).min(axis=1).sum())

    def test_the_loss_is_as_low_as_scikit_learns(self):
        P, rngs = points(300, 10), [np.random.default_rng(s) for s in range(10)]
        on_distances = [
            loss(kmeans_of_distances(squared(P), 30, np.random.default_rng(s))) for s in range(10)
        ]
        ours = [self.loss(P, clusters(P, 30, rng)[0]) for rng in rngs]
        peers = (KMeans(30, n_init=1, random_state=s) for s in range(10))
        theirs = [self.loss(P, peer.fit(P).cluster_centers_) for peer in peers]
        assert np.mean(ours) < 1.01 * np.mean(theirs)
        assert np.mean(on_distances) < 1.01 * np.mean(theirs)

    def test_far_from_the_origin_nothing_is_lost(self):
        P = points(100, 3)
        near, _ = clusters(P, 10, np.random.default_rng(0))
        far, _ = clusters(P + 1e8, 10, np.random.default_rng(0))
        np.testing.assert_allclose(far - 1e8, near, atol=1e-6)

    @given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 3), st.integers(0, 100))
    def test_few_distinct_points_are_all_found(self, n, k, distinct, seed):
        P = points(n, seed=seed, distinct=distinct)
        Z, _ = clusters(P, min(k, n), np.random.default_rng(seed))
        assert np.isfinite(Z).all()
        if min(k, n) >= distinct:
            assert self.loss(P, Z) == pytest.approx(0, abs=1e-12)


class TestCloud:
    """Points, against sums over coordinates."""

    forms = pytest.mark.parametrize("make", [np.asarray, csr_matrix])

    @staticmethod
    def dense(Z):
        return Z.toarray() if hasattr(Z, "toarray") else Z

    @forms
    def test_an_empty_group_gets_the_point_farthest_out(self, make):
        P, owner = points(40), np.random.default_rng(0).integers(6, size=40)
        owner[:6], owner[6:][owner[6:] == 5] = np.arange(6), 4  # one group of a single point
        exact = [P[owner == j].mean(axis=0) for j in range(6)]
        cloud, far = _Cloud(make(P), rough=False), np.where(np.arange(40) == 5, 1e9, 1.0)
        found = cloud.means(owner, far, np.full((7, 5), 3.0)) + cloud.centre
        np.testing.assert_allclose(found[:5], exact[:5], atol=1e-12)
        np.testing.assert_allclose(found[6], exact[5])  # it was empty, and has the far point
        np.testing.assert_allclose(found[5], 3.0 + cloud.centre)  # which left its own empty

    @forms
    def test_groups_that_are_far_apart_are_found_whole(self, make):
        P = np.repeat(100 * points(7), 20, axis=0) + points(140, seed=1)
        for seed in range(5):
            Z, owner = clusters(make(P), 7, np.random.default_rng(seed))
            order = owner[::20]
            np.testing.assert_array_equal(owner, np.repeat(order, 20))
            means = P.reshape(7, 20, 5).mean(axis=1)
            np.testing.assert_allclose(self.dense(Z)[order], means, atol=1e-9)

    def test_rounds_go_on_while_the_centroids_move(self):
        """One round from the seeds is one round of Lloyd's; many end at a fixed point."""
        P = points(300, 2)
        Z = {
            rounds: clusters(P, 12, np.random.default_rng(0), max_iter=rounds)[0]
            for rounds in (1, 2, 200, 201)
        }
        owner = cdist(P, Z[1], "sqeuclidean").argmin(axis=1)
        means = np.array([P[owner == j].mean(axis=0) for j in range(12)])
        np.testing.assert_allclose(Z[2], means, atol=1e-9)
        np.testing.assert_array_equal(Z[200], Z[201])

    @forms
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_points_whose_squares_are_out_of_range_are_grouped_all_the_same(self, make, dtype):
        """Powers of two change no digit: the same groups, the same centroids in other units."""
        P = points(60).astype(dtype)
        Z, owner = clusters(make(P), 5, np.random.default_rng(0))
        power = 100 if dtype is np.float32 else 900
        for scale in (dtype(2.0) ** -power, dtype(2.0) ** power):
            scaled, same = clusters(make(P * scale), 5, np.random.default_rng(0))
            np.testing.assert_array_equal(same, owner)
            np.testing.assert_allclose(self.dense(scaled) / scale, self.dense(Z), rtol=1e-5)

    @pytest.mark.parametrize("scale", [2.0**-200, 1.0, 2.0**200])
    @pytest.mark.parametrize("far", [0.0, 1e6])
    def test_rough_centroids_are_the_same_to_seven_digits_of_the_spread(self, scale, far):
        P = np.repeat(10 * points(7), 20, axis=0) + points(140, seed=1) + far
        exact, owner = clusters(P, 7, np.random.default_rng(0))
        rough, same = clusters(scale * P, 7, np.random.default_rng(0), rough=True)
        np.testing.assert_array_equal(same, owner)
        np.testing.assert_allclose(rough / scale, exact, atol=1e-5 * P.std(), rtol=0)
