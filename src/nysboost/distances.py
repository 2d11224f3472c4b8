"""Inner products and distances between two sets of points, dense or CSR.

Distances come from one matrix product, ‖x−y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩, which is fast
but cancels for points that lie close together and far from the origin. Two remedies,
both here: points are centred first, and pairs that still cancel are computed again
from their difference.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from nysboost.arrays import (
    Array,
    apply_in_place,
    dtype_name,
    is_numpy_namespace,
    namespace,
)

EXPONENT_LIMIT = {"float32": 2.0**6, "float64": 2.0**15}
"""Up to this ½‖x‖² the exponent ⟨x, y⟩ − ½‖x‖² − ½‖y‖² keeps 5 (float32) or 11 digits."""

CLOSE = 2.0**-20
"""Pairs with ‖x−y‖² below this share of ‖x‖² + ‖y‖² have lost six digits to cancellation."""


def inner_products(X: Array, Y: Array) -> Array:
    """Return the matrix of ⟨x, y⟩, dense, of shape (n, m)."""
    if issparse(X) or issparse(Y):
        return safe_sparse_dot(X, Y.T, dense_output=True)
    return X @ namespace(X).astype(Y, X.dtype, copy=False).T


def squared_norms(X: Array) -> Array:
    """Return ‖x‖² for each row, shape (n,)."""
    if issparse(X):
        return row_norms(X, squared=True)
    return namespace(X).sum(X * X, axis=1)


@np.errstate(over="ignore", invalid="ignore")  # such rows are far out, and done again
def gaussian_exponents(X: Array, Y: Array, gamma: float) -> Array:
    """Return −γ‖x−y‖² for all pairs, at most zero, shape (n, m).

    With x and y centred and scaled by √(2γ) the exponent is ⟨x, y⟩ − ½‖x‖² − ½‖y‖²;
    the two norms ride along as two more columns, so that one matrix product gives it
    whole. Rows too far out for their precision are done again in float64.
    """
    if issparse(X):
        return (squared_distances(X, Y) * -gamma).astype(X.dtype, copy=False)
    Y, xp = _in_the_form_of(X, Y), namespace(X)
    Y = xp.astype(Y, X.dtype, copy=False)
    centre, scale = xp.mean(Y, axis=0), float(np.sqrt(2 * gamma))
    A, B = (X - centre) * scale, (Y - centre) * scale
    half_a = squared_norms(A)[:, None] / 2
    half_b = squared_norms(B)[:, None] / 2
    left = xp.concat([A, half_a, xp.ones_like(half_a)], axis=1)
    right = xp.concat([B, -xp.ones_like(half_b), -half_b], axis=1)
    exponents = apply_in_place("minimum", left @ right.T, 0)
    # not(…≤…), so that an overflow to inf or NaN also counts as far out
    far = ~(half_a[:, 0] <= EXPONENT_LIMIT[dtype_name(X)])
    if bool(xp.any(far)):
        exact = squared_distances(X[far, :], Y, upcast=True) * -gamma
        exponents[far, :] = xp.astype(exact, X.dtype)
    return exponents


def squared_distances(X: Array, Y: Array, *, upcast: bool = True) -> Array:
    """Return ‖x−y‖² for all pairs, with close pairs to full relative accuracy.

    Parameters
    ----------
    X, Y : array or CSR matrix of shape (n, d) and (m, d)
        Points.
    upcast : bool
        Work and answer in float64, whatever the dtype of the points.
    """
    Y = _in_the_form_of(X, Y)
    if issparse(X):
        X, Y = (part.astype(np.float64) if upcast else part for part in (X, Y))
        A, B = X, Y
    else:
        xp = namespace(X)
        kind = xp.float64 if upcast else X.dtype
        X, Y = xp.astype(X, kind, copy=False), xp.astype(Y, kind, copy=False)
        centre = xp.mean(Y, axis=0)
        A, B = X - centre, Y - centre
    scale = squared_norms(A)[:, None] + squared_norms(B)[None, :]
    squared = scale - 2 * inner_products(A, B)
    return _with_close_pairs(squared, scale, X, Y)


def _with_close_pairs(squared: Array, scale: Array, X: Array, Y: Array) -> Array:
    """Replace what has cancelled by the sum of squared differences."""
    xp = namespace(squared)
    rows, columns = xp.nonzero(squared < CLOSE * scale)
    for start in range(0, rows.shape[0], 4096):
        i, j = rows[start : start + 4096], columns[start : start + 4096]
        squared[i, j] = squared_norms(_rows(X, i) - _rows(Y, j))
    return squared


def _rows(X: Array, indices: Array) -> Array:
    return X[indices] if issparse(X) else namespace(X).take(X, indices, axis=0)


def _in_the_form_of(X: Array, Y: Array) -> Array:
    """Return Y dense if X is dense, and sparse if X is sparse."""
    if issparse(X):
        return Y if issparse(Y) else type(X)(Y)
    return Y.toarray() if issparse(Y) else Y


def cityblock_distances(X: Array, Y: Array) -> Array:
    """Return Σ|x_j − y_j| for all pairs, shape (n, m)."""
    xp = namespace(X)
    if issparse(X) or issparse(Y):
        return manhattan_distances(X, Y).astype(X.dtype, copy=False)
    if is_numpy_namespace(xp):
        return cdist(X, Y, "cityblock").astype(X.dtype, copy=False)
    return _sum_over_features(X, Y, xp.abs)


def sum_of_gaussians(X: Array, Y: Array, gamma: float) -> Array:
    """Return Σ_j exp(−γ(x_j − y_j)²) for all pairs, shape (n, m)."""
    X, Y = (part.toarray() if issparse(part) else part for part in (X, Y))
    xp = namespace(X)
    return _sum_over_features(X, Y, lambda gap: xp.exp(-gamma * gap * gap))


def _sum_over_features(X: Array, Y: Array, term: Any) -> Array:
    """Sum term(x_j − y_j) over the features, one feature at a time: no (n, m, d) array."""
    xp = namespace(X)
    Y = xp.astype(Y, X.dtype, copy=False)
    total = term(X[:, :1] - Y[:, :1].T)
    for j in range(1, X.shape[1]):
        total = total + term(X[:, j : j + 1] - Y[:, j : j + 1].T)
    return total
