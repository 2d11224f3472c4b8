"""How many landmarks: the search, and the noise that ends it."""

import numpy as np
import pytest
from scipy.stats import sem

from nysboost.numerics.progress import Work
from nysboost.target import size
from nysboost.target.candidates import MATERN32, Candidate, Sample
from nysboost.target.plain import SIMPLEST
from nysboost.target.size import enough, falls

EACH = (Candidate(MATERN32, "each"),)


def sample(n, frequency, noise=0.05, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    Y = np.sin(frequency * X[:, :1]) * np.cos(frequency * X[:, 1:])
    return Sample(X, Y + noise * rng.normal(size=(n, 1)), weights, np.ones(2))


def searched(some, candidates=EACH, seed=0):
    lines = []
    rng, work = np.random.default_rng(seed), Work(lines.append)
    found = enough(some, SIMPLEST, candidates, lambda _: 0.1, rng, work)
    return found, lines


@pytest.mark.parametrize("shift", [0.5, 0.9, 1.1, 2.0])
def test_a_mean_falls_if_it_is_above_its_standard_error(shift):
    noise = np.random.default_rng(0).normal(size=400)
    noise -= noise.mean()
    assert falls(noise + shift * sem(noise, ddof=0)) == (shift > 1)


def test_a_row_of_weight_two_counts_twice_in_the_mean_and_no_weight_is_no_row():
    assert falls(np.array([1.0, -1.5, 1.2, 0.9]), np.array([1.0, 0.0, 1.0, 1.0]))
    assert not falls(np.array([1.0, -1.5, 1.2, 0.9]), np.array([1.0, 3.0, 1.0, 1.0]))
    assert not falls(np.array([1.0, 2.0]), np.zeros(2))


def test_a_rough_target_gets_more_landmarks_than_a_smooth_one(monkeypatch):
    monkeypatch.setattr(size, "MOST", 128)
    smooth, _ = searched(sample(1200, 1.0))
    rough, lines = searched(sample(1200, 9.0))
    assert smooth <= 64 < rough
    assert [line.split()[0] for line in lines][:3] == ["32", "64", "128"]


def test_noise_gets_the_fewest():
    assert searched(sample(600, 0.0, noise=1.0))[0] == size.LEAST


@pytest.mark.parametrize(("n", "most"), [(1, 1), (2, 1), (20, 10), (100, 32), (200, 100)])
def test_never_more_than_half_of_the_rows(n, most):
    assert searched(sample(n, 20.0), ())[0] <= most


def test_rows_that_judge_take_no_part_and_the_sample_is_bounded(monkeypatch):
    seen = []
    plain = size.judged
    monkeypatch.setattr(size, "SEARCH_ROWS", 300)
    monkeypatch.setattr(size, "JUDGES", 61)  # two fifths, one after the other
    monkeypatch.setattr(size, "judged", lambda *a: seen.append(a[1:]) or plain(*a))
    searched(sample(1000, 5.0))
    for fit, judge in seen:
        assert (fit.n, judge.n) == (240, 60)
        assert not set(fit.X[:, 0]) & set(judge.X[:, 0])
    first, second = seen[0][1], seen[1][1]
    assert not set(first.X[:, 0]) & set(second.X[:, 0])
    assert all(judge.X is (first, second)[i % 2].X for i, (_, judge) in enumerate(seen))


@pytest.mark.parametrize(("n", "fifths"), [(100, 5), (927, 4), (1400, 3), (3100, 1), (20_000, 1)])
def test_where_rows_are_few_more_than_a_fifth_of_them_judges(n, fifths):
    splits = size._splits(sample(n, 1.0), np.random.default_rng(0))
    assert len(splits) == fifths
