"""The flagship: never worse than its start, on any input, at a cost that n does not change."""

import market
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.gram import make_gram

MOVABLE = [name for name in market.NAMES if not isinstance(market.problem(name, n=9).kernel, str)]


def digits(n=700):
    X = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


@pytest.mark.parametrize(
    ("kernel", "c", "gain", "near"),
    [(nb.Gaussian(sigma=1.5), 60, 0.9, 1.15), (nb.Linear(), 20, 1.0, 1.05)],
    ids=str,
)
def test_it_beats_every_peer_and_comes_near_the_optimum_on_digits(kernel, c, gain, near):
    ours, best, *peers = (
        nb.approximate(digits(), method, kernel, n_components=c, random_state=0).relative_error()
        for method in ("joint", "optimal", "uniform", "kmeans", "rpcholesky", "greedy", "rls")
    )
    assert ours < gain * min(peers)
    assert best <= ours < near * best


@pytest.mark.parametrize("case", MOVABLE)
@pytest.mark.parametrize("c", [5, 30])
def test_the_error_is_never_above_that_of_kmeans_with_the_same_core(case, c):
    problem = market.problem(case, n=120)
    how = {"kernel": problem.kernel, "n_components": c, "random_state": 0}
    ours, theirs = (
        nb.approximate(problem.X, method, **how).relative_error() for method in ("joint", "kmeans")
    )
    assert ours <= 1.001 * theirs + 1e3 * problem.gram.eps


@pytest.mark.parametrize(
    "case", ["Gaussian", "narrow Gaussian", "doubled rows", "constant columns"]
)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_far_row_costs_no_more_than_its_landmark(case, seed):
    problem = market.problem(case, n=150)
    farther = np.concatenate([problem.X, problem.X[:1] + 40.0])
    without, with_it = (
        nb.approximate(X, "joint", problem.kernel, n_components=c, random_state=seed)
        for X, c in ((problem.X, 30), (farther, 31))
    )
    assert with_it.relative_error() <= 1.5 * max(without.relative_error(), 1e-9)


@pytest.mark.parametrize(("nu", "moves"), [(0.5, False), (1.5, True), (2.5, True)])
def test_landmarks_move_where_the_kernel_has_a_derivative(nu, moves):
    approx = nb.approximate(digits(80), "joint", nb.Matern(nu), n_components=9, random_state=0)
    assert (approx.landmarks.indices is None) == moves


def test_far_rows_are_seen_beyond_the_sample():
    """One row in 3000, of which a fit samples 200: its landmark is where it is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    X[1234] = 30.0
    approx = nb.approximate(
        X, "joint", nb.Gaussian(sigma=2.0), n_components=40, row_cap=200, random_state=0
    )
    far = np.array([1234])
    assert abs(float(approx.block(far, far)[0, 0]) - 1) < 0.05


def test_a_small_far_group_has_its_landmark_though_larger_ones_have_none():
    """Twenty rows in 4000, of which a fit samples 640: they stand out by their distance alone."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(80, 6))
    X = centres[rng.integers(80, size=4000)]
    far = np.arange(20)
    X[far] = -8.0
    X += 0.02 * rng.normal(size=X.shape)
    approx = nb.approximate(
        X, "joint", nb.Gaussian(sigma=0.3), n_components=40, row_cap=640, random_state=0
    )
    assert np.abs(approx.block(far, far) - 1).max() < 0.1


@pytest.mark.parametrize("scale", [1e-60, 1e60])
@pytest.mark.parametrize("method", ["joint", "JJB-mean"])
def test_the_relative_error_does_not_depend_on_the_scale_of_the_kernel(method, scale):
    X = digits(200)
    G = rbf_kernel(X, gamma=0.2)
    how = {"n_learners": 2, "n_columns": 15, "random_state": 0}
    ours, scaled = (
        nb.approximate(size * G, method, "precomputed", **how).relative_error()
        for size in (1.0, scale)
    )
    np.testing.assert_allclose(scaled, ours, rtol=0.02)


