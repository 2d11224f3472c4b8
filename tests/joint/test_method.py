"""The flagship: never worse than its start, on any input, at a cost that n does not change."""

import market
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.boosting.core import fit_core
from nysboost.gram import Sample, make_gram
from nysboost.joint import method as module


def digits(n=700):
    X = load_digits().data / 16
    return X[np.random.default_rng(0).permutation(len(X))[:n]]


def test_it_beats_every_peer_and_comes_near_the_optimum_on_digits():
    X, kernel, c = digits(), nb.Gaussian(sigma=1.5), 60
    errors = {
        method: nb.approximate(X, method, kernel, n_components=c, random_state=0).relative_error()
        for method in ("joint", "uniform", "kmeans", "rpcholesky", "greedy", "rls", "optimal")
    }
    peers = [errors[name] for name in ("uniform", "kmeans", "rpcholesky", "greedy", "rls")]
    assert errors["joint"] < 0.9 * min(peers)
    assert errors["optimal"] <= errors["joint"] < 1.15 * errors["optimal"]


def test_the_transformer_beats_scikit_learns_at_the_same_number_of_components():
    X, gamma = digits(), 0.2
    G = rbf_kernel(X, gamma=gamma)
    errors = []
    for kind in (nb.BoostedNystroem, Nystroem):
        F = kind(gamma=gamma, n_components=60, random_state=0).fit_transform(X)
        assert F.shape == (700, 60)
        errors.append(np.linalg.norm(G - F @ F.T))
    assert errors[0] < 0.6 * errors[1]


def test_a_refinement_that_held_out_rows_do_not_confirm_is_dropped(monkeypatch):
    X = digits(400)
    start = nb.approximate(X, n_components=30, random_state=0)
    monkeypatch.setattr(module, "refine", lambda kernel, Z, X, G, iterations: (Z * 50.0, 1))
    dropped = nb.approximate(X, n_components=30, random_state=0)
    monkeypatch.setattr(module, "refine", lambda kernel, Z, X, G, iterations: (Z, 1))
    unrefined = nb.approximate(X, n_components=30, random_state=0)
    np.testing.assert_array_equal(
        dropped.learners[0].landmarks.points, unrefined.learners[0].landmarks.points
    )
    assert start.relative_error() < unrefined.relative_error()


@pytest.mark.parametrize("kernel", [nb.Matern(nu=0.5), "sparse", "precomputed"])
def test_what_has_no_derivative_keeps_to_columns(kernel):
    X = digits(300)
    if kernel == "sparse":
        X, kernel = csr_matrix(X), nb.Gaussian(sigma=1.5)
    elif kernel == "precomputed":
        X = rbf_kernel(X, gamma=0.2)
    approx = nb.approximate(X, "joint", kernel, n_components=50, random_state=0)
    uniform = nb.approximate(X, "uniform", kernel, n_components=50, random_state=0)
    columns = approx.learners[0].landmarks.indices
    assert len(columns) == len(set(columns)) == 50
    assert approx.relative_error() < uniform.relative_error()


@pytest.mark.parametrize("c", [1, 2, 40, 79, 80])
@pytest.mark.parametrize("case", market.NAMES)
def test_any_number_of_landmarks_gives_a_finite_and_sensible_error(case, c):
    problem = market.problem(case, n=80)
    approx = nb.approximate(problem.X, "joint", problem.kernel, n_components=c, random_state=0)
    assert approx.relative_error() <= 1 + 1e-6


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


def test_a_linear_kernel_comes_near_the_optimum():
    X = digits()
    ours, best = (
        nb.approximate(X, method, nb.Linear(), n_components=20, random_state=0).relative_error()
        for method in ("joint", "optimal")
    )
    assert ours <= 1.05 * best


def test_fitting_evaluates_no_more_entries_when_n_grows(monkeypatch):
    monkeypatch.setattr(module, "HELD_OUT", 64)
    entries = []
    for n in (2000, 20_000):
        X = np.random.default_rng(0).normal(size=(n, 3))
        approx = nb.approximate(X, n_components=20, row_cap=300, random_state=0)
        entries.append(approx.entries_evaluated)
    assert entries[0] == entries[1]


