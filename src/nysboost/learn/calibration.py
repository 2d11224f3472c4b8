"""From a classifier's scores to probabilities, by held-out rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from nysboost.numerics.arrays import Floats
from nysboost.search.search import Fitted

Calibration: TypeAlias = tuple[float, float, Floats]
"""Slope, power and biases."""

FLAT = 1e-3
"""Penalty on the calibration's biases, its power, and the distance of its slope from 4."""

FLOOR = 0.01
"""Regressed indicators below this are as good as this. Log loss with the power, over that without,
on eight tables: .93 to 1.03, geometric mean .99; floors of .003 and .03 are within 1 % of that."""


def logits_of(scores: Floats, slope: float, power: float, bias: Floats) -> Floats:
    """Return slope · s + power · log s + bias, shape (n, k).

    Squared errors make scores of probabilities, whose logarithms are logits; where classes are far
    apart they are 0 and 1 with some noise, which a slope weighs better.
    """
    logarithm = np.log(np.maximum(scores, FLOOR)) if power else 0.0
    return np.asarray(slope * scores + power * logarithm + bias)


def by_margins(fitted: Fitted) -> Calibration:
    """Return slope and biases for scores of machines, which have intercepts: biases if they pay.

    Of several classes, each against the rest, a hinge may leave one without rows of its own (Lee,
    Lin and Wahba 2004). With biases more labels have to become right than wrong, by more than twice
    the root of both numbers together (McNemar 1947).
    """
    own = calibrate(fitted, shares=False, biased=False)
    if fitted.mean.shape[1] == 2:
        return own
    shifted = calibrate(fitted, shares=False)
    weights = np.ones(len(fitted.mean)) if fitted.weights is None else fitted.weights
    right = [
        logits_of(fitted.mean, *found).argmax(axis=1) == fitted.truth.argmax(axis=1)
        for found in (own, shifted)
    ]
    gained, lost = float(weights @ (right[1] & ~right[0])), float(weights @ (right[0] & ~right[1]))
    return shifted if gained - lost > 2 * (gained + lost) ** 0.5 else own


def calibrate(fitted: Fitted, *, shares: bool, biased: bool = True) -> Calibration:
    """Return slope, power and biases with which softmax(logits) fits held-out labels.

    The log loss of held-out rows is minimised, with a small penalty on the distance from a slope
    of 4 and no bias, which scores of 0 and 1 would have. Each label has the probability that
    Laplace's rule of succession leaves it after h rows, as in Platt (1999). Where scores are not
    `shares`, near probabilities, the power is 0.
    """
    scores, (h, k) = fitted.mean, fitted.mean.shape
    truth = (h * fitted.truth + 1) / (h + k)  # h rows do not show that a label is certain
    weights = np.ones(h) if fitted.weights is None else fitted.weights
    weights = weights / weights.sum()
    logarithm = np.log(np.maximum(scores, FLOOR)) if shares else np.zeros_like(scores)
    start = np.concatenate([[np.log(4.0), 0.0], np.zeros(scores.shape[1])])

    def objective(x: Floats) -> tuple[float, Floats]:
        slope, power, bias = np.exp(x[0]), x[1], x[2:]
        logits = slope * scores + power * logarithm + bias
        loss = -float(weights @ np.sum(truth * log_softmax(logits, axis=1), axis=1))
        gap = weights[:, None] * (softmax(logits, axis=1) - truth)
        pull = x - start
        along = [slope * np.sum(gap * scores), np.sum(gap * logarithm)]
        gradient = np.concatenate([along, biased * gap.sum(axis=0)])
        return loss + FLAT * float(pull @ pull), gradient + 2 * FLAT * pull

    bounds = [(None, None), (0, None), *[(None, None)] * scores.shape[1]]  # more is more probable
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return float(np.exp(found.x[0])), float(found.x[1]), found.x[2:]
