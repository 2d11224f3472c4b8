"""Linear classifiers on the features of a search, one per class, with C chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearPredictor
from nysboost.gram import KernelGram
from nysboost.learn.margins import (
    LOSSES,
    TOLERANCE,
    LinearClassifiers,
    Objective,
    fit_margins,
)
from nysboost.learn.search.data import Data
from nysboost.learn.search.trial import CandidateTrial
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats

ROUGH = 0.1
"""Tolerance of the fits that choose C and calibrate; with 0.3 IJCNN's log loss was 4 % higher."""

STRENGTHS = (0.3, 3.0, 30.0, 300.0)
USUAL = 2
"""The values of C that are tried, for a kernel with k(x, x) = 1. Ties are broken in favour of the
value nearest to the third one."""

MOST_ROWS = 2**16
"""Logistic regressions beside squared errors are fitted to at most this many rows."""


@dataclass(frozen=True, eq=False)
class FittedClassifiers:
    """Linear classifiers with the best C on held-out rows.

    `scores` (h, k) are those of held-out rows, by classifiers fitted without them. `last` was
    fitted without the last held-out part, and `refitted` says whether `fit_to_all` replaces it.
    """

    data: Data
    signs: Floats
    objective: Objective
    scores: Floats
    last: LinearClassifiers
    refitted: bool

    def fit_to_all(self, features: FeatureMap) -> LinearPredictor:
        """Return the classifiers fitted to all rows of the data, on the features of a member."""
        fitted = self.last
        if self.refitted:
            objective = replace(self.objective, tolerance=TOLERANCE)
            factor = _factor(self.data, features)
            fitted = fit_margins(factor, self.signs, objective, self.data.mass)

        # on the device of the features, and in their precision
        w, b = _mirror_two_classes(fitted)
        w = arrays.like(w, features.normalization)
        b = arrays.like(b, features.normalization)
        return LinearPredictor(features, b, w)


def fit_in_place_of_squares(
    loss: str, strengths: Sequence[float], trial: CandidateTrial
) -> FittedClassifiers:
    """Return classifiers whose scores replace those of squared errors, as in `SVC`."""
    of_margins = LOSSES[loss]
    objectives = [Objective(of_margins, C, tolerance=ROUGH) for C in strengths]
    return _choose_strength(objectives, trial, refitted=True)


def fit_beside_squares(trial: CandidateTrial) -> FittedClassifiers:
    """Return logistic regressions whose scores are added to the logits of squared errors.

    They have no intercept, so far from all landmarks the probabilities are the class frequencies.
    Only rows in memory are used. With a single held-out part, the classifiers are not fitted again.
    """
    objective = Objective(
        LOSSES["log"],
        STRENGTHS[USUAL],
        intercept=False,
        tolerance=ROUGH,
    )
    has_folds = trial.data.uses_folds
    return _choose_strength([objective], trial, most=MOST_ROWS, refitted=has_folds)


def _choose_strength(
    objectives: Sequence[Objective],
    trial: CandidateTrial,
    *,
    refitted: bool,
    most: int | None = None,
) -> FittedClassifiers:
    """Fit without each held-out part with every C, and choose the C of the highest accuracy.

    With `most`, only rows in memory are used, and at most so many training rows.
    """
    of_all = trial.data
    data = trial.prepared.held_out_data()
    if most is not None:
        of_all = of_all.in_memory(most)
        data = data.in_memory(most)

    # each class is a problem against the rest; two classes are a single problem
    signs = 2.0 * data.Y - 1.0
    if data.n_outputs == 2:
        signs = signs[:, 1:]

    # held-out scores with each C, fold after fold
    scores: list[list[Floats]] = [[] for _ in objectives]
    fits: list[LinearClassifiers] = []
    for split, model in zip(data.splits, trial.models, strict=True):
        factor = _factor(data, model.features)
        mass = data.mass_without(split)
        fits = _fit_path(factor, signs, objectives, mass)

        # the scores of the held-out rows
        F = model.features(data.held_out(split).X)
        for fit, of_objective in zip(fits, scores, strict=True):
            w, b = _mirror_two_classes(fit)
            of_held = F @ w + b
            of_objective.append(arrays.to_host(of_held))

    held_out = [np.concatenate(parts) for parts in scores]
    best = _most_accurate(held_out, data)
    return FittedClassifiers(
        of_all,
        signs,
        objectives[best],
        held_out[best],
        fits[best],
        refitted,
    )


def _fit_path(
    factor: Factor, signs: Floats, objectives: Sequence[Objective], mass: Floats
) -> list[LinearClassifiers]:
    """Return classifiers with every C, each started from the previous one."""
    path: list[LinearClassifiers] = []
    fitted = None
    for objective in objectives:
        fitted = fit_margins(factor, signs, objective, mass, start=fitted)
        path.append(fitted)
    return path


def _most_accurate(held_out: Sequence[Floats], data: Data) -> int:
    """Return the index of the most accurate scores (h, k); of ties, the one nearest the usual C."""
    # the weight of the held-out rows that each set of classifiers has right
    labels = data.truth.argmax(axis=1)
    mass = data.held_mass
    n_right = np.zeros(len(held_out))
    for i, scores in enumerate(held_out):
        is_right = scores.argmax(axis=1) == labels
        n_right[i] = mass @ is_right

    usual = min(USUAL, len(held_out) - 1)
    tied = np.flatnonzero(n_right == n_right.max())
    nearest = np.argmin(np.abs(tied - usual))
    return int(tied[nearest])


def _factor(data: Data, features: FeatureMap) -> Factor:
    """Return the features of all rows of the data."""
    gram = KernelGram(data.rows, features.kernel, data.budget)
    return Factor(gram, features)


def _mirror_two_classes(found: LinearClassifiers) -> tuple[Array, Array]:
    """Return weights and intercepts of all classes; two classes are one mirrored problem."""
    if found.w.shape[1] > 1:
        return found.w, found.b
    xp = arrays.namespace(found.w)
    w = xp.concat([-found.w, found.w], axis=1)
    b = xp.concat([-found.b, found.b])
    return w, b
