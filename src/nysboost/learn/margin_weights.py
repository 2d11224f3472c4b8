"""Members of a classifier with weights by a loss of margins, on landmarks that are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nysboost.engine.factor import Factor
from nysboost.gram import KernelGram
from nysboost.learn.margins import (
    LOSSES,
    Machines,
    MarginLoss,
    Objective,
    fit_margins,
    scores_of,
)
from nysboost.numerics.arrays import Floats, floats_on_host, like, namespace, take
from nysboost.numerics.resources import Budget
from nysboost.search.model import LinearPredictor
from nysboost.search.search import Fitted
from nysboost.search.trials import Data

ROUGH = 0.1
"""Tolerance of the fits that choose C and calibrate; with 0.3 IJCNN's log loss was 4 % higher."""

STRENGTHS, USUAL = (0.3, 3.0, 30.0, 300.0), 2
"""C is one of these, for a kernel with k(x, x) = 1; of equally good ones that nearest to the usual
one: a few held-out rows of classes that lie apart would have any of them."""


def fit_machines(loss: str, C: float | None, found: Fitted, data: Data, budget: Budget) -> Fitted:
    """Return members on the landmarks that were found, with weights that minimise another loss.

    Each class is one problem against the rest; of two, the second. Held-out rows choose C by their
    share of right labels, if it is None, and are there to calibrate. Leaves have no margins.
    """
    truth, two = data.Y[data.held], data.Y.shape[1] == 2
    signs = 2.0 * data.Y[:, 1 if two else 0 :] - 1.0
    members, scores = [], np.zeros(truth.shape)
    for member in found.members:
        transform = member.model.features
        rows = data.with_codes(member.codes).rows
        features = Factor(transform.with_gram(KernelGram(rows, member.model.kernel, budget)))
        strength, of_held = _choose_strength(LOSSES[loss], C, features, signs, data)
        scores += member.weight * of_held
        machines = fit_margins(features, signs, Objective(LOSSES[loss], strength), data.mass)
        w, b, _ = _of_classes(machines)
        N = transform.normalization
        model = LinearPredictor(transform, like(b, N), like(w, N))
        members.append(replace(member, model=model))
    counts = None if data.weights is None else data.mass[data.held]
    there = np.concatenate([held for _, held in data.splits])
    return replace(
        found, members=members, truth=truth, mean=scores, spread=np.full_like(scores, np.nan),
        weights=counts, X=take(data.X, there),
    )  # fmt: skip


def _choose_strength(
    loss: MarginLoss, C: float | None, features: Factor, signs: Floats, data: Data
) -> tuple[float, Floats]:
    """Return the C that held-out rows prefer, and their scores by weights without them."""
    strengths, usual = (STRENGTHS, USUAL) if C is None else ((C,), 0)
    tried: list[list[Floats]] = [[] for _ in strengths]
    for _, held in data.splits:
        kept, there = data.mass.copy(), data.order[held]
        if len(held) < len(data.order):
            kept[there] = 0.0
        machines: Machines | None = None
        for at, strength in enumerate(strengths):
            objective = Objective(loss, strength, tolerance=ROUGH)
            machines = fit_margins(features, signs, objective, kept, machines)
            w, b, _ = _of_classes(machines)
            tried[at].append(floats_on_host(scores_of(features, w, b))[there])
    scores = [np.concatenate(of_folds) for of_folds in tried]
    truth, mass = data.Y[data.held].argmax(axis=1), data.mass[data.held]
    right = np.array([mass @ (each.argmax(axis=1) == truth) for each in scores])
    best = min(np.flatnonzero(right == right.max()), key=lambda i: abs(int(i) - usual))
    return strengths[best], scores[best]


def _of_classes(machines: Machines) -> Machines:
    """Return weights and intercepts of all classes: two classes are one problem, mirrored."""
    w, b, n_iter = machines
    if w.shape[1] > 1:
        return machines
    xp = namespace(w)
    return Machines(xp.concat([-w, w], axis=1), xp.concat([-b, b]), n_iter)
