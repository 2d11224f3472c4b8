"""Norms from drawn pairs against the dense matrices, and what they may cost."""

import market
import numpy as np
import pytest

import nysboost as nb
from nysboost.engine import sampling
from nysboost.numerics.estimates import Risk

RISK = Risk(0.025)

DRAWS = 200


def problem(method="uniform", n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = market.cloud(n, rng) * np.exp(rng.normal(size=(n, 1)))
    approx = nb.approximate(X, method, nb.Gaussian(sigma=1.0), n_components=15, random_state=0)
    G = approx.gram.block(np.arange(n), np.arange(n))
    return approx._residual(None), G, G - approx.to_dense()


@pytest.mark.parametrize("method", ["uniform", "joint", "random-fourier"])
@pytest.mark.parametrize("draw", [sampling.from_all_rows, sampling.from_some_rows])
def test_the_squared_norm_is_met_on_the_average(method, draw):
    residual, G, R = problem(method)
    g = np.diagonal(G).copy()
    found = [draw(residual, g, 30_000, RISK, np.random.default_rng(s)) for s in range(DRAWS)]
    values = np.array([one.squared_norm.value for one in found])
    truth = (R**2).sum()
    assert values.mean() == pytest.approx(truth, abs=4 * values.std() / np.sqrt(DRAWS))
    covered = [
        one.squared_norm.interval(RISK.deviations(one.rows))[0]
        <= truth
        <= one.squared_norm.interval(RISK.deviations(one.rows))[1]
        for one in found
    ]
    assert np.mean(covered) >= 0.92


def test_all_rows_know_the_trace_and_the_diagonal():
    residual, G, R = problem()
    found = sampling.from_all_rows(
        residual, np.diagonal(G).copy(), 10_000, RISK, np.random.default_rng(0)
    )
    np.testing.assert_allclose(found.trace, np.trace(R))
    np.testing.assert_allclose(found.least, (np.diagonal(R) ** 2).sum())
    assert found.least <= (R**2).sum() <= found.most
    assert found.rows == len(G)


def test_the_norm_of_the_gram_matrix_is_met():
    residual, G, _ = problem()
    estimate, entries = sampling.squared_norm_of_gram(
        residual.gram, np.diagonal(G).copy(), 50_000, RISK, np.random.default_rng(0)
    )
    low, high = estimate.interval(3.0)
    assert low <= (G**2).sum() <= high
    assert high < 1.3 * low
    assert entries <= 50_000


@pytest.mark.parametrize("entries", [500, 10_000, 10**6])
@pytest.mark.parametrize("c", [0, 10, 240])
def test_blocks_are_as_many_as_the_kernel_values_allow(entries, c):
    size, groups = sampling._sizes(max(entries, 50 * (c + 1)), c, 64)
    assert 2 <= size <= 64
    assert groups * (size**2 + 2 * size * c) <= max(entries, 50 * (c + 1))


def test_rows_are_drawn_in_proportion_to_their_weight():
    draw = sampling._drawing(np.array([1.0, 0.0, 3.0]), np.random.default_rng(0))
    counts = np.bincount(draw(40_000), minlength=3)
    assert counts[1] == 0
    assert counts[2] / counts[0] == pytest.approx(3, rel=0.1)