WITHOUT_POINTS = {
    "precomputed": lambda X: (rbf_kernel(X, gamma=1 / 8), "precomputed"),
    "sparse": lambda X: (csr_matrix(X), nb.Gaussian(sigma=2.0)),
    "rough": lambda X: (X, nb.Matern(nu=0.5, sigma=2.0)),
}


@pytest.mark.parametrize("kind", WITHOUT_POINTS)
def test_without_a_derivative_columns_are_better_than_rpcholeskys_with_heavy_tails(kind):
    X, kernel = WITHOUT_POINTS[kind](np.random.default_rng(0).standard_t(2, size=(400, 3)))
    errors = {"joint": [], "rpcholesky": []}
    for method, found in errors.items():
        for seed in range(2):
            approx = nb.approximate(X, method, kernel, n_components=60, random_state=seed)
            found.append(approx.relative_error())
            assert len(set(approx.learners[0].landmarks.indices)) == 60
    assert np.mean(errors["joint"]) <= 0.9 * np.mean(errors["rpcholesky"])


@pytest.mark.parametrize("c", [1, 40, 79])
@pytest.mark.parametrize("case", market.NAMES)
def test_any_number_of_landmarks_comes_near_the_best_of_its_rank(case, c):
    """Eckart and Young's bound, and a small multiple of it: the largest seen is 2.2."""
    problem = market.problem(case, n=80)
    approx = nb.approximate(problem.X, "joint", problem.kernel, n_components=c, random_state=0)
    values = np.abs(np.linalg.eigvalsh(problem.G / np.abs(problem.G).max()))[::-1]
    best, rounding = np.linalg.norm(values[c:]) / np.linalg.norm(values), 1e3 * problem.gram.eps
    assert best - rounding <= approx.relative_error() <= 2.5 * best + rounding


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_more_landmarks_than_the_numerical_rank_do_not_blow_up(dtype):
    X = np.random.default_rng(0).normal(size=(500, 2)).astype(dtype)
    approx = nb.approximate(X, "joint", nb.Gaussian(sigma=10.0), n_components=200, random_state=0)
    new = np.random.default_rng(1).normal(size=(300, 2)).astype(dtype)
    features, _ = approx.feature_map()
    F = features(new).astype(np.float64)
    G = rbf_kernel(new.astype(np.float64), gamma=1 / 200)
    tolerance = 1e-5 if dtype == np.float32 else 1e-10
    assert approx.relative_error() < tolerance
    assert np.linalg.norm(G - F @ F.T) < tolerance * np.linalg.norm(G)


@pytest.mark.parametrize(
    "method", ["joint", "JJB-mean", "URB-mean", "rpcholesky", "greedy", "rls", "uniform"]
)
def test_every_kernel_value_that_is_evaluated_counts(method, monkeypatch):
    seen, against = [], nb.Gaussian.against

    def counting(self, Y):
        def evaluate(X, out=None):
            seen.append(len(X) * len(Y))
            return against(self, Y)(X, out)

        return evaluate

    monkeypatch.setattr(nb.Gaussian, "against", counting)
    X, kernel = digits(150), nb.Gaussian(sigma=1.5)
    make_gram(X, kernel)
    probe = sum(seen)  # of the kernel, with which every fit begins
    seen.clear()
    approx = nb.approximate(X, method, kernel, n_learners=2, n_columns=10, random_state=0)
    assert approx.entries_evaluated == sum(seen) - probe


def test_a_row_cap_of_less_than_four_rows_for_each_landmark_is_raised_to_that():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    how = {"n_components": 20, "random_state": 0}
    tiny, four, five = (nb.approximate(X, row_cap=cap, **how) for cap in (1, 4 * 20, 5 * 20))
    np.testing.assert_array_equal(tiny.landmarks.points, four.landmarks.points)
    np.testing.assert_array_equal(tiny.learners[0].projection, four.learners[0].projection)
    assert tiny.entries_evaluated == four.entries_evaluated < five.entries_evaluated
