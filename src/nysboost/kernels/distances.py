"""Inner products and distances between two sets of points, dense or CSR.

Distances come from one matrix product, ‖x−y‖² = ‖x‖² + ‖y‖² − 2⟨x, y⟩. This is fast, but cancels
for points that are close together and far from the origin. So points are centred first, and pairs
that still cancel are computed again from their difference.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from threadpoolctl import ThreadpoolController

from nysboost.kernels.base import Evaluator
from nysboost.numerics.arrays import (
    Array,
    apply_in_place,
    as_float,
    convert_like,
    dense,
    dtype_name,
    in_dtype_of,
    in_float64,
    is_numpy,
    is_sparse,
    namespace,
    product_into,
    row_blocks,
)
from nysboost.numerics.linalg import positive_or_one
from nysboost.numerics.tolerances import CLOSE, EXPONENT_LIMIT

Mask: TypeAlias = NDArray[np.bool_]
"""An array of truth values, of any namespace."""

FAR_PARTS = 16
"""A block is corrected in this many parts, because rows that are computed again need several
float64 arrays."""


def inner_products(X: Array, Y: Array) -> Array:
    """Return the matrix of ⟨x, y⟩, dense, of shape (n, m)."""
    X = as_float(X)
    Y = as_float(Y)
    with np.errstate(over="ignore", invalid="ignore"):  # callers check for overflow
        if is_sparse(X) or is_sparse(Y):
            products: Array = safe_sparse_dot(X, Y.T, dense_output=True)
            return products
        return X @ in_dtype_of(Y, X).T


def squared_norms(X: Array) -> Array:
    """Return ‖x‖² for each row, shape (n,)."""
    X = as_float(X)
    if is_sparse(X):
        norms: Array = row_norms(X, squared=True)
        return norms
    if isinstance(X, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", X, X))  # no temporary as large as X
    return namespace(X).sum(X * X, axis=1)


def minus_squared_distances(Y: Array, gamma: float) -> Evaluator:
    """Return x ↦ −γ‖x−y‖² for all rows y of Y, shape (m, d), with what depends on Y prepared once.

    Rows that are too far from the origin for their precision are computed again in float64.
    """
    if is_sparse(Y):
        return SparseExponents(Y, gamma)
    return Exponents.of(Y, gamma)


@dataclass(frozen=True, eq=False)
class Exponents(Evaluator):
    """x ↦ −γ‖x−y‖² for dense points, by one matrix product.

    With x and y centred and scaled by √(2γ) it is ⟨x, y⟩ − ½‖x‖² − ½‖y‖². The norms are two more
    columns of the factors, [x, ½‖x‖², 1] and `right` = [y, −1, −½‖y‖²]ᵀ.
    """

    Y: Array
    gamma: float
    centre: Array
    scale: float
    right: Array

    @classmethod
    def of(cls, Y: Array, gamma: float) -> Exponents:
        """Prepare points Y, shape (m, d)."""
        xp = namespace(Y)
        scale = float(np.sqrt(2 * gamma))

        with np.errstate(over="ignore", invalid="ignore"):
            centre = xp.mean(Y, axis=0)
            B = (Y - centre) * scale
            half = squared_norms(B)[:, None] / 2
            minus_ones = -xp.ones_like(half)
            right = xp.concat([B, minus_ones, -half], axis=1)
        return cls(Y, gamma, centre, scale, right.T)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return −γ‖x−y‖², shape (n, m)."""
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are far out
            A: Array = X - self.centre
            A *= self.scale
            half = squared_norms(A)[:, None] / 2

            xp = namespace(A)
            ones = xp.ones_like(half)
            left = xp.concat([A, half, ones], axis=1)
            exponents = product_into(left, self.right, out)

            # Few points coincide but for rounding. In a cache, to look for them is much faster
            # than to write; a GPU's large blocks nearly always have some. NaN counts as one.
            is_in_cache = isinstance(exponents, np.ndarray)
            if not is_in_cache or not exponents.max() <= 0:
                exponents = apply_in_place("minimum", exponents, 0)

            # not(… ≤ …), so that an overflow to inf or NaN also counts as far out
            limit = EXPONENT_LIMIT[dtype_name(X)]
            far = ~(half[:, 0] <= limit)
            if bool(xp.any(far)):
                self._correct_far_rows(exponents, X, far)
        return exponents

    def _correct_far_rows(self, exponents: Array, X: Array, far: Mask) -> None:
        """Compute rows of `exponents` far from the origin again, a few at a time."""
        xp = namespace(X)
        n = X.shape[0]

        for part in row_blocks(n, FAR_PARTS, n):
            far_here = far[part]
            if not bool(xp.any(far_here)):
                continue
            rows = X[part, :][far_here]
            exact = squared_distances(rows, self.Y) * -self.gamma
            exponents[part, :][far_here] = in_dtype_of(exact, X)


