"""Refinement: L-BFGS on the landmarks, with the joint approximation's error on a sample as loss.

With C = k(S, Z) and P the projector onto its range, the error is ‖G − P G P‖. It depends on about
as many leading eigenvectors of G as there are landmarks. So G is replaced by F Fᵀ of little more
than that rank, and no step multiplies by the s×s matrix.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from nysboost.gram import KernelGram, Landmarks, Sample
from nysboost.joint.core import Fit, OptimalCore, matrix_of, norm, sampled_error
from nysboost.joint.joint_constants import (
    FEWEST_STEPS,
    MEMORY,
    POWERS,
    RANK,
    REFINING,
    SHRUNK,
    STEPS_OF_ALL,
    WORTH,
)
from nysboost.kernels import Evaluator, Kernel
from nysboost.numerics.arrays import (
    Array,
    DType,
    identity,
    in_dtype_of,
    in_float64,
    like,
    namespace,
    to_host,
)
from nysboost.numerics.linalg import max_abs, norms, orthonormalise, range_basis, times
from nysboost.numerics.progress import current
from nysboost.numerics.threads import threads_for
from nysboost.numerics.tolerances import (
    CANCELLED,
    CLEAR,
    EPS,
    NOTHING,
    NOTHING_LEFT,
    ROUNDING,
    SHALLOW,
    SINGLE,
    SQUARABLE,
    SUFFICIENT,
)


def refine(sample: Sample, fit: Fit, core: OptimalCore) -> Landmarks:
    """Return landmarks with a smaller error on the sample, by L-BFGS from those of `fit`.

    The logarithm of the loss is minimised over landmarks in units of the data's spread. The search
    for the leading eigenvectors of the sample's G starts from the range of `core`.
    """
    gram = sample.gram
    landmarks = fit.learner.landmarks
    assert isinstance(gram, KernelGram)

    # points, and their spread
    everything = slice(None)
    X = in_float64(gram.rows.take(everything))
    unit = _spread(X)
    if not np.isfinite(unit):  # squares overflow: keep the landmarks
        return landmarks

    # the loss on G ≈ F Fᵀ
    s = len(sample)
    c = len(landmarks)
    G = matrix_of(sample, fit.error > SINGLE)
    F = low_rank_factor(G, core, c)
    loss = ProjectionLoss(
        gram.kernel,
        X,
        F,
        rounded=gram.in_float32().rows.take(everything),
        outside=sampled_error(G, F) ** 2,
        coarse=fit.error**2 > SHALLOW,
    )

    # fewer steps for more landmarks
    steps = max(FEWEST_STEPS, STEPS_OF_ALL // c)
    work = current()
    if not work.total:  # not part of a larger fit
        work.begin(s * steps / REFINING)

    def objective(scaled: Array) -> tuple[float, Array]:
        """Return log(loss) and its gradient, for landmarks in units of the data's spread."""
        value, gradient = loss(scaled * unit)
        work.step(s)
        if value < NOTHING_LEFT:
            gradient = namespace(X).zeros_like(gradient)  # ends the descent
        return float(np.log(value)), gradient * (unit / value)

    start = in_float64(landmarks.Z) / unit
    scaled = descend(objective, start, steps, WORTH)
    gram.counter.add(loss.evaluations * s, c)
    return Landmarks(None, like(scaled * unit, landmarks.Z))


