"""Linear classifiers on features: support vector machines and logistic regression.

With features F of a kernel's approximation, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the
kernel machine of K̂ itself, and a matter of r numbers, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, solve_triangular
from scipy.special import expit

from nysboost.learn.on_features import Features
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.descent import descend

MAX_ITER = 50
"""Steps of the descent: on Pendigits and IJCNN four times as many gave the same accuracy."""


class MarginLoss(Protocol):
    """A convex loss of the margin m = y f(x), and its slope."""

    def __call__(self, margins: Floats) -> tuple[Floats, Floats]:
        """Return the loss and its derivative at each margin."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + e⁻ᵐ), of logistic regression."""

    def __call__(self, margins: Floats) -> tuple[Floats, Floats]:
        """Return the loss and its derivative at each margin."""
        return np.logaddexp(0, -margins), -expit(-margins)


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 − m), of support vector machines, with its corner rounded off (Chapelle 2007).

    Parameters
    ----------
    width : float
        Within this distance of the corner it is a parabola, which touches both sides.
    """

    width: float = 0.1

    def __call__(self, margins: Floats) -> tuple[Floats, Floats]:
        """Return the loss and its derivative at each margin."""
        short = 1 - margins
        near = np.clip(short + self.width, 0, 2 * self.width)
        beyond = np.maximum(short - self.width, 0)
        return near**2 / (4 * self.width) + beyond, -near / (2 * self.width)


LOSSES: dict[str, MarginLoss] = {"hinge": Hinge(), "log": Logistic()}


def fit_margins(
    features: Features,
    signs: Floats,
    loss: MarginLoss,
    C: float,
    weights: Floats | None = None,
    max_iter: int = MAX_ITER,
) -> tuple[Floats, Floats]:
    """Minimise ½‖w‖² + C Σ_i loss(y_i (F_i w + b)) for each of p problems, by L-BFGS.

    The descent runs in the coordinates of the Cholesky factor of I + C FᵀF / 4, in which no
    direction is much steeper than another, and all problems share its passes over the rows.

    Parameters
    ----------
    features : Features
        F.
    signs : array of shape (n, p)
        The labels of each problem, −1 or 1; of rows that take no part 0.
    loss : MarginLoss
        The loss of a margin.
    C : float
        Weight of the losses beside the squared norm.
    weights : array of shape (n,) or None
        How much the loss of each row counts; None is 1.
    max_iter : int
        Steps at most.

    Returns
    -------
    w : array of shape (p, r)
    b : array of shape (p,)
    """
    p, r = signs.shape[1], features.r
    products = np.zeros((r + 1, r + 1))  # the last column is one: the intercept's
    for _, F in features.blocks():
        products[:r, :r] += F.T @ F
        products[:r, r] += F.sum(axis=0)
    products[r, :r], products[r, r] = products[:r, r], features.n
    ridge = np.append(np.ones(r), 0.0)  # the intercept is free
    strength = C * np.abs(signs) * (1.0 if weights is None else weights[:, None])
    lower, _ = cho_factor(np.diag(ridge) + C * products / 4, lower=True)
    unit = 1 / (C * features.n)

    def coefficients(x: Array) -> Floats:
        solved: Floats = solve_triangular(lower, x.reshape(p, r + 1).T, lower=True, trans="T")
        return solved

    def objective(x: Array) -> tuple[float, Array]:
        w = coefficients(x)
        value, gradient = 0.5 * float(ridge @ (w * w).sum(axis=1)), ridge[:, None] * w
        for at, F in features.blocks():
            losses, slopes = loss(signs[at] * (F @ w[:r] + w[r]))
            pull = strength[at] * signs[at] * slopes
            value += float((strength[at] * losses).sum())
            gradient[:r] += F.T @ pull
            gradient[r] += pull.sum(axis=0)
        back = solve_triangular(lower, gradient, lower=True).T.ravel()
        return unit * value, unit * back

    w = coefficients(descend(objective, np.zeros(p * (r + 1)), max_iter))
    return w[:r].T, w[r]
