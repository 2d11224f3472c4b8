"""Linear classifiers on features: support vector machines and logistic regression.

With features φ, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the objective of the kernel machine with
the approximated kernel K̂, in r variables instead of n.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearPredictor
from nysboost.gram import KernelGram
from nysboost.learn.search.data import Data
from nysboost.learn.search.model import Member
from nysboost.learn.search.search import Trial
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.linalg import solve_positive
from nysboost.rows.lazy import gather

TOLERANCE = 0.02
"""Newton's method stops when a step would lower the objective by less than this share. Half of it
changed the accuracy on Pendigits, IJCNN and protein by at most 0.04 points (four seeds)."""

CURVED_ROWS = 4
"""The Hessian and the starting point use at most this many rows for each feature."""

AHEAD = 2.0
"""The starting point is the least-squares fit to labels −2 and 2: 13 steps for the hinge on digits,
20 with labels −1 and 1."""

HALVINGS, ARMIJO = 40, 0.45
"""A step is halved until the objective falls by this share of the linear prediction; on a parabola
a full Newton step has half of it."""

ROUGH = 0.1
"""Tolerance of the fits that choose C and calibrate; with 0.3 IJCNN's log loss was 4 % higher."""

STRENGTHS, USUAL = (0.3, 3.0, 30.0, 300.0), 2
"""The values of C that are tried, for a kernel with k(x, x) = 1. Ties are broken in favour of the
value nearest to the third one."""


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
    """max(0, 1 − m), of support vector machines, smoothed (Chapelle 2007).

    Within `width` of the corner m = 1 it is a parabola.
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
    """½‖w‖² + C Σ_i ω_i loss(y_i (F_i w + b)), where b = 0 without an intercept, and when to stop.

    Twelve data sets with 500 landmarks and C = 10 took 6 to 14 Newton steps.
    """

    loss: MarginLoss
    C: float = 1.0
    intercept: bool = True
    tolerance: float = TOLERANCE
    max_iter: int = 40


class LinearClassifiers(NamedTuple):
    """Weights (r, p) and intercepts (p,) of p problems, and the number of Newton steps."""

    w: Array
    b: Array
    n_iter: int = 0


def fit_margins(
    features: Factor,
    signs: Floats,
    objective: Objective,
    weights: Floats | None = None,
    start: LinearClassifiers | None = None,
) -> LinearClassifiers:
    """Minimise the objective of each of p problems by Newton's method.

    `signs` (n, p) are the labels y of each problem, −1 or 1, and `weights` (n,) are ω. Without a
    `start` it is a least-squares fit. The Hessian uses the rows with second derivatives, or a
    sample of them. All problems share the passes over the rows. The result is in float64.
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
        for _ in range(HALVINGS):
            there = value(w + arrays.like(t, w) * dw, scores + arrays.like(t, moved) * moved)
            gains = there <= before - ARMIJO * t * promised
            if gains.all():
                break
            t = np.where(gains, t, t / 2)
        w, b = w + arrays.like(t, w) * dw, b + arrays.like(t, b) * db
        scores = scores + arrays.like(t, moved) * moved
        todo = np.flatnonzero(promised > objective.tolerance * before)
        if len(todo) == 0:
            break
    return LinearClassifiers(w, b, step)


def _least_squares(
    features: Factor, signs: Floats, strength: Floats, intercept: bool
) -> tuple[Array, Array]:
    """Return the least-squares fit to some of the rows."""
    weighed = np.flatnonzero(strength > 0)
    rows = weighed[spaced_indices(len(weighed), CURVED_ROWS * features.shape[1])]
    kappa = strength[rows] * (strength.sum() / strength[rows].sum())
    F = features.at(rows)
    pull = arrays.like(-AHEAD * kappa[:, None] * signs[rows], F)
    return _step(F, kappa, arrays.in_float64(F.T @ pull), _sums(pull), intercept=intercept)


def _rows_with_curvature(kappa: Floats, most: int) -> tuple[Indices, Floats]:
    """Return rows with κ > 0, and their κ: all, or a systematic sample with probabilities ∝ κ."""
    rows = np.flatnonzero(kappa)
    if len(rows) <= most:
        return rows, kappa[rows]
    along = np.cumsum(kappa[rows], dtype=np.float64)
    drawn = rows[np.searchsorted(along, (np.arange(most) + 0.5) * (along[-1] / most))]
    return drawn, np.full(most, along[-1] / most)