def _spread(X: Array) -> float:
    """Return the square root of the total variance; 1 if all rows are equal."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        variances = xp.var(X, axis=0)
        total = xp.sum(variances)
        return float(xp.sqrt(total)) or 1.0


class ProjectionLoss:
    """Z ↦ ‖F Fᵀ − P F Fᵀ P‖² / ‖F Fᵀ‖² and its gradient, P the projector onto range k(X, Z).

    With C = k(X, Z), P = Q Qᵀ, C⁺ = T Qᵀ and H = Qᵀ F Fᵀ Q the gradient with respect to C is

        −4 (I − P) F (Fᵀ Q H Tᵀ) / ‖F Fᵀ‖².

    Parameters
    ----------
    kernel : Kernel
    X : array of shape (s, d), float64
    F : array of shape (s, r), float64
    rounded : array of shape (s, d), float32, or None
        X for gradients, and for kernel values where float32 is accurate enough.
    outside : float
        The squared error of F Fᵀ, added to the loss.
    coarse : bool
        Whether float32 is accurate enough for the first evaluation.
    """

    def __init__(
        self,
        kernel: Kernel,
        X: Array,
        F: Array,
        rounded: Array | None = None,
        outside: float = 0.0,
        coarse: bool = False,
    ):
        self.kernel = kernel
        self.X = X
        self.F = F
        self.rounded = X
        if rounded is not None:
            self.rounded = rounded
        self.norm = norm(F.T @ F) or 1.0
        self.outside = outside
        self.evaluations = 0
        self._coarse = coarse
        self._last: Array | None = None  # T of an evaluation that a nearby one may start from
        self._evaluators: dict[DType, Evaluator] = {}  # x ↦ k(x, X) for X in each precision
        self._F_by_dtype: dict[DType, Array] = {}

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, shape (c, d)."""
        self.evaluations += 1
        C = self._evaluate_kernel(Z)
        A, U, T = self._find_basis(in_float64(C))

        # H and the right factor of the gradient, all of them small
        AF = A.T @ self.F
        with threads_for(AF.shape[1]):
            QF = U.T @ AF
            H = QF @ QF.T
            HT = H / self.norm @ T.T
            scale = -4 / self.norm
            right: Array = QF.T @ HT * scale
            shares = U @ QF

        # (I − P) F, the left factor
        loss = 1 - (norm(H) / self.norm) ** 2
        dtype: DType = A.dtype
        if loss > CLEAR:
            dtype = C.dtype
        explained = _cast(A, dtype) @ _cast(shares, dtype)
        missed = self._F_in(dtype) - explained

        if loss < CANCELLED:
            loss = self._loss_without_cancellation(QF, missed)
            self._last = None  # near rounding the basis is computed anew
        loss += self.outside

        # in what precision the gradient is pulled back, and C is evaluated next
        self._coarse = loss > SHALLOW
        return loss, self._pull_back(Z, C, missed, right)

    def _evaluate_kernel(self, Z: Array) -> Array:
        """Return C = k(X, Z), in float32 if the last loss was large enough."""
        X = self.X
        if self._coarse:
            X = self.rounded
        if X.dtype not in self._evaluators:
            self._evaluators[X.dtype] = self.kernel.against(X)
        evaluate = self._evaluators[X.dtype]
        return evaluate(_cast(Z, X.dtype)).T

    def _F_in(self, dtype: DType) -> Array:  # noqa: N802
        """Return F in a precision, converted once."""
        if dtype not in self._F_by_dtype:
            self._F_by_dtype[dtype] = _cast(self.F, dtype)
        return self._F_by_dtype[dtype]

    def _loss_without_cancellation(self, QF: Array, missed: Array) -> float:
        """Return 2⟨Fᵀ P F, F'ᵀ F'⟩ + ‖F'ᵀ F'‖² with F' = (I − P) F, relative to ‖F Fᵀ‖²."""
        xp = namespace(QF)
        gap: Array = missed.T @ missed / self.norm
        explained = 2 * (QF.T @ QF) / self.norm
        products = (explained + gap) * gap
        loss = float(xp.sum(products))
        smallest = float(np.finfo(np.float64).tiny)
        return max(loss, smallest)

    def _pull_back(self, Z: Array, C: Array, left: Array, right: Array) -> Array:
        """Return the gradient in Z, in float64, from its factors in C: left · right."""
        X = self.X
        if self._coarse:
            X = self.rounded
        size = max_abs(right) or 1.0  # may be out of float32's range

        # the gradient in C, in the precision of X
        left = in_dtype_of(left, X)
        right = in_dtype_of(right / size, X)
        of_values = (right.T @ left.T).T

        # the gradient in Z
        Z = in_dtype_of(Z, X)
        C = in_dtype_of(C, X)
        gradient = self.kernel.pullback(X, Z, C, of_values)
        return in_float64(gradient) * size

    def _find_basis(self, C: Array) -> FactoredBasis:
        """Return an orthonormal basis of the range of C, updated from the last C if possible."""
        basis = self._update_basis(C)
        if basis is None:
            A, T = range_basis(C)
            basis = FactoredBasis(A, identity(A.shape[1], A), T)
        self._last = basis.T
        return basis

    def _update_basis(self, C: Array) -> FactoredBasis | None:
        """Return the basis updated from the last T, or None if C has changed too much."""
        last = self._last
        if last is None or last.shape[0] > last.shape[1]:
            return None

        # from CᵀC, unless that loses too many digits
        CC = C.T @ C
        trace = float(namespace(C).linalg.trace(CC))
        lost = EPS * trace * norm(last) ** 2
        if lost <= SQUARABLE:
            with threads_for(C.shape[1]):
                U = orthonormalise(CC, last)
            if U is None:
                return None
            return FactoredBasis(C, U, U)

        # then from AᵀA with A = C times the last T, which is nearly orthonormal
        A = C @ last
        start = identity(last.shape[0], C)
        with threads_for(C.shape[1]):
            U = orthonormalise(A.T @ A, start)
        if U is None:
            return None
        return FactoredBasis(A, U, last @ U)


class FactoredBasis(NamedTuple):
    """An orthonormal basis Q = A U = C T, where A is C, C times the last T, or Q itself."""

    A: Array
    U: Array
    T: Array


