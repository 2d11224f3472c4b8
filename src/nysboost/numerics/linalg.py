"""Small dense linear algebra: triangular factors, orthonormal bases, spectra, pivots."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.linalg import lapack
from scipy.sparse import csc_array

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Numbers,
    empty,
    entries,
    epsilon,
    floats_on_host,
    identity,
    in_dtype_of,
    in_float64,
    is_sparse,
    like,
    namespace,
    row_blocks,
    to_host,
)
from nysboost.numerics.threads import threads_for
from nysboost.numerics.tolerances import EPS, FAR_FROM_THERE, NEARBY, RESOLVED, ROUNDING


def max_abs(array: Array) -> float:
    """Return the largest absolute entry of an array or sparse matrix, 0 if it is empty."""
    values = entries(array)
    if 0 in values.shape:
        return 0.0
    xp = namespace(values)
    return float(xp.max(xp.abs(values)))


def unit_of(array: Array) -> float:
    """Return the power of two just below the largest entry, a unit for squares in range."""
    largest = max_abs(array)
    if largest == 0:
        return 1.0
    _, exponent = np.frexp(largest)
    return float(2.0 ** (exponent - 1))


def positive_or_one(values: Numbers) -> Floats:
    """Return values as divisors, with 1 instead of those that are not positive."""
    return np.where(values > 0, values, 1.0)


def memberships(owner: Indices, weights: Floats, k: int) -> csc_array:
    """Return the (k, n) matrix with weights[i] at (owner[i], i), which adds up points by groups."""
    n = len(owner)
    starts = np.arange(n + 1)
    return csc_array((weights, owner, starts), shape=(k, n))


def column_sizes(values: Array) -> Floats:
    """Return the largest absolute value in each column, shape (d,), or NaN if there is a NaN."""
    if is_sparse(values):
        maxima = abs(values).max(axis=0)
        sizes: Floats = maxima.toarray().ravel()  # of a sparse array 1-d
        return sizes
    xp = namespace(values)
    highest = xp.max(values, axis=0)
    lowest = xp.min(values, axis=0)
    return floats_on_host(xp.maximum(highest, -lowest))


def all_finite(values: Array) -> bool:
    """Whether an array has neither NaN nor infinity; its sum is tested first, without a mask."""
    xp = namespace(values)
    with np.errstate(over="ignore", invalid="ignore"):
        total = xp.sum(values)
        if bool(xp.isfinite(total)):
            return True

        # a sum may also overflow
        return bool(xp.all(xp.isfinite(values)))


# Factors and bases


def triangular_factor(*blocks: Array) -> Floats:
    """Return R of the QR factorisation of the stacked blocks, on the host in float64."""
    tall = np.vstack([floats_on_host(block) for block in blocks])

    # LAPACK's own, because NumPy's is slow for few columns
    n, k = tall.shape
    if k == 0:  # LAPACK refuses it
        return np.zeros((0, 0))
    size, _ = lapack.dgeqrf_lwork(n, k)
    factored, *_ = lapack.dgeqrf(tall, lwork=int(size), overwrite_a=True)
    return np.triu(factored[:k])


def triangular_inverse(L: Array) -> Array:
    """Return L⁻¹ of a lower triangular matrix."""
    # other libraries, some of which have what the standard does not
    xp = namespace(L)
    solve = getattr(xp.linalg, "solve_triangular", None)
    if solve is not None:
        unit = identity(L.shape[0], L)
        found: Array = solve(L, unit, upper=False)
        return found
    if not isinstance(L, np.ndarray):
        return xp.tril(xp.linalg.inv(L))

    # Lᵀ in Fortran's order lies in memory as L does
    (invert,) = lapack.get_lapack_funcs(("trtri",), (L,))
    upper, zero_at = invert(L.T)
    if zero_at:
        raise np.linalg.LinAlgError("A triangular matrix with 0 on its diagonal has no inverse.")
    inverse: Array = upper.T
    return inverse


def solve_positive(A: Array, B: Array) -> Array:
    """Return A⁻¹B for a positive definite A, in float64, with half the work of a general solver."""
    if isinstance(A, np.ndarray):
        _, solution, failed = lapack.dposv(A.T, B, lower=True)
        if not failed:
            return np.asarray(solution)

    # on a device, or only nearly positive definite
    return namespace(A).linalg.solve(A, B)


def range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A⁺ = T Qᵀ, both in float64.

    Singular values at the rounding level count as zero. Only matrix products are used: AᵀA gives
    directions within six digits of the largest, and the rest is treated in the same way.
    """
    # throughout, Q = A T / scale, and rest = A turn / scale is orthogonal to Q; in units of the
    # scale, squares stay in range
    xp = namespace(A)
    c = A.shape[1]
    scale = max_abs(A) or 1.0
    rest = in_float64(A) / scale
    turn = like(np.eye(c), rest)

    # singular values below this share of the largest are rounding, of entries or of sums
    smallest = max(ROUNDING * epsilon(A), c * EPS)

    Q = rest[:, :0]
    T = turn[:, :0]
    floor = 0.0
    while rest.shape[1] > 0:
        # σ² and V of what is left, restᵀ rest = V σ² Vᵀ
        products = rest.T @ rest
        with threads_for(products.shape[0]):
            squares, V = xp.linalg.eigh(products)
        largest = float(squares[-1])
        floor = floor or largest * smallest**2
        if not largest > floor:
            break

        # σ within six digits of the largest are resolved: rest V / σ are nearly orthonormal
        least = max(largest * RESOLVED, floor)
        unresolved = int(np.sum(to_host(squares) <= least))
        sizes = xp.sqrt(squares[unresolved:])
        side = V[:, unresolved:] / sizes
        part, back = _without(Q, T, rest @ side, turn @ side)

        # with partᵀ part = L Lᵀ, part L⁻ᵀ are orthonormal, and new columns of Q
        products = part.T @ part
        with threads_for(products.shape[0]):
            L = xp.linalg.cholesky(products)
            step = triangular_inverse(L).T
        Q = xp.concat([Q, part @ step], axis=1)
        T = xp.concat([T, back @ step], axis=1)

        # the others are looked at again
        V = V[:, :unresolved]
        rest, turn = _without(Q, T, rest @ V, turn @ V)

    # what is left of the columns goes to zero, and a pseudoinverse has no part in it
    inside = T - turn @ (turn.T @ T)
    return Q, inside / scale


