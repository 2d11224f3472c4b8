"""The residual R = G − F S Fᵀ − δI: entries, bounds of entries, and norms, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper, but it cancels: below a relative error of
about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

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
)
from nysboost.numerics.tolerances import EPS


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
        """N and W, if features are kernel values with landmarks."""
        # features of another kernel are not in this one's space
        transform = self.factor.transform
        is_of_kernel = transform.kernel == self.gram.kernel
        if not is_of_kernel or self.n_landmarks == 0:
            return None

        N = floats_on_host(transform.normalization)
        W = floats_on_host(self.gram.within(transform.landmarks))
        return _Span(N, W)

    @cached_property
    def _operator(self) -> _Operator | None:
        """The operator T, if features have one."""
        if self._span is None:
            return None
        return _Operator.of(self._span, self.factor.weights)

    @cached_property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows: no eigenvalue of T is above 1, up to rounding."""
        if self._span is None or self._operator is None:
            return False
        if self.shift != 0:
            return False

        # rounding grows with ‖Nᵀ W N‖ and with the number of terms of each sum
        N, W = self._span
        size = 1 + _norm(W) * _norm(N) ** 2
        n_terms = 8 + len(W)
        rounding = n_terms * self.gram.eps * size

        eigenvalues = self._operator.eigenvalues
        largest = float(eigenvalues.max(initial=0.0))
        return largest <= 1 + rounding

    @cached_property
    def noise(self) -> float:
        """Rounding error of R_ij / √(g_i g_j)."""
        eps = self.gram.eps
        if self._span is None:
            return 4 * eps

        # a feature k(x, Z) N is rounded in proportion to ‖k(x, Z)‖ ‖N‖
        N, W = self._span
        largest_weight = np.abs(self.factor.weights).max()
        squared_scale = np.trace(W) * largest_weight
        size = float(np.sqrt(squared_scale)) * _norm(N)
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
        if self._operator is not None:
            excess = self._operator.excess()
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


class _Span(NamedTuple):
    """N and W = k(Z, Z) of features that are kernel values with landmarks."""

    N: Floats
    W: Floats


@dataclass(frozen=True, eq=False)
class _Operator:
    """The operator T, by its eigenvalues.

    `basis` is E, with ⟨e_k, φ_i⟩ = (F E)_ik for its eigenvectors e_k.
    """

    eigenvalues: Floats
    basis: Floats

    @classmethod
    def of(cls, span: _Span, weights: Floats) -> _Operator:
        """Return T for features with these N and W, and weights on the diagonal of S."""
        # an orthonormal basis of the span, V θ^(−1/2) with Nᵀ W N = V θ Vᵀ
        N, W = span
        inner = N.T @ W @ N
        theta, V = np.linalg.eigh(inner)
        largest = theta.max(initial=0.0)
        rounding = len(theta) * EPS * largest
        kept = theta > rounding
        V = V[:, kept]
        root = np.sqrt(theta[kept])

        # T in this basis: θ^(1/2) Vᵀ S V θ^(1/2) = Y Λ Yᵀ
        middle = V.T @ (weights[:, None] * V)
        core = root[:, None] * middle * root
        symmetric = (core + core.T) / 2
        eigenvalues, Y = np.linalg.eigh(symmetric)
        basis = (V / root) @ Y
        return cls(eigenvalues, basis)

    def excess(self) -> Floats:
        """Return E √(T − I)₊."""
        above = self.eigenvalues > 1
        excess = self.eigenvalues[above] - 1
        scaled: Floats = self.basis[:, above] * np.sqrt(excess)
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

    # d = g_i − K̂_ii, and a_i by the formula of features with T or without
    d = g - squares @ terms.weights
    if terms.excess is None:
        a = g + squares @ np.abs(terms.weights)
    else:
        beyond = (F @ terms.excess) ** 2
        a = d + 2 * beyond.sum(axis=1)

    # room for rounding, which may have made a_i too small
    bounds = np.maximum(a, 0.0) + terms.noise * g
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
        v = A.T @ (A @ v)

    squared = np.linalg.norm(v)
    return scale * float(np.sqrt(squared))


# Norms of the residual, relative to those of G


def relative_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖_F / ‖G‖_F on rows × rows, with a few tiles in memory at a time."""
    terms = _TileTerms(residual.factor.weights, residual.shift)
    squared_residual, squared_norm = residual.factor.fold_tiles(_squares, terms, rows)
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
    approximated = weighted @ tile.H.T
    R = tile.G - approximated
    if terms.shift:
        R = R - like(terms.shift * tile.same, R)

    squared_residual = _squared_norm(R)
    squared_norm = _squared_norm(tile.G)
    return np.array([squared_residual, squared_norm])


def _squared_norm(A: Array) -> float:
    squares = in_float64(A) ** 2
    return float(namespace(A).sum(squares))


def relative_trace_error(residual: Residual, rows: Indices) -> float:
    """Return |tr R| / tr G on rows × rows; for plain Nyström, this is the trace norm."""
    diagonal = residual.gram.host_diag()
    trace = float(diagonal[rows].sum())

    low_rank = float(residual.factor.squared_norms().sum())
    approximated = low_rank + residual.shift * len(rows)
    return abs(trace - approximated) / trace


def relative_spectral_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration over tiles."""
    products = _Products(residual, rows)
    n = len(rows)
    of_residual = _largest_eigenvalue(products.times_residual, n)
    of_gram = _largest_eigenvalue(products.times_gram, n)
    return of_residual / of_gram


@dataclass(frozen=True, eq=False)
class _Products:
    """Products of G and R with vectors, on rows × rows."""

    residual: Residual
    rows: Indices

    def times_gram(self, v: Floats) -> Floats:
        """Return G v."""
        column = v[:, None]
        product = self.residual.gram.times(column, self.rows)
        return floats_on_host(product[:, 0])

    def times_residual(self, v: Floats) -> Floats:
        """Return R v = G v − F S Fᵀ v − δv."""
        factor = self.residual.factor
        column = v[:, None]
        inner = factor.inner(column)
        weighted = factor.weights[:, None] * inner
        low_rank = gather(factor.times(weighted))

        shifted = self.residual.shift * self._sum_of_same(v)
        return self.times_gram(v) - low_rank[:, 0] - shifted

    def _sum_of_same(self, v: Floats) -> Floats:
        """Return I v for the identity of G; entries of repeated rows are added up."""
        _, which = np.unique(self.rows, return_inverse=True)
        sums = np.bincount(which, v).astype(np.float64)
        return sums[which]


def _largest_eigenvalue(times: Callable[[Floats], Floats], n: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    if n < 3:  # too few for Lanczos iteration
        columns = [times(unit) for unit in np.eye(n)]
        eigenvalues = np.linalg.eigvalsh(np.column_stack(columns))
        return float(np.abs(eigenvalues).max())

    def matvec(v: Floats) -> Floats:
        return times(v.ravel())

    # a fixed start, so that the result has no seed
    start = np.linspace(1, 2, n)
    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    try:
        (eigenvalue,) = eigsh(
            operator,
            k=1,
            which="LM",
            tol=1e-4,
            v0=start,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence:
        raise
    except ArpackError:  # the start becomes 0: there is nothing but rounding
        return float(np.linalg.norm(times(start)) / np.linalg.norm(start))
    return float(abs(eigenvalue))


ERRORS = {
    "frobenius": relative_error,
    "trace": relative_trace_error,
    "spectral": relative_spectral_error,
}
