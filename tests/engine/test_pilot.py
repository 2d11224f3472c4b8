"""The pilot against the spectrum of the whole matrix."""

import market
import numpy as np

import nysboost as nb
from nysboost.engine.pilot import pilot
from nysboost.gram import make_gram


def test_the_pilot_is_between_the_optimum_and_twice_of_it():
    X = market.cloud(1000, np.random.default_rng(0))
    gram = make_gram(X, nb.Gaussian(sigma=2.0))
    errors = pilot(gram, 500, np.random.default_rng(0))
    G = gram.block(np.arange(1000), np.arange(1000))
    squares = np.sort(np.linalg.eigvalsh(G))[::-1] ** 2
    optimum = np.sqrt(np.cumsum(squares[::-1])[::-1][1:] / squares.sum())
    counts = np.array([5, 10, 20, 40])
    ratio = errors[counts - 1] / optimum[counts - 1]
    assert (ratio > 0.9).all()
    assert (ratio < 2).all()
    assert (np.diff(errors) <= 0).all()


def test_residuals_are_those_of_the_rows_that_took_no_part():
    """Against the residual itself, rank by rank, with the same rows."""
    X = market.cloud(60, np.random.default_rng(0))
    gram = make_gram(X, nb.Gaussian(sigma=1.0))
    errors = pilot(gram, 30, np.random.default_rng(3))
    rows = np.random.default_rng(3).choice(60, size=60, replace=False)
    A, B = rows[:30], rows[30:]
    eigenvalues, U = np.linalg.eigh(gram.block(A, A))
    off = ~np.eye(30, dtype=bool)
    G = gram.block(B, B)
    total = (G[off] ** 2).mean() + 1 / 60
    for c in (1, 4, 9):
        V = gram.block(B, A) @ U[:, -c:] / np.sqrt(eigenvalues[-c:])
        R = G - V @ V.T
        expected = np.sqrt(((R[off] ** 2).mean() + (np.diagonal(R) ** 2).mean() / 60) / total)
        assert np.isclose(errors[c - 1], expected) or errors[c - 1] < expected
        if c == 1:
            assert np.isclose(errors[0], expected)