def orthonormalise(S: Array, T: Array) -> Array | None:
    """Return U near T with Uᵀ S U = I for S = AᵀA, so that A U is a basis of the range of A.

    `T` (c, c) belongs to a nearby matrix. The result is None if A is too far from it for Cholesky
    factors, or does not have full rank.
    """
    xp = namespace(S)
    for _ in range(3):
        # A T has orthonormal columns as soon as the factor L of Tᵀ S T is the identity
        factor = _cholesky(T.T @ S @ T)
        if factor is None:
            return None

        pivots = to_host(xp.linalg.diagonal(factor))
        if pivots.min() <= FAR_FROM_THERE * pivots.max():
            return None

        T = T @ triangular_inverse(factor).T
        if pivots.min() > NEARBY * pivots.max():
            return T
    return None


def _cholesky(A: Array) -> Array | None:
    """Return the Cholesky factor, or None if the matrix is not positive definite."""
    xp = namespace(A)
    try:
        factor = xp.linalg.cholesky(A)
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch raises a RuntimeError
        return None
    if not all_finite(factor):
        return None
    return factor


def _without(Q: Array, T: Array, part: Array, back: Array) -> tuple[Array, Array]:
    """Project Q = A T orthogonally to a part of the range of A."""
    if Q.shape[1] == 0:
        return part, back
    overlap = Q.T @ part
    return part - Q @ overlap, back - T @ overlap


def spectrum(factor: Floats, weights: Floats, eps: float) -> tuple[Floats, Floats]:
    """Return the r nonzero eigenvalues of Z S Zᵀ, largest first, and T, (K, r), with vectors Z T.

    The triangular factor of Z = Q R has shape (K, K), the diagonal of S, `weights`, (K,).
    """
    # a factor without columns has no eigenvalues
    if len(weights) == 0:
        return np.zeros(0), np.zeros((0, 0))

    # R = U diag(s) Vᵀ, without what is rounding
    _, s, V_transposed = np.linalg.svd(factor, full_matrices=False)
    rounding = len(weights) * eps * s[0]
    kept = s > rounding
    s = s[kept]
    V = V_transposed[kept].T

    # R S Rᵀ in the basis U
    scaled = s[:, None] * V.T
    core = (scaled * weights) @ scaled.T
    eigenvalues, Y = np.linalg.eigh(core)

    # largest first
    T = (V / s) @ np.flip(Y, axis=1)
    return np.flip(eigenvalues), fix_signs(T)


