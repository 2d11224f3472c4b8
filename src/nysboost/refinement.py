"""Landmarks that move: gradient refinement of points on a fixed sample of rows.

The loss of landmarks Z on a sample with Gram matrix G is the relative squared error of
the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from nysboost.arrays import Array, Floats, like, namespace, range_basis, to_host
from nysboost.kernels import Kernel

CANCELLED = 1e-9
"""Below this loss 1 − ‖PGP‖²/‖G‖² has lost seven digits: the residual itself is formed."""


def refine(kernel: Kernel, Z: Array, X: Array, G: Array, max_iter: int) -> tuple[Array, int]:
    """Return landmarks with a smaller loss on the sample, by L-BFGS, and the evaluations it took.

    The logarithm of the loss is minimised, over landmarks measured in units of the
    data's spread: neither the scale of the kernel nor that of the data matters.

    Parameters
    ----------
    kernel : Kernel
        A differentiable kernel.
    Z : array of shape (c, d)
        Where to start.
    X, G : arrays of shape (s, d) and (s, s)
        The sample and its Gram matrix, in float64.
    max_iter : int
        Iterations at most.
    """
    xp = namespace(X)
    spread = float(xp.sqrt(xp.sum(xp.var(X, axis=0)))) or 1.0
    squared_norm = float(xp.sum(G * G))

    def objective(flat: Floats) -> tuple[float, Floats]:
        points = like(flat.reshape(Z.shape) * spread, X)
        loss, gradient = loss_and_gradient(kernel, points, X, G, squared_norm)
        return np.log(loss), to_host(gradient).ravel() * (spread / loss)

    options = {"maxiter": max_iter, "maxfun": max_iter + 5, "maxcor": 10}
    begin = to_host(Z).astype(np.float64).ravel() / spread
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    return like(found.x.reshape(Z.shape) * spread, X), int(found.nfev)


def loss_and_gradient(
    kernel: Kernel, Z: Array, X: Array, G: Array, squared_norm: float
) -> tuple[float, Array]:
    """Return ‖G − P G P‖² / ‖G‖² and its gradient with respect to Z.

    With C = k(X, Z), P = Q Qᵀ and H = Qᵀ G Q, the gradient with respect to C is
    −4 (I − P) G Q H (C⁺Q)ᵀ / ‖G‖²; the kernel's own derivative does the rest.
    """
    xp = namespace(X)
    C = kernel(X, Z)
    Q, T = range_basis(C)
    GQ = G @ Q
    H = Q.T @ GQ
    loss = 1 - float(xp.sum(H * H)) / squared_norm
    if loss < CANCELLED:
        residual = G - (Q @ H) @ Q.T
        loss = float(xp.sum(residual * residual)) / squared_norm
    slope = ((GQ - Q @ H) @ H) @ T.T * (-4 / squared_norm)
    return max(loss, float(np.finfo(np.float64).tiny)), kernel.pullback(X, Z, C, slope)
