"""Linear classifiers on features: support vector machines and logistic regression.

With features F of a kernel's approximation, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the
kernel machine of K̂ itself, and a matter of r numbers, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nysboost.data.lazy import gather
from nysboost.data.rows import spaced_indices
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.linear import LinearPredictor
from nysboost.gram import KernelGram
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.linalg import solve_positive
from nysboost.search.data import Data
from nysboost.search.model import Member
from nysboost.search.search import Trial

TOLERANCE = 0.02
"""A problem is solved when a step promises less than this share of the objective. With half of it
test labels right were the same to 0.04 points on Pendigits, IJCNN and protein (four seeds)."""

CURVED_ROWS = 4
"""Rows for each feature, at most, that a step's curvature and the start are taken from."""

AHEAD = 2.0
"""The start is the least squares of labels −2 and 2: most rows are beyond the corner already."""

TRIES, ENOUGH = 40, 0.45
"""A step is halved, up to 40 times, until it gains this share of what its slope promises; on a
parabola a whole one gains half of it."""

ROUGH = 0.1
"""Tolerance of the fits that choose C and calibrate; with 0.3 IJCNN's log loss was 4 % higher."""

STRENGTHS, USUAL = (0.3, 3.0, 30.0, 300.0), 2
"""C is one of these, for a kernel with k(x, x) = 1; of equally good ones that nearest to the usual
one: a few held-out rows of classes that lie apart would have any of them."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + e⁻ᵐ), of logistic regression."""

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        xp = arrays.namespace(margins)
        return xp.logaddexp(xp.zeros_like(margins), -margins)

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return (arrays.namespace(margins).tanh(margins / 2) - 1) / 2

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        return (1 - arrays.namespace(margins).tanh(margins / 2) ** 2) / 4


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 − m), of support vector machines, with its corner rounded off (Chapelle 2007).

    Within `width` of the corner it is a parabola, which touches both sides.
    """

    width: float = 0.1

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        beyond = arrays.namespace(margins).clip(1 - margins - self.width, min=0.0)
        return self._near(margins) ** 2 / (4 * self.width) + beyond

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return self._near(margins) / (-2 * self.width)

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        xp = arrays.namespace(margins)
        return xp.astype(xp.abs(1 - margins) < self.width, margins.dtype) / (2 * self.width)

    def _near(self, margins: Array) -> Array:
        return arrays.namespace(margins).clip(1 + self.width - margins, 0.0, 2 * self.width)


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
    template = features.at(np.empty(0, dtype=np.intp))
    xp, loss = arrays.namespace(template), objective.loss
    strength = objective.C * (np.ones(features.shape[0]) if weights is None else weights)
    w, b = start[:2] if start else _least_squares(features, signs, strength, objective.intercept)
    y, strong = arrays.like(signs, template), arrays.like(strength[:, None], template)
    scores, todo = scores_of(features, w, b), np.arange(signs.shape[1])

    def pull(scores: Array) -> Array:
        return strong * y * loss.slope(y * scores)

    def value(w: Array, scores: Array) -> Floats:
        of_rows = _sums(strong * loss.value(y * scores))
        return arrays.to_host(xp.sum(w**2, axis=0) / 2 + of_rows)

    for step in range(1, objective.max_iter + 1):  # noqa: B007
        pulled, bend = pull(scores), arrays.to_host(strong * loss.curve(y * scores))
        gw = w + features.fold(_products, None, pulled)
        gb, dw, db = _sums(pulled), xp.zeros_like(w), xp.zeros_like(b)
        for j in todo.tolist():
            rows, kappa = _rows_with_curvature(bend[:, j], CURVED_ROWS * features.shape[1])
            F, one = features.at(rows), slice(j, j + 1)
            found = _step(F, kappa, gw[:, one], gb[one], intercept=objective.intercept)
            dw[:, one], db[one] = found
        moved = scores_of(features, dw, db)
        promised = -arrays.to_host(xp.sum(gw * dw, axis=0) + gb * db)
        before, t = value(w, scores), np.ones(len(promised))
        for _ in range(TRIES):
            there = value(w + arrays.like(t, w) * dw, scores + arrays.like(t, moved) * moved)
            gains = there <= before - ENOUGH * t * promised
            if gains.all():
                break
            t = np.where(gains, t, t / 2)
        w, b = w + arrays.like(t, w) * dw, b + arrays.like(t, b) * db
        scores = scores + arrays.like(t, moved) * moved
        todo = np.flatnonzero(promised > objective.tolerance * before)
        if len(todo) == 0:
            break
    return Machines(w, b, step)


def _least_squares(
    features: Factor, signs: Floats, strength: Floats, intercept: bool
) -> tuple[Array, Array]:
    """Return the weights that some rows, as many as the curvature is taken from, would have."""
    weighed = np.flatnonzero(strength > 0)
    rows = weighed[spaced_indices(len(weighed), CURVED_ROWS * features.shape[1])]
    kappa = strength[rows] * (strength.sum() / strength[rows].sum())
    F = features.at(rows)
    pull = arrays.like(-AHEAD * kappa[:, None] * signs[rows], F)
    return _step(F, kappa, arrays.in_float64(F.T @ pull), _sums(pull), intercept=intercept)


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
    xp, total = arrays.namespace(F), float(kappa.sum())
    if total == 0:
        return -gw, xp.zeros_like(gb)
    mean = arrays.like(kappa * (intercept / total), F) @ F
    G = (F - mean) * arrays.like(np.sqrt(kappa), F)[:, None]
    squares, centre = arrays.in_float64(G.T @ G), arrays.in_float64(mean)
    # what rounding may have taken from the squares is given back
    ridge = 1 + arrays.epsilon(F) * float(xp.linalg.trace(squares))
    M = squares + ridge * arrays.identity(F.shape[1], squares)
    dw = -solve_positive(M, gw - centre[:, None] * gb)
    return dw, -float(intercept) * (gb / total + centre @ dw)


def scores_of(features: Factor, w: Array, b: Array) -> Array:
    """Return F w + b in the precision of F, shape (n, p)."""
    return gather(features.map(_scores, (w, b), w.shape[1]))


def _scores(shared: tuple[Array, Array], F: Array) -> Array:
    w, b = (arrays.namespace(F).astype(part, F.dtype, copy=False) for part in shared)
    return F @ w + b


def _products(_: None, F: Array, values: Array) -> Array:
    return arrays.in_float64(F.T @ values)


def _sums(values: Array) -> Array:
    """Return the sums of columns in float64."""
    xp = arrays.namespace(values)
    return xp.sum(values, axis=0, dtype=xp.float64)


# Members of a classifier


def fit_classifiers(
    loss: str, strengths: Sequence[float], trial: Trial, final: Callable[[], Member],
    most: int | None = None,
) -> tuple[Floats, Callable[[], LinearPredictor]]:  # fmt: skip
    """Return scores of held-out rows by machines without them, and what makes a member of all rows.

    Each class is one problem against the rest; of two, the second. Held-out rows choose C by their
    share of right labels. The scores have shape (h, k). Landmarks are those of a trial, and in the
    end `final` ones. If `most` is given, the scores join those of squared errors: so many of the
    rows in memory stand for all, beside one held-out part the member is what scored, and there is
    no intercept, so that far from all landmarks the shares of the classes are left.
    """
    alone = most is None
    data = trial.data if most is None else trial.data.in_memory(most)
    signs = 2.0 * data.Y[:, 1 if data.Y.shape[1] == 2 else 0 :] - 1.0
    tried: list[list[Floats]] = [[] for _ in strengths]
    for (_, held), squared in zip(data.splits, trial.models, strict=True):
        features, kept, there = _factor(data, squared.features), data.mass.copy(), data.order[held]
        if len(held) < len(data.order):
            kept[there] = 0.0
        machines = None
        for C, scores in zip(strengths, tried, strict=True):
            objective = Objective(LOSSES[loss], C, alone, ROUGH)
            machines = fit_margins(features, signs, objective, kept, machines)
            w, b = _of_classes(machines)
            scores.append(arrays.floats_on_host(scores_of(features, w, b))[there])
    found = [np.concatenate(scores) for scores in tried]
    truth, mass = data.Y[data.held].argmax(axis=1), data.mass[data.held]
    right = np.array([mass @ (scores.argmax(axis=1) == truth) for scores in found])
    usual = min(USUAL, len(found) - 1)
    best = min(np.flatnonzero(right == right.max()).tolist(), key=lambda i: abs(i - usual))

    def refit() -> LinearPredictor:
        features, weights = final().model.features, (w, b)
        if alone or len(data.folds) > 1:
            objective = Objective(LOSSES[loss], strengths[best], alone)
            machines = fit_margins(_factor(data, features), signs, objective, data.mass)
            weights = _of_classes(machines)
        of_rows, intercept = (arrays.like(part, features.normalization) for part in weights)
        return LinearPredictor(features, intercept, of_rows)

    return found[best], refit


def _factor(data: Data, features: FeatureMap) -> Factor:
    gram: Any = features.gram
    return Factor(features.with_gram(KernelGram(data.rows, gram.kernel, data.budget)))


def _of_classes(machines: Machines) -> tuple[Array, Array]:
    """Return weights and intercepts of all classes: two classes are one problem, mirrored."""
    w, b, _ = machines
    if w.shape[1] > 1:
        return w, b
    xp = arrays.namespace(w)
    return xp.concat([-w, w], axis=1), xp.concat([-b, b])
