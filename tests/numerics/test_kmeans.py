"""k-means on squared distances, against coordinates and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans

from nysboost.numerics import kmeans as kmeans_module
from nysboost.numerics.arrays import block_bytes, row_blocks
from nysboost.numerics.kmeans import _Cloud, _seeds_among, centroids, clusters, kmeans, seeds


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


def test_rough_distances_are_grouped_nearly_as_well():
    D = squared(points(480, 10))
    exact, rough = (
        [loss(kmeans(D.astype(kind), 120, np.random.default_rng(seed))) for seed in range(10)]
        for kind in (np.float64, np.float32)
    )
    assert np.mean(rough) < 1.01 * np.mean(exact)


@pytest.mark.parametrize("k", [1, 2, 5, 6, 7])
def test_rough_seeds_find_every_group_that_is_far_from_the_others(k):
    P = np.repeat(1e4 * points(k), 20, axis=0) + points(20 * k, seed=1)
    for seed in range(20):
        chosen = seeds(squared(P).astype(np.float32), k, np.random.default_rng(seed))
        assert sorted(chosen // 20) == list(range(k))


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 100))
def test_seeds_are_distinct_where_points_are(n, k, seed):
    k = min(k, n)
    assert len(set(seeds(squared(points(n, seed=seed)), k, np.random.default_rng(seed)))) == k


def test_seeds_find_every_group_that_is_far_from_the_others():
    P = np.repeat(1e4 * points(7), 20, axis=0) + points(140, seed=1)
    for seed in range(20):
        chosen = seeds(squared(P), 7, np.random.default_rng(seed))
        assert sorted(chosen // 20) == list(range(7))


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


@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 3), st.integers(0, 100))
def test_with_few_distinct_points_some_centres_coincide(n, k, distinct, seed):
    D = squared(points(n, seed=seed, distinct=distinct))
    to_centres = kmeans(D, min(k, n), np.random.default_rng(seed))
    assert np.isfinite(to_centres).all()
    if k >= distinct:
        assert loss(to_centres) == pytest.approx(0, abs=1e-12)


class TestCentroids:
    @staticmethod
    def loss(P, Z, weights=1.0):
        return float((((P[:, None] - Z[None]) ** 2).sum(-1).min(axis=1) * weights).sum())

    def test_the_loss_is_as_low_as_scikit_learns_with_weights_and_without(self):
        P, rng = points(300, 10), np.random.default_rng(0)
        for weights in (None, rng.random(300) ** 3):
            w = 1.0 if weights is None else weights
            ours = [
                self.loss(P, centroids(P, 30, np.random.default_rng(s), weights=weights), w)
                for s in range(10)
            ]
            theirs = [
                self.loss(P, sk.fit(P, sample_weight=weights).cluster_centers_, w)
                for sk in (KMeans(30, n_init=1, random_state=s) for s in range(10))
            ]
            assert np.mean(ours) < 1.01 * np.mean(theirs)

    def test_they_are_a_fixed_point_of_lloyds_rounds(self):
        P = points(200, 3)
        Z = centroids(P, 12, np.random.default_rng(0))
        owner = ((P[:, None] - Z[None]) ** 2).sum(-1).argmin(axis=1)
        means = np.array([P[owner == j].mean(axis=0) for j in range(12)])
        np.testing.assert_allclose(Z, means, atol=0.02)

    def test_sparse_points_give_the_same_centroids_as_dense_ones(self):
        P = np.where(points(80, 6) > 0.5, points(80, 6), 0.0)
        sparse = centroids(csr_matrix(P), 9, np.random.default_rng(0))
        dense = centroids(P, 9, np.random.default_rng(0))
        assert self.loss(P, sparse.toarray()) == pytest.approx(self.loss(P, dense), rel=0.2)

    def test_far_from_the_origin_nothing_is_lost(self):
        P = points(100, 3)
        near = centroids(P, 10, np.random.default_rng(0))
        far = centroids(P + 1e8, 10, np.random.default_rng(0))
        np.testing.assert_allclose(far - 1e8, near, atol=1e-6)

    @given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 3), st.integers(0, 100))
    def test_few_distinct_points_are_all_found(self, n, k, distinct, seed):
        P = points(n, seed=seed, distinct=distinct)
        Z = centroids(P, min(k, n), np.random.default_rng(seed))
        assert np.isfinite(Z).all()
        if min(k, n) >= distinct:
            assert self.loss(P, Z) == pytest.approx(0, abs=1e-12)

    def test_points_without_weight_do_not_count(self):
        P = np.concatenate([points(50), 1e3 + points(50)])
        Z = centroids(P, 5, np.random.default_rng(0), weights=np.repeat([1.0, 0.0], 50))
        assert np.abs(Z).max() < 10


def test_the_last_point_is_a_seed_where_it_lies_far_out():
    P = points(30)
    P[-1] += 1e4
    for seed in range(5):
        assert 29 in seeds(squared(P), 2, np.random.default_rng(seed))
        assert 29 in _seeds_among(_Cloud.of(P, None), 2, np.random.default_rng(seed))


class TestCloud:
    """Weighted points, against sums over coordinates."""

    forms = pytest.mark.parametrize("make", [np.asarray, csr_matrix])

    @staticmethod
    def dense(Z):
        return Z.toarray() if hasattr(Z, "toarray") else Z

    @forms
    @pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
    def test_the_nearest_centroid_has_its_squared_distance(self, make, scale):
        P, Z = scale * points(40), scale * points(6, seed=1)
        cloud = _Cloud.of(make(P), None)
        owner, found = cloud.nearest(Z - cloud.centre)
        exact = cdist(P, Z, "sqeuclidean")
        np.testing.assert_array_equal(owner, exact.argmin(axis=1))
        np.testing.assert_allclose(found, exact.min(axis=1), rtol=1e-10)
        assert cloud.nearest(P - cloud.centre)[1] == pytest.approx(0, abs=1e-12 * scale**2)

    def test_the_spread_is_the_mean_variance_of_a_feature(self):
        P = points(40) * [1, 2, 3, 4, 5]
        assert _Cloud.of(P, None).spread == pytest.approx(P.var(axis=0).mean())

    @forms
    def test_means_are_weighted_and_only_their_proportions_count(self, make):
        P, rng = points(40), np.random.default_rng(0)
        weights, owner = rng.random(40), rng.integers(6, size=40)
        owner[:6], owner[6:][owner[6:] == 5] = np.arange(6), 4  # one group of a single point
        exact = [np.average(P[owner == j], axis=0, weights=weights[owner == j]) for j in range(6)]
        for factor in (1e-3, 1.0, 1e300):
            cloud = _Cloud.of(make(P), factor * weights)
            assert cloud.mass.max() == 1
            found = cloud.means(owner, np.ones(40), np.zeros((6, 5))) + cloud.centre
            np.testing.assert_allclose(found, exact, atol=1e-12)

    def test_an_empty_group_gets_the_point_with_the_most_weighted_distance(self):
        P, owner = points(10), np.repeat([0, 1], 5)
        weights, distances = np.ones(10), np.ones(10)
        distances[2], distances[7] = 5.0, 9.0
        weights[7] = 0.1  # far, but of little weight
        cloud = _Cloud.of(P, weights)
        found = cloud.means(owner, distances, np.zeros((3, 5))) + cloud.centre
        np.testing.assert_allclose(found[2], P[2])
        np.testing.assert_allclose(found[0], P[[0, 1, 3, 4]].mean(axis=0))

    def test_a_group_without_weight_stays_where_it_is(self):
        """The one point that weighs anything goes to the first group that lacks weight."""
        P, before = points(3), points(3, seed=1)
        cloud = _Cloud.of(P, np.array([1.0, 0.0, 0.0]))
        found = cloud.means(np.arange(3), np.zeros(3), before)
        np.testing.assert_allclose(found[1] + cloud.centre, P[0])
        np.testing.assert_allclose(found[[0, 2]], before[[0, 2]])

    def test_weights_of_nothing_are_no_weights(self):
        P = points(40)
        for without, none in zip(
            clusters(P, 6, np.random.default_rng(0), weights=np.zeros(40)),
            clusters(P, 6, np.random.default_rng(0)),
            strict=True,
        ):
            np.testing.assert_array_equal(without, none)

    @forms
    @pytest.mark.parametrize("scale", [1e-4, 1.0])
    def test_seeds_are_distinct_whatever_the_scale(self, make, scale):
        P = scale * points(30)
        for seed in range(5):
            cloud = _Cloud.of(make(P), None)
            assert len(set(_seeds_among(cloud, 25, np.random.default_rng(seed)))) == 25

    @forms
    def test_groups_that_are_far_apart_are_found_whole(self, make):
        P = np.repeat(100 * points(7), 20, axis=0) + points(140, seed=1)
        for seed in range(5):
            Z, owner = clusters(make(P), 7, np.random.default_rng(seed))
            order = owner[::20]
            np.testing.assert_array_equal(owner, np.repeat(order, 20))
            means = P.reshape(7, 20, 5).mean(axis=1)
            np.testing.assert_allclose(self.dense(Z)[order], means, atol=1e-9)

    def test_rounds_end_when_the_centroids_stand_still(self, monkeypatch):
        """Tight groups move their seeds by next to nothing: one round, and the last look."""
        P, looks = np.repeat(points(4), 30, axis=0) + 1e-4 * points(120, seed=1), []
        true = _Cloud.nearest
        monkeypatch.setattr(_Cloud, "nearest", lambda self, Z: looks.append(1) or true(self, Z))
        clusters(P, 4, np.random.default_rng(0))
        assert len(looks) == 2

    def test_rounds_go_on_while_the_centroids_move(self, monkeypatch):
        P, looks = points(300, 2), []
        true = _Cloud.nearest
        monkeypatch.setattr(_Cloud, "nearest", lambda self, Z: looks.append(1) or true(self, Z))
        for rounds in (1, 3):
            looks.clear()
            clusters(P, 12, np.random.default_rng(0), max_iter=rounds)
            assert len(looks) == rounds + 1

    def test_scores_are_held_for_as_many_rows_as_fit_the_cache(self, monkeypatch):
        asked = []

        def watched(n, held, budget):
            asked.append((n, held, budget))
            return row_blocks(n, held, budget)

        monkeypatch.setattr(kmeans_module, "row_blocks", watched)
        cloud = _Cloud.of(points(40), None)
        cloud.nearest(points(6, seed=1))
        assert asked == [(40, 8 * 6, block_bytes(cloud.X))]

    @pytest.mark.parametrize("c", [2, 8, 25])
    def test_each_seed_is_the_best_of_as_many_trials_as_scikit_learns(self, c):
        rng, sizes = np.random.default_rng(0), []

        class Watched:
            choice = staticmethod(rng.choice)

            @staticmethod
            def random(size):
                sizes.append(size)
                return rng.random(size)

        _seeds_among(_Cloud.of(points(30), None), c, Watched())
        assert sizes == [(c - 1, 2 + int(np.log(c)))]

    def test_a_seed_is_the_trial_that_leaves_the_least_weighted_distance(self):
        """Brute force over the same draws, from coordinates."""
        P, weights = points(30), np.random.default_rng(1).random(30)
        chosen = _seeds_among(_Cloud.of(P, weights), 9, np.random.default_rng(2))
        rng, mass, D = np.random.default_rng(2), weights / weights.max(), squared(P)
        expected = [rng.choice(30, p=mass / mass.sum())]
        while len(expected) < 9:
            nearest = D[expected].min(axis=0)
            share = (nearest * mass).cumsum()
            drawn = share.searchsorted(rng.random(4) * share[-1], side="right")
            left = [np.minimum(nearest, D[j]) @ mass for j in drawn]
            expected.append(drawn[np.argmin(left)])
        np.testing.assert_array_equal(chosen, expected)

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

    @forms
    def test_points_that_are_all_zero_are_their_own_centroids(self, make):
        Z, owner = clusters(make(np.zeros((9, 2))), 3, np.random.default_rng(0))
        np.testing.assert_array_equal(self.dense(Z), 0.0)
        assert owner.shape == (9,)

    @pytest.mark.parametrize("scale", [2.0**-200, 1.0, 2.0**200])
    @pytest.mark.parametrize("far", [0.0, 1e6])
    def test_rough_centroids_are_the_same_to_seven_digits_of_the_spread(self, scale, far):
        P = np.repeat(10 * points(7), 20, axis=0) + points(140, seed=1) + far
        exact, owner = clusters(P, 7, np.random.default_rng(0))
        rough, same = clusters(scale * P, 7, np.random.default_rng(0), rough=True)
        np.testing.assert_array_equal(same, owner)
        np.testing.assert_allclose(rough / scale, exact, atol=1e-5 * P.std(), rtol=0)

    @pytest.mark.parametrize("backend", ["torch", "array_api_strict"])
    def test_other_arrays_have_the_same_seeds(self, backend):
        xp, P = pytest.importorskip(backend), points(200)
        weights = np.random.default_rng(1).random(200)
        ours, theirs = (
            _seeds_among(_Cloud.of(form, weights), 25, np.random.default_rng(0))
            for form in (P, xp.asarray(P))
        )
        np.testing.assert_array_equal(ours, theirs)
