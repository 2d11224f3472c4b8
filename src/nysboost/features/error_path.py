"""Errors of several mixtures of the same learners, in one pass over G."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nysboost.features.factor import Factor, Tile
from nysboost.numerics.arrays import Floats, floats_on_host, slices

PART = 32
"""Rows of a tile that are evaluated for all learners at once, 1 MB for each learner."""


def mixture_errors(factor: Factor, ranks: Sequence[int], weights: Sequence[Floats]) -> Floats:
    """Return ‖G − Σ_i w_i F_i F_iᵀ‖_F / ‖G‖_F for each w, the weights of the first len(w) learners.

    `factor` has the learners' features side by side, `ranks` their numbers of columns.

    With E_i = G − F_i F_iᵀ the residual is (1 − Σ w_i) G + Σ w_i E_i. Its norm follows from the
    inner products of G, E_1, …, E_p. These are already small, so little cancels. Errors below 1e-6
    times those of single learners are rounding.
    """
    # inner products of G, E_1, …, E_p
    factor.keep()
    bounds = np.cumsum([0, *ranks]).tolist()
    numbers = np.arange(factor.rows.n)
    products = factor.fold_tiles(_inner_products, bounds, numbers)
    squared_norm = products[0, 0]

    squared_errors = []
    for w in weights:
        # the coefficients of G, E_1, …, E_p in the residual
        p = len(w)
        c = np.zeros(len(products))
        c[0] = 1 - w.sum()
        c[1 : p + 1] = w

        squared_residual = max(0.0, c @ products @ c)
        squared_errors.append(squared_residual / squared_norm)
    return np.sqrt(squared_errors)


def _inner_products(bounds: list[int], tile: Tile) -> Floats:
    """Return the inner products of G, E_1, …, E_p on a tile, shape (p + 1, p + 1).

    Learner i has the columns of F from bounds[i − 1] to bounds[i].
    """
    n_matrices = len(bounds)
    shape = (n_matrices, n_matrices)
    products = np.zeros(shape)

    n_rows = tile.G.shape[0]
    for at in slices(0, n_rows, PART):
        # G, E_1, …, E_p on some rows, each as a vector
        G = floats_on_host(tile.G[at, :])
        vectors = [G.ravel()]
        for start, stop in pairwise(bounds):
            F = tile.F[at, start:stop]
            H = tile.H[:, start:stop]
            E = G - floats_on_host(F @ H.T)
            vectors.append(E.ravel())

        matrix = np.array(vectors)
        products += matrix @ matrix.T
    return products
