"""What landmarks serve: losses with their gradients.

The matrix loss of landmarks Z on a sample with Gram matrix G is the relative squared error
of the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array
from nysboost.numerics.linalg import nearby_basis, range_basis
from nysboost.numerics.split import SplitMatrix
from nysboost.numerics.tolerances import CANCELLED


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
    """

    def __init__(self, kernel: Kernel, X: Array, G: SplitMatrix) -> None:
        self.kernel, self.X, self.G = kernel, X, G
        self.evaluations = 0
        self._last: Array | None = None  # T of an evaluation that a nearby one may start from

    def __call__(self, Z: Array) -> tuple[float, Array]:
        """Return the loss and its gradient, shape (c, d)."""
        self.evaluations += 1
        C = self.kernel(self.X, Z)
        near = None if self._last is None else nearby_basis(C, self._last)
        Q, T = near or range_basis(C)
        GQ = self.G.times(Q)
        H = Q.T @ GQ
        slope = ((GQ - Q @ H) / self.G.norm) @ (H / self.G.norm @ T.T * -4)
        loss = self.G.loss(Q, H)
        self._last = T if loss > CANCELLED else None  # near rounding nothing but the best will do
        return loss, self.kernel.pullback(self.X, Z, C, slope)
