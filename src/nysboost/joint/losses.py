"""What landmarks serve: losses with their gradients.

The matrix loss of landmarks Z on a sample with Gram matrix G is the relative squared error
of the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.linalg import nearby_basis, norms, range_basis
from nysboost.numerics.split import SplitMatrix
from nysboost.numerics.tolerances import CANCELLED, SHALLOW

STEP = 1e-4
"""Of a landmark along the features' spread, to see how its column turns."""


class MatrixLoss:
    """Z ↦ ‖G − P G P‖² / ‖G‖² and its gradient, with P the projector onto the range of k(X, Z).

    With C = k(X, Z), P = Q Qᵀ and H = Qᵀ G Q, the gradient with respect to C is
    −4 (I − P) G Q H (C⁺Q)ᵀ / ‖G‖²; the kernel's own derivative does the rest. The basis of one
    evaluation is the start for that of the next, which is not far.

    Parameters
    ----------
    kernel : Kernel
        A differentiable kernel.
    X : array of shape (s, d)
        The sample, in float64.
    G : SplitMatrix
        Its Gram matrix.
    rough : array of shape (s, d) or None
        The sample in float32, where kernel values are the same but for rounding. It will do for
        the gradient, unless the loss is so small that float32 does not show what is missed.
    """

    def __init__(self, kernel: Kernel, X: Array, G: SplitMatrix, rough: Array | None = None):
        self.kernel, self.X, self.G = kernel, X, G
        self.rough = X if rough is None else rough
        self.evaluations = 0
        self._last: Array | None = None  # T of an evaluation that a nearby one may start from

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, shape (c, d)."""
        self.evaluations += 1
        C = self.kernel(self.X, Z)
        loss, missed, right = self._nearby(C) or self._anywhere(C)
        xp, X = namespace(Z), self.rough if loss > SHALLOW else self.X
        size = _largest(right)  # which float32 may not hold
        parts = (Z, C, missed / self.G.norm, right / size)
        Z, C, missed, right = (xp.astype(part, X.dtype, copy=False) for part in parts)
        gradient = self.kernel.pullback(X, Z, C, missed @ right)
        return loss, xp.astype(gradient, xp.float64, copy=False) * size

    def stiffness(self, Z: Array) -> Array:
        """Return how fast the loss bends as each landmark moves, up to a factor, shape (c,).

        Moving landmark j by δ turns the range by (I − P) J_j δ t_jᵀ, with J_j the derivative of its
        column and C⁺ = T Qᵀ: to second order that costs ‖(I − P) J_j δ‖² ‖H t_j‖². One small
        step of all landmarks along the features' spread shows the first factor.
        """
        self.evaluations += 2
        xp, C = namespace(Z), self.kernel(self.X, Z)
        J = self.kernel(self.X, Z + STEP * xp.std(self.X, axis=0)) - C
        Q, T = range_basis(C)
        H = Q.T @ self.G.times(Q)
        self._last = T if 1 - (float(norms(H)) / self.G.norm) ** 2 > CANCELLED else None
        right = self._right(H, T)
        right = right / _largest(right)
        away = xp.sum(J * J, axis=0) - xp.sum((Q.T @ J) ** 2, axis=0)
        return xp.sqrt(xp.clip(away, min=0.0) * xp.sum(right * right, axis=0))

    def _anywhere(self, C: Array) -> tuple[float, Array, Array]:
        """Return the loss and the two factors of its slope in C, from a basis of C's range."""
        Q, T = range_basis(C)
        through, rest = self.G.towards(Q)
        GQ = self.G.F @ through + rest
        H = Q.T @ GQ
        loss = self.G.loss(Q, H, (through, rest))
        self._last = T if loss > CANCELLED else None  # near rounding nothing but the best will do
        return loss, GQ - Q @ H, self._right(H, T)

    def _nearby(self, C: Array) -> tuple[float, Array, Array] | None:
        """Return the same from the basis of the evaluation before, or None where it is far away.

        With Q = B step the turns are left to small matrices.
        """
        near = None if self._last is None else nearby_basis(C, self._last)
        if near is None:
            return None
        B, step, T = near
        GB = self.G.times(B)
        K = step.T @ (B.T @ GB)
        H = K @ step
        loss = 1 - (float(norms(H)) / self.G.norm) ** 2
        if loss <= CANCELLED:
            return None
        self._last = T
        return loss, GB - B @ (step @ K), step @ self._right(H, T)

    def _right(self, H: Array, T: Array) -> Array:
        return H / self.G.norm @ T.T * -4


def _largest(A: Array) -> float:
    """Return the size of the largest entry, and 1 where there is none."""
    xp = namespace(A)
    return (float(xp.max(xp.abs(A))) if 0 not in A.shape else 0.0) or 1.0
