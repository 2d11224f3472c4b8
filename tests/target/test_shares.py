"""Shares of a mixture, from predictions of rows that no model had seen."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from nysboost.target import shares
from nysboost.target.shares import shares_of


def noisy(seed=1, m=3, h=200):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(h, 1))
    return y, [y + 0.5 * rng.normal(size=y.shape) for _ in range(m)]


def error(found, means, y):
    return np.mean((sum(s * mean for s, mean in zip(found, means, strict=True)) - y) ** 2)


def test_they_are_those_of_the_mixture_that_fits():
    y, good = noisy()
    means = [0 * y, *good]
    found = shares_of(means, y, None, 0.98)
    assert found.sum() == pytest.approx(1)
    assert found[0] < min(found[1:])
    assert error(found, means, y) < min(np.mean((mean - y) ** 2) for mean in means)


def test_without_constraints_in_the_way_they_are_scikit_learns_ridge(monkeypatch):
    # with shares of sum 1 the last one is what the others leave
    y, means = noisy(m=2)
    monkeypatch.setattr(shares, "SHRINKAGE", 1e-12)
    ridge = Ridge(1e-12, fit_intercept=False).fit(means[0] - means[1], y - means[1])
    np.testing.assert_allclose(shares_of(means, y, None, 1.0)[0], ridge.coef_[0], rtol=1e-3)


def test_the_simplest_stands_alone_where_nothing_is_better():
    y, _ = noisy()
    np.testing.assert_array_equal(shares_of([0.9 * y, 0 * y], y, None, 0.98), [1, 0])
    np.testing.assert_array_equal(shares_of([0.9 * y], y, None, 0.98), [1])


def test_a_weight_of_two_is_a_row_twice_and_one_of_zero_is_none():
    y, means = noisy(h=40)
    counts = np.random.default_rng(0).integers(0, 3, size=40)
    twice = shares_of(
        [np.repeat(m, counts, axis=0) for m in means], np.repeat(y, counts, 0), None, 1
    )
    np.testing.assert_allclose(shares_of(means, y, counts.astype(float), 1.0), twice, rtol=1e-8)


def test_a_negligible_share_leaves():
    y, means = noisy(m=2, h=5000)
    found = shares_of([*means, y], y, None, 1.0)
    np.testing.assert_array_equal(found, [0, 0, 1])
