"""L-BFGS and Adam, on arrays of any namespace."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.tolerances import NOTHING, SUFFICIENT

MEMORY = 10  # pairs of steps in which L-BFGS keeps the curvature
FORGET = 0.9  # share of the mean gradient that Adam keeps in a step
FORGET_SQUARE = 0.99  # share of the mean squared gradient that it keeps
STILL = 1e-12  # added to Adam's denominator
SHRUNK = 0.1  # of their mean, added to squares of rows: 1e-6 makes errors of Covertype 1 % larger

Pairs: TypeAlias = deque[tuple[Array, Array, float]]
"""Steps s, each with the change y of the gradient and 1/⟨s, y⟩; the newest is last."""


def descend(
    objective: Callable[[Array], tuple[float, Array]],
    x: Array,
    max_iter: int,
    worth: float = 0.0,
) -> Array:
    """Minimise by L-BFGS from x, and return the last point; SciPy's is several times slower.

    `objective` maps x to value and gradient, at most `max_iter` times after the first. The second
    step in a row that gains < `worth` is the last.
    """
    value, gradient = objective(x)
    pairs: Pairs = deque(maxlen=MEMORY)

    # the first step has length 1
    direction = -gradient
    length = float(_dot(gradient, gradient)) ** 0.5
    step = 1 / (length or 1.0)
    gained_before = math.inf

    for _ in range(max_iter):
        # the change of the value if it were linear
        promised = step * float(_dot(direction, gradient))
        if not promised < -NOTHING:
            break

        # a step that gains too little, or meets NaN, is tried again at a quarter of its length
        moved = step * direction
        next_value, next_gradient = objective(x + moved)
        if not next_value <= value + SUFFICIENT * promised:
            step /= 4
            continue

        # curvature: only pairs with ⟨s, y⟩ > 0 keep H positive definite
        bend = next_gradient - gradient
        along = float(_dot(moved, bend))
        if along > NOTHING * -promised:
            pairs.append((moved, bend, 1 / along))

        # make the step
        gained = value - next_value
        x = x + moved
        value = next_value
        gradient = next_gradient
        if max(gained, gained_before) < worth:
            break
        gained_before = gained

        # the next direction is −H g, whose step is 1
        direction = -_inverse_hessian_times(pairs, gradient)
        if pairs:
            step = 1.0
    return x


def anneal(
    gradient_at: Callable[[Array, int], Array | None],
    x: Array,
    steps: int,
    rate: Array,
) -> Array:
    """Minimise by Adam (Kingma and Ba 2015) from x, with a cosine schedule of learning rates.

    `gradient_at` maps x and the step's number to a gradient, or to None to leave the step out.
    """
    xp = namespace(x)
    mean = xp.zeros_like(x)
    square = xp.zeros_like(x)

    for i in range(steps):
        gradient = gradient_at(x, i)
        if gradient is None:
            continue

        # running means of the gradient and its square
        mean = FORGET * mean + (1 - FORGET) * gradient
        square = FORGET_SQUARE * square + (1 - FORGET_SQUARE) * gradient**2

        # which begin at zero, and are corrected for it
        known = 1 - FORGET ** (i + 1)
        known_square = 1 - FORGET_SQUARE ** (i + 1)
        size = xp.sqrt(square / known_square)

        # the rate falls along a cosine
        angle = math.pi * i / steps
        length = rate / 2 * (1 + math.cos(angle)) / known
        x = x - length * mean / (size + STILL)
    return x


def _inverse_hessian_times(pairs: Pairs, gradient: Array) -> Array:
    """Return H g by the two loops of Nocedal (1980), with the newest pair setting the scales.

    Each row of a matrix has its own scale, its step divided by the change of its gradient, because
    landmarks move by different distances. On MNIST with c = 240, 16 steps then have the error of
    26.
    """
    # from the newest pair to the oldest
    shares = []
    for moved, bend, weight in reversed(pairs):
        share = weight * _dot(moved, gradient)
        shares.append(share)
        gradient = gradient - share * bend

    # the scales of the newest pair stand for H before all pairs
    if pairs:
        moved, bend, weight = pairs[-1]
        ratios = _squares_of_rows(moved) / _squares_of_rows(bend)
        scales = namespace(bend).sqrt(ratios)
        along = weight * _dot(bend, scales * bend)
        gradient = gradient * (scales / along)

    # and back again
    for moved, bend, weight in pairs:
        change = shares.pop() - weight * _dot(bend, gradient)
        gradient = gradient + change * moved
    return gradient


def _squares_of_rows(a: Array) -> Array:
    """Return ‖row‖² as a column (for a vector, one number), shrunk towards their mean."""
    xp = namespace(a)
    squares = xp.sum(a * a, axis=-1, keepdims=True)
    mean = xp.mean(squares)
    return squares + SHRUNK * mean


def _dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩, a scalar on the device of the data, without waiting for it."""
    xp = namespace(a)
    flat = xp.reshape(a, (-1,))
    return flat @ xp.reshape(b, (-1,))