@dataclass(frozen=True, eq=False)
class SparseExponents(Evaluator):
    """x ↦ −γ‖x−y‖² for CSR points, by way of float64."""

    Y: Array
    gamma: float

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return −γ‖x−y‖², shape (n, m)."""
        exponents = squared_distances(X, self.Y) * -self.gamma
        return exponents.astype(X.dtype, copy=False)


def squared_distances(X: Array, Y: Array) -> Array:
    """Return ‖x−y‖² for all pairs of X (n, d) and Y (m, d), in float64, to full accuracy."""
    X = in_float64(X)
    Y = convert_like(X, Y)
    distances = SquaredDistances.to(Y)
    return distances(X)


@dataclass(frozen=True, eq=False)
class SquaredDistances(Evaluator):
    """x ↦ ‖x−y‖² for points like Y, in float64, to full accuracy.

    `centred` is Y − `centre`, or Y itself where it is CSR, and `norms` (1, m) its ‖y‖².
    """

    Y: Array
    centre: Array | None
    centred: Array
    norms: Array

    @classmethod
    def to(cls, Y: Array) -> SquaredDistances:
        """Prepare points Y, shape (m, d)."""
        with np.errstate(over="ignore", invalid="ignore"):
            # centring would make sparse points dense
            centre = None
            centred = Y
            if not is_sparse(Y):
                centre = namespace(Y).mean(Y, axis=0)
                centred = Y - centre
            norms = squared_norms(centred)
        return cls(Y, centre, centred, norms[None, :])

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return ‖x−y‖² for all pairs, shape (n, m)."""
        with np.errstate(over="ignore", invalid="ignore"):  # pairs out of range are close, below
            A = X
            if self.centre is not None:
                A = X - self.centre

            # ‖x‖² + ‖y‖² − 2⟨x, y⟩
            scale = squared_norms(A)[:, None] + self.norms
            squared = scale - 2 * inner_products(A, self.centred)

            close = ~(squared >= CLOSE * scale)  # NaN, from ∞ − ∞, is not ≥ anything
            self._correct_close_pairs(squared, X, close)
        return squared

    def _correct_close_pairs(self, squared: Array, X: Array, close: Mask) -> None:
        """Recompute distances that have cancelled, as sums of squared differences."""
        xp = namespace(squared)
        rows, columns = xp.nonzero(close)

        exact = []
        n_pairs = rows.shape[0]
        for part in row_blocks(n_pairs, 1, 4096):
            x = _take_rows(X, rows[part])
            y = _take_rows(self.Y, columns[part])
            exact.append(squared_norms(x - y))

        if exact:
            squared[close] = xp.concat(exact)


def _take_rows(X: Array, rows: Array) -> Array:
    """Return the rows of a table at indices that are on its device."""
    if is_sparse(X):
        taken: Array = X[rows]
        return taken
    return namespace(X).take(X, rows, axis=0)


