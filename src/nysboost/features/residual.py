"""The residual R = G − F S Fᵀ − δI: entries, bounds of entries, and norms, tile by tile.

Expanding ‖G − K̂‖² into inner products would be cheaper and cancels: below a relative error of
about 1e-7 it returns noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, features_of_block
from nysboost.gram import Gram, Landmarks
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, like
from nysboost.numerics.tolerances import EPS, cutoff
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
    def _span(self) -> tuple[Floats, Floats] | None:
        """N and W, where features are values of the kernel at landmarks."""
        transform = self.factor.transform
        if transform.kernel != self.gram.kernel or not self.n_landmarks:
            return None
        W = self.gram.within(transform.landmarks)
        return floats_on_host(transform.normalization), floats_on_host(W)

    @cached_property
    def _eigenpairs(self) -> tuple[Floats, Floats]:
        """The eigenvalues of T, and E with ⟨e_k, φ_i⟩ = (F E)_ik for its eigenvectors e_k."""
        assert self._span is not None
        N, W = self._span
        theta, V = np.linalg.eigh(N.T @ W @ N)
        kept = theta > cutoff(len(theta), EPS) * theta.max(initial=0.0)
        V, root = V[:, kept], np.sqrt(theta[kept])
        core = root[:, None] * (V.T @ (self.factor.weights[:, None] * V)) * root
        eigenvalues, Y = np.linalg.eigh((core + core.T) / 2)
        return eigenvalues, (V / root) @ Y

    @cached_property
    def positive_semidefinite(self) -> bool:
        """Whether R ≥ 0 on any rows at all: no eigenvalue of T is above 1, but for rounding."""
        if self._span is None or self.shift != 0:
            return False
        N, W = self._span
        rounding = cutoff(8, self.gram.eps) * (1 + _norm(W) * _norm(N) ** 2)
        return float(self._eigenpairs[0].max(initial=0.0)) <= 1 + rounding

    @cached_property
    def noise(self) -> float:
        """Rounding error of R_ij / √(g_i g_j)."""
        eps = self.gram.eps
        if self._span is None:
            return 4 * eps
        N, W = self._span
        scale = np.sqrt(np.trace(W) * np.abs(self.factor.weights).max())
        return 4 * eps + eps * float(scale) * _norm(N)

    def diagonals(self, F: Array, g: Floats) -> Floats:
        """Return R_ii and a_i for rows with features F and k(x, x) = g, shape (2, len(g))."""
        return _diagonals(self._of_a_row, F, g[:, None]).T

    def all_diagonals(self, g: Floats) -> Floats:
        """Return R_ii and a_i for all rows, in one pass."""
        both = self.factor.map(_diagonals, self._of_a_row, 2, g[:, None])
        return np.ascontiguousarray(gather(both).T)

    @cached_property
    def _of_a_row(self) -> tuple[Floats, Floats | None, float, float]:
        """What R_ii and a_i depend on beside the row: S, E √(T − I)₊, δ and rounding."""
        excess = None
        if self._span is not None:
            eigenvalues, E = self._eigenpairs
            above = eigenvalues > 1
            excess = E[:, above] * np.sqrt(eigenvalues[above] - 1)
        return self.factor.weights, excess, self.shift, self.noise

    def block(self, truth: Array, F: Array, H: Array) -> Floats:
        """Return a block of R off the diagonal, from that of G and the features of its sides."""
        return floats_on_host(truth - (F * like(self.factor.weights, F)) @ H.T)

    def norm_of_approximation(self) -> float:
        """Return ‖F S Fᵀ‖_F, where no weight is negative, in one pass."""
        return float(np.linalg.norm(self.factor.fold(_moments, np.sqrt(self.factor.weights))))


# Functions of a block of features, which can be pickled for the workers of a pass


def _diagonals(of_a_row: tuple[Floats, Floats | None, float, float], F: Array, g: Floats) -> Floats:
    """Return R_ii and a_i of a block of rows, shape (b, 2)."""
    weights, excess, shift, noise = of_a_row
    F, g = floats_on_host(F), g[:, 0]
    d = g - F**2 @ weights
    a = g + F**2 @ np.abs(weights) if excess is None else d + 2 * ((F @ excess) ** 2).sum(axis=1)
    # rounding may have taken from a_i what it adds to an entry
    return np.stack([d - shift, np.maximum(a, 0.0) + noise * g], axis=1)


def _moments(roots: Floats, F: Array) -> Floats:
    weighted = floats_on_host(F) * roots
    return weighted.T @ weighted


def _norm(A: Floats) -> float:
    """Return ‖A‖₂ to one digit, enough for a rounding error, by power iteration."""
    scale = float(np.abs(A).max(initial=0.0))
    if scale == 0:
        return 0.0
    A, v = A / scale, np.ones(A.shape[1])
    for _ in range(10):
        v = A.T @ (A @ (v / np.linalg.norm(v)))
    return scale * float(np.sqrt(np.linalg.norm(v)))


# Norms of the residual, relative to those of G


def relative_error(residual: Residual, rows: Indices) -> float:
    """Return ‖R‖_F / ‖G‖_F on rows × rows, whose features F has, holding a few tiles at a time."""
    gram, factor, weights = residual.gram, residual.factor, residual.factor.weights
    transform = factor.transform if factor.kept is None else None
    aligned: list[Any] = [rows[:, None]] if factor.kept is None else [rows[:, None], factor.kept]
    shared, size = (gram.forget_rows(), transform, weights, residual.shift), len(weights)
    task = PairTask("squared-error", _load, _squares, shared, gram.tile_width(size), gram.budget)
    squared_residual, squared_norm = factor.rows.fold_pairs(task, np.add, *aligned)
    if squared_norm == 0:
        raise ValueError("The kernel matrix is zero on these rows, so no error is relative to it.")
    return float(np.sqrt(squared_residual / squared_norm))


Shared = tuple[Gram, FeatureMap | None, Floats, float]


def _load(shared: Shared, X: Array, numbers: Any, *kept: Array) -> tuple[Any, ...]:
    """Return the rows of a block, their numbers and their features."""
    transform = shared[1]
    return X, numbers, kept[0] if transform is None else features_of_block(shared[0], transform, X)


def _squares(shared: Shared, upper: tuple[Any, ...], lower: tuple[Any, ...]) -> Floats:
    """Return ‖G − K̂‖² and ‖G‖² on a tile."""
    gram, _, weights, shift = shared
    (X, rows, F), (Y, columns, H) = upper, lower
    truth = gram.evaluate(X, Landmarks(columns[:, 0], Y))
    xp = arrays.namespace(truth)
    missed = truth - (F * like(weights, F)) @ H.T
    if shift:
        missed = missed - like(shift * (rows == columns.T), missed)
    return np.array([float(xp.sum(arrays.in_float64(tile) ** 2)) for tile in (missed, truth)])


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
        ours = gather(factor.times(factor.weights[:, None] * factor.inner(v[:, None])))
        return times(v) - residual.shift * np.bincount(which, v)[which] - ours[:, 0]

    return _largest_eigenvalue(times_residual, len(rows)) / _largest_eigenvalue(times, len(rows))


def _largest_eigenvalue(times: Callable[[Floats], Floats], n: int) -> float:
    """Return the largest absolute eigenvalue of a symmetric operator, to three digits."""
    if n < 3:
        dense = np.column_stack([times(column) for column in np.eye(n)])
        return float(np.abs(np.linalg.eigvalsh(dense)).max())
    operator = LinearOperator((n, n), matvec=lambda v: times(v.ravel()), dtype=np.float64)
    start = np.ones(n) + np.linspace(0, 1, n)  # fixed, so that the result has no seed
    values = eigsh(operator, k=1, which="LM", tol=1e-4, v0=start, return_eigenvectors=False)
    return float(abs(values[0]))


ERRORS = {
    "frobenius": relative_error,
    "trace": relative_trace_error,
    "spectral": relative_spectral_error,
}
