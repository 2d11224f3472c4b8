"""The residual R = G − F S Fᵀ − δI: its entries, what bounds them, and its norms, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative error of
about 1e-7 it returns noise.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nysboost.data.driver import PairTask
from nysboost.data.lazy import gather
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, like, namespace
from nysboost.numerics.tolerances import EPS, cutoff


@dataclass(frozen=True, eq=False)
class Span:
    """T, with K̂(x, y) = ⟨φ(x), T φ(y)⟩: an operator on the span of the landmarks.

    Its eigenvalues are those of S Nᵀ W N, and R(x, y) = ⟨φ(x), (I − T) φ(y)⟩. Where none of them is
    above 1 the residual is positive semidefinite, whatever the rows.

    F = k(X, Z) N, W = k(Z, Z), `weights` is the diagonal of S, `eps` the features' machine epsilon.
    """

    normalization: Floats
    within: Floats
    weights: Floats
    eps: float

    @property
    def noise(self) -> float:
        """What rounding of the features does to R_ij / √(g_i g_j)."""
        scale = np.sqrt(np.trace(self.within) * np.abs(self.weights).max())
        return self.eps * float(scale) * _norm(self.normalization)

    @property
    def below_identity(self) -> bool:
        """Whether no eigenvalue of T is above 1, but for rounding."""
        size = _norm(self.within) * _norm(self.normalization) ** 2
        largest = float(self._operator[0].max(initial=0.0))
        return largest <= 1 + cutoff(8, self.eps) * (1 + size)

    @cached_property
    def excess(self) -> Floats:
        """E of shape (K, r) with ‖F_i E‖² = ⟨φ_i, (T − I)₊ φ_i⟩: what K̂ has too much of."""
        eigenvalues, E = self._operator
        above = eigenvalues > 1
        return E[:, above] * np.sqrt(eigenvalues[above] - 1)

    @cached_property
    def _operator(self) -> tuple[Floats, Floats]:
        """The eigenvalues of T, and E with ⟨e_k, φ_i⟩ = (F E)_ik for its eigenvectors e_k."""
        theta, V = np.linalg.eigh(self.normalization.T @ self.within @ self.normalization)
        kept = theta > cutoff(len(theta), EPS) * theta.max(initial=0.0)
        V, root = V[:, kept], np.sqrt(theta[kept])
        core = root[:, None] * (V.T @ (self.weights[:, None] * V)) * root
        eigenvalues, Y = np.linalg.eigh((core + core.T) / 2)
        return eigenvalues, (V / root) @ Y


@dataclass(frozen=True, eq=False)
class Residual:
    """R = G − F S Fᵀ − δI on the rows of a Gram.

    For i ≠ j |R_ij|² ≤ a_i a_j with a_i = ⟨φ_i, |I − T| φ_i⟩ = g_i − K̂_ii + 2⟨φ_i, (T − I)₊ φ_i⟩.
    Of features that are no values of the kernel at landmarks, and have no T, less is known:
    |R_ij| ≤ √(g_i g_j) + √(f_i f_j), so that a_i = g_i + f_i with f_i = Σ_k |s_k| F_ik².

    `factor` is F on the rows of `gram`, with S, `shift` is δ, and a row's features take
    `n_landmarks` kernel values.
    """

    gram: Gram
    factor: Factor
    span: Span | None = None
    shift: float = 0.0
    n_landmarks: int = 0

    @classmethod
    def of(cls, gram: Gram, factor: Factor) -> Residual:
        """Return that of features at landmarks, looking whether they are the kernel's values."""
        landmarks, span = factor.transform.landmarks, None
        if landmarks.basis is None:
            N, W = factor.transform.normalization, gram.within(landmarks)
            span = Span(floats_on_host(N), floats_on_host(W), factor.weights, gram.eps)
        return cls(gram, factor, span, n_landmarks=len(landmarks))

    @property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows at all."""
        return self.span is not None and self.shift == 0 and self.span.below_identity

    @cached_property
    def noise(self) -> float:
        """What rounding does to R_ij / √(g_i g_j)."""
        return 4 * self.gram.eps + (0.0 if self.span is None else self.span.noise)

    def diagonals(self, F: Array, g: Floats) -> tuple[Floats, Floats]:
        """Return R_ii and a_i for rows with features F and k(x, x) = g, both of shape (len(g),)."""
        d, a = _diagonals(self._of_a_row, F, g[:, None]).T
        return d, a

    def all_diagonals(self, g: Floats) -> tuple[Floats, Floats]:
        """Return R_ii and a_i for all rows, in one pass."""
        both = self.factor.map(_diagonals, self._of_a_row, 2, g[:, None])
        d, a = np.ascontiguousarray(gather(both).T)
        return d, a

    @property
    def _of_a_row(self) -> tuple[Floats, Floats | None, float, float]:
        """What R_ii and a_i depend on beside the row."""
        excess = None if self.span is None else self.span.excess
        return self.factor.weights, excess, self.shift, self.noise

    def block(self, truth: Array, F: Array, H: Array) -> Floats:
        """Return a block of R off the diagonal, from that of G and the features of its sides."""
        mine = (F * like(self.factor.weights, F)) @ H.T
        return floats_on_host(truth - mine)

    def norm_of_approximation(self) -> float:
        """Return ‖F S Fᵀ‖_F, where no weight is negative, in one pass."""
        roots = np.sqrt(self.factor.weights)
        moments = self.factor.fold(_inner_products, roots)
        return float(np.linalg.norm(moments))


# What passes do to a block of features: plain functions, which can be sent to where rows are


def _diagonals(of_a_row: tuple[Floats, Floats | None, float, float], F: Array, g: Floats) -> Floats:
    """Return R_ii and a_i of a block of rows, shape (b, 2)."""
    weights, excess, shift, noise = of_a_row
    F, g = floats_on_host(F), g[:, 0]
    d = g - F**2 @ weights
    a = g + F**2 @ np.abs(weights) if excess is None else d + 2 * ((F @ excess) ** 2).sum(axis=1)
    # rounding may have taken from a_i what it adds to an entry
    return np.stack([d - shift, np.maximum(a, 0.0) + noise * g], axis=1)


def _inner_products(roots: Floats, F: Array) -> Floats:
    weighted = floats_on_host(F) * roots
    return weighted.T @ weighted


def _norm(A: Floats) -> float:
    """Return ‖A‖₂ to a digit, all that a rounding error needs: an SVD takes long."""
    scale = float(np.abs(A).max(initial=0.0))
    if scale == 0:
        return 0.0
    A, v = A / scale, np.ones(A.shape[1])
    for _ in range(10):
        v = A.T @ (A @ (v / np.linalg.norm(v)))
    return scale * float(np.sqrt(np.linalg.norm(v)))


def relative_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖_F / ‖G‖_F on rows × rows, whose features F has, holding a few tiles at a time."""
    gram, factor, weights = residual.gram, residual.factor, residual.factor.weights
    transform = None if factor.is_kept() else factor.transform.without_rows
    beside = (rows[:, None], factor.all()) if transform is None else (rows[:, None],)
    shared, size = (gram.forget_rows(), transform, weights, residual.shift), len(weights)
    task = PairTask("squared-error", _load, _squares, shared, gram.tile_width(size), gram.budget)
    squared_residual, squared_norm = factor.rows.fold_pairs(task, operator.add, *beside)
    if squared_norm == 0:
        raise ValueError("The kernel matrix is zero on these rows, so no error is relative to it.")
    return float(np.sqrt(squared_residual / squared_norm))


