"""Linear classifiers on features: support vector machines and logistic regression.

With features F of a kernel's approximation, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the
kernel machine of K̂ itself, and a matter of r numbers, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nysboost.data.rows import spread_indices
from nysboost.learn.margin_losses import MarginLoss
from nysboost.learn.on_features import Features
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    epsilon,
    floats_on_host,
    identity,
    in_float64,
    like,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.linalg import solve_positive, times

MAX_ITER = 40
"""Steps of Newton's method at most: with 500 landmarks and C = 10 it took 6 to 14 of them on twelve
data sets, and more from C = 300 on, where few rows are within reach of the corner."""

TOLERANCE = 0.02
"""A problem is solved when a step promises less than this share of the objective. With half of it
test labels right were the same to 0.04 points on Pendigits, IJCNN and protein (four seeds)."""

CURVED_ROWS = 4
"""Rows for each feature, at most, that a step takes the curvature from, and that the start is
fitted to."""

AHEAD = 2.0
"""Scores of the start, the least squares of labels −2 and 2: most rows are then on their side of
the corner already, and few take part in the first steps."""

TRIES, NEAR_ZERO = 40, 0.2
"""Where the end of a step is too far its slope is evaluated at as many places as it takes to find
one with this share of it left: mostly two or three, at most 40."""


def fit_margins(
    features: Features,
    signs: Floats,
    loss: MarginLoss,
    C: float,
    weights: Floats | None = None,
    start: tuple[Array, Array] | None = None,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> tuple[Array, Array]:
    """Minimise ½‖w‖² + C Σ_i ω_i loss(y_i (F_i w + b)) for each of p problems, by Newton's method.

    A row far from the corner of a hinge has no curvature: the system of a step is as large as the
    number of rows that have some, or of features, whichever is less. All problems share the passes
    over the rows.

    Parameters
    ----------
    features : Features
        F.
    signs : array of shape (n, p)
        The labels of each problem, −1 or 1.
    loss : MarginLoss
        The loss of a margin.
    C : float
        Weight of the losses beside the squared norm.
    weights : array of shape (n,) or None
        ω, how much the loss of each row counts; None is 1.
    start : (w, b) or None
        Where to begin, in the form in which it ends; None is at least squares.
    tolerance : float
        Share of the objective that a last step still promises.
    max_iter : int
        Steps at most.

    Returns
    -------
    w : array of shape (p, r)
    b : array of shape (p,)
        In float64, where the features are.
    """
    features.keep()
    form = features.at(np.empty(0, dtype=np.intp))
    strength = C * (np.ones(features.n) if weights is None else weights)
    w, b = _least_squares(features, signs, strength) if start is None else (start[0].T, start[1])
    y, strong = like(signs, form), like(strength[:, None], form)
    at = _Machines(features, loss, strong, y, scores_of(features, w, b), w, b)
    return at.solved(tolerance, max_iter)


@dataclass(frozen=True, eq=False)
class _Machines:
    """p problems on the way: signs y and scores F w + b of all rows, weights and intercepts."""

    features: Features
    loss: MarginLoss
    strength: Array
    y: Array
    scores: Array
    w: Array
    b: Array

    def solved(self, tolerance: float, max_iter: int) -> tuple[Array, Array]:
        """Return weights and intercepts after as many steps as each problem needs."""
        xp, at, todo = namespace(self.w), self, np.arange(self.w.shape[1])
        ended: dict[int, tuple[Array, Array]] = {}
        for i in range(max_iter):
            at, done = at.stepped(tolerance)
            done |= i == max_iter - 1
            ended |= {int(todo[j]): (at.w[:, j], at.b[j]) for j in np.flatnonzero(done)}
            todo = todo[~done]
            if len(todo) == 0:
                break
            at = at.of_problems(np.flatnonzero(~done)) if done.any() else at
        every = [ended[i] for i in range(len(ended))]
        return xp.stack([w for w, _ in every]), xp.stack([b for _, b in every])

    def of_problems(self, problems: Indices) -> _Machines:
        """Return some of the problems."""
        y, scores, w = (take(each, problems, axis=1) for each in (self.y, self.scores, self.w))
        return replace(self, y=y, scores=scores, w=w, b=take(self.b, problems))

    def stepped(self, tolerance: float) -> tuple[_Machines, NDArray[np.bool_]]:
        """Return the problems after a step, and which of them it has promised next to nothing."""
        xp, margins = namespace(self.w), self.y * self.scores
        pull = self.strength * self.y * self.loss.slope(margins)
        gw = self.w + _transposed(self.features, pull)
        gb = xp.sum(pull, axis=0, dtype=xp.float64)
        dw, db = self._directions(self.strength * self.loss.curve(margins), gw, gb)
        moved = scores_of(self.features, dw, db)
        promised = -to_host(xp.sum(gw * dw, axis=0) + gb * db)
        t = like(self._length(pull, dw, moved, promised), self.b)
        losses = xp.sum(self.strength * self.loss.value(margins), axis=0, dtype=xp.float64)
        value = to_host(xp.sum(self.w**2, axis=0) / 2 + losses)
        scores = self.scores + xp.astype(t, moved.dtype) * moved
        after = replace(self, scores=scores, w=self.w + t * dw, b=self.b + t * db)
        return after, promised <= tolerance * value

    def _directions(self, bend: Array, gw: Array, gb: Array) -> tuple[Array, Array]:
        """Return Newton's step of each problem."""
        xp, most, steps = namespace(gw), CURVED_ROWS * self.features.r, []
        for j, kappa in enumerate(np.ascontiguousarray(to_host(bend).T)):
            rows, counts = _curved(kappa, most)
            steps.append(_step(self.features.at(rows), counts, gw[:, j : j + 1], gb[j : j + 1]))
        return xp.concat([w for w, _ in steps], axis=1), xp.concat([b for _, b in steps])

    def _length(self, pull: Array, dw: Array, moved: Array, promised: Floats) -> Floats:
        """Return how far to go: where the slope along the step is about zero, or to its end.

        Only rows with a slope at one of both ends have one between them.
        """
        xp, slope = namespace(dw), self.loss.slope
        at_end = self.strength * slope(self.y * (self.scores + moved))
        rows = np.flatnonzero(to_host(xp.any((pull != 0) | (at_end != 0), axis=1)))
        y, scores, moved = (take(each, rows) for each in (self.y, self.scores, moved))
        across = take(self.strength, rows) * y * moved
        first, second = (to_host(xp.sum(each * dw, axis=0)) for each in (self.w, dw))

        def along(t: Floats) -> Floats:
            slopes = slope(y * (scores + like(t, moved) * moved))
            of_rows = floats_on_host(xp.sum(across * slopes, axis=0, dtype=xp.float64))
            return np.asarray(first + t * second + of_rows)

        return zero_of(along, -promised)


