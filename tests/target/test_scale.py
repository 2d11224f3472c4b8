"""Standardised coordinates, and the way back."""

import numpy as np
import pytest

from nysboost.target.candidates import MATERN32, STEPS, Found
from nysboost.target.linear import Basis
from nysboost.target.loss import Point
from nysboost.target.scale import SCALES, all_alike, by_quantiles, each_alone


def rows(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) * [1, 1e4, 1e-3, 0] + [0, 50, 9, 7]


@pytest.mark.parametrize("scaling", [found for found in SCALES.values() if found])
@pytest.mark.parametrize("A", [np.array(0.5), np.full(4, 0.5), np.eye(4) / 2, np.eye(4)[:, :2]])
def test_what_is_found_there_is_the_same_here(scaling, A):
    X, fresh = rows(), rows(seed=1)
    scale = scaling(X)
    found = Found("", MATERN32, Point(scale(X[:9]), A, 0.0), STEPS)
    expected, back = found.basis()(scale(fresh)), scale.undone(found)(fresh)
    np.testing.assert_allclose(back, expected, atol=1e-5)


def test_features_are_at_unit_spread_or_share_one_factor():
    X = rows()
    np.testing.assert_allclose(each_alone(X)(X).std(axis=0), [1, 1, 1, 0])
    factors = all_alike(X).factor
    assert np.ptp(factors[:3]) == 0


def test_a_constant_feature_is_switched_off():
    X = rows()
    scale = each_alone(X)
    basis = scale.undone(Found("", MATERN32, Point(scale(X[:9]), np.full(4, 0.5), 0.0), STEPS))
    moved = X.copy()
    moved[:, 3] = 1e9
    np.testing.assert_allclose(basis(moved), basis(X), atol=1e-8)
    assert isinstance(basis, Basis)


def test_quantiles_are_those_of_every_rising_function_of_a_feature():
    X = rows()
    other = X.copy()
    other[:, 0], other[:, 1] = np.exp(X[:, 0]), np.cbrt(X[:, 1])
    np.testing.assert_allclose(by_quantiles(other)(other), by_quantiles(X)(X), atol=1e-12)
    np.testing.assert_allclose(by_quantiles(X).back(by_quantiles(X)(X)), X, rtol=1e-9)
