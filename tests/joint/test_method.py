"""The flagship: never worse than its start, on any input, at a cost that n does not change."""

import market
import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

import nysboost as nb
from nysboost.boosting.judge import Judge
from nysboost.gram import make_gram
from nysboost.joint import method as module

MOVABLE = [name for name in market.NAMES if not isinstance(market.problem(name, n=9).kernel, str)]


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


def dense(X, kernel):
    gram = make_gram(X, kernel)
    return gram.block(np.arange(gram.n), np.arange(gram.n)).astype(np.float64)


@pytest.mark.parametrize("case", MOVABLE)
@pytest.mark.parametrize("c", [5, 30])
def test_the_error_is_never_above_that_of_the_start(case, c, monkeypatch):
    """Refined, exchanged, and as k-means left it: each no worse than the one after."""
    problem = market.problem(case, n=120)
    errors = []
    for name in (None, "_moved", "_exchanged"):
        if name == "_moved":
            monkeypatch.setattr(module, name, lambda gram, landmarks, judge: landmarks)
        if name == "_exchanged":
            monkeypatch.setattr(
                module, name, lambda gram, start, sample: (start, Judge.on(sample, start))
            )
        approx = nb.approximate(problem.X, "joint", problem.kernel, n_components=c, random_state=0)
        errors.append(np.linalg.norm(problem.G - approx.to_dense()))
    slack = 1e-3 * errors[2] + 100 * problem.tolerance  # the anchored core is not quite optimal
    assert errors[0] <= errors[1] + slack
    assert errors[1] <= errors[2] + slack


FAR = 1.5
"""One far row and one landmark more multiply joint's error by no more than this."""


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
    limit = FAR * max(without.relative_error(), 1e-9)
    assert with_it.relative_error() <= limit


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
    X[far] = 8.0
    X += 0.02 * rng.normal(size=X.shape)
    approx = nb.approximate(
        X, "joint", nb.Gaussian(sigma=0.3), n_components=40, row_cap=640, random_state=0
    )
    assert np.abs(approx.block(far, far) - 1).max() < 0.1


@pytest.mark.parametrize("case", ["Gaussian", "narrow Gaussian"])
def test_repeating_every_row_changes_little(case):
    problem = market.problem(case, n=150)
    once, thrice = (
        np.mean(
            [
                nb.approximate(
                    np.repeat(problem.X, times, axis=0),
                    "joint",
                    problem.kernel,
                    n_components=30,
                    random_state=seed,
                ).relative_error()
                for seed in range(3)
            ]
        )
        for times in (1, 3)
    )
    assert thrice <= 1.1 * once


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


@pytest.mark.parametrize("kind", ["precomputed", "sparse", "rough"])
def test_columns_alone_are_no_worse_than_rpcholesky_with_heavy_tails(kind):
    rng = np.random.default_rng(0)
    X, kernel = rng.standard_t(2, size=(400, 3)), nb.Gaussian(sigma=2.0)
    if kind == "precomputed":
        X, kernel = dense(X, kernel), "precomputed"
    elif kind == "sparse":
        X = csr_matrix(X)
    else:
        kernel = nb.Matern(nu=0.5, sigma=2.0)
    errors = [
        np.mean(
            [
                nb.approximate(
                    X, method, kernel, n_components=60, random_state=seed
                ).relative_error()
                for seed in range(2)
            ]
        )
        for method in ("joint", "rpcholesky")
    ]
    assert errors[0] <= 0.9 * errors[1]


def test_a_kernel_so_narrow_that_nothing_can_be_gained_costs_nothing():
    """The digits under the default γ: the Gram matrix is nearly the identity."""
    X = 16 * digits(400)
    ours, uniform = (
        nb.approximate(X, method, n_components=100, random_state=0).relative_error()
        for method in ("joint", "uniform")
    )
    assert ours <= uniform


@pytest.mark.parametrize("sigma", [0.02, 0.3])
def test_where_the_gram_matrix_is_nearly_the_identity_joint_is_as_good_as_any_rows(sigma):
    X = np.random.default_rng(0).normal(size=(300, 8))
    ours, uniform = (
        nb.approximate(
            X, method, nb.Gaussian(sigma=sigma), n_components=50, random_state=0
        ).relative_error()
        for method in ("joint", "uniform")
    )
    assert ours <= 1.0005 * uniform


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


def test_a_linear_kernel_comes_near_the_optimum():
    X = digits()
    ours, best = (
        nb.approximate(X, method, nb.Linear(), n_components=20, random_state=0).relative_error()
        for method in ("joint", "optimal")
    )
    assert ours <= 1.05 * best


def test_fitting_evaluates_no_more_entries_when_n_grows(monkeypatch):
    """Beyond the rows whose diagonal is looked at in full."""
    monkeypatch.setattr(module, "WHOLE_DIAGONAL", 1000)
    nowhere = ((0, 0), (0, 0))  # how many steps fail is up to the data
    monkeypatch.setattr(module, "_steps", lambda _: nowhere)
    entries = []
    for n in (2000, 20_000):
        X = np.random.default_rng(0).normal(size=(n, 3))
        approx = nb.approximate(X, n_components=20, row_cap=300, random_state=0)
        entries.append(approx.entries_evaluated)
    assert abs(entries[0] / entries[1] - 1) < 0.1


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
        def evaluate(X, out=None):
            seen.append(len(X) * len(Y))
            return against(self, Y)(X, out)

        return evaluate

    monkeypatch.setattr(nb.Gaussian, "against", counting)
    how = {"n_learners": 2, "n_columns": 10, "random_state": 0}
    approx = nb.approximate(digits(150), method, nb.Gaussian(sigma=1.5), **how)
    assert approx.entries_evaluated == sum(seen[1:])  # the first is the probe of the kernel


def test_a_row_cap_of_less_than_four_rows_for_each_landmark_is_raised_to_that():
    X = np.random.default_rng(0).normal(size=(3000, 3))
    how = {"n_components": 20, "random_state": 0}
    tiny, four, five = (nb.approximate(X, row_cap=cap, **how) for cap in (1, 4 * 20, 5 * 20))
    np.testing.assert_array_equal(tiny.landmarks.points, four.landmarks.points)
    np.testing.assert_array_equal(tiny.learners[0].projection, four.learners[0].projection)
    assert tiny.entries_evaluated == four.entries_evaluated < five.entries_evaluated


def test_the_more_landmarks_there_are_the_fewer_steps_they_take():
    least = [module._steps(c)[1][0] for c in (5, 60, 240, 480, 960, 9000)]
    assert least == [22, 22, 22, 14, 12, 12]
    for c in (60, 480):
        (first, same), (few, many) = module._steps(c)
        assert first == same == 9
        assert many == few + few // 2
