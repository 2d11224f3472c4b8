"""L-BFGS and Adam, on arrays of any namespace."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.tolerances import NOTHING, SUFFICIENT

MEMORY = 10  # pairs of steps in which L-BFGS keeps the curvature
FORGET, FORGET_SQUARE = 0.9, 0.99  # shares of mean gradient and square that Adam keeps in a step
STILL = 1e-12  # added to Adam's denominator
SHRUNK = 0.1  # of their mean, added to squares of rows: 1e-6 makes errors of Covertype 1 % larger

Pairs: TypeAlias = deque[tuple[Array, Array, Array]]
"""Steps s, each with the change y of the gradient that came with it and 1/⟨s, y⟩; newest last."""


def descend(
    objective: Callable[[Array], tuple[float, Array]],
    x: Array,
    max_iter: int,
    worth: float = 0.0,
) -> Array:
    """Minimise by L-BFGS from x, and return the last point; SciPy's takes several times as long.

    `objective` maps x to value and gradient, at most `max_iter` times after the first. The second
    step in a row that gains < `worth` is the last.
    """
    value, gradient = objective(x)
    pairs: Pairs = deque(maxlen=MEMORY)
    direction, step = -gradient, 1 / (float(_dot(gradient, gradient)) ** 0.5 or 1.0)
    before = math.inf
    for _ in range(max_iter):
        promised = step * float(_dot(direction, gradient))
        if not promised < -NOTHING:
            break
        moved = step * direction
        next_value, next_gradient = objective(x + moved)
        if not next_value <= value + SUFFICIENT * promised:
            step /= 4
            continue
        bend = next_gradient - gradient
        if float(along := _dot(moved, bend)) > NOTHING * -promised:
            pairs.append((moved, bend, 1 / along))
        gained = value - next_value
        x, value, gradient = x + moved, next_value, next_gradient
        if max(gained, before) < worth:
            break
        before = gained
        direction, step = -_inverse_hessian_times(pairs, gradient), 1.0 if pairs else step
    return x


def anneal(
    gradient_at: Callable[[Array, int], Array | None], x: Array, steps: int, rate: Array
) -> Array:
    """Minimise by Adam (Kingma and Ba 2015) from x, with rates that fall along a cosine.

    `gradient_at` maps x and the step's number to a gradient, or to None to leave the step out.
    """
    xp = namespace(x)
    mean = square = xp.zeros_like(x)
    for i in range(steps):
        gradient = gradient_at(x, i)
        if gradient is None:
            continue
        mean = FORGET * mean + (1 - FORGET) * gradient
        square = FORGET_SQUARE * square + (1 - FORGET_SQUARE) * gradient**2
        known, known_square = 1 - FORGET ** (i + 1), 1 - FORGET_SQUARE ** (i + 1)
        length = rate / 2 * (1 + math.cos(math.pi * i / steps)) / known
        x = x - length * mean / (xp.sqrt(square / known_square) + STILL)
    return x


def _inverse_hessian_times(pairs: Pairs, gradient: Array) -> Array:
    """Return H g by the two loops of Nocedal (1980), with the newest pair setting the scales.

    Each row of a matrix has a scale of its own, its step over the change of its gradient: landmarks
    differ in how far they should move. MNIST, c = 240: the error of 26 steps in 16.
    """
    shares = []
    for moved, bend, weight in reversed(pairs):
        shares.append(weight * _dot(moved, gradient))
        gradient = gradient - shares[-1] * bend
    if pairs:
        moved, bend, weight = pairs[-1]
        scales = namespace(bend).sqrt(_squares_of_rows(moved) / _squares_of_rows(bend))
        gradient = gradient * (scales / (weight * _dot(bend, scales * bend)))
    for (moved, bend, weight), share in zip(pairs, reversed(shares), strict=True):
        gradient = gradient + (share - weight * _dot(bend, gradient)) * moved
    return gradient


def _squares_of_rows(a: Array) -> Array:
    """Return ‖row‖² as a column, of a vector one number, shrunk towards the mean of all."""
    squares = namespace(a).sum(a * a, axis=-1, keepdims=True)
    return squares + SHRUNK * namespace(a).mean(squares)


def _dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩, a scalar on the device of the data, without waiting for it."""
    xp = namespace(a)
    return xp.reshape(a, (-1,)) @ xp.reshape(b, (-1,))
