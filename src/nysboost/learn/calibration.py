"""Calibrate probabilities from scores, on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import log_softmax

from nysboost.learn.search.search import SearchResult
from nysboost.numerics.arrays import Floats

PRIOR = 0.25
"""Quadratic penalty on the calibration: on biases, weights, power and log(slope / 4), beside the
summed log loss. Log losses with 0.1 and 1 are within 1 % on 12 tables."""

FLOOR = 0.01
"""Smallest score whose logarithm is taken. Log loss with the power over that without, on eight
tables: .93 to 1.03, geometric mean .99; floors of .003 and .03 are within 1 % of that."""

SLOPE = 4.0
"""The slope at which the penalty is smallest."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Logits slope · s + power · log s + bias of scores s, with biases of shape (k,).

    Scores from squared errors estimate probabilities, whose logarithms are logits. For well
    separated classes, they are 0 and 1 with some noise, and a slope is better.
    """

    slope: float
    power: float
    bias: Floats

    def logits(self, scores: Floats) -> Floats:
        """Return the logits of scores, both of shape (n, k)."""
        logits = self.slope * scores + self.bias
        if self.power > 0:
            logits = logits + self.power * _logarithm(scores)
        return np.asarray(logits)


def calibrate(
    fitted: SearchResult, beside: Sequence[Floats] = (), *, shares: bool
) -> tuple[Calibration, Floats]:
    """Return the calibration for which softmax(logits) fits held-out labels best, and weights.

    They minimise the log loss of the h held-out rows, with a small penalty on the distance from a
    slope of 4 and zeros. Labels are smoothed by half a row of each class (Jeffreys).

    Parameters
    ----------
    fitted : SearchResult
        Held-out labels as indicators, scores and weights of rows.
    beside : sequence of arrays of shape (h, k)
        Further logits that are added to those of the scores, with weights of 0 or more.
    shares : bool
        Whether scores estimate probabilities. If not, the power is 0. For two classes, the biases
        are 0 too, because a linear classifier has an intercept. With several classes,
        one-against-rest hinge classifiers may never predict some class (Lee, Lin and Wahba 2004);
        biases correct this.

    Returns
    -------
    calibration : Calibration
    weights : array of shape (len(beside),)
    """
    h, k = fitted.mean.shape
    counts = np.ones(h)
    if fitted.weights is not None:
        counts = fitted.weights
    logarithm = np.zeros((h, k))
    if shares:
        logarithm = _logarithm(fitted.mean)

    # half a row is added to each class
    smoothed = (h * fitted.truth + 0.5) / (h + k / 2)
    loss = CalibrationLoss(
        terms=[fitted.mean, logarithm, *beside],
        truth=smoothed,
        weights=counts / counts.sum(),
        biased=shares or k > 2,
    )

    # a larger score never lowers a probability: coefficients are not negative
    q = len(loss.terms)
    least = np.full(q + k, -np.inf)
    least[1:q] = 0.0
    minimum = minimize(
        loss,
        loss.start(),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(least, np.inf),
    )

    # (log slope, power, weights of further logits, bias)
    found = minimum.x
    slope = float(np.exp(found[0]))
    power = float(found[1])
    calibration = Calibration(slope, power, bias=found[q:])
    return calibration, found[2:q]


@dataclass(frozen=True, eq=False)
class CalibrationLoss:
    """Penalised log loss of the logits Σ_i c_i · terms_i + bias, with its gradient.

    The variables are (log c_0, c_1, …, c_{q−1}, bias), and the terms have shape (h, k).
    """

    terms: Sequence[Floats]
    truth: Floats
    weights: Floats
    biased: bool

    def start(self) -> Floats:
        """Return the variables with zero penalty."""
        k = self.truth.shape[1]
        start = np.zeros(len(self.terms) + k)
        start[0] = np.log(SLOPE)
        return start

    def __call__(self, variables: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        # the logits, Σ_i c_i · terms_i + bias
        h = len(self.truth)
        q = len(self.terms)
        c = variables[:q].copy()
        c[0] = np.exp(variables[0])
        bias = variables[q:]
        logits = np.tile(bias, (h, 1))
        for c_i, term in zip(c, self.terms, strict=True):
            logits += c_i * term

        # the log loss of each row
        log_shares = log_softmax(logits, axis=1)
        row_losses = -np.sum(self.truth * log_shares, axis=1)

        # its gradient: by a logit it is the share minus the truth
        excess = np.exp(log_shares) - self.truth
        by_logit = self.weights[:, None] * excess
        by_c = np.zeros(q)
        for i, term in enumerate(self.terms):
            by_c[i] = np.sum(by_logit * term)
        by_c[0] *= c[0]
        by_bias = self.biased * by_logit.sum(axis=0)
        gradient = np.concatenate([by_c, by_bias])

        # the penalty, whose share falls with the number of rows
        pull = variables - self.start()
        penalty = PRIOR / h
        mean_loss = float(self.weights @ row_losses)
        loss = mean_loss + penalty * float(pull @ pull)
        return loss, gradient + 2 * penalty * pull


def _logarithm(scores: Floats) -> Floats:
    return np.log(np.maximum(scores, FLOOR))
