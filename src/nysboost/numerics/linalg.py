"""Small dense linear algebra: triangular factors, orthonormal bases, spectra."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import lapack

from nysboost.numerics.arrays import Array, Floats, epsilon, identity, like, namespace, to_host
from nysboost.numerics.tolerances import FAR_FROM_THERE, NEARBY, RESOLVED, ROUNDING, cutoff

SMALL = 64
"""Rows of a triangular matrix below which halves are no faster than the whole."""


def triangular_factor(blocks: Iterator[Array]) -> Floats:
    """Return R of the QR factorisation of the stacked blocks, one block at a time.

    R is all that Gram-type products need, and it keeps the digits that forming
    ZᵀZ would square away. It is a host array in float64.
    """
    factor: Floats | None = None
    for block in blocks:
        tall = to_host(block).astype(np.float64, copy=False)
        stacked = tall if factor is None else np.vstack([factor, tall])
        factor = np.asarray(np.linalg.qr(stacked, mode="r"))
    if factor is None:
        msg = "A triangular factor needs at least one block of rows."
        raise ValueError(msg)
    return factor


def triangular_inverse(L: Array) -> Array:
    """Return L⁻¹ of a lower triangular matrix.

    PyTorch solves triangular systems, which its H200 does in 0.6 ms for 1024 rows. Elsewhere, with
    L = [[A, 0], [B, D]], it is [[A⁻¹, 0], [−D⁻¹BA⁻¹, D⁻¹]]. Blocks on the diagonal are inverted
    all at once, and pairs of them joined until one is left, so that products do the work: on
    a GPU a handful of them, whatever the size (1.4 ms). LAPACK's inverse of a general matrix takes
    four to six times as long from 256 rows on.
    """
    xp, c = namespace(L), L.shape[0]
    solve = getattr(xp.linalg, "solve_triangular", None)  # which the standard does not have
    if solve is not None:
        found: Array = solve(L, identity(c, L), upper=False)
        return found
    halvings = max(0, (-(-c // SMALL) - 1).bit_length())
    width = -(-c // 2**halvings)
    size = width * 2**halvings
    padded = identity(size, L)
    padded[:c, :c] = L

    def blocks(every: int, below: int) -> Array:
        firsts = range(0, size, every)
        return xp.stack([padded[k + below : k + below + width, k : k + width] for k in firsts])

    inverse = _inverses(blocks(width, 0))
    while width < size:
        A, D = inverse[0::2, :, :], inverse[1::2, :, :]
        below = -(D @ (blocks(2 * width, width) @ A))
        above = xp.concat([A, xp.zeros_like(below)], axis=2)
        inverse = xp.concat([above, xp.concat([below, D], axis=2)], axis=1)
        width *= 2
    return inverse[0, :c, :c]


def _inverses(blocks: Array) -> Array:
    """Return the inverses of small lower triangular matrices, shape (b, m, m).

    SciPy's LAPACK does it in a fifth of the time of a general inverse, and so small on one thread:
    with more of them its BLAS and NumPy's would contend for the processor.
    """
    if not isinstance(blocks, np.ndarray):
        return namespace(blocks).linalg.inv(blocks)
    (invert,) = lapack.get_lapack_funcs(("trtri",), (blocks,))
    found = [invert(L.T) for L in blocks]  # in Fortran's order, in which Lᵀ lies as L does
    if any(zero_at for _, zero_at in found):
        msg = "A triangular matrix with 0 on its diagonal has no inverse."
        raise np.linalg.LinAlgError(msg)
    return np.stack([upper.T for upper, _ in found])


def solve_positive(A: Array, B: Array) -> Array:
    """Return A⁻¹B of a positive definite A, in float64: half the work of a general one.

    Examples
    --------
    >>> import numpy as np
    >>> solve_positive(np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[3.0], [3.0]]))
    array([[1.],
           [1.]])
    """
    if isinstance(A, np.ndarray):
        _, found, failed = lapack.dposv(A.T, B, lower=True)
        if not failed:
            return np.asarray(found)
    return namespace(A).linalg.solve(A, B)


def range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A⁺ = T Qᵀ, both in float64.

    Singular values at the rounding level count as zero: that of A's entries, which does not
    add up with their number, or that of the factorisation, which does.

    Matrix products are all it takes, and they are several times as fast as Householder's
    reflections. AᵀA shows the directions whose singular values lie within six digits of the
    largest. They join the basis, and what they leave is looked at in the same way.
    """
    xp = namespace(A)
    scale = float(xp.max(xp.abs(A))) or 1.0  # so that squares stay in range
    rest = xp.astype(A, xp.float64) / scale
    turn = like(np.eye(A.shape[1]), rest)  # A turn / scale = rest, all the way
    smallest, floor = max(cutoff(ROUNDING, epsilon(A)), cutoff(A.shape[1], epsilon(rest))), 0.0
    Q, T = rest[:, :0], turn[:, :0]
    while rest.shape[1] > 0:
        squares, V = xp.linalg.eigh(rest.T @ rest)
        largest = float(squares[-1])
        floor = floor or largest * smallest**2
        if not largest > floor:
            break
        unresolved = int(np.sum(to_host(squares) <= max(largest * RESOLVED, floor)))
        side = V[:, unresolved:] / xp.sqrt(squares[unresolved:])
        part, back = _without(Q, T, rest @ side, turn @ side)
        # by now the part is nearly orthonormal, and its own Cholesky factor makes it so
        step = triangular_inverse(xp.linalg.cholesky(part.T @ part)).T
        Q, T = xp.concat([Q, part @ step], axis=1), xp.concat([T, back @ step], axis=1)
        V = V[:, :unresolved]
        rest, turn = _without(Q, T, rest @ V, turn @ V)
    # what is left of the columns goes to zero, and a pseudoinverse has no part in it
    return Q, (T - turn @ (turn.T @ T)) / scale


