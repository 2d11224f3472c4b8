"""How far an approximation is from G, from the residual itself, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative
error of about 1e-7 it returns noise.
"""

from __future__ import annotations

import numpy as np

from nysboost.arrays import Array, Floats, Indices, like, namespace
from nysboost.gram import Gram

TILE_ROWS, TILE_COLS = 512, 4096


def relative_error(gram: Gram, features: Array, signs: Floats, rows: Indices) -> float:
    """Return ‖G − F S Fᵀ‖_F / ‖G‖_F on rows × rows, holding one tile at a time.

    Parameters
    ----------
    gram : Gram
        G.
    features : array of shape (len(rows), K)
        F at `rows`.
    signs : array of shape (K,)
        The diagonal of S.
    rows : array of int
        Which principal submatrix of G is meant.
    """
    weighted = features * like(signs, features)
    squared_residual = squared_norm = 0.0
    for top in range(0, len(rows), TILE_ROWS):
        bottom = min(top + TILE_ROWS, len(rows))
        # the part right of the diagonal tile stands for its mirror image too
        for left, right, times in [
            (top, bottom, 1),
            *((c, min(c + TILE_COLS, len(rows)), 2) for c in range(bottom, len(rows), TILE_COLS)),
        ]:
            truth = gram.block(rows[top:bottom], rows[left:right])
            residual = truth - weighted[top:bottom, :] @ features[left:right, :].T
            squared_residual += times * _sum_of_squares(residual)
            squared_norm += times * _sum_of_squares(truth)
    if squared_norm == 0:
        msg = "The kernel matrix is zero on these rows, so no error is relative to it."
        raise ValueError(msg)
    return float(np.sqrt(squared_residual / squared_norm))


def _sum_of_squares(tile: Array) -> float:
    xp = namespace(tile)
    return float(xp.sum(xp.astype(tile, xp.float64) ** 2))
