"""L-BFGS in forty lines, on arrays of any namespace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.tolerances import NOTHING, SUFFICIENT

MEMORY = 10
"""Pairs of steps from which L-BFGS knows the curvature."""


class Curvature:
    """What a descent has learnt of the curvature: a later one, nearby, may start from it."""

    def __init__(self) -> None:
        self._pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)

    def __len__(self) -> int:
        return len(self._pairs)

    def learn(self, moved: Array, bend: Array) -> None:
        """Remember a step, and the change of the gradient that came with it."""
        self._pairs.append((moved, bend))

    def inverse_times(self, gradient: Array) -> Array:
        """Return H g, where H takes each change of the gradient back to the step that made it.

        The two loops of Nocedal (1980), with the newest pair setting the scale.
        """
        known = [(moved, bend, 1 / _dot(moved, bend)) for moved, bend in self._pairs]
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


def descend(
    objective: Callable[[Array], tuple[float, Array]],
    x: Array,
    max_iter: int,
    curvature: Curvature | None = None,
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
        Where to start.
    max_iter : int
        Evaluations at most, after the first.
    curvature : Curvature or None
        What is known of an objective much like this one; it learns from this descent.
    """
    known = Curvature() if curvature is None else curvature
    value, gradient = objective(x)
    direction = -known.inverse_times(gradient)
    step = 1.0 if len(known) else 1 / (float(_dot(gradient, gradient)) ** 0.5 or 1.0)
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
        if float(_dot(moved, bend)) > NOTHING * -promised:
            known.learn(moved, bend)
        x, value, gradient = x + moved, next_value, next_gradient
        direction, step = -known.inverse_times(gradient), 1.0 if len(known) else step
    return x


def _dot(a: Array, b: Array) -> Array:
    """Return ⟨a, b⟩, a scalar on the device of the data: nobody has to wait for it there."""
    return namespace(a).sum(a * b)
