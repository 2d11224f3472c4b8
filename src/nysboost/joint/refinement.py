"""Refinement: L-BFGS on the landmarks, with the joint approximation's error on a sample as loss.

With C = k(S, Z) and P the projector onto its range, the error is ‖G − P G P‖. It depends on about
as many leading eigenvectors of G as there are landmarks, so that G is replaced by F Fᵀ of little
more than that rank, and no step multiplies by the s×s matrix.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from nysboost.gram import KernelGram, Landmarks, Sample
from nysboost.joint.core import Fit, OptimalCore, relative_error
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, identity, like, namespace, to_host
from nysboost.numerics.descent import descend
from nysboost.numerics.linalg import norms, orthonormalise, range_basis, times
from nysboost.numerics.magnitudes import max_abs
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
    cutoff,
)

FEWEST, STEPS_OF_ALL = 18, 8400
"""At most STEPS_OF_ALL / c steps with c landmarks, but no fewer than FEWEST."""

WORTH = 0.002
"""L-BFGS stops after two steps in a row that each reduce the loss by less than this share. With
0.0025 the error on MNIST, c = 240, is 0.3 % larger, in 4 % less time; 0.0015 takes a tenth more on
Covertype."""

REFINING = 0.9
"""Share of a joint fit's time that refinement takes, as assumed by the progress bar."""


