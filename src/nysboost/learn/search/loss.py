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
        weighted = self.weighted(self.Y)
        return xp.sum(weighted, axis=0) / xp.sum(self.weights)

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
        X = take(self.X, rows)
        Y = take(self.Y, rows)
        return TrainingRows(X, Y, weights)


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

    `trace` is τ. Each row counts `copies` times, because a batch stands for all rows. If rounding
    makes a factorisation fail, the loss is infinite and has no gradient.
    """
    U = point.U
    C = CrossKernel(kernel, rows, point)
    W = LandmarkKernel.of(kernel, U)

    # L from the sums S = CᵀC, b = CᵀY and YᵀY
    sums = C.sums().times(copies)
    with threads_for(U.shape[0]):
        bound = CollapsedBound.of(sums, W.values, point.log_gamma, trace)
    if bound is None:
        return float("inf"), None

    # ∂L/∂C ∘ φ' and ∂L/∂W ∘ φ' are derivatives by squared distances of pairs
    cross = C.pull_back(bound)
    within = W.pull_back(bound)

    to_U = _by_landmarks(point, cross, within, copies)
    to_A = _by_metric(point, cross, copies)
    n = sums.n
    gradient = Point(to_U / n, to_A / n, bound.to_log_gamma / n)
    return bound.value / n, gradient


def _by_landmarks(
    point: Point,
    cross: CrossGradient,
    within: Array,
    copies: float,
) -> Array:
    """Return ∂L/∂U (c, q): pairs of a row and a landmark, and pairs of two landmarks."""
    xp = namespace(point.U)
    U = point.U

    # ∂‖xA − u‖²/∂u = 2(u − xA)
    weights = copies * cross.column + xp.sum(within, axis=0)
    rows = copies * map_rows(cross.BX, point.A)
    pulled = rows + within @ U
    return 2 * (weights[:, None] * U - pulled)


def _by_metric(point: Point, cross: CrossGradient, copies: float) -> Array:
    """Return ∂L/∂A in the shape of A; W does not depend on it."""
    A = point.A

    # ∂‖xA − u‖²/∂A = 2x(xA − u)ᵀ
    from_rows = map_rows(cross.spread, A)
    from_landmarks = _inner(cross.BX, point.U, A)
    return _in_shape_of(A, 2 * copies * (from_rows - from_landmarks))


def map_rows(X: Array, A: Array) -> Array:
    """Return XA, the mapped rows."""
    if A.ndim == 2:
        return X @ A
    return X * A


def for_landmarks(Z: Array, A: Array, gradient: Point) -> Point:
    """Return the gradient with respect to Z, A and log γ where U = ZA moves with the metric."""
    # ∂L/∂Z = ∂L/∂U Aᵀ
    back = A
    if A.ndim == 2:
        back = A.T
    to_Z = map_rows(gradient.U, back)

    # ∂L/∂A gains Zᵀ ∂L/∂U
    through = _in_shape_of(A, _inner(Z, gradient.U, A))
    return Point(to_Z, gradient.A + through, gradient.log_gamma)


class Sums(NamedTuple):
    """Sums over rows that the bound needs: S (c, c), b (c, t), YᵀY and n."""

    S: Array
    b: Array
    total: Array
    n: float

    def times(self, copies: float) -> Sums:
        """Return the sums if each row counts so many times."""
        S = copies * self.S
        b = copies * self.b
        total = copies * self.total
        return Sums(S, b, total, copies * self.n)


@dataclass(frozen=True, eq=False)
class Factors:
    """L⁻¹ of W = LLᵀ, the whitened L⁻¹SL⁻ᵀ, and roots of T = L⁻¹SL⁻ᵀ + γI and of M⁻¹, all (c, c).

    T is better conditioned than M = LTLᵀ. `M_root` is R with RᵀR = M⁻¹.
    """

    L_inverse: Array
    whitened: Array
    T_root: Array
    M_root: Array

    @classmethod
    def of(cls, S: Array, W: Array, gamma: float) -> Factors | None:
        """Return the factors, or None if one fails by rounding."""
        xp = namespace(S)
        ridge = gamma * identity(S.shape[0], S)
        try:
            L = xp.linalg.cholesky(W)
            L_inverse = triangular_inverse(L)
            whitened = L_inverse @ S @ L_inverse.T
            T_root = xp.linalg.cholesky(whitened + ridge)
            M_root = triangular_inverse(T_root) @ L_inverse
        except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's error is a RuntimeError
            return None
        return cls(L_inverse, whitened, T_root, M_root)

    @property
    def log_det(self) -> Array:
        """log|T|, which is log|M| − log|W|."""
        xp = namespace(self.T_root)
        roots = xp.linalg.diagonal(self.T_root)
        return 2 * xp.sum(xp.log(roots))

    def M_inverse(self) -> Array:  # noqa: N802
        """Return M⁻¹."""
        return self.M_root.T @ self.M_root

    def W_inverse(self) -> Array:  # noqa: N802
        """Return W⁻¹."""
        return self.L_inverse.T @ self.L_inverse

    def ridged_sums(self) -> Array:
        """Return W⁻¹SW⁻¹ + γW⁻¹ = L⁻ᵀTL⁻¹, from its root, which is half a product for BLAS."""
        K = self.L_inverse.T @ self.T_root
        return K @ K.T


@dataclass(frozen=True, eq=False)
class RidgeFit:
    """The weights w = M⁻¹b (c, t), and the noise s² = (YᵀY − bᵀw)/(nt)."""

    w: Array
    noise: Array

    @classmethod
    def of(cls, sums: Sums, factors: Factors) -> RidgeFit:
        """Return the fit to these sums."""
        M_root = factors.M_root
        half_solved = M_root @ sums.b
        w = M_root.T @ half_solved

        # bᵀw = ‖Rb‖²
        explained = namespace(w).sum(half_solved**2)
        n_outputs = w.shape[1]
        noise = _noise(sums.total, explained) / (sums.n * n_outputs)
        return cls(w, noise)


@dataclass(frozen=True, eq=False)
class CollapsedBound:
    """L and its derivatives by log γ, W (c, c) and C (n, c).

    `within` (c, c) is ∂L/∂W. `cross` (c + t, c) gives ∂L/∂C as the product [C, Y] · cross, which is
    C (M⁻¹ − τW⁻¹/γ) + (Cw − Y) wᵀ/(s²t). The t outputs share one s².
    """

    value: float
    to_log_gamma: float
    within: Array
    cross: Array

    @classmethod
    def of(cls, sums: Sums, W: Array, log_gamma: float, trace: float) -> CollapsedBound | None:
        """Return the bound with τ = `trace`, or None if a factorisation fails by rounding."""
        n = sums.n
        xp = namespace(W)
        c, t = sums.b.shape
        gamma = float(np.exp(log_gamma))
        factors = Factors.of(sums.S, W, gamma)
        if factors is None:
            return None

        # w, s² and w/(s²t); formulas below have t = 1
        fit = RidgeFit.of(sums, factors)
        w = fit.w
        noise = fit.noise
        w_noise = w / (noise * t)

        # L = ½ [n log s² + log|T| − c log γ + τ (n − tr W⁻¹S)/γ], log|M| = log|T| + log|W|
        of_trace = trace / gamma
        of_fit = n * xp.log(noise)
        of_size = factors.log_det - c * log_gamma
        missed = n - xp.linalg.trace(factors.whitened)
        penalty = of_trace * xp.clip(missed, min=0.0)
        value = (of_fit + of_size + penalty) / 2

        # ∂L/∂W = ½ (γ (M⁻¹ + wwᵀ/s²) + τ (W⁻¹SW⁻¹ + γW⁻¹)/γ − (1 + τ) W⁻¹)
        M_inverse = factors.M_inverse()
        W_inverse = factors.W_inverse()
        ww = w @ w_noise.T
        by_fit = gamma * (M_inverse + ww)
        by_matrix = of_trace * factors.ridged_sums() - (1 + trace) * W_inverse
        within = (by_fit + by_matrix) / 2

        # ∂L/∂C = C (M⁻¹ − τW⁻¹/γ + wwᵀ/s²) − Y wᵀ/s²
        of_C = M_inverse - of_trace * W_inverse + ww
        cross = xp.concat([of_C, -w_noise.T], axis=0)

        # ∂L/∂log γ = ½ (γ tr M⁻¹W − c + γwᵀWw/s² − τ (n − tr W⁻¹S)/γ)
        of_M = xp.sum(M_inverse * W)
        of_w = xp.sum(w_noise * (W @ w))
        fitted = of_M + of_w
        to_log_gamma = (gamma * fitted - c - penalty) / 2

        # one transfer, because a GPU synchronises at each
        numbers = to_host(xp.stack([value, to_log_gamma, noise]))
        if not np.isfinite(numbers).all():
            return None
        L, slope, _ = numbers.tolist()
        return cls(L, slope, within, cross)


def _noise(total: Array, explained: Array) -> Array:
    """Return YᵀY − bᵀw, kept positive even if y is constant or fully explained."""
    xp = namespace(total)
    least = EXACT * total
    noise = xp.maximum(total - explained, least)
    return xp.where(noise > 0, noise, xp.ones_like(noise) * EXACT)


@dataclass(frozen=True, eq=False)
class LandmarkKernel:
    """W = k(U, U), with ones and a jitter on the diagonal, and φ' off it, both (c, c)."""

    values: Array
    slope: Array

    @classmethod
    def of(cls, kernel: Radial, U: Array) -> LandmarkKernel:
        """Return the kernel of mapped landmarks, whose diagonal does not depend on them."""
        squared = _squared_distances(U, U)
        W, slope = kernel.profile(squared)
        eye = identity(U.shape[0], U)
        off_diagonal = 1 - eye
        values = W * off_diagonal + eye * (1 + JITTER)
        return cls(values, slope * off_diagonal)

    def pull_back(self, bound: CollapsedBound) -> Array:
        """Return 2 ∂L/∂W ∘ φ', because each landmark is on both sides of W."""
        return 2 * bound.within * self.slope


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
        fitting = entries // point.U.shape[0] + 1
        block = min(fitting, rows.n)
        self.plan = Plan(rows.n, block, threads)

    def sums(self) -> Sums:
        """Return S = CᵀC, b = CᵀY, YᵀY and n, and keep [C, Y] and φ' of each block."""
        S, b = self._sum(self._block_moments)
        rows = self.rows
        weighted = rows.weighted(rows.Y)
        total = namespace(rows.Y).sum(weighted * rows.Y)
        return Sums(S, b, total, rows.total_weight())

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
        BX = B.T @ some.X
        column = xp.sum(B, axis=0)
        of_rows = xp.sum(B, axis=1)[:, None]
        spread = _inner(some.X, some.X * of_rows, self.point.A)
        return BX, column, spread


def _squared_distances(X: Array, U: Array) -> Array:
    """Return ‖x − u‖² for all pairs from one product, which is precise enough for a search."""
    # [x, ‖x‖², 1] times [−2u, 1, ‖u‖²]
    xp = namespace(X)
    x = squared_norms(X)[:, None]
    u = squared_norms(U)[:, None]
    of_x = xp.ones_like(x)
    of_u = xp.ones_like(u)
    left = xp.concat([X, x, of_x], axis=1)
    right = xp.concat([-2 * U, of_u, u], axis=1)

    # rounding may make the distance of equal points negative
    squared = left @ right.T
    return apply_in_place("maximum", squared, 0.0)


def _inner(X: Array, Y: Array, A: Array) -> Array:
    """Return XᵀY if A is a full metric, else only its diagonal."""
    if A.ndim == 2:
        return X.T @ Y
    return namespace(X).sum(X * Y, axis=0)


def _in_shape_of(A: Array, gradient: Array) -> Array:
    """Return the sum of a gradient by scales of features if A is one scale for all of them."""
    if A.ndim == 0:
        return namespace(gradient).sum(gradient)
    return gradient
