"""Landmarks, metric and noise that go down the target's loss together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysboost.kernels.mapped import Radial
from nysboost.numerics.arrays import Array, like, namespace
from nysboost.numerics.descent import anneal, descend
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
    and what is sought is a change of that metric.

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
    behind = _Behind.of(point.A, X)
    step = LANDMARK_STEP * point.Z.shape[0] ** 0.5
    loss = TargetLoss(kernel, behind(X), Y, weights, trace)

    def objective(x: Array) -> tuple[float, Array]:
        at = behind.point(x, step)
        value, gradient = loss(at)
        if gradient is None:
            return value, namespace(x).zeros_like(x)
        return value, behind.slope(gradient, at, step)

    start = behind.start(point, step)
    return behind.undone(behind.point(descend(objective, start, max_iter), step))


def annealed(
    kernel: Radial,
    point: Point,
    X: Array,
    Y: Array,
    *,
    frame: Array,
    weights: Array | None = None,
    trace: float = 1.0,
    batch: int,
    steps: int,
    rate: float,
    apart: bool = False,
    after: Callable[[int], None] = lambda _: None,
) -> Point:
    """Return landmarks, metric and noise after steps of Adam, each on other rows of a sample.

    Where y depends on few directions the loss is a narrow valley: what a direction that does not
    matter still adds to the distance has to vanish, and its slope vanishes first. Adam steps as
    far along a gentle slope as along a steep one. With 256 landmarks on bike, whose target is a
    function of the sum of two features, 300 steps left a twentieth of the test error that
    as many evaluations of L-BFGS left (.0006 and .012).

    A row of a batch counts n / batch times, so that the batch stands for the sample: its own bound
    asks for more caution than the sample does (protein, 64 landmarks, batches of 2048 of 8000:
    .711 without, .694 with).

    Parameters
    ----------
    kernel, point, X, Y, weights, trace
        As for `improved`; the rows are in random order.
    frame : array of the shape of the metric
        The round metric, or the principal components, behind which the search takes place. Behind
        a metric that L-BFGS has bent it ended in worse places (MNIST, 100 landmarks, 12,000 rows:
        .947 of the labels right, and .954 without L-BFGS).
    batch : int
        Rows of a step: the next ones of the sample, round and round.
    steps : int
        Number of steps.
    rate : float
        Length of the first steps, in units of each feature's spread and of a round metric.
    apart : bool
        Whether landmarks stay where they are, behind the metric, when that changes: what moves is
        U = ZA. Behind 64 principal components of MNIST, with 1000 landmarks, .9867 of the test
        labels were right instead of .9826, and with 400 .9852 instead of .9821. Where directions
        have to vanish, landmarks have to go with them: on bike with 256 landmarks the error was
        .020 instead of .0006, on pol .073 instead of .058. It takes a matrix as metric.
    after : callable
        Takes the number of rows that a step has seen.
    """
    xp, n = namespace(X), X.shape[0]
    behind = (_Apart if apart else _Behind).of(frame, X)
    mapped = behind(X)
    spread = xp.std(mapped, axis=0)
    step = xp.where(spread > 0, spread, xp.ones_like(spread))
    batch = min(batch, n)

    def gradient_at(x: Array, i: int) -> Array | None:
        first = i * batch % (n - batch + 1)
        rows = slice(first, first + batch)
        counts = None if weights is None else weights[rows]
        loss = TargetLoss(kernel, mapped[rows, :], Y[rows, :], counts, trace, n / batch)
        at = behind.point(x, step)
        _, gradient = loss(at)
        after(batch)
        return None if gradient is None else behind.slope(gradient, at, step)

    start = behind.start(point, step)
    return behind.undone(behind.point(anneal(gradient_at, start, steps, rate), step))


@dataclass(frozen=True, eq=False)
class _Behind:
    """A point as one vector x, of landmarks and a metric behind a map of the rows.

    Parameters
    ----------
    frame : array of shape (), (d,) or (d, q)
        The map, under which the rows have unit spread.
    unit : float
        The metric that stands for the map as it was given: `unit` times the identity.
    width : int
        Number of coordinates behind the map.
    """

    frame: Array
    unit: float
    width: int

    @classmethod
    def of(cls, A: Array, X: Array) -> _Behind:
        """Return the search behind a metric A on rows X."""
        xp = namespace(X)
        mapped = X @ A if A.ndim == 2 else X * A
        unit = float(xp.sqrt(xp.mean(xp.var(mapped, axis=0)))) or 1.0
        return cls(A / unit, unit, int(mapped.shape[1]))

    def __call__(self, X: Array) -> Array:
        """Return mapped points, shape (n, q)."""
        return X @ self.frame if self.frame.ndim == 2 else X * self.frame

    def inside(self, point: Point) -> Point:
        """Return the point as it is behind the map."""
        frame, A = self.frame, point.A
        inside = namespace(A).linalg.pinv(frame) @ A if A.ndim == 2 else _over(A, frame)
        return Point(self(point.Z), inside, point.log_gamma)

    def start(self, point: Point, step: Array | float) -> Array:
        """Return x at a point."""
        return self.packed(self.inside(point), 1 / step, 1 / self.unit)

    def slope(self, gradient: Point, at: Point, step: Array | float) -> Array:  # noqa: ARG002
        """Return the gradient with respect to x from that with respect to a point."""
        return self.packed(gradient, step, self.unit)

    def packed(self, at: Point, z_unit: Array | float, a_unit: float) -> Array:
        """Return landmarks, metric and log γ one after the other."""
        xp = namespace(at.Z)
        last = like(np.array([at.log_gamma]), at.Z)
        return xp.concat([xp.reshape(at.Z * z_unit, (-1,)), xp.reshape(at.A, (-1,)) * a_unit, last])

    def point(self, x: Array, step: Array | float) -> Point:
        """Return the point at x, behind the map."""
        xp = namespace(x)
        shape = (self.width, self.width) if self.frame.ndim == 2 else self.frame.shape
        size = x.shape[0] - 1 - int(np.prod(shape))
        low, high = LOG_GAMMA
        Z = xp.reshape(x[:size], (-1, self.width)) * step
        A = xp.reshape(x[size:-1], shape) * self.unit
        return Point(Z, A, min(max(float(x[-1]), low), high))

    def undone(self, end: Point) -> Point:
        """Return the point with the map made part of its metric."""
        frame, xp = self.frame, namespace(end.Z)
        if frame.ndim == 2:
            return Point(end.Z @ xp.linalg.pinv(frame), frame @ end.A, end.log_gamma)
        return Point(_over(end.Z, frame), frame * end.A, end.log_gamma)


class _Apart(_Behind):
    """The same with landmarks as the metric leaves them: x holds U = ZA in place of Z."""

    def start(self, point: Point, step: Array | float) -> Array:
        """Return x at a point."""
        at = self.inside(point)
        there = Point(at.Z @ at.A / self.unit, at.A, at.log_gamma)
        return self.packed(there, 1 / step, 1 / self.unit)

    def slope(self, gradient: Point, at: Point, step: Array | float) -> Array:
        """Return the gradient with respect to x: with Z = UA⁻¹ a step dA takes Z by −Z dA A⁻¹."""
        to_U = gradient.Z @ namespace(at.A).linalg.inv(at.A).T
        to_A = gradient.A - at.Z.T @ to_U
        there = Point(to_U * self.unit, to_A, gradient.log_gamma)
        return self.packed(there, step, self.unit)

    def point(self, x: Array, step: Array | float) -> Point:
        """Return the point at x, behind the map."""
        there = super().point(x, step)
        Z = self.unit * there.Z @ namespace(x).linalg.inv(there.A)
        return Point(Z, there.A, there.log_gamma)


def _over(Z: Array, frame: Array) -> Array:
    """Return Z / frame, and 0 where the frame is 0."""
    xp = namespace(Z)
    safe = xp.where(frame == 0, xp.ones_like(frame), frame)
    return xp.where(frame == 0, xp.zeros_like(Z), Z / safe)