def zero_of(slope: Callable[[Floats], Floats], at_zero: Floats) -> Floats:
    """Return where increasing functions on [0, 1] are about zero; 1 where they are below it there.

    By false position, until a fifth of the value at 0 is left; a bracket shrinks by a tenth at
    least.

    Parameters
    ----------
    slope : callable
        From places t of shape (p,) to the value of each function there.
    at_zero : array of shape (p,)
        The values at 0, all of them negative.
    """
    low, high = np.zeros_like(at_zero), np.ones_like(at_zero)
    at_low, at_high = at_zero, slope(high)
    t, within = high, at_high > 0
    for _ in range(TRIES if within.any() else 0):
        width = high - low
        step = np.where(within, at_low / np.where(within, at_low - at_high, 1.0), 1.0)
        t = np.where(within, low + width * np.clip(step, 0.1, 0.9), high)
        there = slope(t)
        if (np.abs(there) <= NEAR_ZERO * np.abs(at_zero))[within].all():
            break
        above = there > 0
        low, at_low = np.where(above, low, t), np.where(above, at_low, there)
        high, at_high = np.where(above, t, high), np.where(above, there, at_high)
    return t


def _least_squares(features: Features, signs: Floats, strength: Floats) -> tuple[Array, Array]:
    """Return the weights that some rows, as many as the curvature is taken from, would have."""
    weighed = np.flatnonzero(strength > 0)
    rows = weighed[spread_indices(len(weighed), CURVED_ROWS * features.r)]
    kappa = strength[rows] * (strength.sum() / strength[rows].sum())
    F = features.at(rows)
    xp, pull = namespace(F), like(-AHEAD * kappa[:, None] * signs[rows], F)
    return _step(F, kappa, in_float64(F.T @ pull), xp.sum(pull, axis=0, dtype=xp.float64))


