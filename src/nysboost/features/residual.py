"""The residual R = G − F S Fᵀ − δI: entries, bounds of entries, and norms, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative error of
about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, features_of_block
from nysboost.gram import Gram, Landmarks
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, like
from nysboost.numerics.tolerances import EPS
from nysboost.rows.driver import PairTask
from nysboost.rows.lazy import gather


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
        """Kernel values that the features of a row take."""
        return len(self.factor.transform.landmarks)

    @cached_property
    def _span(self) -> _Span | None:
        """N and W, where features are values of the kernel at landmarks."""
        transform = self.factor.transform
        if transform.kernel != self.gram.kernel or self.n_landmarks == 0:
            return None
        W = self.gram.within(transform.landmarks)
        return _Span(floats_on_host(transform.normalization), floats_on_host(W))

    @cached_property
    def _operator(self) -> _Operator | None:
        """The operator T, where features have one."""
        if self._span is None:
            return None
        return _Operator.of(self._span, self.factor.weights)

    @cached_property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows at all: no eigenvalue of T is above 1, but for rounding."""
        if self._span is None or self._operator is None or self.shift != 0:
            return False
        size = 1 + _norm(self._span.W) * _norm(self._span.N) ** 2
        rounding = 8 * self.gram.eps * size
        largest = float(self._operator.eigenvalues.max(initial=0.0))
        return largest <= 1 + rounding

    @cached_property
    def noise(self) -> float:
        """Rounding error of R_ij / √(g_i g_j)."""
        eps = self.gram.eps
        if self._span is None:
            return 4 * eps
        largest_weight = np.abs(self.factor.weights).max()
        scale = np.sqrt(np.trace(self._span.W) * largest_weight)
        return 4 * eps + eps * float(scale) * _norm(self._span.N)

    def diagonals(self, F: Array, g: Floats) -> Floats:
        """Return R_ii and a_i for rows with features F and k(x, x) = g, shape (2, len(g))."""
        return _diagonals(self._of_a_row, F, g[:, None]).T

    def all_diagonals(self, g: Floats) -> Floats:
        """Return R_ii and a_i for all rows, in one pass."""
        both = self.factor.map(_diagonals, self._of_a_row, 2, g[:, None])
        return np.ascontiguousarray(gather(both).T)

    @cached_property
    def _of_a_row(self) -> _RowTerms:
        """What R_ii and a_i depend on beside the row."""
        excess = None
        if self._operator is not None:
            excess = self._operator.excess()
        return _RowTerms(self.factor.weights, excess, self.shift, self.noise)

    def block(self, truth: Array, F: Array, H: Array) -> Floats:
        """Return a block of R off the diagonal, from that of G and the features of its sides."""
        return floats_on_host(truth - (F * like(self.factor.weights, F)) @ H.T)

    def norm_of_approximation(self) -> float:
        """Return ‖F S Fᵀ‖_F, where no weight is negative, in one pass."""
        roots = np.sqrt(self.factor.weights)
        return float(np.linalg.norm(self.factor.fold(_moments, roots)))


class _Span(NamedTuple):
    """N and W = k(Z, Z) of features that are values of the kernel at landmarks."""

    N: Floats
    W: Floats


@dataclass(frozen=True, eq=False)
class _Operator:
    """The operator T, by its eigenvalues.

    Of its eigenvectors e_k `basis` is E, with ⟨e_k, φ_i⟩ = (F E)_ik.
    """

    eigenvalues: Floats
    basis: Floats

    @classmethod
    def of(cls, span: _Span, weights: Floats) -> _Operator:
        """Return T of features with these N and W, and S the diagonal of weights."""
        # an orthonormal basis of the span, V θ^(−1/2) with Nᵀ W N = V θ Vᵀ
        theta, V = np.linalg.eigh(span.N.T @ span.W @ span.N)
        kept = theta > len(theta) * EPS * theta.max(initial=0.0)
        V = V[:, kept]
        root = np.sqrt(theta[kept])

        # T in this basis
        core = root[:, None] * (V.T @ (weights[:, None] * V)) * root
        eigenvalues, Y = np.linalg.eigh((core + core.T) / 2)
        return cls(eigenvalues, (V / root) @ Y)

    def excess(self) -> Floats:
        """Return E √(T − I)₊."""
        above = self.eigenvalues > 1
        return np.asarray(self.basis[:, above] * np.sqrt(self.eigenvalues[above] - 1))


@dataclass(frozen=True, eq=False)
class _RowTerms:
    """S, E √(T − I)₊ where features have a T, δ, and the rounding error of entries."""

    weights: Floats
    excess: Floats | None
    shift: float
    noise: float


# Functions of a block of features, which can be pickled for the workers of a pass


def _diagonals(terms: _RowTerms, F: Array, g: Floats) -> Floats:
    """Return R_ii and a_i of a block of rows, shape (b, 2)."""
    F = floats_on_host(F)
    g = g[:, 0]
    squares = F**2
    d = g - squares @ terms.weights
    if terms.excess is None:
        a = g + squares @ np.abs(terms.weights)
    else:
        a = d + 2 * ((F @ terms.excess) ** 2).sum(axis=1)
    # rounding may have taken from a_i what it adds to an entry
    bound = np.maximum(a, 0.0) + terms.noise * g
    return np.stack([d - terms.shift, bound], axis=1)


