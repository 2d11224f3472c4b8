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
from scipy.sparse import diags_array
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
    take,
)
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
        sums = np.einsum("ij,ij->i", X, X)  # no temporary as large as X
        return np.asarray(sums)
    squares = X * X
    return namespace(X).sum(squares, axis=1)


def minus_squared_distances(Y: Array, gamma: float, *, exact: bool = False) -> Evaluator:
    """Return x ↦ −γ‖x−y‖² for all rows y of Y, shape (m, d), with what depends on Y prepared once.

    Rows that are too far from the origin for their precision are computed again in float64. If
    `exact`, all are, so that also small distances have all digits.
    """
    if exact or is_sparse(Y):
        points = in_float64(Y)
        to_points = SquaredDistances.to(points)
        return ExactExponents(to_points, gamma)
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
            centred = Y - centre
            B = centred * scale

            # [y, −1, −½‖y‖²]
            half_norms = squared_norms(B) / 2
            half = half_norms[:, None]
            minus_ones = -xp.ones_like(half)
            columns = [B, minus_ones, -half]
            right = xp.concat(columns, axis=1)
        return cls(Y, gamma, centre, scale, right.T)

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return −γ‖x−y‖², shape (n, m)."""
        with np.errstate(over="ignore", invalid="ignore"):  # such rows are far out
            A: Array = X - self.centre
            A *= self.scale
            half_norms = squared_norms(A) / 2
            half = half_norms[:, None]

            # ⟨[x, ½‖x‖², 1], [y, −1, −½‖y‖²]⟩
            xp = namespace(A)
            ones = xp.ones_like(half)
            columns = [A, half, ones]
            left = xp.concat(columns, axis=1)
            exponents = product_into(left, self.right, out)

            # Few points coincide but for rounding. In a cache, to look for them is much faster
            # than to write; a GPU's large blocks nearly always have some. NaN counts as one.
            is_in_cache = isinstance(exponents, np.ndarray)
            if not is_in_cache or not exponents.max() <= 0:
                exponents = apply_in_place("minimum", exponents, 0)

            # not(… ≤ …), so that an overflow to inf or NaN also counts as far out
            limit = EXPONENT_LIMIT[dtype_name(X)]
            far = ~(half_norms <= limit)
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
            here = X[part, :]
            far_rows = here[far_here]
            corrected = squared_distances(far_rows, self.Y)
            corrected *= -self.gamma
            exponents[part, :][far_here] = in_dtype_of(corrected, X)


@dataclass(frozen=True, eq=False)
class ExactExponents(Evaluator):
    """x ↦ −γ‖x−y‖² by way of float64."""

    to_points: SquaredDistances
    gamma: float

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return −γ‖x−y‖², shape (n, m)."""
        exponents = self.to_points(in_float64(X))
        exponents *= -self.gamma
        return in_dtype_of(exponents, X)


def squared_distances(X: Array, Y: Array) -> Array:
    """Return ‖x−y‖² for all pairs of X (n, d) and Y (m, d), in float64, to full accuracy."""
    X = in_float64(X)
    to_points = SquaredDistances.to(convert_like(X, Y))
    return to_points(X)


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
            norms = squared_norms(A)
            scale = norms[:, None] + self.norms
            squared = scale - 2 * inner_products(A, self.centred)

            close = ~(squared >= CLOSE * scale)  # NaN, from ∞ − ∞, is not ≥ anything
            self._correct_close_pairs(squared, X, close)
        return squared

    def _correct_close_pairs(self, squared: Array, X: Array, close: Mask) -> None:
        """Recompute distances that have cancelled, as sums of squared differences."""
        xp = namespace(squared)
        rows, columns = xp.nonzero(close)
        n_pairs = rows.shape[0]

        exact = []
        for part in row_blocks(n_pairs, 1, 4096):
            x = take(X, rows[part])
            y = take(self.Y, columns[part])
            norms = squared_norms(x - y)
            exact.append(norms)

        if exact:
            squared[close] = xp.concat(exact)


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

    return in_dtype_of(distances, X)


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
        exponents = -self.gamma * gap * gap
        return namespace(gap).exp(exponents)

    def slope(self, gap: Array) -> Array:
        """Return their derivative with respect to the second coordinate, 2γt exp(−γt²)."""
        return 2 * self.gamma * gap * self(gap)


def directions(X: Array) -> Array:
    """Return x / ‖x‖ for each row, and the origin for the origin, without overflow."""
    X = as_float(X)
    if is_sparse(X):
        row_maxima = abs(X).max(axis=1)
        largest = dense(row_maxima).ravel()
    else:
        xp = namespace(X)
        sizes = xp.abs(X)
        largest = xp.max(sizes, axis=1)

    # by the largest entry first, so that squares are in range
    scaled = divide_rows(X, largest)
    lengths = squared_norms(scaled) ** 0.5
    return divide_rows(scaled, lengths)


def divide_rows(X: Array, sizes: Array) -> Array:
    """Return each row divided by its size (n,), or unchanged if that is 0."""
    xp = namespace(sizes)
    ones = xp.ones_like(sizes)
    divisors = xp.where(sizes > 0, sizes, ones)
    if is_sparse(X):
        scales = diags_array(1 / divisors)
        return convert_like(X, scales @ X)
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
