"""What the methods that look at all of G share."""

import tracemalloc

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.gram import make_gram
from nysboost.numerics.resources import Budget


@pytest.mark.parametrize("case", market.NAMES)
def test_a_product_with_g_is_the_dense_one(case):
    problem = market.problem(case, n=70)
    gram = make_gram(problem.X, problem.kernel, budget=Budget(2**14, 1))
    V = np.random.default_rng(0).normal(size=(70, 3))
    tolerance = 70 * problem.tolerance
    np.testing.assert_allclose(gram.times(V), problem.G @ V, rtol=0, atol=tolerance)


@pytest.mark.parametrize("method", ["modified", "spectral-shift", "adaptive", "cur", "cur-uniform"])
def test_too_many_rows_get_a_sentence_that_names_a_way_out(method):
    X = np.arange(30_001.0)[:, None]
    with pytest.raises(ValueError, match=r"all n² entries.*n_samples = 30001.*\"joint\""):
        nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=5)


@pytest.mark.parametrize("method", ["modified", "spectral-shift", "adaptive", "cur-uniform"])
def test_the_whole_matrix_is_looked_at_but_never_held(method):
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 3))
    tracemalloc.start()
    nb.approximate(X, method, n_components=12, max_memory="8MB", random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 3
