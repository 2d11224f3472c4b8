"""Landmarks that move: gradient refinement of points on a fixed sample of rows."""

from __future__ import annotations

import numpy as np

from nysboost.joint.losses import MatrixLoss
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.descent import Pairs, descend
from nysboost.numerics.split import SplitMatrix
from nysboost.numerics.tolerances import NOTHING_LEFT


def refine(
    kernel: Kernel,
    Z: Array,
    X: Array,
    G: SplitMatrix,
    max_iter: int,
    pairs: Pairs | None = None,
    *,
    pinned: int = 0,
    goal: float = 0.0,
) -> tuple[Array, int]:
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
    G : SplitMatrix
        Its Gram matrix.
    max_iter : int
        Evaluations at most, after the first: a step each, unless one has to be shortened.
    pairs : deque or None
        What a descent on another sample has seen of the curvature; this one adds to it.
    pinned : int
        So many of the first landmarks stay where they are.
    goal : float
        A relative error that is enough.
    """
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(xp.sqrt(xp.sum(xp.var(X, axis=0)))) or 1.0
    if not np.isfinite(spread):  # squares are out of range: landmarks stay where they are
        return Z, 0
    matrix_loss = MatrixLoss(kernel, X, G)
    enough = max(goal**2, NOTHING_LEFT)

    def objective(scaled: Array) -> tuple[float, Array]:
        loss, gradient = matrix_loss(scaled * spread)
        if pinned:
            gradient[:pinned, :] = 0
        if loss < enough:
            gradient = xp.zeros_like(gradient)  # nothing is left to gain, and the descent ends
        return float(np.log(loss)), gradient * (spread / loss)

    moved = descend(objective, Z / spread, max_iter, pairs)
    return moved * spread, matrix_loss.evaluations
