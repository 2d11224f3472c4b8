"""What landmarks serve, the target: how well y is predicted from k(X, Z).

With C = k(XA, ZA) on a sample of n rows, W = k(ZA, ZA), γ the ratio of the noise s² to the
kernel's amplitude, S = CᵀC, b = CᵀY, M = γW + S and w = M⁻¹b, the loss is the negative collapsed
variational bound of sparse Gaussian process regression (Titsias 2009), for each of t outputs
and with s² = (YᵀY − bᵀw)/(nt) put in:

    L = ½ [ n log s² + log|M| − c log γ − log|W| + τ (n − tr W⁻¹S)/γ ].

τ = 1 is the bound. Its trace asks for landmarks that serve the matrix, not the target; with
many rows for each landmark a smaller τ predicts better (`nysboost.search.tuning.TRACE`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add

import numpy as np

from nysboost.data.driver import Plan, run_blocks
from nysboost.kernels.distances import squared_norms
from nysboost.kernels.radial import Radial
from nysboost.numerics.arrays import Array, block_bytes, identity, namespace, to_host
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.resources import Budget, threads_for, usable_threads
from nysboost.numerics.tolerances import JITTER

EXACT = 1e-10
"""The noise is at least this share of the target's variance: below it s² is rounding error."""

LEAST_BLOCK = 2**18
"""Entries of a block of C at least: with fewer a second thread costs more than it brings."""


@dataclass(frozen=True, eq=False)
class Point:
    """All that the loss depends on: landmarks Z (c, d), metric A (), (d,) or (d, q), log γ."""

    Z: Array
    A: Array
    log_gamma: float


@dataclass(frozen=True, eq=False)
class TargetLoss:
    """The loss of landmarks, metric and noise on a sample, with its gradient.

    X (n, d) and Y (n, t) are the sample and centred targets, weights (n,) or None say how often
    each row counts, trace is τ, and a row stands for `copies` rows, as those of a batch do.
    """

    kernel: Radial
    X: Array
    Y: Array
    weights: Array | None = None
    trace: float = 1.0
    copies: float = 1.0

    def __call__(self, point: Point) -> tuple[float, Point | None]:
        """Return L/n and its gradient; (inf, None) where rounding leaves nothing of it."""
        sums = self._sums(point)
        with threads_for(point.Z.shape[0]):
            solved = _solve(sums, self, point)
        if solved is None:
            return float("inf"), None
        return solved.value / self._size, self._gradient(point, sums, solved)

    @cached_property
    def _size(self) -> float:
        """Sum of the weights: n."""
        if self.weights is None:
            return self.copies * int(self.X.shape[0])
        return self.copies * float(namespace(self.X).sum(self.weights))

    @cached_property
    def _weighted(self) -> Array:
        return self.Y if self.weights is None else self.Y * self.weights[:, None]

    @cached_property
    def total(self) -> Array:
        """Sum of the squared targets, shape ()."""
        return namespace(self.Y).sum(self._weighted * self.Y) * self.copies

    def _sums(self, point: Point) -> _Sums:
        """Return S and b, and for each block of rows what the gradient needs again."""
        mapped = _metric_map(point.A)
        U = mapped(point.Z)

        def work(rows: slice) -> tuple[Array, ...]:
            C, slope = self.kernel.profile(_squared_distances(mapped(self.X[rows, :]), U))
            weighted = C if self.weights is None else C * self.weights[rows, None]
            blocks[rows.start] = C, slope
            return C.T @ weighted, C.T @ self._weighted[rows, :]

        blocks: dict[int, tuple[Array, Array]] = {}
        plan = _plan(self.X, U.shape[0])
        parts = list(run_blocks(work, plan.piece, plan))
        W, within_slope = self.kernel.profile(_squared_distances(U, U))
        eye = identity(U.shape[0], U)
        W = W * (1 - eye) + eye * (1 + JITTER)
        S, b = (self.copies * reduce(add, part) for part in zip(*parts, strict=True))
        return _Sums(S, b, W, within_slope * (1 - eye), blocks, plan)

    def _gradient(self, point: Point, sums: _Sums, solved: _Solved) -> Point:
        """Return the gradient of L/n: from C and W to Z and A by the kernel's own slope.

        With B = ∂L/∂C ∘ φ' only sums over pairs of B (x − z) and B (x − z)(x − z)ᵀ are needed.
        """
        xp, X, Z, A = namespace(self.X), self.X, point.Z, point.A
        whole = A.ndim == 2

        def work(rows: slice) -> tuple[Array, ...]:
            C, slope = sums.blocks[rows.start]
            B = C @ solved.to_cross
            B += (C @ solved.w - self.Y[rows, :]) @ solved.w_noise.T
            B *= slope
            if self.weights is not None:
                B *= self.weights[rows, None]
            x = X[rows, :]
            return B.T @ x, xp.sum(B, axis=0), _spread(x, xp.sum(B, axis=1), whole)

        parts = list(run_blocks(work, sums.plan.piece, sums.plan))
        BX, column, outer = (
            reduce(add, (part[i] for part in parts)) * self.copies for i in range(3)
        )
        # W counts twice: each landmark is on both of its sides
        B = 2 * solved.to_within * sums.within_slope
        BZ, total = B @ Z, column + xp.sum(B, axis=0)
        to_Z = 2 * (total[:, None] * Z - BX - BZ)
        outer = outer - _across(Z, BX, whole) + _spread(Z, total, whole)
        outer = outer - _across(Z, BZ, whole) / 2
        gradient_A: Array
        if whole:
            gradient_A, gradient_Z = 2 * outer @ A, to_Z @ A @ A.T
        else:
            gradient_A, gradient_Z = 2 * outer * A, to_Z * A**2
            if A.ndim == 0:
                gradient_A = xp.sum(gradient_A)
        n = self._size
        return Point(gradient_Z / n, gradient_A / n, solved.to_log_gamma / n)


