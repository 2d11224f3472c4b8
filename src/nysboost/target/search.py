"""Landmarks, metric and noise that go down the target's loss together."""

from __future__ import annotations

import numpy as np

from nysboost.kernels.mapped import Radial
from nysboost.numerics.arrays import Array, like, namespace
from nysboost.numerics.descent import descend
from nysboost.target.loss import Point, TargetLoss

LANDMARK_STEP = 0.25
"""Landmarks are measured in √c times this, in units of the data's spread. A landmark's share of
the gradient is 1/c of the metric's: with one unit for both, L-BFGS took twice the steps (kin40k,
pol, protein; 0.06 and 0.6 were worse)."""

LOG_GAMMA = (-23.0, 7.0)
"""log γ stays between these: beyond them the loss is flat."""


def improved(
    kernel: Radial,
    point: Point,
    X: Array,
    Y: Array,
    *,
    weights: Array | None = None,
    trace: float = 1.0,
    max_iter: int = 50,
) -> Point:
    """Return landmarks, metric and noise with a smaller loss on the sample, by L-BFGS.

    The search takes place behind the metric it starts from: rows and landmarks are mapped first,
    and what is sought is a change of that metric. After some dozens of steps a metric is far from
    round, and to start afresh behind it is worth as many steps again.

    Parameters
    ----------
    kernel : Radial
        With its bandwidth a number and no metric of its own.
    point : Point
        Where to start.
    X : array of shape (n, d)
        The sample.
    Y : array of shape (n, t)
        Centred targets.
    weights : array of shape (n,) or None
        How often each row counts.
    trace : float
        τ, the weight of the bound's trace.
    max_iter : int
        Evaluations at most, after the first.
    """
    xp = namespace(X)
    whole, c = point.A.ndim == 2, point.Z.shape[0]
    behind = X @ point.A if whole else X * point.A
    unit = float(xp.sqrt(xp.mean(xp.var(behind, axis=0)))) or 1.0
    basis = point.A / unit
    loss = TargetLoss(kernel, behind / unit, Y, weights, trace)
    width = behind.shape[1]
    shape = (width, width) if whole else point.A.shape
    round_metric = like(np.eye(width) if whole else np.ones(shape), X)
    step = LANDMARK_STEP * c**0.5

    def unpacked(x: Array) -> Point:
        size = c * width
        A = xp.reshape(x[size:-1], shape) * unit
        low, high = LOG_GAMMA
        Z = xp.reshape(x[:size], (c, width)) * step
        return Point(Z, A, min(max(float(x[-1]), low), high))

    def packed(at: Point, z_unit: float, a_unit: float) -> Array:
        last = like(np.array([at.log_gamma]), X)
        parts = [xp.reshape(at.Z, (-1,)) * z_unit, xp.reshape(at.A, (-1,)) * a_unit, last]
        return xp.concat(parts)

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = loss(unpacked(x))
        if gradient is None:
            return value, xp.zeros_like(x)
        return value, packed(gradient, step, unit)

    mapped = point.Z @ basis if whole else point.Z * basis
    start = packed(Point(mapped, round_metric, point.log_gamma), 1 / step, 1.0)
    end = unpacked(descend(objective, start, max_iter))
    return Point(_undone(end.Z, basis), basis @ end.A if whole else basis * end.A, end.log_gamma)


def _undone(Z: Array, basis: Array) -> Array:
    """Return points that the basis maps to Z; where it maps everything to 0, the origin."""
    xp = namespace(Z)
    if basis.ndim == 2:
        return Z @ xp.linalg.pinv(basis)
    safe = xp.where(basis == 0, xp.ones_like(basis), basis)
    return xp.where(basis == 0, xp.zeros_like(Z), Z / safe)
