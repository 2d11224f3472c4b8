"""The loss of landmarks and metric, which measures how well y is predicted from k(X, Z).

With C = k(XA, U) on a sample of n rows, U = ZA the mapped landmarks, W = k(U, U), γ the ratio of
the noise s² to the kernel's amplitude, S = CᵀC, b = CᵀY, M = γW + S and w = M⁻¹b, the loss is the
negative collapsed variational bound of sparse Gaussian process regression (Titsias 2009), for each
of t outputs and with s² = (YᵀY − bᵀw)/(nt) put in:

    L = ½ [ n log s² + log|M| − c log γ − log|W| + τ (n − tr W⁻¹S)/γ ].

τ = 1 is the bound. The trace term favours approximating the matrix over predicting y; with many
rows for each landmark a smaller τ predicts better (`nysboost.learn.search.tuning.TRACE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np

from nysboost.kernels.distances import squared_norms
from nysboost.kernels.radial import Radial
from nysboost.numerics.arrays import (
    Array,
    Indices,
    apply_in_place,
    block_bytes,
    identity,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.checks import Budget
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.threads import threads_for, usable_threads
from nysboost.numerics.tolerances import JITTER
from nysboost.rows.driver import Plan, run_blocks

EXACT = 1e-10
"""The noise is at least this share of the variance of y, because less would be rounding error."""

BLOCK = 2**16
"""Entries of a block of C, so that a core's second cache holds it: with 2¹⁸ an evaluation of 2,048
rows and 64 landmarks takes 1.8 times as long."""


class TrainingRows(NamedTuple):
    """Rows X (n, q) in the coordinates of a search, targets Y (n, t) and weights (n,) or None."""

    X: Array
    Y: Array
    weights: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def mean(self) -> Array:
        """Weighted mean of the targets, shape (t,)."""
        xp = namespace(self.Y)
        if self.weights is None:
            return xp.mean(self.Y, axis=0)
        return xp.sum(self.weighted(self.Y), axis=0) / xp.sum(self.weights)

    def weighted(self, values: Array) -> Array:
        """Return values (n, k), each row times its weight."""
        if self.weights is None:
            return values
        return values * self.weights[:, None]

    def total_weight(self) -> float:
        """Return Σω, which is n without weights."""
        if self.weights is None:
            return float(self.n)
        return float(namespace(self.X).sum(self.weights))

    def centred(self) -> TrainingRows:
        """Return the rows with targets of mean zero."""
        return self._replace(Y=self.Y - self.mean)

    def at(self, rows: slice | Indices) -> TrainingRows:
        """Return some of the rows."""
        weights = self.weights
        if weights is not None:
            weights = take(weights, rows)
        return TrainingRows(take(self.X, rows), take(self.Y, rows), weights)


class Point(NamedTuple):
    """All that the loss depends on: U (c, q), A (), (d,) or (d, q), log γ; or its gradient."""

    U: Array
    A: Array
    log_gamma: float


def target_loss(
    kernel: Radial,
    rows: TrainingRows,
    point: Point,
    trace: float = 1.0,
    copies: float = 1.0,
) -> tuple[float, Point | None]:
    """Return L/n of rows with centred targets, and its gradient.

    `trace` is τ, and each row counts `copies` times, as those of a batch do. If rounding makes a
    factorisation fail, the loss is infinite and has no gradient.
    """
    xp = namespace(rows.X)
    U, A, log_gamma = point
    n = copies * rows.total_weight()

    # C = k(XA, U), S = CᵀC, b = CᵀY
    C = CrossKernel(kernel, rows, point)
    S, b = C.moments()
    total = xp.sum(rows.weighted(rows.Y) * rows.Y)
    sums = Sums(copies * S, copies * b, copies * total, n)

    # W = k(U, U), with ones and a jitter on the diagonal
    W, W_slope = kernel.profile(_squared_distances(U, U))
    eye = identity(U.shape[0], U)
    off_diagonal = 1 - eye
    W = W * off_diagonal + eye * (1 + JITTER)

    with threads_for(U.shape[0]):
        bound = CollapsedBound.of(sums, W, log_gamma, trace)
    if bound is None:
        return float("inf"), None

    # ∂L/∂C ∘ φ' and ∂L/∂W ∘ φ' are derivatives by squared distances of pairs;
    # each landmark is on both sides of W
    cross = C.pull_back(bound)
    within = 2 * bound.within * W_slope * off_diagonal

    # ∂‖xA − u‖²/∂u = 2(u − xA)
    column = copies * cross.column + xp.sum(within, axis=0)
    pulled = copies * map_rows(cross.BX, A) + within @ U
    to_U = 2 * (column[:, None] * U - pulled)

    # ∂‖xA − u‖²/∂A = 2x(xA − u)ᵀ
    from_rows = map_rows(cross.spread, A)
    from_landmarks = _inner(cross.BX, U, A.ndim == 2)
    to_A: Array = 2 * copies * (from_rows - from_landmarks)
    if A.ndim == 0:
        to_A = xp.sum(to_A)

    gradient = Point(to_U / n, to_A / n, bound.to_log_gamma / n)
    return bound.value / n, gradient


def map_rows(X: Array, A: Array) -> Array:
    """Return XA, the mapped rows."""
    if A.ndim == 2:
        return X @ A
    return X * A


def for_landmarks(Z: Array, A: Array, gradient: Point) -> Point:
    """Return the gradient with respect to Z, A and log γ where U = ZA moves with the metric."""
    through = _inner(Z, gradient.U, A.ndim == 2)
    if A.ndim == 0:
        through = namespace(Z).sum(through)
    to_Z = map_rows(gradient.U, A.T if A.ndim == 2 else A)
    return Point(to_Z, gradient.A + through, gradient.log_gamma)


class Sums(NamedTuple):
    """Sums over rows that the bound needs: S (c, c), b (c, t), YᵀY and n."""

    S: Array
    b: Array
    total: Array
    n: float


@dataclass(frozen=True, eq=False)
class CollapsedBound:
    """L and its derivatives by log γ, W (c, c) and C (n, c).

    `within` (c, c) is ∂L/∂W. ∂L/∂C is C (M⁻¹ − τW⁻¹/γ) + (Cw − Y) wᵀ/(s²t), with one s² for each
    of t outputs: the product of [C, Y] and `cross` (c + t, c).
    """

    value: float
    to_log_gamma: float
    within: Array
    cross: Array

    @classmethod
    def of(cls, sums: Sums, W: Array, log_gamma: float, trace: float) -> CollapsedBound | None:
        """Return the bound with τ = `trace`, or None if a factorisation fails by rounding.

        It factorises W = LLᵀ and T = L⁻¹SL⁻ᵀ + γI, which is better conditioned than M = LTLᵀ.
        """
        S, b, total, n = sums
        xp = namespace(S)
        c, t = b.shape
        gamma = float(np.exp(log_gamma))
        try:
            L_inverse = triangular_inverse(xp.linalg.cholesky(W))
            whitened = L_inverse @ S @ L_inverse.T
            T_root = xp.linalg.cholesky(whitened + gamma * identity(c, S))
            M_root = triangular_inverse(T_root) @ L_inverse
        except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
            return None

        # w = M⁻¹b and s² = (YᵀY − bᵀw)/(nt)
        half_solved = M_root @ b
        w = M_root.T @ half_solved
        explained = xp.sum(half_solved**2)
        noise = _noise(total, explained) / (n * t)
        w_noise = w / (noise * t)

        # L = ½ [n log s² + log|T| − c log γ + τ (n − tr W⁻¹S)/γ], log|M| = log|T| + log|W|
        roots = xp.linalg.diagonal(T_root)
        log_det = 2 * xp.sum(xp.log(roots)) - c * log_gamma
        missed = n - xp.linalg.trace(whitened)
        tau = trace / gamma
        penalty = tau * xp.clip(missed, min=0.0)
        value = (n * xp.log(noise) + log_det + penalty) / 2

        # ∂L/∂W = ½ (γM⁻¹ − W⁻¹ + γwwᵀ/s² + τW⁻¹SW⁻¹/γ), where KKᵀ = W⁻¹SW⁻¹ + γW⁻¹
        # costs half a product
        M_inverse = M_root.T @ M_root
        W_inverse = L_inverse.T @ L_inverse
        K = L_inverse.T @ T_root
        ww = w @ w_noise.T
        of_fit = gamma * (M_inverse + ww)
        of_matrix = tau * (K @ K.T) - (1 + trace) * W_inverse
        within = (of_fit + of_matrix) / 2

        # ∂L/∂C = C (M⁻¹ − τW⁻¹/γ + wwᵀ/s²) − Y wᵀ/s²
        of_C = M_inverse - tau * W_inverse + ww
        cross = xp.concat([of_C, -w_noise.T], axis=0)

        # ∂L/∂log γ = ½ (γ tr M⁻¹W − c + γwᵀWw/s² − τ (n − tr W⁻¹S)/γ)
        fitted = xp.sum(M_inverse * W) + xp.sum(w_noise * (W @ w))
        to_log_gamma = (gamma * fitted - c - penalty) / 2

        # one transfer, because a GPU synchronises at each
        numbers = to_host(xp.stack([value, to_log_gamma, noise])).tolist()
        if not np.isfinite(numbers).all():
            return None
        return cls(numbers[0], numbers[1], within, cross)


def _noise(total: Array, explained: Array) -> Array:
    """Return YᵀY − bᵀw, kept positive even if y is constant or fully explained."""
    xp = namespace(total)
    noise = xp.maximum(total - explained, EXACT * total)
    return xp.where(noise > 0, noise, xp.ones_like(noise) * EXACT)


class CrossGradient(NamedTuple):
    """Sums over pairs of B = ∂L/∂C ∘ φ': BᵀX (c, q), Bᵀ1 (c,) and Xᵀ diag(B1) X or its diagonal."""

    BX: Array
    column: Array
    spread: Array


