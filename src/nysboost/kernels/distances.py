"""Inner products and distances between two sets of points, dense or CSR.

Distances come from one matrix product, ‖x−y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩, which is fast
but cancels for points that lie close together and far from the origin. Two remedies,
both here: points are centred first, and pairs that still cancel are computed again
from their difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.sparse import csr_matrix, diags
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from threadpoolctl import ThreadpoolController

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array
from nysboost.numerics.blocks import row_blocks
from nysboost.numerics.in_place import apply_in_place, product_into
from nysboost.numerics.magnitudes import positive_or_one
from nysboost.numerics.tolerances import CLOSE, EXPONENT_LIMIT

FAR_PARTS = 16
"""Rows done again take several arrays of float64: a part of a block at a time."""


def inner_products(X: Array, Y: Array) -> Array:
    """Return the matrix of ⟨x, y⟩, dense, of shape (n, m)."""
    X = arrays.as_float(X)
    with np.errstate(over="ignore", invalid="ignore"):  # who needs it in range looks for itself
        if arrays.is_sparse(X) or arrays.is_sparse(Y):
            products: Array = safe_sparse_dot(X, arrays.as_float(Y).T, dense_output=True)
            return products
        return X @ arrays.namespace(X).astype(Y, X.dtype, copy=False).T


def squared_norms(X: Array) -> Array:
    """Return ‖x‖² for each row, shape (n,)."""
    X = arrays.as_float(X)
    norms: Array
    if arrays.is_sparse(X):
        norms = row_norms(X, squared=True)
    elif isinstance(X, np.ndarray):
        norms = np.einsum("ij,ij->i", X, X)  # no temporary as large as X
    else:
        norms = arrays.namespace(X).sum(X * X, axis=1)
    return norms


def minus_squared_distances(Y: Array, gamma: float) -> Callable[..., Array]:
    """Return x ↦ −γ‖x−y‖² for all rows y of Y, shape (m, d), with what depends on Y prepared once.

    With x and y centred and scaled by √(2γ) it is ⟨x, y⟩ − ½‖x‖² − ½‖y‖²; the norms are two more
    columns of one matrix product. Rows too far out for their precision are done again in float64.
    """
    if arrays.is_sparse(Y):
        return lambda X, _=None: (squared_distances(X, Y) * -gamma).astype(X.dtype, copy=False)
    xp, scale = arrays.namespace(Y), float(np.sqrt(2 * gamma))
    with np.errstate(over="ignore", invalid="ignore"):
        centre = xp.mean(Y, axis=0)
        B = (Y - centre) * scale
        ends = squared_norms(B)[:, None] / 2
        right = xp.concat([B, -xp.ones_like(ends), -ends], axis=1).T

    @np.errstate(over="ignore", invalid="ignore")  # such rows are far out, and done again
    def evaluate(X: Array, out: Array | None = None) -> Array:
        A: Array = X - centre
        A *= scale
        half = squared_norms(A)[:, None] / 2
        left = xp.concat([A, half, xp.ones_like(half)], axis=1)
        exponents: Array = product_into(left, right, out)
        # Few points coincide but for rounding. In a cache, to look for them is much faster than
        # to write; a GPU's large blocks nearly always have some. NaN counts as one.
        if not (isinstance(exponents, np.ndarray) and exponents.max() <= 0):
            exponents = apply_in_place("minimum", exponents, 0)
        # not(…≤…), so that an overflow to inf or NaN also counts as far out
        far = ~(half[:, 0] <= EXPONENT_LIMIT[arrays.dtype_name(X)])
        if bool(xp.any(far)):
            for part in row_blocks(X.shape[0], FAR_PARTS, X.shape[0]):
                there = far[part]
                if bool(xp.any(there)):
                    exact = squared_distances(X[part, :][there], Y) * -gamma
                    exponents[part, :][there] = xp.astype(exact, X.dtype)
        return exponents

    return evaluate


def squared_distances(X: Array, Y: Array) -> Array:
    """Return ‖x−y‖² for all pairs of X (n, d) and Y (m, d), in float64, to full accuracy."""
    X = arrays.in_float64(X)
    return squared_distances_to(arrays.convert_like(X, Y))(X)


def squared_distances_to(Y: Array) -> Callable[[Array], Array]:
    """Return x ↦ ‖x−y‖² for points like Y, in float64, with what depends on Y prepared once."""
    sparse = arrays.is_sparse(Y)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = 0.0 if sparse else arrays.namespace(Y).mean(Y, axis=0)
        B = Y if sparse else Y - centre
        ends = squared_norms(B)[None, :]

    @np.errstate(over="ignore", invalid="ignore")  # pairs out of range are done again
    def evaluate(X: Array) -> Array:
        A = X if sparse else X - centre
        scale = squared_norms(A)[:, None] + ends
        squared = scale - 2 * inner_products(A, B)
        # what has cancelled, or is ∞ − ∞, becomes the sum of squared differences
        xp, close = arrays.namespace(squared), ~(squared >= CLOSE * scale)  # NaN is not ≥ anything
        rows, columns = xp.nonzero(close)
        exact = []
        for part in row_blocks(rows.shape[0], 1, 4096):
            pairs = (X, rows[part]), (Y, columns[part])
            x, y = (T[i] if arrays.is_sparse(T) else xp.take(T, i, axis=0) for T, i in pairs)
            exact.append(squared_norms(x - y))
        if exact:
            squared[close] = xp.concat(exact)
        return squared

    return evaluate


def cityblock_distances(X: Array, Y: Array) -> Array:
    """Return Σ|x_j − y_j| for all pairs, shape (n, m)."""
    X = arrays.as_float(X)
    xp = arrays.namespace(X)
    if arrays.is_sparse(X) or arrays.is_sparse(Y):
        # OpenMP's threads do not survive a fork, and a child that asks for them waits for ever;
        # blocks of rows share the cores anyway
        with _openmp().limit(limits=1):
            distances = manhattan_distances(X, Y)
    elif arrays.is_numpy(X):
        distances = cdist(X, Y, "cityblock")
    else:
        return _sum_over_features(X, Y, xp.abs)
    rounded: Array = distances.astype(X.dtype, copy=False)
    return rounded


@cache
def _openmp() -> ThreadpoolController:
    """Return the handle on OpenMP: looking for it takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


