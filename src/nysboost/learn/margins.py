"""Linear classifiers on features: support vector machines and logistic regression.

With features F of a kernel's approximation, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the
kernel machine of K̂ itself, and a matter of r numbers, however many rows there are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from nysboost.data.rows import spread_indices
from nysboost.engine.factor import Factor
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    epsilon,
    identity,
    in_float64,
    like,
    namespace,
    to_host,
)
from nysboost.numerics.linalg import solve_positive

TOLERANCE = 0.02
"""A problem is solved when a step promises less than this share of the objective. With half of it
test labels right were the same to 0.04 points on Pendigits, IJCNN and protein (four seeds)."""

CURVED_ROWS = 4
"""Rows for each feature, at most, that a step's curvature and the start are taken from."""

AHEAD = 2.0
"""The start is the least squares of labels −2 and 2: most rows are beyond the corner already."""

TRIES, NEAR_ZERO = 40, 0.2
"""Where the end of a step is too far its slope is evaluated at up to 40 places, mostly two or
three, until this share of it is left."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + e⁻ᵐ), of logistic regression."""

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        xp = namespace(margins)
        return xp.logaddexp(xp.zeros_like(margins), -margins)

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return (namespace(margins).tanh(margins / 2) - 1) / 2

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        return (1 - namespace(margins).tanh(margins / 2) ** 2) / 4


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 − m), of support vector machines, with its corner rounded off (Chapelle 2007).

    Within `width` of the corner it is a parabola, which touches both sides.
    """

    width: float = 0.1

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        beyond = namespace(margins).clip(1 - margins - self.width, min=0.0)
        return self._near(margins) ** 2 / (4 * self.width) + beyond

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return self._near(margins) / (-2 * self.width)

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        xp = namespace(margins)
        return xp.astype(xp.abs(1 - margins) < self.width, margins.dtype) / (2 * self.width)

    def _near(self, margins: Array) -> Array:
        return namespace(margins).clip(1 + self.width - margins, 0.0, 2 * self.width)


MarginLoss: TypeAlias = Logistic | Hinge
LOSSES: dict[str, MarginLoss] = {"hinge": Hinge(), "log": Logistic()}


@dataclass(frozen=True)
class Objective:
    """½‖w‖² + C Σ_i ω_i loss(y_i (F_i w + b)), without an intercept b = 0, and when to stop.

    The last step promises `tolerance` of the objective. With 500 landmarks and C = 10 twelve data
    sets took 6 to 14 steps.
    """

    loss: MarginLoss
    C: float = 1.0
    intercept: bool = True
    tolerance: float = TOLERANCE
    max_iter: int = 40


class Machines(NamedTuple):
    """Weights (r, p) and intercepts (p,) of p problems, and the steps of Newton's method."""

    w: Array
    b: Array
    n_iter: int = 0


def fit_margins(
    features: Factor,
    signs: Floats,
    objective: Objective,
    weights: Floats | None = None,
    start: Machines | None = None,
) -> Machines:
    """Minimise the objective of each of p problems by Newton's method.

    The curvature comes from rows that have some, in its proportion if they are many. All problems
    share the passes over the rows. The signs, of shape (n, p), are the labels y of each problem, −1
    or 1; weights (n,) are ω; without a start it is at least squares. The result is in float64,
    where the features are.
    """
    features.keep()
    form = features.at(np.empty(0, dtype=np.intp))
    xp, loss = namespace(form), objective.loss
    strength = objective.C * (np.ones(features.shape[0]) if weights is None else weights)
    w, b = start[:2] if start else _least_squares(features, signs, strength, objective.intercept)
    y, strong, scores = like(signs, form), like(strength[:, None], form), scores_of(features, w, b)
    todo = np.arange(signs.shape[1])

    def pull(scores: Array) -> Array:
        return strong * y * loss.slope(y * scores)

    def along(w: Array, dw: Array, scores: Array, moved: Array, t: Floats) -> Floats:
        of_rows = _sums(moved * pull(scores + like(t, moved) * moved))
        return to_host(xp.sum((w + like(t, w) * dw) * dw, axis=0) + of_rows)

    for step in range(1, objective.max_iter + 1):  # noqa: B007
        pulled, bend = pull(scores), to_host(strong * loss.curve(y * scores))
        gw = w + features.fold(_products, operator.add, None, pulled, task="inner-products")
        gb, dw, db = _sums(pulled), xp.zeros_like(w), xp.zeros_like(b)
        for j in todo.tolist():
            rows, kappa = _rows_with_curvature(bend[:, j], CURVED_ROWS * features.shape[1])
            F, one = features.at(rows), slice(j, j + 1)
            found = _step(F, kappa, gw[:, one], gb[one], intercept=objective.intercept)
            dw[:, one], db[one] = found
        moved = scores_of(features, dw, db)
        promised = -to_host(xp.sum(gw * dw, axis=0) + gb * db)
        value = to_host(xp.sum(w**2, axis=0) / 2 + _sums(strong * loss.value(y * scores)))
        t = like(zero_of(partial(along, w, dw, scores, moved), -promised), b)
        w, b, scores = w + t * dw, b + t * db, scores + xp.astype(t, moved.dtype) * moved
        todo = np.flatnonzero(promised > objective.tolerance * value)
        if len(todo) == 0:
            break
    return Machines(w, b, step)