def cityblock_distances(X: Array, Y: Array) -> Array:
    """Return Σ|x_j − y_j| for all pairs, shape (n, m)."""
    X = as_float(X)

    if is_sparse(X) or is_sparse(Y):
        # OpenMP's threads do not survive a fork, and a child that asks for them waits for ever;
        # blocks of rows share the cores anyway
        with _openmp().limit(limits=1):
            distances = manhattan_distances(X, Y)
    elif is_numpy(X):
        distances = cdist(X, Y, "cityblock")
    else:
        return _sum_over_features(X, Y, namespace(X).abs)

    in_dtype: Array = distances.astype(X.dtype, copy=False)
    return in_dtype


@cache
def _openmp() -> ThreadpoolController:
    """Return the handle of OpenMP, cached because finding it takes milliseconds."""
    return ThreadpoolController().select(user_api="openmp")


def sum_of_gaussians(X: Array, Y: Array, gamma: float) -> Array:
    """Return Σ_j exp(−γ(x_j − y_j)²) for all pairs, shape (n, m)."""
    X = as_float(dense(X))
    Y = as_float(dense(Y))
    with np.errstate(over="ignore"):  # e⁻ⁱⁿᶠ is 0
        return _sum_over_features(X, Y, GaussianTerm(gamma))


@dataclass(frozen=True)
class GaussianTerm:
    """t ↦ exp(−γt²), of the difference t of two coordinates."""

    gamma: float

    def __call__(self, gap: Array) -> Array:
        """Return the terms, in the shape of the differences."""
        return namespace(gap).exp(-self.gamma * gap * gap)

    def slope(self, gap: Array) -> Array:
        """Return their derivative with respect to the second coordinate, 2γt exp(−γt²)."""
        return 2 * self.gamma * gap * self(gap)


def directions(X: Array) -> Array:
    """Return x / ‖x‖ for each row, and the origin for the origin, without overflow."""
    X = as_float(X)
    if is_sparse(X):
        row_maxima = abs(X).max(axis=1)
        largest = row_maxima.toarray().ravel()
        scaled = diags(1 / positive_or_one(largest)) @ X
        norms = np.sqrt(squared_norms(scaled))
        unit = diags(1 / positive_or_one(norms)) @ scaled
        sparse: Array = csr_matrix(unit, dtype=scaled.dtype)
        return sparse

    xp = namespace(X)
    largest = xp.max(xp.abs(X), axis=1)  # first, so that squares are in range
    scaled = divide_rows(X, largest)
    norms = xp.sqrt(squared_norms(scaled))
    return divide_rows(scaled, norms)


def divide_rows(X: Array, sizes: Array) -> Array:
    """Return each row divided by its size (n,), or unchanged if that is 0."""
    xp = namespace(X)
    ones = xp.ones_like(sizes)
    divisors = xp.where(sizes > 0, sizes, ones)
    return X / divisors[:, None]


Term: TypeAlias = Callable[[Array], Array]
"""A function of the differences of one coordinate, elementwise."""


def sum_over_points(X: Array, Z: Array, weights: Array, term: Term) -> Array:
    """Return Σ_i weights_ij term(x_i − z_j) for each feature, shape (m, d)."""
    xp = namespace(Z)
    sums = []
    for gap in _differences(X, Z):
        weighted = weights * term(gap)
        sums.append(xp.sum(weighted, axis=0))
    return xp.stack(sums, axis=1)


def _sum_over_features(X: Array, Y: Array, term: Term) -> Array:
    """Return Σ_j term(x_j − y_j), shape (n, m)."""
    Y = in_dtype_of(Y, X)
    terms = map(term, _differences(X, Y))
    return reduce(operator.add, terms)


def _differences(X: Array, Y: Array) -> Iterator[Array]:
    """Yield x_j − y_j for all pairs, shape (n, m), one feature at a time."""
    for j in range(X.shape[1]):
        yield X[:, j, None] - Y[None, :, j]
