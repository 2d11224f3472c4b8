"""Landmarks that move: gradient refinement of points on a fixed sample of rows."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from nysboost.joint.losses import MatrixLoss
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.descent import MEMORY, Pairs, descend
from nysboost.numerics.split import SplitMatrix
from nysboost.numerics.tolerances import NOTHING_LEFT

SOFTENED, LIMIT = 0.4, 2.0
"""A landmark's unit is its stiffness to the power −0.4, within a factor of two of the mean's. After
nine and twelve steps errors are 0.1 to 5 % smaller so than with one unit for all (eight tables,
n = 2000, c = 120); with a factor of ten some lose their way in the second round (Covertype)."""

WORTH = 0.004
"""The share of the loss that a step has to gain, when there have been many: of the error, half as
much. At the end of 24 steps it gains 0.03 % of the error on MNIST, 0.1 % on Covertype and 0.35 %
on kin40k (c = 240), which with 0.005 ends 1 % above where 0.004 leaves it."""


@dataclass(eq=False)
class Ground:
    """What a descent has seen of the ground, for another one on other rows.

    Parameters
    ----------
    pairs : deque
        Its steps, each with the change of the gradient that came with it.
    units : array of shape (c, 1) or None
        What each landmark is measured in; None before the first descent.
    """

    pairs: Pairs = field(default_factory=lambda: deque(maxlen=MEMORY))
    units: Array | None = None


def refine(
    kernel: Kernel,
    Z: Array,
    X: Array,
    G: SplitMatrix,
    steps: tuple[int, int],
    ground: Ground | None = None,
    rough: Array | None = None,
    *,
    pinned: int = 0,
    goal: float = 0.0,
) -> tuple[Array, int]:
    """Return landmarks with a smaller loss on the sample, by L-BFGS, and the evaluations it took.

    The logarithm of the loss is minimised, over landmarks measured in units of the
    data's spread: neither the scale of the kernel nor that of the data matters. Those on which
    the loss hangs most are measured in smaller ones, and all move about as far as they should.

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
    steps : pair of int
        After the first evaluation at least so many, and at most: a step each, unless one has
        to be shortened. In between they go on as long as a step gains what it is worth.
    ground : Ground or None
        What a descent on another sample has seen; this one adds to it.
    rough : array of shape (s, d) or None
        The sample in float32, where that is enough for gradients.
    pinned : int
        So many of the first landmarks stay where they are.
    goal : float
        A relative error that is enough.
    """
    xp, ground = namespace(X), Ground() if ground is None else ground
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(xp.sqrt(xp.sum(xp.var(X, axis=0)))) or 1.0
    if not np.isfinite(spread):  # squares are out of range: landmarks stay where they are
        return Z, 0
    matrix_loss = MatrixLoss(kernel, X, G, rough)
    if ground.units is None:
        ground.units = spread * _softened(matrix_loss.stiffness(Z))
    units, enough = ground.units, max(goal**2, NOTHING_LEFT)

    def objective(scaled: Array) -> tuple[float, Array]:
        loss, gradient = matrix_loss(scaled * units)
        if pinned:
            gradient[:pinned, :] = 0
        if loss < enough:
            gradient = xp.zeros_like(gradient)  # nothing is left to gain, and the descent ends
        return float(np.log(loss)), gradient * (units / loss)

    least, most = steps
    moved = descend(objective, Z / units, most, ground.pairs, least, WORTH)
    return moved * units, matrix_loss.evaluations


def _softened(stiffness: Array) -> Array:
    """Return the units of landmarks as a column, 1 where all are as stiff."""
    xp = namespace(stiffness)
    mean = float(xp.mean(stiffness))
    if not 0 < mean < np.inf:
        return xp.ones_like(stiffness)[:, None]
    return xp.clip((stiffness / mean) ** SOFTENED, min=1 / LIMIT, max=LIMIT)[:, None] ** -1.0