def _moments(roots: Floats, F: Array) -> Floats:
    weighted = floats_on_host(F) * roots
    return weighted.T @ weighted


def _norm(A: Floats) -> float:
    """Return ‖A‖₂ to one digit, enough for a rounding error, by power iteration."""
    scale = float(np.abs(A).max(initial=0.0))
    if scale == 0:
        return 0.0
    A = A / scale
    v = np.ones(A.shape[1])
    for _ in range(10):
        v = A.T @ (A @ (v / np.linalg.norm(v)))
    return scale * float(np.sqrt(np.linalg.norm(v)))


# Norms of the residual, relative to those of G


def relative_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖_F / ‖G‖_F on rows × rows, whose features F has, holding a few tiles at a time."""
    gram = residual.gram
    factor = residual.factor

    # a block of rows comes with its row numbers, and with its features where they are known
    aligned: list[Any] = [rows[:, None]]
    transform: FeatureMap | None = factor.transform
    if factor.kept is not None:
        aligned.append(factor.kept)
        transform = None

    tiles = _Tiles(gram.forget_rows(), transform, factor.weights, residual.shift)
    width = gram.tile_width(len(factor.weights))
    task = PairTask("squared-error", _load, _squares, tiles, width, gram.budget)
    squared_residual, squared_norm = factor.rows.fold_pairs(task, np.add, *aligned)
    if squared_norm == 0:
        raise ValueError("The kernel matrix is zero on these rows, so no error is relative to it.")
    return float(np.sqrt(squared_residual / squared_norm))


@dataclass(frozen=True, eq=False)
class _Tiles:
    """What tiles of R depend on beside their rows; the map is None where features are known."""

    gram: Gram
    transform: FeatureMap | None
    weights: Floats
    shift: float


class _Side(NamedTuple):
    """One side of a tile: rows, their numbers (b, 1) and their features (b, K)."""

    X: Array
    numbers: Indices
    F: Array


def _load(tiles: _Tiles, X: Array, numbers: Indices, *kept: Array) -> tuple[Any, ...]:
    """Return the side of tiles that a block of rows is."""
    if tiles.transform is None:
        return _Side(X, numbers, kept[0])
    return _Side(X, numbers, features_of_block(tiles.gram, tiles.transform, X))


def _squares(tiles: _Tiles, upper: Sequence[Any], lower: Sequence[Any]) -> Floats:
    """Return ‖G − K̂‖² and ‖G‖² on a tile."""
    left = _Side(*upper)
    right = _Side(*lower)
    G = tiles.gram.evaluate(left.X, Landmarks(right.numbers[:, 0], right.X))
    R = G - (left.F * like(tiles.weights, left.F)) @ right.F.T
    if tiles.shift:
        on_diagonal = left.numbers == right.numbers.T
        R = R - like(tiles.shift * on_diagonal, R)
    return np.array([_squared_norm(R), _squared_norm(G)])


def _squared_norm(A: Array) -> float:
    return float(arrays.namespace(A).sum(arrays.in_float64(A) ** 2))


def relative_trace_error(residual: Residual, rows: Indices) -> float:
    """Return |tr R| / tr G on rows × rows: for plain Nyström the trace norm's."""
    diagonal = floats_on_host(residual.gram.diag())[rows]
    trace = float(diagonal.sum())
    approximated = float(residual.factor.squared_norms().sum()) + residual.shift * len(rows)
    return abs(trace - approximated) / trace


def relative_spectral_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration over tiles."""
    products = _Products(residual, rows)
    of_residual = _largest_eigenvalue(products.times_residual, len(rows))
    return of_residual / _largest_eigenvalue(products.times_gram, len(rows))


@dataclass(frozen=True, eq=False)
class _Products:
    """Products of G and R with vectors, on rows × rows."""

    residual: Residual
    rows: Indices

    def times_gram(self, v: Floats) -> Floats:
        """Return G v."""
        return floats_on_host(self.residual.gram.times(v[:, None], self.rows)[:, 0])

    def times_residual(self, v: Floats) -> Floats:
        """Return R v."""
        factor = self.residual.factor
        inner = factor.weights[:, None] * factor.inner(v[:, None])
        low_rank = gather(factor.times(inner))[:, 0]
        return self.times_gram(v) - low_rank - self.residual.shift * self._sum_of_same(v)

    def _sum_of_same(self, v: Floats) -> Floats:
        """Return I v for the identity of G: of a row that stands here twice, both add up."""
        _, which = np.unique(self.rows, return_inverse=True)
        sums = np.bincount(which, v).astype(np.float64)
        return sums[which]


def _largest_eigenvalue(times: Callable[[Floats], Floats], n: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    if n < 3:  # too few for Lanczos iteration
        dense = np.column_stack([times(column) for column in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh(dense)).max())

    def matvec(v: Floats) -> Floats:
        return times(v.ravel())

    operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
    start = np.ones(n) + np.linspace(0, 1, n)  # fixed, so that the result has no seed
    values = eigsh(operator, k=1, which="LM", tol=1e-4, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


ERRORS = {
    "frobenius": relative_error,
    "trace": relative_trace_error,
    "spectral": relative_spectral_error,
}
