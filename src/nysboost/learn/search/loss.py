"""The loss that landmarks and metric minimise: how badly y is predicted from k(X, Z).

With C = k(XA, U) on a sample of n rows, U = ZA the mapped landmarks, W = k(U, U), γ the ratio of
the noise s² to the kernel's amplitude, S = CᵀC, b = CᵀY, M = γW + S and w = M⁻¹b, the loss is the
negative collapsed variational bound of sparse Gaussian process regression (Titsias 2009), for each
of t outputs and with s² = (YᵀY − bᵀw)/(nt) put in:

    L = ½ [ n log s² + log|M| − c log γ − log|W| + τ (n − tr W⁻¹S)/γ ].

τ = 1 is the bound. The trace term favours approximating the matrix over predicting y; with many
rows for each landmark a smaller τ predicts better (`nysboost.learn.search.tuning.TRACE`).
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from nysboost.kernels.distances import squared_norms
from nysboost.kernels.radial import Radial
from nysboost.numerics.arrays import Array, identity, namespace, take, to_host
from nysboost.numerics.budget import Budget
from nysboost.numerics.devices import block_bytes
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.threads import threads_for, usable_threads
from nysboost.numerics.tolerances import JITTER
from nysboost.rows.driver import Plan, run_blocks

EXACT, LEAST_BLOCK = 1e-10, 2**18
"""The noise is at least this share of the variance of y, because less would be rounding error;
smallest number of entries of a block of C for which a second thread pays."""


class Sample(NamedTuple):
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
        return xp.sum(self.Y * self.weights[:, None], axis=0) / xp.sum(self.weights)

    def at(self, rows: Any) -> Sample:
        """Return some of the rows."""
        weights = None if self.weights is None else take(self.weights, rows)
        return Sample(take(self.X, rows), take(self.Y, rows), weights)


class Point(NamedTuple):
    """All that the loss depends on: U (c, q), A (), (d,) or (d, q), log γ; or its gradient."""

    U: Array
    A: Array
    log_gamma: float


def target_loss(
    kernel: Radial, sample: Sample, point: Point, trace: float = 1.0, copies: float = 1.0
) -> tuple[float, Point | None]:
    """Return L/n of a sample with centred targets, and its gradient.

    `trace` is τ, and each row counts `copies` times, as those of a batch do. If a factorisation
    fails by rounding, the loss is infinite and has no gradient.
    """
    (X, Y, counts), (U, A, log_gamma) = sample, point
    xp, whole = namespace(X), A.ndim == 2
    weighted = Y if counts is None else Y * counts[:, None]
    n = copies * (sample.n if counts is None else float(xp.sum(counts)))
    blocks: dict[int, tuple[Array, Array]] = {}

    def add_up(rows: slice) -> tuple[Array, Array]:
        C, slope = kernel.profile(_squared_distances(map_rows(X[rows, :], A), U))
        blocks[rows.start] = C, slope
        return C.T @ (C if counts is None else C * counts[rows, None]), C.T @ weighted[rows, :]

    # made once, because the number of threads may change
    block = max(LEAST_BLOCK, block_bytes(X) // 8) // U.shape[0] + 1
    threads = usable_threads(Budget()) if isinstance(X, np.ndarray) else 1
    plan = Plan(sample.n, min(block, sample.n), threads)
    S, b = (
        copies * reduce(add, part) for part in zip(*run_blocks(add_up, sample.n, plan), strict=True)
    )
    W, within_slope = kernel.profile(_squared_distances(U, U))
    eye = identity(U.shape[0], U)
    W = W * (1 - eye) + eye * (1 + JITTER)
    with threads_for(U.shape[0]):
        solved = _solve(S, b, W, copies * xp.sum(weighted * Y), n, log_gamma, trace)
    if solved is None:
        return float("inf"), None
    value, to_log_gamma, to_cross, to_within, w, w_noise = solved

    def differentiate(rows: slice) -> tuple[Array, ...]:
        """Return sums over pairs of B = ∂L/∂C ∘ φ': Bᵀx, Bᵀ1, and xᵀ diag(B1) x."""
        (C, slope), x = blocks[rows.start], X[rows, :]
        B = C @ to_cross
        B += (C @ w - Y[rows, :]) @ w_noise.T
        B *= slope
        if counts is not None:
            B *= counts[rows, None]
        return B.T @ x, xp.sum(B, axis=0), _product(x, x * xp.sum(B, axis=1)[:, None], whole)

    BX, column, spread = (
        copies * reduce(add, part)
        for part in zip(*run_blocks(differentiate, sample.n, plan), strict=True)
    )
    # W counts twice: each landmark is on both of its sides
    B = 2 * to_within * within_slope * (1 - eye)
    to_U = 2 * ((column + xp.sum(B, axis=0))[:, None] * U - map_rows(BX, A) - B @ U)
    to_A = 2 * ((spread @ A if whole else spread * A) - _product(BX, U, whole))
    to_A = xp.sum(to_A) if A.ndim == 0 else to_A
    return value / n, Point(to_U / n, to_A / n, to_log_gamma / n)