def _step(F: Array, kappa: Floats, gw: Array, gb: Array, *, intercept: bool) -> tuple[Array, Array]:
    """Return −H⁻¹g for H = diag(1, …, 1, 0) + Σ_i κ_i (f_i, 1)(f_i, 1)ᵀ.

    With the weighted mean f̄, or 0 without an intercept, and G = √κ (F − f̄) the step is
    dw = −(I + GᵀG)⁻¹(g_w − g_b f̄). F (s, r) are the rows with κ (s,); the gradients have shapes
    (r, q) and (q,).
    """
    xp, total = arrays.namespace(F), float(kappa.sum())
    if total == 0:
        return -gw, xp.zeros_like(gb)
    mean = arrays.like(kappa * (intercept / total), F) @ F
    G = (F - mean) * arrays.like(np.sqrt(kappa), F)[:, None]
    squares, centre = arrays.in_float64(G.T @ G), arrays.in_float64(mean)
    # GᵀG may have lost so much to rounding
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


# Classifiers on the features of a search


def fit_classifiers(
    loss: str, strengths: Sequence[float], trial: Trial, final: Callable[[], Member],
    most: int | None = None,
) -> tuple[Floats, Callable[[], LinearPredictor]]:  # fmt: skip
    """Return scores of held-out rows, shape (h, k), and a function that refits to all rows.

    Each class is one problem against the rest; two classes are a single problem. Held-out rows
    choose C by accuracy. The features are those of a trial, without the held-out rows, and in the
    end those of the member that `final` returns.

    With `most` the scores are added to the logits of squared errors: at most so many rows in memory
    are used, there is no intercept, so that far from all landmarks the class frequencies remain,
    and with a single held-out part the classifiers are not refitted.
    """
    alone = most is None
    data = trial.data if most is None else trial.data.in_memory(most)
    signs = 2.0 * data.Y[:, 1 if data.Y.shape[1] == 2 else 0 :] - 1.0
    objectives = [Objective(LOSSES[loss], C, alone, ROUGH) for C in strengths]
    tried: list[list[Floats]] = [[] for _ in strengths]
    for (_, held), squared in zip(data.splits, trial.models, strict=True):
        features, kept, there = _factor(data, squared.features), data.mass.copy(), data.order[held]
        if len(held) < len(data.order):
            kept[there] = 0.0
        found = None
        for objective, scores in zip(objectives, tried, strict=True):
            found = fit_margins(features, signs, objective, kept, found)
            w, b = _mirror_two_classes(found)
            scores.append(arrays.floats_on_host(scores_of(features, w, b))[there])
    joined = [np.concatenate(scores) for scores in tried]
    truth, mass = data.Y[data.held].argmax(axis=1), data.mass[data.held]
    right = np.array([mass @ (scores.argmax(axis=1) == truth) for scores in joined])
    usual = min(USUAL, len(joined) - 1)
    best = min(np.flatnonzero(right == right.max()).tolist(), key=lambda i: abs(i - usual))

    def refit() -> LinearPredictor:
        features, weights = final().model.features, (w, b)
        if alone or len(data.folds) > 1:
            objective = replace(objectives[best], tolerance=TOLERANCE)
            refitted = fit_margins(_factor(data, features), signs, objective, data.mass)
            weights = _mirror_two_classes(refitted)
        of_features, intercept = (arrays.like(part, features.normalization) for part in weights)
        return LinearPredictor(features, intercept, of_features)

    return joined[best], refit


def _factor(data: Data, features: FeatureMap) -> Factor:
    return Factor(KernelGram(data.rows, features.kernel, data.budget), features)


def _mirror_two_classes(found: LinearClassifiers) -> tuple[Array, Array]:
    """Return weights and intercepts of all classes: two classes are one problem, mirrored."""
    w, b, _ = found
    if w.shape[1] > 1:
        return w, b
    xp = arrays.namespace(w)
    return xp.concat([-w, w], axis=1), xp.concat([-b, b])