def low_rank_factor(G: Array, core: OptimalCore, c: int) -> Array:
    """Return F of shape (s, r) with F Fᵀ nearly G, (s, s), on its leading eigenvectors.

    Subspace iteration from the range of `core`, for c landmarks, in the precision of G.
    """
    F = _multiply_root(core.Q, core.GQ)
    for _ in range(POWERS):
        V = F / norms(F, axis=0)
        F = _multiply_root(V, times(G, V))

    # columns stand by rising norm
    rank = round(RANK * c)
    first = max(0, F.shape[1] - rank)
    return F[:, first:]


def _multiply_root(V: Array, GV: Array) -> Array:
    """Return G V (Vᵀ G V)^(−½) with columns by increasing norm, without rounding errors."""
    xp = namespace(V)
    H = V.T @ GV
    symmetric = (H + H.T) / 2
    eigenvalues, Y = xp.linalg.eigh(symmetric)

    # (Vᵀ G V)^(−½) without the eigenvalues that are rounding
    floor = ROUNDING * EPS * float(eigenvalues[-1])
    below = to_host(eigenvalues) <= floor
    unknown = int(below.sum())
    roots = xp.sqrt(eigenvalues[unknown:])
    inverse_root = Y[:, unknown:] / roots
    F: Array = GV @ inverse_root
    return F


def _cast(A: Array, dtype: DType) -> Array:
    """Return an array in a precision, without a copy if it has that precision."""
    return namespace(A).astype(A, dtype, copy=False)


# L-BFGS


Pairs: TypeAlias = deque[tuple[Array, Array, float]]
"""Steps s, each with the change y of the gradient and 1/⟨s, y⟩; the newest is last."""


def descend(
    objective: Callable[[Array], tuple[float, Array]],
    x: Array,
    max_iter: int,
    worth: float = 0.0,
) -> Array:
    """Minimise by L-BFGS from x, and return the last point; SciPy's is several times slower.

    `objective` maps x to value and gradient, at most `max_iter` times after the first. The second
    step in a row that gains < `worth` is the last.
    """
    value, gradient = objective(x)
    pairs: Pairs = deque(maxlen=MEMORY)

    # the first step has length 1
    direction = -gradient
    length = float(_dot(gradient, gradient)) ** 0.5
    step = 1 / (length or 1.0)
    gained_before = math.inf

    for _ in range(max_iter):
        # the change of the value if it were linear
        promised = step * float(_dot(direction, gradient))
        if not promised < -NOTHING:
            break

        # a step that gains too little, or meets NaN, is tried again at a quarter of its length
        moved = step * direction
        next_value, next_gradient = objective(x + moved)
        if not next_value <= value + SUFFICIENT * promised:
            step /= 4
            continue

        # curvature: only pairs with ⟨s, y⟩ > 0 keep H positive definite
        bend = next_gradient - gradient
        along = float(_dot(moved, bend))
        if along > NOTHING * -promised:
            pairs.append((moved, bend, 1 / along))

        # make the step
        gained = value - next_value
        x = x + moved
        value = next_value
        gradient = next_gradient
        if max(gained, gained_before) < worth:
            break
        gained_before = gained

        # the next direction is −H g, whose step is 1
        direction = -_inverse_hessian_times(pairs, gradient)
        if pairs:
            step = 1.0
    return x


def _inverse_hessian_times(pairs: Pairs, gradient: Array) -> Array:
    """Return H g by the two loops of Nocedal (1980), with the newest pair setting the scales.

    Each row of a matrix has its own scale, its step divided by the change of its gradient, because
    landmarks move by different distances. On MNIST with c = 240, 16 steps then have the error of
    26.
    """
    # from the newest pair to the oldest
    shares = []
    for moved, bend, weight in reversed(pairs):
        share = weight * _dot(moved, gradient)
        shares.append(share)
        gradient = gradient - share * bend

    # the scales of the newest pair stand for H before all pairs
    if pairs:
        moved, bend, weight = pairs[-1]
        ratios = _squares_of_rows(moved) / _squares_of_rows(bend)
        scales = namespace(bend).sqrt(ratios)
        along = weight * _dot(bend, scales * bend)
        gradient = gradient * (scales / along)

    # and back again
    for moved, bend, weight in pairs:
        change = shares.pop() - weight * _dot(bend, gradient)
        gradient = gradient + change * moved
    return gradient


def _squares_of_rows(a: Array) -> Array:
    """Return ‖row‖² as a column (for a vector, one number), shrunk towards their mean."""
    xp = namespace(a)
    squares = xp.sum(a * a, axis=-1, keepdims=True)
    mean = xp.mean(squares)
    return squares + SHRUNK * mean


def _dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩, a scalar on the device of the data, without waiting for it."""
    xp = namespace(a)
    flat = xp.reshape(a, (-1,))
    return flat @ xp.reshape(b, (-1,))
