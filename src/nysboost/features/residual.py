"""The residual R = G − F S Fᵀ − δI: entries, bounds of entries, and norms, tile by tile.

In this order: `Residual` has what certificates ask for. It finds the operator T of the landmarks'
span once (`_Span`). From it follow a bound a_i for each row, with |R_ij|² ≤ a_i a_j for i ≠ j
(`_diagonals`), and whether R is positive semidefinite. Norms come last, each from tiles of G.

What must stay true: a bound is never below the entry, so rounding is added to it, never taken off.
R itself is formed and squared. Expanding ‖G − K̂‖² into inner products would be cheaper, but it
cancels: below a relative error of about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.sparse.linalg import (
    ArpackError,
    ArpackNoConvergence,
    LinearOperator,
    aslinearoperator,
    eigsh,
)

from nysboost.features.factor import Factor, Tile
from nysboost.gram import Gram
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    gather,
    in_float64,
    like,
    namespace,
    slices,
)
from nysboost.numerics.linalg import memberships
from nysboost.numerics.tolerances import EPS

MIXTURE_ROWS = 32
"""Rows of a tile that are evaluated for all learners at once, 1 MB for each learner."""


@dataclass(frozen=True, eq=False)
class Residual:
    """R = G − F S Fᵀ − δI on the rows of a Gram; `factor` is F with S, `shift` is δ.

    Of features F = k(X, Z) N the approximation is K̂(x, y) = ⟨φ(x), T φ(y)⟩, with an operator T on
    the span of the landmarks that has the eigenvalues of S Nᵀ W N, W = k(Z, Z). Then R(x, y) =
    ⟨φ(x), (I − T) φ(y)⟩, which is positive semidefinite where no eigenvalue is above 1, and for
    i ≠ j |R_ij|² ≤ a_i a_j with a_i = ⟨φ_i, |I − T| φ_i⟩ = g_i − K̂_ii + 2⟨φ_i, (T − I)₊ φ_i⟩.

    Other features have no T. For them |R_ij| ≤ √(g_i g_j) + √(f_i f_j), so that a_i = g_i + f_i
    with f_i = Σ_k |s_k| F_ik².
    """

    gram: Gram
    factor: Factor
    shift: float = 0.0

    @property
    def n_landmarks(self) -> int:
        """Number of kernel values for the features of a row."""
        return len(self.factor.transform.landmarks)

    @cached_property
    def _span(self) -> _Span | None:
        """The span of the landmarks and T, if features are kernel values with landmarks."""
        # features of another kernel are not in this one's space
        transform = self.factor.transform
        is_of_kernel = transform.kernel == self.gram.kernel
        if not is_of_kernel or self.n_landmarks == 0:
            return None

        N = floats_on_host(transform.normalization)
        W = floats_on_host(self.gram.within(transform.landmarks))
        return _Span.of(N, W, self.factor.weights)

    @cached_property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows: no eigenvalue of T is above 1, up to rounding."""
        span = self._span
        if span is None or self.shift != 0:
            return False

        # rounding grows with ‖W‖ ‖N‖², a bound of ‖Nᵀ W N‖, and with the terms of each sum
        norm_of_W = _norm(span.W)
        norm_of_N = _norm(span.N)
        size = 1 + norm_of_W * norm_of_N**2
        n_terms = 8 + len(span.W)
        rounding = n_terms * self.gram.eps * size

        largest = float(span.eigenvalues.max(initial=0.0))
        return largest <= 1 + rounding

    @cached_property
    def noise(self) -> float:
        """Rounding error of R_ij / √(g_i g_j)."""
        eps = self.gram.eps
        span = self._span
        if span is None:
            return 4 * eps

        # a feature k(x, Z) N is rounded in proportion to ‖k(x, Z)‖ ‖N‖, and
        # ‖k(x, Z)‖² ≤ k(x, x) tr W
        sizes = np.abs(self.factor.weights)
        squared_scale = np.trace(span.W) * sizes.max()
        scale = float(np.sqrt(squared_scale))
        size = scale * _norm(span.N)
        return 4 * eps + eps * size

    def diagonals(self, F: Array, g: Floats) -> Floats:
        """Return R_ii and a_i for rows with features F and k(x, x) = g, shape (2, len(g))."""
        column = g[:, None]
        both = _diagonals(self._row_terms, F, column)
        return both.T

    def all_diagonals(self, g: Floats) -> Floats:
        """Return R_ii and a_i for all rows, in one pass."""
        column = g[:, None]
        found = self.factor.map(_diagonals, self._row_terms, 2, column)
        both = gather(found)
        return np.ascontiguousarray(both.T)

    @cached_property
    def _row_terms(self) -> _RowTerms:
        """Everything except the row on which R_ii and a_i depend."""
        excess = None
        if self._span is not None:
            excess = self._span.excess()
        return _RowTerms(self.factor.weights, excess, self.shift, self.noise)

    def block(self, truth: Array, F: Array, H: Array) -> Floats:
        """Return an off-diagonal block of R, from that of G and the features of both sides."""
        weighted = F * like(self.factor.weights, F)
        approximated = weighted @ H.T
        return floats_on_host(truth - approximated)

    def norm_of_approximation(self) -> float:
        """Return ‖F S Fᵀ‖_F in one pass, if no weight is negative."""
        roots = np.sqrt(self.factor.weights)
        moments = self.factor.fold(_moments, roots)
        return float(np.linalg.norm(moments))