def map_rows(X: Array, A: Array) -> Array:
    """Return XA, the mapped rows."""
    return X @ A if A.ndim == 2 else X * A


def for_landmarks(Z: Array, A: Array, gradient: Point) -> Point:
    """Return the gradient with respect to Z, A and log γ where U = ZA moves with the metric."""
    through = _product(Z, gradient.U, A.ndim == 2)
    to_A = gradient.A + (namespace(Z).sum(through) if A.ndim == 0 else through)
    back = A.T if A.ndim == 2 else A
    return gradient._replace(U=map_rows(gradient.U, back), A=to_A)


def _solve(
    S: Array, b: Array, W: Array, total: Array, n: float, log_gamma: float, tau: float
) -> tuple[Any, ...] | None:
    """Return the loss, its derivatives by log γ, C (as far as C counts) and W, w and w/s²t.

    It factorises W = L Lᵀ and T = L⁻¹SL⁻ᵀ + γI, which is better conditioned than M.
    """
    xp, (c, t), gamma = namespace(S), b.shape, float(np.exp(log_gamma))
    try:
        L_inverse = triangular_inverse(xp.linalg.cholesky(W))
        T = L_inverse @ S @ L_inverse.T
        root = xp.linalg.cholesky(T + gamma * identity(c, S))
        H = triangular_inverse(root) @ L_inverse
    except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
        return None
    h = H @ b
    w, M_inverse, W_inverse = H.T @ h, H.T @ H, L_inverse.T @ L_inverse
    left, least = total - xp.sum(h * h), EXACT * total
    noise = xp.where(left > least, left, least) / (n * t)
    noise = xp.where(noise > 0, noise, xp.ones_like(noise) * EXACT)
    missed = xp.clip(n - xp.linalg.trace(T), min=0.0)
    log_det = 2 * xp.sum(xp.log(xp.linalg.diagonal(root)))
    value = (n * xp.log(noise) + log_det - c * log_gamma + tau * missed / gamma) / 2
    w_noise = w / (noise * t)
    K = L_inverse.T @ root  # W⁻¹SW⁻¹ = L⁻ᵀTL⁻¹, of which the square costs half a product
    to_within = gamma * M_inverse - (1 + tau) * W_inverse + gamma * (w @ w_noise.T)
    to_within = to_within + (tau / gamma) * (K @ K.T)
    spread = xp.sum(M_inverse * W) + xp.sum(w_noise * (W @ w))
    to_log_gamma = (gamma * spread - c - tau * missed / gamma) / 2
    # one transfer, because a GPU synchronises at each
    numbers = to_host(xp.stack([noise, value, to_log_gamma]))
    if not np.isfinite(numbers).all():
        return None
    to_cross = M_inverse - (tau / gamma) * W_inverse
    return float(numbers[1]), float(numbers[2]), to_cross, to_within / 2, w, w_noise


def _squared_distances(X: Array, U: Array) -> Array:
    """Return ‖x − u‖² for all pairs, from one product: a search needs no more digits."""
    squared = X @ (-2.0 * U).T
    squared += squared_norms(X)[:, None]
    squared += squared_norms(U)[None, :]
    return namespace(X).clip(squared, min=0.0)


def _product(X: Array, Y: Array, whole: bool) -> Array:
    """Return XᵀY, or its diagonal alone."""
    return X.T @ Y if whole else namespace(X).sum(X * Y, axis=0)
