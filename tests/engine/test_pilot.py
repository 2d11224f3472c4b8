"""The pilot against the spectrum of the whole matrix."""

import market
import numpy as np

import nysboost as nb
from nysboost.engine.curve import errors_by_rank
from nysboost.gram import make_gram


def test_the_pilot_is_between_the_optimum_and_twice_of_it():
    X = market.cloud(1000, np.random.default_rng(0))
    gram = make_gram(X, nb.Gaussian(sigma=2.0))
    errors = errors_by_rank(gram, 500, np.random.default_rng(0))
    G = gram.block(np.arange(1000), np.arange(1000))
    squares = np.sort(np.linalg.eigvalsh(G))[::-1] ** 2
    optimum = np.sqrt(np.cumsum(squares[::-1])[::-1][1:] / squares.sum())
    counts = np.array([5, 10, 20, 40])
    ratio = errors[counts - 1] / optimum[counts - 1]
    assert (ratio > 0.9).all()
    assert (ratio < 2).all()
    assert (np.diff(errors) <= 0).all()
