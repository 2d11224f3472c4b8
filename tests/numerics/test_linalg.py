"""Factors, bases and spectra against NumPy's."""

import numpy as np

from nysboost.numerics.linalg import times


def test_a_product_is_made_in_the_precision_of_the_matrix():
    rng = np.random.default_rng(0)
    G, Q = rng.normal(size=(20, 20)), rng.normal(size=(20, 3))
    single = times(G.astype(np.float32), Q)
    assert single.dtype == np.float64
    assert 0 < np.abs(single - G @ Q).max() < 1e-5
    np.testing.assert_array_equal(times(G, Q), G @ Q)
