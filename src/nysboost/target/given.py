"""A kernel that stays as it is given: its landmarks are a method's, or move towards the target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nysboost.data.rows import ArrayRows
from nysboost.gram import KernelGram
from nysboost.kernels import Metric
from nysboost.kernels.mapped import Radial
from nysboost.numerics.arrays import Array, Floats, identity, like, namespace
from nysboost.numerics.descent import anneal
from nysboost.target.candidates import (
    NARROW,
    PRINCIPAL_ROWS,
    START_GAMMA,
    WIDE,
    Found,
    Sample,
)
from nysboost.target.linear import Basis
from nysboost.target.loss import Point, TargetLoss
from nysboost.target.plain import SIMPLE_GAMMAS, Plain
from nysboost.target.search import LOG_GAMMA

STEPS, BATCH_ROWS, RATE = 20, (1024, 4), 0.1
"""Steps of Adam; rows of each, at least the first number and the second for each landmark; length
of the first steps, in units of the rows' spread. With 500 landmarks, the γ that `SVC` takes and C =
10, 15, 25 and 50 steps left .9727, .9735 and .9736 of MNIST's labels right (20,000 rows)."""

PLACED_ROWS = (8192, 16)
"""Rows among which a method places its landmarks: at most the first number, or the second for each
landmark. Among all 20,000 rows of MNIST 500 k-means centres took 2.5 times as long, and .9648 of
the test labels were right instead of .9653."""

TRACE_ROWS = 256
"""Rows that say which share of the trace is left: they know it to a tenth of itself."""

TRACE = 0.003
"""τ, with which these steps were measured: a metric that stays leaves less to guard against."""


@dataclass(frozen=True)
class Given(Plain):
    """Landmarks of a method under a kernel that nothing changes.

    Parameters
    ----------
    kernel : Mapped
        With its bandwidth a number, of the rows as they are.
    place, landmarks
        As for `Plain`.
    captured : float
        Landmarks that would move stay at rows where they leave less than this share of the trace.
    """

    captured: float = 0.0

    def basis(self, sample: Sample, c: int, rng: np.random.Generator) -> Basis:
        """Return the features."""
        (found,) = self.found(sample, c, rng)
        return found.basis()

    def found(self, sample: Sample, c: int, rng: np.random.Generator) -> list[Found]:
        """Return the one kernel with its landmarks."""
        name = f"{self.kernel}, {self.landmarks} landmarks"
        kernel, A = replace(self.kernel, metric=None), self._metric(sample)
        Z, N = self._landmarks(kernel, A, sample, c, rng)
        return [Found(name, kernel, Point(Z, like(A, Z), 0.0), SIMPLE_GAMMAS, N=N)]

    def _metric(self, sample: Sample) -> Floats:
        """Return the kernel's metric in the coordinates of the sample."""
        own = np.ones(()) if self.kernel.metric is None else self.kernel.metric.map
        factor = sample.factor
        units = np.where(factor > 0, 1 / np.where(factor > 0, factor, 1.0), 0.0)
        return units[:, None] * own if own.ndim == 2 else units * own

    def _landmarks(
        self, kernel: Any, A: Floats, sample: Sample, c: int, rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        rows = sample.X[: max(PLACED_ROWS[0], PLACED_ROWS[1] * c), :]
        gram = KernelGram(ArrayRows(rows), replace(kernel, metric=Metric(A)))
        return self.place(gram, c, rng)


@dataclass(frozen=True)
class Towards(Given):
    """Landmarks that go down the target's loss, under a radial kernel that nothing changes."""

    def _landmarks(
        self, kernel: Any, A: Floats, sample: Sample, c: int, rng: np.random.Generator
    ) -> tuple[Array, Array | None]:
        mapped = replace(kernel, metric=Metric(A))
        order = rng.permutation(sample.n)
        basis = Basis.of(mapped, sample[order[:c]].X)
        F = basis(sample[order[-TRACE_ROWS:]].X)
        left = 1 - float(namespace(F).sum(F * F)) / (F.shape[0] * basis.height)
        if left < self.captured:
            return basis.Z, basis.N
        return towards_target(kernel, A, sample[order], c), None


def towards_target(kernel: Radial, A: Floats, sample: Sample, c: int) -> Array:
    """Return the first c rows of a sample after some steps down the target's loss, shape (c, d).

    The steps take place behind the kernel's metric and, of many features, among the leading
    principal components there: distances between landmarks and rows keep their differences.

    Parameters
    ----------
    kernel : Radial
        With its bandwidth a number, and no metric.
    A : array of shape (), (d,) or (d, q)
        The metric, which does not move either.
    sample : Sample
        Rows with their targets, in random order.
    c : int
        Number of landmarks.
    """
    xp = namespace(sample.X)
    mapped, Y = Metric(A)(sample.X), sample.Y - sample.mean
    centre, V = _principal(mapped)
    U = (mapped - centre) @ V
    spread, batch = xp.std(U, axis=0), min(sample.n, max(BATCH_ROWS[0], BATCH_ROWS[1] * c))
    step = xp.where(spread > 0, spread, xp.ones_like(spread))
    one = like(np.ones(()), U)

    def point(x: Array) -> Point:
        log_gamma = min(max(float(x[-1]), LOG_GAMMA[0]), LOG_GAMMA[1])
        return Point(xp.reshape(x[:-1], (-1, U.shape[1])) * step, one, log_gamma)

    def gradient_at(x: Array, i: int) -> Array | None:
        first = i * batch % (sample.n - batch + 1)
        rows = slice(first, first + batch)
        counts = None if sample.weights is None else sample.weights[rows]
        loss = TargetLoss(kernel, U[rows, :], Y[rows, :], counts, TRACE, sample.n / batch)
        gradient = loss(point(x))[1]
        return None if gradient is None else packed(gradient.Z * step, gradient.log_gamma)

    def packed(Z: Array, log_gamma: float) -> Array:
        return xp.concat([xp.reshape(Z, (-1,)), like(np.array([log_gamma]), Z)])

    begin = packed(U[:c, :] / step, float(np.log(START_GAMMA)))
    Z = point(anneal(gradient_at, begin, STEPS, RATE)).Z @ V.T + centre
    return _unmapped(Z, like(A, Z))


def _principal(X: Array) -> tuple[Array, Array]:
    """Return the mean and orthonormal directions: the leading ones of many features, else all."""
    xp, q = namespace(X), X.shape[1]
    if q <= WIDE:
        return xp.mean(X, axis=0), identity(q, X)
    some = X[:PRINCIPAL_ROWS, :]
    centre = xp.mean(some, axis=0)
    _, V = xp.linalg.eigh((some - centre).T @ (some - centre))
    return centre, xp.flip(V, axis=1)[:, :NARROW]


def _unmapped(U: Array, A: Array) -> Array:
    """Return Z with ZA = U, and 0 for a feature that A leaves out."""
    xp = namespace(U)
    if A.ndim == 2:
        return U @ xp.linalg.pinv(A)
    safe = xp.where(A == 0, xp.ones_like(A), A)
    return xp.where(A == 0, xp.zeros_like(U), U / safe)
