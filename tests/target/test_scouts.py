"""Scouts say in which coordinates a search begins: quantiles where held-out rows prefer them."""

import numpy as np
import pytest
from scipy import sparse

import nysboost as nb
from nysboost.target.candidates import MATERN32, WIDE, Candidate
from nysboost.target.scale import each_alone
from nysboost.target.scouts import HEAVY, ROWS, scouted

CANDIDATES = (Candidate(MATERN32, "each"),)


def chosen(X, y, weights=None, tail=0.0, seed=0):
    scaling = scouted(CANDIDATES, X[:1], tail, np.random.default_rng(seed))
    return scaling(X, y[:, None], weights)


def skewed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = np.exp(2 * rng.normal(size=(n, 3)))
    return X, np.sin(np.log(X).sum(axis=1)) + 0.05 * rng.normal(size=n)


def test_quantiles_are_taken_where_the_target_depends_on_them():
    assert chosen(*skewed()).warp is not None


def test_units_stay_where_the_target_depends_on_a_sum():
    X = np.random.default_rng(0).uniform(size=(300, 3))
    assert chosen(X, np.sin(9 * X.sum(axis=1))).warp is None


def test_with_many_rows_only_heavy_tails_send_scouts():
    X, y = skewed()
    tail = np.abs(each_alone(X)(X)).max()
    assert chosen(X, y, tail=1.01 * tail).warp is None
    assert chosen(X, y, tail=0.99 * tail).warp is not None
    normal = np.random.default_rng(0).normal(size=(10**5, 2))
    assert np.abs(each_alone(normal)(normal)).max() < HEAVY


@pytest.mark.parametrize("at", [0, 1])
def test_a_row_that_no_scout_sees_may_send_them_to_quantiles(at):
    X = np.random.default_rng(0).normal(size=(4 * ROWS, 2))
    y = np.sin(X[:, 0])
    assert chosen(X, y).warp is None
    X[at] = 1e9
    assert chosen(X, y, tail=HEAVY).warp is not None


def test_rows_that_do_not_count_do_not_decide():
    X, y = skewed()
    rng = np.random.default_rng(1)
    noise = rng.normal(size=300)
    both, targets = np.repeat(X, 2, axis=0), np.stack([y, 9 * noise], axis=1).ravel()
    weights = np.tile([1.0, 0.0], 300)
    # pairs side by side, so that of each half every other row counts
    order = np.arange(600).reshape(-1, 2)[:, [0, 1]].reshape(150, 2, 2).transpose(0, 2, 1).ravel()
    assert chosen(both[order], targets[order], weights[order]).warp is not None


@pytest.mark.parametrize("n", [2, 3, 40])
def test_few_rows_are_enough_to_ask(n):
    X, y = skewed(n)
    assert chosen(X, y).factor.shape == (3,)


def test_pixels_and_words_are_left_as_they_are():
    rng = np.random.default_rng(0)
    for form in (np.zeros((1, WIDE + 1)), sparse.csr_matrix((1, 3))):
        assert scouted(CANDIDATES, form, 0.0, rng) is each_alone
    assert scouted((), np.zeros((1, 3)), 0.0, rng) is each_alone


def test_a_learner_asks_scouts_unless_it_is_told():
    X, y = skewed(200)
    found = {
        scale: nb.NystroemRegressor(20, scale=scale, random_state=0).fit(X[:150], y[:150])
        for scale in ("auto", "standard", "quantile")
    }
    assert found["auto"].kernel_ == found["quantile"].kernel_
    assert found["standard"].kernel_.metric.warp is None
    assert found["auto"].score(X[150:], y[150:]) > found["standard"].score(X[150:], y[150:])