def refine(sample: Sample, fit: Fit, core: OptimalCore) -> Landmarks:
    """Return landmarks with a smaller error on the sample, by L-BFGS from those of `fit`.

    The logarithm of the loss is minimised over landmarks in units of the data's spread. The range
    of `core` is where the search for the largest eigenvectors of the sample's G begins.
    """
    gram, landmarks = sample.gram, fit.learner.landmarks
    assert isinstance(gram, KernelGram)
    X, rounded = (part.rows.take(slice(None)) for part in (gram, gram.in_float32()))
    xp = namespace(X)
    exact, Z = (xp.astype(part, xp.float64, copy=False) for part in (X, landmarks.points))
    with np.errstate(over="ignore", invalid="ignore"):
        unit = float(xp.sqrt(xp.sum(xp.var(exact, axis=0)))) or 1.0
    if not np.isfinite(unit):  # squares overflow: keep the landmarks
        return landmarks
    G = sample.single if fit.error > SINGLE else sample.matrix
    F = low_rank_factor(G, core, len(landmarks))
    outside, coarse = relative_error(G, F) ** 2, fit.error**2 > SHALLOW
    loss = ProjectionLoss(gram.kernel, exact, F, rounded, outside, coarse)
    steps, work = max(FEWEST, STEPS_OF_ALL // len(landmarks)), current()
    if not work.total:  # not part of a larger fit
        work.begin(len(sample) * steps / REFINING)

    def objective(scaled: Array) -> tuple[float, Array]:
        value, gradient = loss(scaled * unit)
        work.step(len(sample))
        if value < NOTHING_LEFT:
            gradient = xp.zeros_like(gradient)  # which ends the descent
        return float(np.log(value)), gradient * (unit / value)

    Z = descend(objective, Z / unit, steps, WORTH) * unit
    gram.counter.count += loss.evaluations * len(sample) * len(landmarks)
    return Landmarks(None, like(Z, X))


class ProjectionLoss:
    """Z ↦ ‖F Fᵀ − P F Fᵀ P‖² / ‖F Fᵀ‖² and its gradient, P the projector onto range k(X, Z).

    With C = k(X, Z), P = Q Qᵀ, C⁺ = T Qᵀ and H = Qᵀ F Fᵀ Q the gradient with respect to C is
    −4 (I − P) F (Fᵀ Q H Tᵀ) / ‖F Fᵀ‖². `X` (s, d) and `F` (s, r) are in float64; `rounded` is X in
    float32, for gradients, or None. `outside` is the squared error of F Fᵀ, added to the loss.
    `coarse` says whether float32 is accurate enough for the first evaluation.
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
        self.kernel, self.X, self.F = kernel, X, F
        self.rounded = X if rounded is None else rounded
        self.norm = float(norms(F.T @ F)) or 1.0
        self.outside, self.evaluations = outside, 0
        self._coarse = coarse
        self._last: Array | None = None  # T of an evaluation that a nearby one may start from
        points = X, self.rounded
        self._against = cache(lambda coarse: kernel.against(points[coarse]))
        self._F = cache(lambda precision: namespace(F).astype(F, precision, copy=False))

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, shape (c, d)."""
        self.evaluations += 1
        xp, X = namespace(Z), self.rounded if self._coarse else self.X
        C = self._against(self._coarse)(xp.astype(Z, X.dtype, copy=False)).T
        A, U, T = self._basis(xp.astype(C, xp.float64, copy=False))  # Q = A U = C T
        AF = A.T @ self.F
        with threads_for(AF.shape[1]):
            QF = U.T @ AF
            H = QF @ QF.T
            right: Array = QF.T @ (H / self.norm @ T.T) * (-4 / self.norm)
            inner = U @ QF
        loss = 1 - (float(norms(H)) / self.norm) ** 2
        precision = C.dtype if loss > CLEAR else xp.float64
        basis, shares = (xp.astype(B, precision, copy=False) for B in (A, inner))
        missed = self._F(precision) - basis @ shares  # (I − P) F
        if loss < CANCELLED:  # 2⟨Fᵀ P F, F'ᵀ F'⟩ + ‖F'ᵀ F'‖², with F' = (I − P) F, does not cancel
            gap: Array = missed.T @ missed / self.norm
            loss = float(xp.sum((2 * (QF.T @ QF) / self.norm + gap) * gap))
            loss = max(loss, float(np.finfo(np.float64).tiny))
            self._last = None  # near rounding the basis is computed anew
        loss += self.outside
        self._coarse = loss > SHALLOW
        X = self.rounded if self._coarse else self.X
        size = max_abs(right) or 1.0  # may be out of float32's range
        parts = (Z, C, missed, right / size)
        z, values, left, right = (xp.astype(part, X.dtype, copy=False) for part in parts)
        gradient = self.kernel.pullback(X, z, values, (right.T @ left.T).T)
        return loss, xp.astype(gradient, xp.float64, copy=False) * size

    def _basis(self, C: Array) -> tuple[Array, Array, Array]:
        """Return A, U and T with an orthonormal basis Q = A U = C T, from the previous T if near.

        A is C, or C times the last T where CᵀC would lose too many digits.
        """
        A, last, U = C, self._last, None
        if last is not None and last.shape[0] == last.shape[1]:
            S, start = C.T @ C, last
            if EPS * float(namespace(C).linalg.trace(S)) * float(norms(last)) ** 2 > SQUARABLE:
                A, start = C @ last, identity(last.shape[0], C)
                S = A.T @ A
            with threads_for(C.shape[1]):
                U = orthonormalise(S, start)
        if last is None or U is None:
            A, self._last = range_basis(C)
            return A, identity(A.shape[1], A), self._last
        self._last = U if A is C else last @ U
        return A, U, self._last


POWERS, RANK = 2, 1.1
"""Steps of subspace iteration, and columns of F for each landmark: within 0.2 % of the error of G
itself."""


def low_rank_factor(G: Array, core: OptimalCore, c: int) -> Array:
    """Return F of shape (s, r) with F Fᵀ nearly G, (s, s), on its leading eigenvectors.

    Subspace iteration from the range of `core`, for c landmarks, in the precision of G.
    """
    F = _multiply_root(core.Q, core.GQ)
    for _ in range(POWERS):
        V = F / norms(F, axis=0)
        F = _multiply_root(V, times(G, V))
    return F[:, max(0, F.shape[1] - round(RANK * c)) :]


def _multiply_root(V: Array, GV: Array) -> Array:
    """Return G V (Vᵀ G V)^(−½), columns by rising norm, without those that are rounding error."""
    xp = namespace(V)
    H = V.T @ GV
    eigenvalues, Y = xp.linalg.eigh((H + H.T) / 2)
    unknown = int((to_host(eigenvalues) <= cutoff(ROUNDING, EPS) * float(eigenvalues[-1])).sum())
    F: Array = GV @ (Y[:, unknown:] / xp.sqrt(eigenvalues[unknown:]))
    return F
