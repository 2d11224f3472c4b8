"""What the methods that look at all of G share."""

import tracemalloc

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.methods import whole
from nysboost.methods.whole import strips, times_gram


@pytest.mark.parametrize("case", market.NAMES)
def test_a_product_with_g_is_the_dense_one(case, monkeypatch):
    monkeypatch.setattr(whole, "BLOCK_BYTES", 2**12)
    problem = market.problem(case, n=70)
    V = np.random.default_rng(0).normal(size=(70, 3))
    tolerance = 70 * problem.tolerance
    np.testing.assert_allclose(times_gram(problem.gram, V), problem.G @ V, rtol=0, atol=tolerance)


def test_no_strip_is_larger_than_its_share_of_memory(monkeypatch):
    monkeypatch.setattr(whole, "BLOCK_BYTES", 100 * 8 * 64)
    sizes = [strip.shape for strip in strips(market.problem("Gaussian", n=100).gram)]
    assert sizes == [(64, 100), (36, 100)]


@pytest.mark.parametrize("method", ["modified", "spectral-shift", "adaptive", "cur", "cur-uniform"])
def test_too_many_rows_get_a_sentence_that_names_a_way_out(method, monkeypatch):
    monkeypatch.setattr(whole, "WHOLE_ROWS", 50)
    X = np.random.default_rng(0).normal(size=(51, 2))
    with pytest.raises(ValueError, match=r"evaluates all n² entries.*n_samples = 51.*\"joint\""):
        nb.approximate(X, method, n_components=5)


@pytest.mark.parametrize("method", ["modified", "spectral-shift", "adaptive", "cur-uniform"])
def test_the_whole_matrix_is_looked_at_but_never_held(method):
    n = 3000
    X = np.random.default_rng(0).normal(size=(n, 3))
    tracemalloc.start()
    nb.approximate(X, method, n_components=12, max_memory="8MB", random_state=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n / 3
