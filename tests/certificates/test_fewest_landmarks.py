"""A tolerance finds the number of landmarks, and says so where it cannot."""

from copy import deepcopy
from types import SimpleNamespace

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.catalogue import find_method
from nysboost.certificates.fewest_landmarks import Curve, within_tolerance
from nysboost.gram import make_gram

KERNEL = nb.Gaussian(sigma=2.0)


def points(n=700, seed=0):
    return market.cloud(n, np.random.default_rng(seed))


def heavy_tailed(n=700, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * np.exp(rng.normal(size=(n, 1)))


def smallest(X, method, tol, found):
    """The fewest landmarks that work, by trying every number below what was found."""
    works = [
        c
        for c in range(max(1, found // 2), found + 1)
        if nb.approximate(X, method, KERNEL, n_components=c, random_state=0).relative_error() <= tol
    ]
    return works[0]


@pytest.mark.parametrize(
    ("X", "tol"), [(points(), 0.1), (points(), 0.01), (heavy_tailed(), 0.1), (heavy_tailed(), 0.03)]
)
def test_it_is_reached_with_few_more_landmarks_than_by_trying_all_numbers(X, tol):
    approx = nb.approximate(X, "kmeans", KERNEL, tol=tol, random_state=0)
    found = len(approx.landmarks)
    assert approx.relative_error() <= tol
    assert found <= 1.3 * smallest(X, "kmeans", tol, found)


def test_joint_is_the_default_and_reaches_it_too():
    X = points(400)
    approx = nb.approximate(X, kernel=KERNEL, tol=0.02, random_state=0)
    assert approx.method == "joint"
    assert approx.relative_error() <= 0.02
    assert len(approx.landmarks) <= 1.3 * smallest(X, "joint", 0.02, len(approx.landmarks))


def test_the_result_is_that_of_so_many_components_with_the_same_seed():
    X = points()
    found = nb.approximate(X, "kmeans", KERNEL, tol=0.05, random_state=7)
    count = len(found.landmarks)
    again = nb.approximate(X, "kmeans", KERNEL, n_components=count, random_state=7)
    np.testing.assert_array_equal(found.landmarks.points, again.landmarks.points)


def test_a_mixture_shares_the_landmarks_out():
    approx = nb.approximate(points(), "URB-mean", KERNEL, tol=0.1, n_learners=2, random_state=0)
    assert len(approx.learners) == 2
    assert approx.relative_error() <= 0.1


def try_all(X, method, tol):
    """What `tol` does, but for a matrix that fits share: result, landmarks of all its trials."""
    gram, rng, counts = make_gram(X, KERNEL), np.random.default_rng(0), []
    certificates = rng.spawn(1)[0]

    def fit(c):
        counts.append(c)
        return find_method(method)(gram, nb.Settings(n_components=c), deepcopy(rng))

    return within_tolerance(fit, tol, gram, None, certificates), counts


@pytest.mark.parametrize("tol", [0.1, 0.03, 0.01, 0.003])
def test_fits_that_are_wasted_cost_no_more_than_twice_the_result(tol):
    approx, counts = try_all(points(1500), "kmeans", tol)
    assert sum(counts) <= 3 * len(approx.landmarks)


def test_joint_finds_what_a_fit_alone_does_at_few_times_its_cost():
    X, costs = heavy_tailed(2200), []
    for seed in range(3):
        found = nb.approximate(X, "joint", KERNEL, tol=0.05, random_state=seed)
        assert found.relative_error() <= 0.05
        c = len(found.landmarks)
        once = nb.approximate(X, "joint", KERNEL, n_components=c, random_state=seed)
        np.testing.assert_array_equal(found.landmarks.points, once.landmarks.points)
        costs.append(found.entries_evaluated / once.entries_evaluated)
    assert np.median(costs) <= 3.5


def test_trials_under_tol_are_the_fits_of_the_method_itself():
    approx = nb.approximate(points(600), "joint", KERNEL, tol=0.01, random_state=0)
    alone, counts = try_all(points(600), "joint", 0.01)
    assert len(counts) > 1
    np.testing.assert_array_equal(approx.landmarks.points, alone.landmarks.points)


def test_nearly_the_identity_is_out_of_reach_and_the_result_is_there():
    X = points(1500)
    with pytest.warns(nb.ToleranceWarning, match="tol=0.01 was not reached: it would take") as seen:
        approx = nb.approximate(
            X, "uniform", nb.Gaussian(sigma=1e-3), tol=0.01, max_memory="10MB", random_state=0
        )
    assert len(approx.landmarks) == 240
    assert "relative Frobenius error between 0.9" in str(seen[0].message)
    assert seen[0].filename == __file__


def test_a_limit_on_landmarks_is_kept_and_named():
    with pytest.warns(nb.ToleranceWarning, match="allow at most 5 landmarks"):
        approx = nb.approximate(
            points(), "kmeans", KERNEL, tol=1e-4, n_components=5, random_state=0
        )
    assert len(approx.landmarks) == 5


def test_with_all_rows_as_landmarks_everything_is_reached():
    X = points(60)
    approx = nb.approximate(X, "uniform", nb.Gaussian(sigma=0.01), tol=1e-3, random_state=0)
    assert len(approx.landmarks) == 60
    assert approx.relative_error() <= 1e-3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_very_few_rows(n):
    approx = nb.approximate(points(n), "uniform", KERNEL, tol=0.5, random_state=0)
    assert approx.relative_error() <= 0.5


def test_the_transformers_take_a_tolerance():
    X = points()
    model = nb.Nystroem(KERNEL, method="kmeans", tol=0.03, random_state=0).fit(X)
    F = model.transform(X)
    G = make_gram(X, KERNEL).block(np.arange(len(X)), np.arange(len(X)))
    assert np.linalg.norm(G - F @ F.T) <= 0.03 * np.linalg.norm(G)
    assert nb.StandardNystroem(KERNEL, tol=0.1, random_state=0).fit(X).transform(X).shape[1] < 60


# The curve of errors: against the spectrum, and through trials


def power(slope=1.0, n=10**15):
    """log error = −slope · log c."""
    return Curve(-slope * np.log(np.arange(1, 101)), n)


def trial(c, error):
    return SimpleNamespace(c=c, error=error)


def at(curve, c):
    return float(np.exp(curve(np.array([float(c)])))[0])


def test_a_power_goes_on_beyond_what_the_sample_tells():
    assert power().reach == 50
    assert at(power(), 40) == pytest.approx(1 / 40)
    assert at(power(), 4000) == pytest.approx(1 / 4000)
    assert at(power(n=100), 20) == pytest.approx(0.8 / 20)  # rows that are landmarks are exact


def test_it_goes_through_every_trial_and_keeps_its_form_beyond_them():
    curve = power().through([trial(10, 0.2), trial(400, 0.0025)])
    assert [at(curve, c) for c in (5, 10, 400, 800)] == pytest.approx([0.4, 0.2, 0.0025, 0.00125])
    assert 0.05 < at(curve, 20) < 0.1
    assert at(power().through([trial(10, 0.0)]), 10) < 1e-15
