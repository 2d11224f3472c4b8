"""Piecewise-linear codes of numbers."""

import numpy as np

from nysboost.tables.codes import PiecewiseCodes


def test_codes_are_piecewise_linear_between_quantiles_of_the_different_values():
    spike = np.r_[np.zeros(1440), np.linspace(0, 1, 161)[1:]]  # quantiles of all are 0 but for two
    X = np.stack([spike, np.arange(1600) % 2, np.arange(1600) % 3], axis=1)
    codes, bins = PiecewiseCodes.of(X, 256), 23  # 2∛1600
    np.testing.assert_allclose(codes.edges[0], np.linspace(0, 1, bins + 1))
    np.testing.assert_array_equal(codes.edges[2], [0, 1, 2])
    middle = 0.5 / bins
    found = codes(np.array([[-1.0, 0, 0], [middle, 1, 1.5], [2.0, 1, 2]]))
    np.testing.assert_allclose(found[1, :6], [middle, 1, 1.5, 0.5, 0, 0])
    np.testing.assert_array_equal(found[:, -2:], [[0, 0], [1, 0.5], [1, 1]])
    assert (found[0, 3:] == 0).all()
    assert (found[2, 3:] == 1).all()
    # a feature of two values has no codes
    np.testing.assert_array_equal(codes.origins, [0, 1, 2, *[0] * bins, 2, 2])


def test_many_features_share_the_codes_that_there_are_in_all():
    X = np.random.default_rng(0).normal(size=(8000, 20))
    assert len(PiecewiseCodes.of(X, 256).origins) <= 20 + 256
