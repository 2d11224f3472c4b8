"""L-BFGS in forty lines and Adam in twenty, on arrays of any namespace."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.tolerances import NOTHING, SUFFICIENT

MEMORY = 10
"""Pairs of steps from which L-BFGS knows the curvature."""

FORGET, FORGET_SQUARE, STILL = 0.9, 0.99, 1e-12
"""How much of the mean gradient, and of its square, Adam keeps in a step; a slope of nothing."""


Pairs: TypeAlias = deque[tuple[Array, Array]]
"""Steps, each with the change of the gradient that came with it, the newest last."""


def descend(
    objective: Callable[[Array], tuple[float, Array]],
    x: Array,
    max_iter: int,
    pairs: Pairs | None = None,
    least: int = 0,
    worth: float = 0.0,
) -> Array:
    """Return where L-BFGS arrives from x.

    A step that does not gain enough is tried again at a quarter of its length. SciPy's
    L-BFGS-B does the same at several times the cost: its BLAS and NumPy's, each with threads
    of its own, then contend for the processor.

    Parameters
    ----------
    objective : callable
        x ↦ value and gradient.
    x : array
        Where to begin.
    max_iter : int
        Evaluations at most, after the first.
    pairs : deque or None
        What is known of the curvature of an objective much like this one; this descent adds
        what it sees.
    least, worth : int, float
        After so many evaluations the second step in a row that has gained no more than it is worth
        is the last: one alone may be followed by better ones.
    """
    value, gradient = objective(x)
    pairs = deque(maxlen=MEMORY) if pairs is None else pairs
    direction = -_inverse_hessian_times(pairs, gradient)
    step = 1.0 if pairs else 1 / (float(_dot(gradient, gradient)) ** 0.5 or 1.0)
    before = math.inf
    for done in range(1, max_iter + 1):
        promised = step * float(_dot(direction, gradient))
        if not promised < -NOTHING:
            break
        moved = step * direction
        next_value, next_gradient = objective(x + moved)
        if not next_value <= value + SUFFICIENT * promised:
            step /= 4
            continue
        bend = next_gradient - gradient
        if float(_dot(moved, bend)) > NOTHING * -promised:
            pairs.append((moved, bend))
        gained = value - next_value
        x, value, gradient = x + moved, next_value, next_gradient
        if done >= least and max(gained, before) < worth:
            break
        before = gained
        direction, step = -_inverse_hessian_times(pairs, gradient), 1.0 if pairs else step
    return x


def anneal(
    gradient_at: Callable[[Array, int], Array | None], x: Array, steps: int, rate: float
) -> Array:
    """Return where Adam (Kingma and Ba 2015) arrives from x, its rate falling along a cosine.

    Every coordinate moves by about `rate` a step, however gentle its slope, and by less where the
    slope's sign is in doubt: what noisy gradients, each of other rows, need to settle.

    Parameters
    ----------
    gradient_at : callable
        From x and the number of the step to a gradient, or None for a step to leave out.
    x : array
        Where to begin.
    steps : int
        Number of steps.
    rate : float
        Length of the first steps, in the units of x.
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


def _inverse_hessian_times(pairs: Iterable[tuple[Array, Array]], gradient: Array) -> Array:
    """Return H g, where H takes each change of the gradient back to the step that made it.

    The two loops of Nocedal (1980), with the newest pair setting the scale.
    """
    known = [(moved, bend, 1 / _dot(moved, bend)) for moved, bend in pairs]
    shares = []
    for moved, bend, weight in reversed(known):
        shares.append(weight * _dot(moved, gradient))
        gradient = gradient - shares[-1] * bend
    if known:
        moved, bend, weight = known[-1]
        gradient = gradient / (weight * _dot(bend, bend))
    for (moved, bend, weight), share in zip(known, reversed(shares), strict=True):
        gradient = gradient + (share - weight * _dot(bend, gradient)) * moved
    return gradient


def _dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩, a scalar on the device of the data: nobody has to wait for it there."""
    return namespace(a).sum(a * b)