def sum_of_gaussians(X: Array, Y: Array, gamma: float) -> Array:
    """Return Σ_j exp(−γ(x_j − y_j)²) for all pairs, shape (n, m)."""
    X, Y = (arrays.as_float(arrays.dense(part)) for part in (X, Y))
    xp = arrays.namespace(X)
    with np.errstate(over="ignore"):  # e⁻ⁱⁿᶠ is 0
        return _sum_over_features(X, Y, lambda gap: xp.exp(-gamma * gap * gap))


def directions(X: Array) -> Array:
    """Return x / ‖x‖ for each row, and the origin for the origin, without overflow."""
    if arrays.is_sparse(X):
        largest = np.asarray(abs(X).max(axis=1).todense()).ravel()
        scaled = diags(1 / positive_or_one(largest)) @ arrays.as_float(X)
        norms = np.sqrt(squared_norms(scaled))
        unit = diags(1 / positive_or_one(norms)) @ scaled
        rounded: Array = csr_matrix(unit, dtype=scaled.dtype)
        return rounded
    X = arrays.as_float(X)
    xp = arrays.namespace(X)
    largest = xp.max(xp.abs(X), axis=1)[:, None]
    scaled = X / xp.where(largest > 0, largest, xp.ones_like(largest))
    norms = xp.sqrt(squared_norms(scaled))[:, None]
    return scaled / xp.where(norms > 0, norms, xp.ones_like(norms))


def sum_over_points(X: Array, Z: Array, weights: Array, term: Callable[[Array], Array]) -> Array:
    """Return Σ_i weights_ij term(x_i − z_j) for each feature, shape (m, d)."""
    xp = arrays.namespace(Z)
    gaps = (X[:, j : j + 1] - Z[:, j : j + 1].T for j in range(X.shape[1]))
    return xp.stack([xp.sum(weights * term(gap), axis=0) for gap in gaps], axis=1)


def _sum_over_features(X: Array, Y: Array, term: Callable[[Array], Array]) -> Array:
    """Sum term(x_j − y_j) over the features, one feature at a time: no (n, m, d) array."""
    xp = arrays.namespace(X)
    Y = xp.astype(Y, X.dtype, copy=False)
    total = term(X[:, :1] - Y[:, :1].T)
    for j in range(1, X.shape[1]):
        total = total + term(X[:, j : j + 1] - Y[:, j : j + 1].T)
    return total
