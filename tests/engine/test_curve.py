"""The curve of errors against the spectrum, and through trials."""

from dataclasses import dataclass

import market
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nysboost as nb
from nysboost.engine.curve import LEAST_SHARE, Curve, errors_by_rank
from nysboost.gram import make_gram

SIZES = np.arange(1, 101)


@dataclass(frozen=True)
class Tried:
    c: int
    error: float


def power(slope=1.0, n=10**15):
    """log error = −slope · log c."""
    return Curve(-slope * np.log(SIZES), n)


def at(curve, c):
    return float(np.exp(curve(np.array([float(c)])))[0])


def test_a_power_goes_on_beyond_what_the_pilot_tells():
    assert power().reach == 50
    assert at(power(), 40) == pytest.approx(1 / 40)
    assert at(power(), 4000) == pytest.approx(1 / 4000)
    assert at(power(n=100), 20) == pytest.approx(0.8 / 20)  # rows that are landmarks are exact


def test_two_trials_tilt_or_compress_it_but_not_to_nothing():
    tilted = power().through([Tried(10, 0.1), Tried(20, 0.025)], 0.1)
    assert at(tilted, 10) == pytest.approx(0.1)
    assert at(tilted, 40) == pytest.approx(0.1 / 16)
    half = power().through([Tried(10, 0.1), Tried(40, 0.05)], 0.1)
    assert at(half, 40) == pytest.approx(0.05)
    slow = power(0.5).through([Tried(10, 0.1), Tried(40, 0.08)], 0.1)
    assert at(slow, 40) == pytest.approx(0.08)
    least = power().through([Tried(10, 0.1), Tried(11, 0.12)], 0.1)
    assert at(least, 20) == pytest.approx(0.1 * 2**-LEAST_SHARE)


def test_the_first_below_is_sought_from_low_to_high():
    curve, tried = power(), [Tried(10, 0.1)]
    assert curve.first_below([], 0.0501, 1, 100) == 20
    assert curve.first_below([], 0.0501, 30, 100) == 30
    assert curve.first_below([], 0.0501, 1, 15) == 15
    flat = Curve(np.full(100, np.log(0.1)), 10**9)
    assert flat.first_below(tried, 0.05, 11, 100) == 40  # the least slope beyond the last trial


trials = st.lists(
    st.builds(Tried, st.integers(1, 90), st.floats(1e-12, 2.0)),
    max_size=4,
    unique_by=lambda trial: trial.c,
)


@given(trials, st.floats(1e-6, 0.9), st.floats(0.0, 4.0))
def test_whatever_the_trials_the_curve_does_not_rise(tried, target, slope):
    logs = power(slope).through(tried, target)(np.arange(1.0, 300.0))
    assert (np.diff(logs) <= 1e-9).all()
    assert np.isfinite(logs).all()


def test_the_pilot_is_between_the_optimum_and_twice_of_it():
    X = market.cloud(1000, np.random.default_rng(0))
    gram = make_gram(X, nb.Gaussian(sigma=2.0))
    errors = errors_by_rank(gram, 500, np.random.default_rng(0))
    G = gram.block(np.arange(1000), np.arange(1000))
    squares = np.sort(np.linalg.eigvalsh(G))[::-1] ** 2
    optimum = np.sqrt(np.cumsum(squares[::-1])[::-1][1:] / squares.sum())
    counts = np.array([5, 10, 20, 40])
    ratio = errors[counts - 1] / optimum[counts - 1]
    assert (ratio > 0.9).all()
    assert (ratio < 2).all()
    assert (np.diff(errors) <= 0).all()
