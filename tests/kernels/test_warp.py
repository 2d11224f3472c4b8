"""Quantiles in the place of values."""

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.preprocessing import QuantileTransformer

from nysboost.kernels.metric import SLOPELESS, Quantiles


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return np.column_stack(
        [rng.normal(size=n), rng.standard_cauchy(n), rng.integers(0, 3, n), np.full(n, 7.0)]
    )


def test_values_become_the_quantiles_that_scikit_learn_finds():
    X = rows()[:, :2]
    peer = QuantileTransformer(n_quantiles=200, output_distribution="normal").fit_transform(X)
    inner = np.abs(peer) < 2  # its quantiles of the smallest and largest value are 0 and 1
    np.testing.assert_allclose(Quantiles.of(X)(X)[inner], peer[inner], atol=0.05)


def test_equal_values_share_the_middle_of_their_quantiles():
    X = np.repeat([0.0, 1.0, 5.0], [10, 60, 30])[:, None]
    found = Quantiles.of(X)(np.array([[0.0], [1.0], [5.0]]))
    np.testing.assert_allclose(found.ravel(), norm.ppf([0.05, 0.40, 0.85]))


@example([0.0, 2.225073858507203e-309], [0.0])
@example([2.225073858507e-311], [0.0])
@example([0.0, 0.0, 1.0, 1.0, -1.0], [0.0, -1.3533252330115364e-52])
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=40),
    st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=9),
)
def test_the_map_rises_everywhere_and_has_an_inverse(values, fresh):
    quantiles = Quantiles.of(np.array(values)[:, None])
    x = np.sort(np.array(fresh))[:, None]
    u = quantiles(x)
    assert (np.diff(u, axis=0) >= 0).all()
    if len(quantiles.knots[0]) == 1:
        assert (u == 0).all()
        assert np.abs(quantiles.inverse(u) - values[0]).max() <= SLOPELESS
    else:
        steps = np.diff(quantiles.knots[0])
        error = np.abs(quantiles.inverse(u) - x)
        assert (error <= 1e-9 * (1 + np.abs(x)) * max(1.0, 1 / steps.min())).all()


def test_the_slope_is_that_of_the_piece():
    X, step = rows(60), 1e-7
    quantiles = Quantiles.of(X)
    at = rows(40, seed=1)
    expected = (quantiles(at + step) - quantiles(at - step)) / (2 * step)
    inside = np.all(np.abs(at[:, 0, None] - quantiles.knots[0]) > 1e-6, axis=1)
    np.testing.assert_allclose(quantiles.slope(at)[inside, 0], expected[inside, 0], rtol=1e-4)
    assert (quantiles.slope(at)[:, 3] == 0).all()


def test_other_arrays_and_single_precision_come_as_they_went():
    X = rows(50)
    quantiles = Quantiles.of(X)
    there = quantiles(strict.asarray(X))
    assert there.__array_namespace__().__name__ == "array_api_strict"
    np.testing.assert_array_equal(np.asarray(there), quantiles(X))
    assert quantiles(X.astype(np.float32)).dtype == np.float32
    torch = pytest.importorskip("torch")
    np.testing.assert_allclose(np.asarray(quantiles(torch.asarray(X))), quantiles(X))
