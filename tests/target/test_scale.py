"""Standardised coordinates, and the way back."""

import numpy as np
import pytest

from nysboost.target.candidates import MATERN32, STEPS, Found
from nysboost.target.linear import Basis
from nysboost.target.loss import Point
from nysboost.target.scale import Scale


def rows(n=50, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)) * [1, 1e4, 1e-3, 0] + [0, 50, 9, 7]


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("A", [np.array(0.5), np.full(4, 0.5), np.eye(4) / 2, np.eye(4)[:, :2]])
def test_what_is_found_there_is_the_same_here(standardise, A):
    X, fresh = rows(), rows(seed=1)
    scale = Scale.of(X, standardise=standardise)
    found = Found("", MATERN32, Point(scale(X[:9]), A, 0.0), STEPS)
    expected, back = found.basis()(scale(fresh)), scale.undone(found)(fresh)
    np.testing.assert_allclose(back, expected, atol=1e-5)


def test_features_are_at_unit_spread_or_share_one_factor():
    X = rows()
    np.testing.assert_allclose(Scale.of(X, standardise=True)(X).std(axis=0), [1, 1, 1, 0])
    factors = Scale.of(X, standardise=False).factor
    assert np.ptp(factors[:3]) == 0


def test_a_constant_feature_is_switched_off():
    X = rows()
    scale = Scale.of(X, standardise=True)
    basis = scale.undone(Found("", MATERN32, Point(scale(X[:9]), np.full(4, 0.5), 0.0), STEPS))
    moved = X.copy()
    moved[:, 3] = 1e9
    np.testing.assert_allclose(basis(moved), basis(X), atol=1e-8)
    assert isinstance(basis, Basis)