class CrossKernel:
    """C = k(XA, U), by blocks of rows that several threads compute."""

    def __init__(self, kernel: Radial, rows: TrainingRows, point: Point) -> None:
        self.kernel = kernel
        self.rows = rows
        self.point = point
        self.blocks: dict[int, tuple[Array, Array]] = {}

        # made once, because the number of threads may change
        entries = block_bytes(rows.X) // 8
        threads = 1
        if isinstance(rows.X, np.ndarray):
            entries = BLOCK
            threads = usable_threads(Budget())
        block = entries // point.U.shape[0] + 1
        self.plan = Plan(rows.n, min(block, rows.n), threads)

    def moments(self) -> tuple[Array, Array]:
        """Return S = CᵀC and b = CᵀY, and keep [C, Y] and φ' of each block."""
        S, b = self._sum(self._block_moments)
        return S, b

    def pull_back(self, bound: CollapsedBound) -> CrossGradient:
        """Return sums of ∂L/∂C ∘ φ' over pairs of a row and a landmark."""

        def of_block(block: slice) -> tuple[Array, ...]:
            return self._block_gradient(block, bound)

        return CrossGradient(*self._sum(of_block))

    def _sum(self, of_block: Callable[[slice], tuple[Array, ...]]) -> list[Array]:
        results = run_blocks(of_block, self.rows.n, self.plan)
        return [reduce(add, part) for part in zip(*results, strict=True)]

    def _block_moments(self, block: slice) -> tuple[Array, ...]:
        some = self.rows.at(block)
        mapped = map_rows(some.X, self.point.A)
        squared = _squared_distances(mapped, self.point.U)
        C, slope = self.kernel.profile(squared)
        CY = namespace(C).concat([C, some.Y], axis=1)
        self.blocks[block.start] = CY, slope

        S = C.T @ some.weighted(C)
        b = C.T @ some.weighted(some.Y)
        return S, b

    def _block_gradient(self, block: slice, bound: CollapsedBound) -> tuple[Array, ...]:
        xp = namespace(self.rows.X)
        some = self.rows.at(block)
        CY, slope = self.blocks[block.start]

        # B = ∂L/∂C ∘ φ'
        B = CY @ bound.cross
        B *= slope
        if some.weights is not None:
            B *= some.weights[:, None]

        # BᵀX, Bᵀ1 and Xᵀ diag(B1) X
        of_rows = xp.sum(B, axis=1)[:, None]
        spread = _inner(some.X, some.X * of_rows, self.point.A.ndim == 2)
        return B.T @ some.X, xp.sum(B, axis=0), spread


def _squared_distances(X: Array, U: Array) -> Array:
    """Return ‖x − u‖² for all pairs from one product, which is precise enough for a search."""
    # [x, ‖x‖², 1] times [−2u, 1, ‖u‖²]
    xp = namespace(X)
    x = squared_norms(X)[:, None]
    u = squared_norms(U)[:, None]
    left = xp.concat([X, x, xp.ones_like(x)], axis=1)
    right = xp.concat([-2 * U, xp.ones_like(u), u], axis=1)
    return apply_in_place("maximum", left @ right.T, 0.0)


def _inner(X: Array, Y: Array, full: bool) -> Array:
    """Return XᵀY, or only its diagonal."""
    if full:
        return X.T @ Y
    return namespace(X).sum(X * Y, axis=0)