def nearby_basis(A: Array, T: Array) -> tuple[Array, Array, Array] | None:
    """Return what `range_basis` does, without eigenvectors, from T of a matrix nearby.

    The columns of A T are then independent to working precision, and Cholesky factors make
    them orthonormal; the second makes good what the first has lost. None where A is too far
    away for that, or where its rank is not full.

    Returns
    -------
    B, step, T : arrays of shape (n, c), (c, c) and (c, c)
        The basis is Q = B step, with B = A T before its last step: a product of B step with
        something small is cheaper the other way round.
    """
    if T.shape[0] != T.shape[1]:
        return None
    xp = namespace(A)
    B = xp.astype(A, xp.float64, copy=False) @ T
    for _ in range(3):
        factor = _cholesky(B.T @ B)
        if factor is None:
            return None
        pivots = to_host(xp.linalg.diagonal(factor))
        if pivots.min() <= FAR_FROM_THERE * pivots.max():
            return None
        step = triangular_inverse(factor).T
        T = T @ step
        if pivots.min() > NEARBY * pivots.max():
            return B, step, T
        B = B @ step
    return None


def _cholesky(A: Array) -> Array | None:
    """Return the Cholesky factor, or None where the matrix is not positive definite."""
    xp = namespace(A)
    try:
        factor = xp.linalg.cholesky(A)
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch raises a RuntimeError
        return None
    return factor if bool(xp.all(xp.isfinite(factor))) else None


def _without(Q: Array, T: Array, part: Array, back: Array) -> tuple[Array, Array]:
    """Project Q, which is A T, out of a part of A's range, which is A back."""
    if Q.shape[1] == 0:
        return part, back
    overlap = Q.T @ part
    return part - Q @ overlap, back - T @ overlap


def spectrum(factor: Floats, weights: Floats, eps: float) -> tuple[Floats, Floats]:
    """Return the eigendecomposition of Z S Zᵀ from the triangular factor of Z = Q R.

    Parameters
    ----------
    factor : array of shape (K, K)
        R.
    weights : array of shape (K,)
        The diagonal of S, the weight of each feature; may be negative.
    eps : float
        Machine epsilon of the features.

    Returns
    -------
    eigenvalues : array of shape (r,)
        The nonzero eigenvalues, largest first, negative ones last.
    basis : array of shape (K, r)
        T, with Z T the orthonormal eigenvectors.
    """
    _, s, Vt = np.linalg.svd(factor, full_matrices=False)
    kept = s > cutoff(len(weights), eps) * s[0]
    s, Vt = s[kept], Vt[kept]
    scaled = s[:, None] * Vt
    eigenvalues, Y = np.linalg.eigh((scaled * weights) @ scaled.T)
    return eigenvalues[::-1], signed((Vt.T / s) @ Y[:, ::-1])


def signed(vectors: Floats) -> Floats:
    """Return each column with the sign that makes its largest entry positive: no machine differs.

    Examples
    --------
    >>> import numpy as np
    >>> signed(np.array([[0.6, 0.8], [-0.8, 0.6]]))
    array([[-0.6,  0.8],
           [ 0.8,  0.6]])
    """
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None, :], axis=0)
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0), dtype=np.float64)


REFINEMENTS = 8
"""Steps of refinement at most: each gains a digit or more, or is the last."""


def refined(
    times: Callable[[Array], Array], solve: Callable[[Array], Array], b: Array
) -> tuple[Array, float]:
    """Solve A x = b by steps of an inexact solver, as far as they bring the residual down.

    Parameters
    ----------
    times : callable
        x ↦ A x.
    solve : callable
        b ↦ A⁻¹ b, to some digits.
    b : array of shape (n, q)
        Right-hand sides.

    Returns
    -------
    solution : array of shape (n, q)
    residual : float
        ‖A x − b‖ / ‖b‖.
    """
    scale = float(norms(b)) or 1.0
    best = solve(b)
    left = b - times(best)
    residual = float(norms(left)) / scale
    for _ in range(REFINEMENTS):
        if residual <= epsilon(b):
            break
        x = best + solve(left)
        rest = b - times(x)
        reached = float(norms(rest)) / scale
        if not reached < residual:
            break
        gained = reached < residual / 2
        best, left, residual = x, rest, reached
        if not gained:
            break
    return best, residual


SQUARES_IN_RANGE = 1e-100
"""Norms above this, and below its inverse, come from squares that float64 holds."""


def norms(A: Array, axis: int | None = None) -> Array:
    """Return the Euclidean norm of A, or of its slices along an axis, in float64.

    Squares are taken in units of the largest entry: those of float32 would leave its range
    above 1e19, and below 1e-23 they would be nothing.
    """
    xp = namespace(A)
    if A.dtype == xp.float64:
        found = xp.linalg.vector_norm(A, axis=axis)
        if bool(xp.all((found > SQUARES_IN_RANGE) & (found < 1 / SQUARES_IN_RANGE))):
            return found
    # nothing has a norm of zero, and no largest entry
    largest = (float(xp.max(xp.abs(A))) if 0 not in A.shape else 0.0) or 1.0
    squares = xp.sum((A / largest) ** 2, axis=axis, dtype=xp.float64)
    return xp.sqrt(squares) * largest


def times(G: Array, Q: Array) -> Array:
    """Return G Q, multiplied in the precision of G and returned in that of Q."""
    xp = namespace(G)
    return xp.astype(G @ xp.astype(Q, G.dtype, copy=False), Q.dtype, copy=False)
