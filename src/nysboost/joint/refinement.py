"""Landmarks that move: gradient refinement of points on a fixed sample of rows.

The loss of landmarks Z on a sample with Gram matrix G is the relative squared error of
the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

import numpy as np

from nysboost.joint.losses import loss_and_gradient, squared_norm_of
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.descent import descend
from nysboost.numerics.tolerances import SINGLE


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
    X : array of shape (s, d)
        The sample, in float64.
    G : array of shape (s, s)
        Its Gram matrix. In float32 it halves the time; where the loss is too small for
        that, it is turned into float64.
    max_iter : int
        Evaluations at most, after the first: a step each, unless one has to be shortened.
    """
    xp = namespace(X)
    spread = float(xp.sqrt(xp.sum(xp.var(X, axis=0)))) or 1.0
    squared_norm, evaluations = squared_norm_of(G), 0

    def objective(scaled: Array) -> tuple[float, Array]:
        nonlocal G, squared_norm, evaluations
        evaluations += 1
        loss, gradient = loss_and_gradient(kernel, scaled * spread, X, G, squared_norm)
        if loss < SINGLE and G.dtype != X.dtype:
            G = xp.astype(G, X.dtype)
            squared_norm = squared_norm_of(G)
            return objective(scaled)
        return float(np.log(loss)), gradient * (spread / loss)

    return descend(objective, Z / spread, max_iter) * spread, evaluations