@dataclass(frozen=True, eq=False)
class _Span:
    """The span of the landmarks, by N and W = k(Z, Z), and the operator T on it.

    T has these `eigenvalues`. `basis` is E, with ⟨e_k, φ_i⟩ = (F E)_ik for its eigenvectors e_k.
    """

    N: Floats
    W: Floats
    eigenvalues: Floats
    basis: Floats

    @classmethod
    def of(cls, N: Floats, W: Floats, weights: Floats) -> _Span:
        """Find the eigenvalues of T for features with `weights` on the diagonal of S."""
        # an orthonormal basis of the span, V θ^(−1/2) with Nᵀ W N = V θ Vᵀ
        inner = N.T @ W @ N
        theta, V = np.linalg.eigh(inner)
        largest = theta.max(initial=0.0)
        rounding = len(theta) * EPS * largest
        kept = theta > rounding
        V = V[:, kept]
        root = np.sqrt(theta[kept])

        # T in this basis: θ^(1/2) Vᵀ S V θ^(1/2) = Y Λ Yᵀ
        SV = weights[:, None] * V
        middle = V.T @ SV
        core = root[:, None] * middle * root
        symmetric = (core + core.T) / 2
        eigenvalues, Y = np.linalg.eigh(symmetric)

        # E = V θ^(−1/2) Y
        orthonormal = V / root
        E = orthonormal @ Y
        return cls(N, W, eigenvalues, E)

    def excess(self) -> Floats:
        """Return E √(T − I)₊."""
        above = self.eigenvalues > 1
        excess = self.eigenvalues[above] - 1
        roots = np.sqrt(excess)
        scaled: Floats = self.basis[:, above] * roots
        return scaled


@dataclass(frozen=True, eq=False)
class _RowTerms:
    """S, δ, the rounding error of entries, and E √(T − I)₊ if features have a T."""

    weights: Floats
    excess: Floats | None
    shift: float
    noise: float


# Functions of a block of features, which can be pickled for the workers of a pass


def _diagonals(terms: _RowTerms, F: Array, g: Floats) -> Floats:
    """Return R_ii and a_i of a block of rows, shape (b, 2)."""
    F = floats_on_host(F)
    squares = F**2
    g = g[:, 0]

    # d = g_i − K̂_ii
    weights = terms.weights
    d = g - squares @ weights

    # a_i = g_i + f_i without T, and with it d + 2⟨φ_i, (T − I)₊ φ_i⟩
    if terms.excess is None:
        f = squares @ np.abs(weights)
        a = g + f
    else:
        beyond = (F @ terms.excess) ** 2
        a = d + 2 * beyond.sum(axis=1)

    # room for rounding, which may have made a_i too small
    room = terms.noise * g
    bounds = np.maximum(a, 0.0) + room
    diagonal = d - terms.shift
    return np.stack([diagonal, bounds], axis=1)


def _moments(roots: Floats, F: Array) -> Floats:
    weighted = floats_on_host(F) * roots
    return weighted.T @ weighted


def _norm(A: Floats) -> float:
    """Return ‖A‖₂ to one digit by power iteration, which is enough for a rounding error."""
    scale = float(np.abs(A).max(initial=0.0))
    if scale == 0:
        return 0.0

    # AᵀA v, in units in which squares are in range
    A = A / scale
    v = np.ones(A.shape[1])
    for _ in range(10):
        v /= np.linalg.norm(v)
        Av = A @ v
        v = A.T @ Av

    # ‖AᵀA v‖ is now about ‖A‖²
    squared = np.linalg.norm(v)
    return scale * float(np.sqrt(squared))


# Norms of the residual, relative to those of G


