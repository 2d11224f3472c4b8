"""What landmarks serve: losses with their gradients.

The matrix loss of landmarks Z on a sample with Gram matrix G is the relative squared error
of the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

import numpy as np

from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.linalg import norms, range_basis, times
from nysboost.numerics.tolerances import CANCELLED


def loss_and_gradient(
    kernel: Kernel, Z: Array, X: Array, G: Array, squared_norm: float
) -> tuple[float, Array]:
    """Return ‖G − P G P‖² / ‖G‖² and its gradient with respect to Z.

    With C = k(X, Z), P = Q Qᵀ and H = Qᵀ G Q, the gradient with respect to C is
    −4 (I − P) G Q H (C⁺Q)ᵀ / ‖G‖²; the kernel's own derivative does the rest.
    """
    xp = namespace(X)
    C = kernel(xp.astype(X, G.dtype, copy=False), xp.astype(Z, G.dtype, copy=False))
    Q, T = range_basis(C)
    GQ = times(G, Q)
    H = Q.T @ GQ
    loss = 1 - float(xp.sum(H * H)) / squared_norm
    if loss < CANCELLED:
        residual = G - (Q @ H) @ Q.T
        loss = float(xp.sum(residual * residual)) / squared_norm
    slope = (GQ - Q @ H) @ (H @ T.T * (-4 / squared_norm))
    gradient = kernel.pullback(X, Z, xp.astype(C, X.dtype, copy=False), slope)
    return max(loss, float(np.finfo(np.float64).tiny)), gradient


def squared_norm_of(G: Array) -> float:
    """Return ‖G‖², summed in float64."""
    return float(norms(G)) ** 2
