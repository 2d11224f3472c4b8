"""Refinement: L-BFGS on the landmarks, with the joint approximation's error on a sample as loss.

With C = k(S, Z) and P the projector onto its range, the error is ‖G − P G P‖. It depends on about
as many leading eigenvectors of G as there are landmarks. So G is replaced by F Fᵀ of little more
than that rank, and no step multiplies by the s×s matrix.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from nysboost.gram import KernelGram, Landmarks, Sample
from nysboost.joint.core import Fit, OptimalCore, matrix_of, norm, sampled_error
from nysboost.joint.joint_constants import (
    FEWEST_STEPS,
    POWERS,
    RANK,
    REFINING,
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
from nysboost.numerics.descent import descend
from nysboost.numerics.linalg import max_abs, norms, orthonormalise, range_basis, times
from nysboost.numerics.progress import current
from nysboost.numerics.threads import threads_for
from nysboost.numerics.tolerances import (
    CANCELLED,
    CLEAR,
    EPS,
    NOTHING_LEFT,
    ROUNDING,
    SHALLOW,
    SINGLE,
    SQUARABLE,
)


def refine(sample: Sample, fit: Fit, core: OptimalCore) -> Landmarks:
    """Return landmarks with a smaller error on the sample, by L-BFGS from those of `fit`.

    The logarithm of the loss is minimised over landmarks in units of the data's spread. The search
    for the leading eigenvectors of the sample's G starts from the range of `core`.
    """
    gram = sample.gram
    landmarks = fit.learner.landmarks
    assert isinstance(gram, KernelGram)

    # points in float64, and their spread
    everything = slice(None)
    X = gram.rows.take(everything)
    exact = in_float64(X)
    unit = _spread(exact)
    if not np.isfinite(unit):  # squares overflow: keep the landmarks
        return landmarks

    # the loss on G ≈ F Fᵀ
    s = len(sample)
    c = len(landmarks)
    G = matrix_of(sample, fit.error > SINGLE)
    F = low_rank_factor(G, core, c)
    in_float32 = gram.in_float32()
    loss = ProjectionLoss(
        gram.kernel,
        exact,
        F,
        rounded=in_float32.rows.take(everything),
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
    return Landmarks(None, like(scaled * unit, X))


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
        if self._coarse:
            rounded = _cast(Z, self.rounded.dtype)
            return self._rounded_evaluator(rounded).T
        exact = _cast(Z, self.X.dtype)
        return self._exact_evaluator(exact).T

    @cached_property
    def _exact_evaluator(self) -> Evaluator:
        return self.kernel.against(self.X)

    @cached_property
    def _rounded_evaluator(self) -> Evaluator:
        return self.kernel.against(self.rounded)

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
        near = self._update_basis(C)
        if near is not None:
            return near
        A, T = range_basis(C)
        U = identity(A.shape[1], A)
        self._last = T
        return FactoredBasis(A, U, T)

    def _update_basis(self, C: Array) -> FactoredBasis | None:
        """Return the basis updated from the last T, or None if C has changed too much."""
        last = self._last
        if last is None:
            return None
        c, rank = last.shape
        if rank < c:
            return None

        # from CᵀC, unless it loses too many digits
        CC = C.T @ C
        trace = float(namespace(C).linalg.trace(CC))
        lost = EPS * trace * norm(last) ** 2
        if lost > SQUARABLE:
            return self._update_product(C, last)

        with threads_for(C.shape[1]):
            U = orthonormalise(CC, last)
        if U is None:
            return None
        self._last = U
        return FactoredBasis(C, U, U)

    def _update_product(self, C: Array, last: Array) -> FactoredBasis | None:
        """Return the basis from AᵀA with A = C times the last T, which is nearly orthonormal."""
        A = C @ last
        start = identity(last.shape[0], C)
        with threads_for(C.shape[1]):
            U = orthonormalise(A.T @ A, start)
        if U is None:
            return None
        self._last = last @ U
        return FactoredBasis(A, U, self._last)


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
