"""Weights of a classifier by another loss than the squared one, on landmarks that are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.moments import Moments
from nysboost.gram import KernelGram, Landmarks
from nysboost.learn.margins import LOSSES, fit_margins
from nysboost.learn.on_features import Features
from nysboost.numerics.arrays import Array, Floats, in_float64, like, namespace, to_host
from nysboost.numerics.memory import Budget
from nysboost.target.judged import Judged
from nysboost.target.linear import LinearModel

Fitted: TypeAlias = tuple[Array, Array]
"""Weights and intercepts of each problem."""

HELD_OUT = 0.1
"""Share of the rows that choose C and calibrate; all rows take part in the weights at the end."""

STRENGTHS, USUAL = (0.3, 3.0, 30.0, 300.0), 2
"""C is one of these, for a kernel with k(x, x) = 1; of equally good ones that nearest to the usual
one: a few held-out rows of classes that lie apart would have any of them."""

ROUNDING = 1e-10
"""The squared errors' penalty is at least this share of the trace: a start needs no less."""

STEPS, WORK = (15, 200), 3e8
"""Steps of a descent, which begins at the weights of squared errors or at those of the C before: as
many as take this many products, within these bounds. With 500 landmarks that know the target and C
= 10, 15, 25 and 40 steps had the same share of test labels right to 0.1 points on Pendigits, IJCNN
and MNIST; from zero 80 had half a point less on Pendigits. Where rows are few, 200 are cheap, and
end at the machine that `SVC` finds."""


def with_margins(
    judged: Judged,
    rows: Rows,
    truth: Floats,
    weights: Floats | None,
    loss: str,
    C: float | None,
    budget: Budget,
    rng: np.random.Generator,
) -> Judged:
    """Return the same models with weights that minimise a loss of margins, and their scores.

    Each class is one problem against the rest. A tenth of the rows has no part in a first fit,
    chooses C by its share of right labels, and stays as what the models are judged by.

    Parameters
    ----------
    judged : Judged
        Models whose landmarks, metrics and shares are kept.
    rows : Rows
        The training rows, as numbers.
    truth : array of shape (n, k)
        Indicators of the classes.
    weights : array of shape (n,) or None
        Weight of each row.
    loss : str
        A name in `nysboost.learn.margins.LOSSES`.
    C : float or None
        Weight of the losses beside the squared norm; None for the best of `STRENGTHS`.
    budget : Budget
        Memory and cores of a pass.
    rng : numpy.random.Generator
        Draws the rows that are held out.
    """
    mass = np.ones(len(truth)) if weights is None else weights
    out = rng.uniform(size=len(truth)) < HELD_OUT
    if len(truth) * HELD_OUT < truth.shape[1]:
        out[:] = True  # too few rows to spare any: those that are fitted also judge
    signs = 2.0 * _problems(truth) - 1.0
    kept = out if out.all() else ~out
    strengths, usual = (STRENGTHS, USUAL) if C is None else ((C,), 0)
    models, scores = [], np.zeros((int(out.sum()), truth.shape[1]))
    for share, model in zip(judged.shares, judged.models, strict=True):
        features = _features(model, rows, budget)
        path = [_squared(features, model, truth, np.where(kept, mass, 0.0))]
        for strength in strengths:  # a sign of 0 has no part
            path.append(_fitted(features, signs * kept[:, None], loss, strength, mass, path[-1]))
        tried = [_scores(features, fitted)[out] for fitted in path[1:]]
        right = np.array([_right(found, truth[out], mass[out]) for found in tried])
        best = min(np.flatnonzero(right == right.max()), key=lambda i: abs(int(i) - usual))
        scores += float(share) * tried[best]
        w, b = _fitted(features, signs, loss, strengths[best], mass, path[best + 1])
        w, b = _mirrored(w.T, b)
        models.append(replace(model, w=like(w, model.w), mean=like(b, model.mean)))
    held = None if weights is None else weights[out]
    return replace(judged, models=models, mean=scores, truth=truth[out], weights=held)


def _fitted(
    features: Features, signs: Floats, loss: str, C: float, mass: Floats, start: Fitted
) -> Fitted:
    steps = int(np.clip(WORK / (signs.size * features.r), *STEPS))
    return fit_margins(features, signs, LOSSES[loss], C, mass, steps, start)


def _problems(classes: Any) -> Any:
    """Return the columns that are fitted: two classes are one problem, mirrored."""
    return classes if classes.shape[1] > 2 else classes[:, 1:]


def _squared(features: Features, model: LinearModel, truth: Floats, mass: Floats) -> Fitted:
    """Return the weights of squared errors, of labels −1 and 1, on rows of some mass.

    The sums are those of the features at hand: to take rows away from the model's own, which are in
    float64, would leave rounding where γ is small.
    """
    every: Any = None
    for at, F in features.blocks_in_place():
        F = in_float64(F)
        block = Moments.of(F, like(truth[at], F), like(mass[at], F))
        every = block if every is None else every + block
    size = float(namespace(every.FF).linalg.trace(every.FF))
    found = LinearModel.fit(model.basis, every, max(model.gamma, ROUNDING * size))
    return 2 * _problems(found.w).T, 2 * _problems(found.mean[None, :])[0, :] - 1


def _features(model: LinearModel, rows: Rows, budget: Budget) -> Features:
    gram = KernelGram(rows, model.basis.kernel, budget)
    landmarks = Landmarks(None, model.basis.Z)
    factor = Factor(FeatureMap(gram, landmarks, (model.basis.N,)))
    return Features(factor, (model.moments.FF, model.moments.F))


def _mirrored(w: Array, b: Array) -> Fitted:
    """Return weights of shape (r, k) and intercepts of all classes."""
    xp = namespace(w)
    if w.shape[1] > 1:
        return w, b
    return xp.concat([-w, w], axis=1), xp.concat([-b, b])


def _scores(features: Features, fitted: Fitted) -> Floats:
    w, b = _mirrored(fitted[0].T, fitted[1])
    w, b = to_host(w), to_host(b)
    return np.concatenate([F @ w + b for _, F in features.blocks()])


def _right(scores: Floats, truth: Floats, mass: Floats) -> float:
    """Return the weighted share of rows whose largest score is that of their class."""
    return float(mass @ (scores.argmax(axis=1) == truth.argmax(axis=1)))
