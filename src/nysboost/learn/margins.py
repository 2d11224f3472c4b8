"""Linear classifiers on features: support vector machines and logistic regression.

With features F of a kernel's approximation, ½‖w‖² + C Σ_i loss(y_i (φ(x_i)ᵀw + b)) is the
kernel machine of K̂ itself, and a matter of r numbers, however many rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from array_api_compat import device

from nysboost.learn.on_features import Features
from nysboost.numerics.arrays import Array, Floats, like, namespace
from nysboost.numerics.descent import descend

MAX_ITER = 50
"""Steps of the descent: on Pendigits and IJCNN four times as many gave the same accuracy."""


class MarginLoss(Protocol):
    """A convex loss of the margin m = y f(x), and its slope."""

    def __call__(self, margins: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative at each margin."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + e⁻ᵐ), of logistic regression."""

    def __call__(self, margins: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative at each margin."""
        xp = namespace(margins)
        return xp.logaddexp(xp.zeros_like(margins), -margins), (xp.tanh(margins / 2) - 1) / 2


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 − m), of support vector machines, with its corner rounded off (Chapelle 2007).

    Parameters
    ----------
    width : float
        Within this distance of the corner it is a parabola, which touches both sides.
    """

    width: float = 0.1

    def __call__(self, margins: Array) -> tuple[Array, Array]:
        """Return the loss and its derivative at each margin."""
        xp, short = namespace(margins), 1 - margins
        near = xp.clip(short + self.width, 0.0, 2 * self.width)
        beyond = xp.clip(short - self.width, min=0.0)
        return near**2 / (4 * self.width) + beyond, -near / (2 * self.width)


LOSSES: dict[str, MarginLoss] = {"hinge": Hinge(), "log": Logistic()}


def fit_margins(
    features: Features,
    signs: Floats,
    loss: MarginLoss,
    C: float,
    weights: Floats | None = None,
    max_iter: int = MAX_ITER,
    start: tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
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

    start : (w, b) or None
        Where the descent begins, in the form in which it ends; None is zero.

    Returns
    -------
    w : array of shape (p, r)
    b : array of shape (p,)
        Where the features are.
    """
    products, sums = features.products
    xp, r, p = namespace(products), features.r, signs.shape[1]
    weighed = np.abs(signs) if weights is None else np.abs(signs) * weights[:, None]
    y, strength = like(signs, products), like(C * weighed, products)
    ridge = like(np.append(np.ones(r), 0.0), products)  # the intercept is free
    edge = xp.concat([sums, like(np.array([float(features.n)]), products)])
    H = xp.concat([xp.concat([products, sums[:, None]], axis=1), edge[None, :]])
    L = xp.linalg.cholesky(xp.eye(r + 1, dtype=H.dtype, device=device(H)) * ridge + C * H / 4)
    L_inverse, unit = xp.linalg.inv(L), 1 / (C * features.n)

    def coefficients(x: Array) -> Array:
        return L_inverse.T @ xp.reshape(x, (r + 1, p))

    def times(F: Array, values: Array) -> Array:
        found = F @ xp.astype(values, F.dtype, copy=False)
        return xp.astype(found, xp.float64, copy=False)

    def objective(x: Array) -> tuple[float, Array]:
        w = coefficients(x)
        gradient = ridge[:, None] * w
        value = 0.5 * float(xp.sum(gradient * w))
        for at, F in features.blocks_in_place():
            losses, slopes = loss(y[at, :] * (times(F, w[:r, :]) + w[r, :]))
            pull = strength[at, :] * y[at, :] * slopes
            value += float(xp.sum(strength[at, :] * losses))
            gradient = gradient + xp.concat([times(F.T, pull), xp.sum(pull, axis=0)[None, :]])
        return unit * value, unit * xp.reshape(L_inverse @ gradient, (-1,))

    if start is None:
        begin = xp.zeros(((r + 1) * p,), dtype=H.dtype, device=device(H))
    else:
        begin = xp.reshape(L.T @ xp.concat([start[0].T, start[1][None, :]]), (-1,))
    w = coefficients(descend(objective, begin, max_iter))
    return w[:r, :].T, w[r, :]