def relative_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖_F / ‖G‖_F on rows × rows, with a few tiles in memory at a time."""
    factor = residual.factor
    terms = _TileTerms(factor.weights, residual.shift)
    squared_residual, squared_norm = factor.fold_tiles(_squares, terms, rows)
    if squared_norm == 0:
        raise ValueError("The kernel matrix is zero on these rows: a relative error is undefined.")
    return float(np.sqrt(squared_residual / squared_norm))


@dataclass(frozen=True, eq=False)
class _TileTerms:
    """S and δ, which turn a tile of G into a tile of R."""

    weights: Floats
    shift: float


def _squares(terms: _TileTerms, tile: Tile) -> Floats:
    """Return ‖R‖² and ‖G‖² on a tile."""
    # R = G − F S Hᵀ − δI
    weighted = tile.F * like(terms.weights, tile.F)
    R = tile.G - weighted @ tile.H.T
    if terms.shift:
        is_diagonal = tile.rows == tile.columns.T
        R = R - like(terms.shift * is_diagonal, R)

    squared_residual = _squared_norm(R)
    squared_norm = _squared_norm(tile.G)
    return np.array([squared_residual, squared_norm])


def _squared_norm(A: Array) -> float:
    squares = in_float64(A) ** 2
    return float(namespace(A).sum(squares))


def mixture_errors(factor: Factor, ranks: Sequence[int], weights: Sequence[Floats]) -> Floats:
    """Return ‖G − Σ_i w_i F_i F_iᵀ‖_F / ‖G‖_F for each w, the weights of the first len(w) learners.

    `factor` has the features F_i of the learners side by side, of which there are `ranks`. Each
    product F_i F_iᵀ is computed once for all w, in one pass over G.
    """
    # the weights of every mixture, with zeros for the learners that it does not have
    shape = (len(weights), len(ranks))
    padded = np.zeros(shape)
    for row, w in zip(padded, weights, strict=True):
        row[: len(w)] = w

    # learner i has the columns of F between two bounds
    bounds = np.cumsum([0, *ranks])
    terms = _MixtureTerms(padded, bounds.tolist())
    numbers = np.arange(factor.rows.n)
    factor.keep()
    squares = factor.fold_tiles(_squares_of_mixtures, terms, numbers)

    squared_norm = squares[-1]
    squared_errors: Floats = squares[:-1] / squared_norm
    return np.sqrt(squared_errors)


@dataclass(frozen=True, eq=False)
class _MixtureTerms:
    """Weights of several mixtures (·, p); learner i has columns bounds[i] to bounds[i + 1] of F."""

    weights: Floats
    bounds: list[int]


def _squares_of_mixtures(terms: _MixtureTerms, tile: Tile) -> Floats:
    """Return ‖G − Σ_i w_i F_i F_iᵀ‖² on a tile for each w, and ‖G‖²."""
    n_rows = tile.G.shape[0]
    n_mixtures = len(terms.weights)
    total = np.zeros(n_mixtures + 1)
    for at in slices(0, n_rows, MIXTURE_ROWS):
        # each F_i F_iᵀ on some rows, as a vector
        products = []
        for start, end in pairwise(terms.bounds):
            F = tile.F[at, start:end]
            H = tile.H[:, start:end]
            product = floats_on_host(F @ H.T)
            products.append(product.ravel())

        # G, and the residual of each mixture
        values = floats_on_host(tile.G[at, :])
        G = values.ravel()
        mixtures = terms.weights @ np.array(products)
        squares = (G - mixtures) ** 2
        total[:-1] += squares.sum(axis=1)
        total[-1] += G @ G
    return total


def relative_trace_error(residual: Residual, rows: Indices) -> float:
    """Return |tr R| / tr G on rows × rows; for plain Nyström, this is the trace norm."""
    # tr G
    diagonal = residual.gram.host_diag()
    trace = float(diagonal[rows].sum())

    # tr F S Fᵀ + tr δI
    squares = residual.factor.squared_norms()
    low_rank = float(squares.sum())
    approximated = low_rank + residual.shift * len(rows)
    return abs(trace - approximated) / trace


def relative_spectral_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration over tiles."""
    n = len(rows)
    factor = residual.factor

    def times_gram(v: Floats) -> Floats:
        V = v.reshape(n, -1)
        return floats_on_host(residual.gram.times(V, rows))

    def times_low_rank(v: Floats) -> Array:
        V = v.reshape(n, -1)
        inner = factor.inner(V)
        weighted = factor.weights[:, None] * inner
        return gather(factor.times(weighted))

    # δI, which has an entry also where two of the rows are the same
    _, which = np.unique(rows, return_inverse=True)
    members = memberships(which, np.ones(n), n)
    shift = residual.shift * (members.T @ members)

    # R = G − F S Fᵀ − δI
    G = _operator(times_gram, n)
    K = _operator(times_low_rank, n)
    R = G - K - aslinearoperator(shift)
    return _largest_eigenvalue(R) / _largest_eigenvalue(G)


def _operator(times: Callable[[Floats], Array], n: int) -> LinearOperator:
    """Return the n×n matrix that multiplies a vector, or several side by side, by a function."""
    return LinearOperator((n, n), matvec=times, matmat=times, dtype=np.float64)


def _largest_eigenvalue(A: LinearOperator) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    n = A.shape[0]
    if n == 1:  # Lanczos iteration needs more
        (eigenvalue,) = A @ np.ones(1)
        return float(abs(eigenvalue))

    # a fixed start, so that the result has no seed
    start = np.linspace(1, 2, n)
    try:
        (eigenvalue,) = eigsh(A, k=1, tol=1e-4, v0=start, return_eigenvectors=False)
    except ArpackNoConvergence:
        raise
    except ArpackError:  # the start becomes 0: there is nothing but rounding
        product = np.linalg.norm(A @ start)
        return float(product / np.linalg.norm(start))
    return float(abs(eigenvalue))


ERRORS = {
    "frobenius": relative_error,
    "trace": relative_trace_error,
    "spectral": relative_spectral_error,
}