def test_the_same_seed_gives_the_same_landmarks():
    X = digits(300)
    first, second = (nb.approximate(X, n_components=20, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(
        first.learners[0].landmarks.points, second.learners[0].landmarks.points
    )


def test_more_landmarks_than_rows_are_clipped_with_a_warning():
    with pytest.warns(UserWarning, match="81 landmarks were asked for, but there are only 80"):
        approx = nb.approximate(digits(80), n_components=81, random_state=0)
    assert len(approx.landmarks) == 80


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_more_landmarks_than_distinct_rows_reproduce_the_matrix(dtype):
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 10)), 2, axis=0).astype(dtype)
    approx = nb.approximate(X, "joint", nb.Gaussian(sigma=1.0), n_components=260, random_state=0)
    assert approx.relative_error() < 1e-5


@pytest.mark.parametrize("n", [300, 400])
def test_a_large_share_of_the_rows_as_landmarks_is_no_worse_than_kmeans(n):
    X = digits(n)
    joint, kmeans = (
        nb.approximate(X, method, nb.Gaussian(sigma=1.5), n_components=240, random_state=0)
        for method in ("joint", "kmeans")
    )
    assert joint.relative_error() <= 1.01 * kmeans.relative_error()


@pytest.mark.parametrize("n", range(2, 12))
def test_a_handful_of_rows_is_enough(n):
    approx = nb.approximate(np.arange(n)[:, None] / n, n_components=n - 1, random_state=0)
    assert approx.relative_error() < 0.5


@pytest.mark.parametrize(
    "method", ["joint", "JJB-mean", "URB-mean", "rpcholesky", "greedy", "rls", "uniform"]
)
def test_every_kernel_value_that_is_evaluated_counts(method, monkeypatch):
    seen, against = [], nb.Gaussian.against

    def counting(self, Y):
        def evaluate(X):
            seen.append(len(X) * len(Y))
            return against(self, Y)(X)

        return evaluate

    monkeypatch.setattr(nb.Gaussian, "against", counting)
    how = {"n_learners": 2, "n_columns": 10, "random_state": 0}
    approx = nb.approximate(digits(150), method, nb.Gaussian(sigma=1.5), **how)
    assert approx.entries_evaluated == sum(seen[1:])  # the first is the probe of the kernel


def test_no_two_centroids_start_in_one_place():
    """Rows far out get a centroid of their own in each stage."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(300, 4)), 50 * rng.normal(size=(6, 4))])
    gram = make_gram(X, nb.Gaussian(sigma=2.0))
    Z = module._boosted_centroids(gram, module._Sample.of(gram, np.arange(306)), 40, rng)
    assert Z.shape == (40, 4)
    assert pdist(Z).min() > 1e-3 * np.sqrt(X.var(axis=0).sum())


def test_repetitions_make_room_for_the_rows_that_are_missed_most():
    X = np.arange(8.0)[:, None]
    Z = np.array([[0.0], [7.0], [0.0], [2.5], [7.0]])
    missed = np.array([9, 1, 2, 5, 1, 6, 1, 9.0])  # rows 0 and 7 are landmarks already
    apart = module._apart(Z, X, missed)
    np.testing.assert_array_equal(apart, [[0.0], [7.0], [5.0], [2.5], [3.0]])
    np.testing.assert_array_equal(Z[2], 0.0)


@pytest.mark.parametrize("accepted", [True, False])
def test_the_core_is_fitted_on_the_last_sample(accepted, monkeypatch):
    X, calls = digits(400), []

    def move(kernel, Z, X, G, iterations):
        calls.append(len(X))
        return Z * (1 if accepted or len(calls) == 1 else 50.0), 1

    monkeypatch.setattr(module, "refine", move)
    learner = nb.approximate(X, n_components=30, random_state=0).learners[0]
    assert calls == [350, 400]
    gram = make_gram(X)
    sample = Sample.of(gram, np.arange(400))
    expected = fit_core(sample, learner.landmarks, anchor=module.ANCHOR)
    ours, theirs = ((P := part.projection) @ P.T for part in (learner, expected))
    np.testing.assert_allclose(ours, theirs, atol=1e-8 * np.abs(theirs).max())


def test_the_first_of_many_rows_rounds_is_the_smaller_and_shares_no_rows():
    held_out, rounds = module._split(100_000, 240, 4096, np.random.default_rng(0))
    assert [len(held_out), *map(len, rounds)] == [512, 2048, 4096]
    assert len(np.unique(np.concatenate([held_out, *rounds]))) == 512 + 2048 + 4096
    _, rounds = module._split(100_000, 480, 4096, np.random.default_rng(0))
    assert list(map(len, rounds)) == [3840, 4096]
    held_out, rounds = module._split(4700, 240, 4096, np.random.default_rng(0))
    assert list(map(len, rounds)) == [2048, 4096]
    assert not np.intersect1d(held_out, np.concatenate(rounds)).size
