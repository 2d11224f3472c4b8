"""How far an approximation is from G, from the residual itself, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative
error of about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nysboost.arrays import Array, Floats, Indices, like, namespace, to_host
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


def relative_trace_error(gram: Gram, features: Array, signs: Floats, rows: Indices) -> float:
    """Return |tr(G − F S Fᵀ)| / tr G on rows × rows.

    For plain Nyström, whose residual is positive semidefinite, this is the error in the
    trace norm.
    """
    diag = to_host(gram.diag(rows)).astype(np.float64)
    squares = to_host(features * features).astype(np.float64)
    return float(abs(diag.sum() - (squares @ signs).sum()) / diag.sum())


def relative_spectral_error(gram: Gram, features: Array, signs: Floats, rows: Indices) -> float:
    """Return ‖G − F S Fᵀ‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration.

    Each step evaluates the rows × rows entries of G once more, tile by tile.
    """
    F = to_host(features).astype(np.float64)
    n = len(rows)

    def times_gram(v: Floats) -> Floats:
        starts = range(0, n, TILE_ROWS)
        tiles = (gram.block(rows[top : top + TILE_ROWS], rows) for top in starts)
        product: Floats = np.concatenate([to_host(tile).astype(np.float64) @ v for tile in tiles])
        return product

    def times_residual(v: Floats) -> Floats:
        product: Floats = times_gram(v) - F @ (signs * (F.T @ v))
        return product

    return _largest_eigenvalue(times_residual, n) / _largest_eigenvalue(times_gram, n)


def _largest_eigenvalue(times: Callable[[Floats], Floats], n: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    if n < 3:
        dense = np.column_stack([times(column) for column in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh(dense)).max())
    operator = LinearOperator((n, n), matvec=lambda v: times(v.ravel()), dtype=np.float64)
    start = np.ones(n) + np.linspace(0, 1, n)  # a fixed vector: the answer has no seed
    values = eigsh(operator, k=1, which="LM", tol=1e-4, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


def _sum_of_squares(tile: Array) -> float:
    xp = namespace(tile)
    return float(xp.sum(xp.astype(tile, xp.float64) ** 2))