def fix_signs(vectors: Floats) -> Floats:
    """Return each column with the sign that makes its largest entry positive."""
    sizes = np.abs(vectors)
    where = sizes.argmax(axis=0)[None, :]
    largest = np.take_along_axis(vectors, where, axis=0)
    signs = np.where(largest < 0, -1.0, 1.0)
    return np.asarray(vectors * signs, dtype=np.float64)


SQUARES_IN_RANGE = 1e-100  # norms from here to its inverse come from squares that float64 holds


def norms(A: Array, axis: int | None = None) -> Array:
    """Return the Euclidean norm of A, or along an axis, in float64, safe from overflow."""
    xp = namespace(A)
    if A.dtype == xp.float64:
        if axis is None:  # NumPy's vector_norm writes all squares to memory first
            flat = xp.reshape(A, (-1,))
            found = xp.sqrt(flat @ flat)
        else:
            found = xp.linalg.vector_norm(A, axis=axis)

        # unless squares left the range of float64
        is_large = found > SQUARES_IN_RANGE
        is_small = found < 1 / SQUARES_IN_RANGE
        if bool(xp.all(is_large & is_small)):
            return found

    # in units of the largest entry; an array without entries has the norm 0
    largest = max_abs(A) or 1.0
    scaled = A / largest
    squares = xp.sum(scaled**2, axis=axis, dtype=xp.float64)
    return xp.sqrt(squares) * largest


def times(G: Array, Q: Array) -> Array:
    """Return G Q, computed in the precision of G and returned in that of Q."""
    product = G @ in_dtype_of(Q, G)
    return in_dtype_of(product, Q)


SYMMETRIC_PARTS = 8  # blocks of rows, with which 9/16 of the entries are evaluated


def symmetric(block: Callable[[Indices, Indices], Array], n: int) -> Array:
    """Return a symmetric matrix, shape (n, n), from its blocks on and below the diagonal.

    `block` maps indices of rows and of columns, both in a row, to the entries there.
    """
    everything = np.arange(n)
    size = -(-n // SYMMETRIC_PARTS)
    G: Array | None = None

    for rows in row_blocks(n, 1, size):
        # the rows up to the diagonal's block, and their mirror image
        columns = slice(0, rows.stop)
        before = slice(0, rows.start)
        part = block(everything[rows], everything[columns])
        if G is None:
            G = empty((n, n), part)
        G[rows, columns] = part
        G[before, rows] = part[:, before].T

    assert G is not None
    return G


# Partial Cholesky factorisation, with any rule for the next pivot

PivotRule: TypeAlias = Callable[[Floats], int | None]
"""Diagonal of the residual, to which the rule may keep a reference ↦ next pivot, or None to
stop."""


def pivoted_cholesky(A: Floats, rule: PivotRule, size: int) -> Indices:
    """Return at most `size` pivots of a symmetric positive semidefinite matrix, in order.

    The rule chooses the next pivot by the diagonal of the residual A − F Fᵀ.
    """
    n = len(A)
    most = min(size, n)
    F = np.zeros((n, most), order="F")
    left = np.diag(A).astype(np.float64)
    pivots: list[int] = []

    for i in range(most):
        j = rule(left)
        if j is None:
            break

        # the residual's column j, so scaled that F Fᵀ has its entries
        known = F[:, :i]
        column = A[:, j] - known @ known[j]
        F[:, i] = column / np.sqrt(left[j])

        # its diagonal, which is zero at pivots
        left -= F[:, i] ** 2
        pivots.append(j)
        left[pivots] = 0
    return np.array(pivots, dtype=np.intp)


def choose_largest(floor: float = 0.0) -> PivotRule:
    """Return the rule of complete pivoting: the largest entry, while it is above the floor."""

    def rule(left: Floats) -> int | None:
        j = int(np.argmax(left))
        if left[j] > floor:
            return j
        return None

    return rule


def accept_proposals(drawn_by: Floats, floor: float, rng: np.random.Generator) -> PivotRule:
    """Return the rule of rejection sampling, in order (Epperly, Tropp and Webber 2024).

    Proposal i was drawn by drawn_by[i], and is accepted with probability left[i] / drawn_by[i].
    """
    thresholds = drawn_by * rng.uniform(size=len(drawn_by))
    proposals = enumerate(np.maximum(thresholds, floor).tolist())

    def rule(left: Floats) -> int | None:
        for i, least in proposals:
            if left[i] > least:
                return i
        return None

    return rule


def median(values: Floats) -> float:
    """Return the median, computed from halves, because a sum may be out of range."""
    if len(values) == 0:
        return 0.0
    return float(2 * np.median(values / 2))