def _curved(kappa: Floats, most: int) -> tuple[Indices, Floats]:
    """Return the rows that have a curvature, and it; if they are too many, some in its proportion.

    Drawn at equal distances along the sum of the curvatures, each stands for the same part of it.
    """
    rows = np.flatnonzero(kappa)
    if len(rows) <= most:
        return rows, kappa[rows]
    along = np.cumsum(kappa[rows], dtype=np.float64)
    drawn = rows[np.searchsorted(along, (np.arange(most) + 0.5) * (along[-1] / most))]
    return drawn, np.full(most, along[-1] / most)


def _step(F: Array, kappa: Floats, gw: Array, gb: Array) -> tuple[Array, Array]:
    """Return −H⁻¹g for H = diag(1, …, 1, 0) + Σ_i κ_i (f_i, 1)(f_i, 1)ᵀ.

    The intercept takes the mean f̄ of the rows away from them, and dw = −(I + GᵀG)⁻¹(g_w − g_b f̄)
    with G = √κ (F − f̄). With fewer rows than features, (I + GᵀG)⁻¹ = I − Gᵀ(I + GGᵀ)⁻¹G.

    Parameters
    ----------
    F : array of shape (s, r)
        Rows with a curvature.
    kappa : array of shape (s,)
        κ.
    gw, gb : arrays of shape (r, q) and (q,)
        Gradients.
    """
    xp, (s, r) = namespace(F), F.shape
    if s == 0:
        return -gw, xp.zeros_like(gb)
    dw: Array
    total, few = float(kappa.sum()), s < r
    mean = like(kappa / total, F) @ F
    G = F - mean
    G *= like(np.sqrt(kappa), F)[:, None]
    centre = in_float64(mean)
    wanted = gw - centre[:, None] * gb
    squares = in_float64(G @ G.T if few else G.T @ G)
    # what rounding may have taken from the squares is given back
    ridge = 1 + epsilon(F) * float(xp.linalg.trace(squares))
    M = squares + ridge * identity(min(s, r), squares)
    if few:
        dw = times(G.T, solve_positive(M, times(G, wanted))) - wanted
    else:
        dw = -solve_positive(M, wanted)
    return dw, -gb / total - centre @ dw


def scores_of(features: Features, w: Array, b: Array) -> Array:
    """Return F w + b in the precision of F, shape (n, p)."""
    xp = namespace(w)
    return xp.concat(
        [
            F @ xp.astype(w, F.dtype, copy=False) + xp.astype(b, F.dtype, copy=False)
            for _, F in features.blocks_in_place()
        ]
    )


def _transposed(features: Features, values: Array) -> Array:
    """Return Fᵀ values in float64, shape (r, p): only rows whose values are not all 0 take part."""
    xp = namespace(values)
    found: list[Array] = []
    for at, F in features.blocks_in_place():
        there = values[at, :]
        rows = np.flatnonzero(to_host(xp.any(there != 0, axis=1)))
        some = 2 * len(rows) < F.shape[0]
        found.append(in_float64(take(F, rows).T @ take(there, rows) if some else F.T @ there))
    return sum(found[1:], start=found[0])