@dataclass(frozen=True, eq=False)
class _Sums:
    S: Array
    b: Array
    W: Array
    within_slope: Array
    blocks: dict[int, tuple[Array, Array]]
    plan: Plan


@dataclass(frozen=True, eq=False)
class _Solved:
    value: float
    w: Array
    w_noise: Array
    to_cross: Array
    to_within: Array
    to_log_gamma: float


def _solve(sums: _Sums, loss: TargetLoss, point: Point) -> _Solved | None:
    """Return the loss and its derivatives with respect to C, W and log γ.

    All goes through W = L Lᵀ and T = L⁻¹SL⁻ᵀ + γI, whose condition is that of the regression:
    M itself has the condition of W besides.
    """
    S, b, W, tau = sums.S, sums.b, sums.W, loss.trace
    xp, c, n, t = namespace(S), S.shape[0], loss._size, b.shape[1]
    gamma = float(np.exp(point.log_gamma))
    eye = identity(c, S)
    try:
        L_inverse = triangular_inverse(xp.linalg.cholesky(W))
        T = L_inverse @ S @ L_inverse.T
        root = xp.linalg.cholesky(T + gamma * eye)
        H = triangular_inverse(root) @ L_inverse
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
        return None
    h = H @ b
    explained = xp.sum(h * h)
    w, M_inverse, W_inverse = H.T @ h, H.T @ H, L_inverse.T @ L_inverse
    left, least = loss.total - explained, EXACT * loss.total
    noise = xp.where(left > least, left, least) / (n * t)
    noise = xp.where(noise > 0, noise, xp.ones_like(noise) * EXACT)
    missed = xp.clip(n - xp.linalg.trace(T), min=0.0)
    log_det = 2 * xp.sum(xp.log(xp.linalg.diagonal(root)))
    value = (n * xp.log(noise) + log_det - c * point.log_gamma + tau * missed / gamma) / 2
    w_noise = w / (noise * t)
    to_within = gamma * M_inverse - (1 + tau) * W_inverse + gamma * (w @ w_noise.T)
    if tau:  # W⁻¹SW⁻¹ = L⁻ᵀTL⁻¹, of which the square costs half a product
        K = L_inverse.T @ root
        to_within = to_within + (tau / gamma) * (K @ K.T)
    spread = xp.sum(M_inverse * W) + xp.sum(w_noise * (W @ w))
    to_log_gamma = (gamma * spread - c - tau * missed / gamma) / 2
    to_cross = M_inverse - (tau / gamma) * W_inverse
    # together, because a GPU stops for each number that is asked for by itself
    numbers = to_host(xp.stack([explained, noise, value, to_log_gamma]))
    if not np.isfinite(numbers).all():
        return None
    value, to_log_gamma = map(float, numbers[2:])
    return _Solved(value, w, w_noise, to_cross, to_within / 2, to_log_gamma)


def _plan(X: Array, c: int) -> Plan:
    """Share out the rows; kept with the blocks, because the number of threads may change."""
    n, shared = X.shape[0], isinstance(X, np.ndarray)
    block = max(LEAST_BLOCK, block_bytes(X) // 8) // c + 1
    return Plan(n, min(block, n), usable_threads(Budget()) if shared else 1)


def _metric_map(A: Array) -> Callable[[Array], Array]:
    return (lambda X: X @ A) if A.ndim == 2 else (lambda X: X * A)


def _squared_distances(X: Array, U: Array) -> Array:
    """Return ‖x − u‖² for all pairs, from one product: a search needs no more digits."""
    xp = namespace(X)
    squared = X @ (-2.0 * U).T
    squared += squared_norms(X)[:, None]
    squared += squared_norms(U)[None, :]
    return xp.clip(squared, min=0.0)


def _spread(X: Array, weights: Array, whole: bool) -> Array:
    """Return Σ_i ω_i x_i x_iᵀ, or its diagonal alone."""
    scaled = X * weights[:, None]
    return X.T @ scaled if whole else namespace(X).sum(X * scaled, axis=0)


def _across(Z: Array, BX: Array, whole: bool) -> Array:
    """Return Zᵀ(BX) plus its transpose, or its diagonal alone."""
    if not whole:
        return 2 * namespace(Z).sum(Z * BX, axis=0)
    one_side = Z.T @ BX
    return one_side + one_side.T