Shared = tuple[Gram, FeatureMap | None, Floats, float]


def _load(shared: Shared, X: Array, numbers: Any, *kept: Array) -> tuple[Any, ...]:
    """Return the rows of a block, their numbers and their features."""
    transform = shared[1]
    return X, numbers, kept[0] if transform is None else transform(X)


def _squares(shared: Shared, upper: tuple[Any, ...], lower: tuple[Any, ...]) -> Floats:
    """Return ‖G − K̂‖² and ‖G‖² on a tile."""
    gram, _, weights, shift = shared
    (X, rows, F), (Y, columns, H) = upper, lower
    truth = gram.between_rows(X, Y, rows[:, 0], columns[:, 0])
    missed = truth - (F * like(weights, F)) @ H.T
    if shift:
        missed = missed - like(shift * (rows == columns.T), missed)
    return np.array([_sum_of_squares(missed), _sum_of_squares(truth)])


def relative_trace_error(residual: Residual, rows: Indices) -> float:
    """Return |tr R| / tr G on rows × rows: for plain Nyström the trace norm's."""
    trace = float(floats_on_host(residual.gram.diag())[rows].sum())
    ours = float(residual.factor.squared_norms().sum()) + residual.shift * len(rows)
    return abs(trace - ours) / trace


def relative_spectral_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖₂ / ‖G‖₂ on rows × rows, by Lanczos iteration over tiles."""
    which = np.unique(rows, return_inverse=True)[1]  # δI on rows that were asked for twice
    factor = residual.factor

    def times(v: Floats) -> Floats:
        return floats_on_host(residual.gram.times(v[:, None], rows)[:, 0])

    def times_residual(v: Floats) -> Floats:
        inner = factor.fold(_inner, None, v[:, None])
        ours = factor.map(_product, factor.weights[:, None] * inner, 1)
        product = times(v) - residual.shift * np.bincount(which, v)[which]
        return product - gather(ours)[:, 0]

    return _largest_eigenvalue(times_residual, len(rows)) / _largest_eigenvalue(times, len(rows))


def _inner(_: None, F: Array, V: Floats) -> Floats:
    return floats_on_host(F).T @ V


def _product(inner: Floats, F: Array) -> Floats:
    return floats_on_host(F) @ inner


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
    """Return the sum of the squared entries, in float64."""
    xp = namespace(tile)
    return float(xp.sum(xp.astype(tile, xp.float64) ** 2))


ERRORS = {
    "frobenius": relative_error,
    "trace": relative_trace_error,
    "spectral": relative_spectral_error,
}