def zero_of(slope: Callable[[Floats], Floats], at_zero: Floats) -> Floats:
    """Return where increasing functions on [0, 1] are about zero; 1 where they are below it there.

    By halving, until a fifth of the value at 0 is left. The slope takes places of shape (p,); the
    values at 0, shape (p,), are not positive.
    """
    low, high = np.zeros_like(at_zero), np.ones_like(at_zero)
    t, there = high, slope(high)
    for _ in range(TRIES):
        off = np.where(t == 1, there, np.abs(there)) > NEAR_ZERO * np.abs(at_zero)
        if not off.any():
            break
        low, high = np.where(there > 0, low, t), np.where(there > 0, t, high)
        t = np.where(off, (low + high) / 2, t)
        there = slope(t)
    return t


def _least_squares(
    features: Factor, signs: Floats, strength: Floats, intercept: bool
) -> tuple[Array, Array]:
    """Return the weights that some rows, as many as the curvature is taken from, would have."""
    weighed = np.flatnonzero(strength > 0)
    rows = weighed[spread_indices(len(weighed), CURVED_ROWS * features.shape[1])]
    kappa = strength[rows] * (strength.sum() / strength[rows].sum())
    F = features.at(rows)
    pull = like(-AHEAD * kappa[:, None] * signs[rows], F)
    return _step(F, kappa, in_float64(F.T @ pull), _sums(pull), intercept=intercept)


def _rows_with_curvature(kappa: Floats, most: int) -> tuple[Indices, Floats]:
    """Return the rows that have a curvature, and it; if they are too many, some in its proportion.

    Drawn at equal distances along the sum of the curvatures, each stands for the same part of it.
    """
    rows = np.flatnonzero(kappa)
    if len(rows) <= most:
        return rows, kappa[rows]
    along = np.cumsum(kappa[rows], dtype=np.float64)
    drawn = rows[np.searchsorted(along, (np.arange(most) + 0.5) * (along[-1] / most))]
    return drawn, np.full(most, along[-1] / most)


def _step(F: Array, kappa: Floats, gw: Array, gb: Array, *, intercept: bool) -> tuple[Array, Array]:
    """Return −H⁻¹g for H = diag(1, …, 1, 0) + Σ_i κ_i (f_i, 1)(f_i, 1)ᵀ.

    The intercept takes the mean f̄ of the rows away from them, and dw = −(I + GᵀG)⁻¹(g_w − g_b f̄)
    with G = √κ (F − f̄); without one f̄ is 0. F has the s rows with a curvature κ (s,); the gradients
    have shapes (r, q) and (q,).
    """
    xp, total = namespace(F), float(kappa.sum())
    if total == 0:
        return -gw, xp.zeros_like(gb)
    mean = like(kappa * (intercept / total), F) @ F
    G = (F - mean) * like(np.sqrt(kappa), F)[:, None]
    squares, centre = in_float64(G.T @ G), in_float64(mean)
    # what rounding may have taken from the squares is given back
    ridge = 1 + epsilon(F) * float(xp.linalg.trace(squares))
    M = squares + ridge * identity(F.shape[1], squares)
    dw = -solve_positive(M, gw - centre[:, None] * gb)
    return dw, -float(intercept) * (gb / total + centre @ dw)


def scores_of(features: Factor, w: Array, b: Array) -> Array:
    """Return F w + b in the precision of F, shape (n, p)."""
    return features.gather(features.map(_scores, (w, b), w.shape[1], task="scores"))


def _scores(shared: tuple[Array, Array], F: Array) -> Array:
    w, b = (namespace(F).astype(part, F.dtype, copy=False) for part in shared)
    return F @ w + b


def _products(_: None, F: Array, values: Array) -> Array:
    return in_float64(F.T @ values)


def _sums(values: Array) -> Array:
    """Return the sums of columns in float64."""
    xp = namespace(values)
    return xp.sum(values, axis=0, dtype=xp.float64)
