"""Losses of a margin: the hinge of support vector machines and that of logistic regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from nysboost.numerics.arrays import Array, namespace


class MarginLoss(Protocol):
    """A convex loss of the margin m = y f(x)."""

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""


@dataclass(frozen=True)
class Logistic:
    """log(1 + e⁻ᵐ), of logistic regression."""

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        xp = namespace(margins)
        return xp.logaddexp(xp.zeros_like(margins), -margins)

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return (namespace(margins).tanh(margins / 2) - 1) / 2

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        return (1 - namespace(margins).tanh(margins / 2) ** 2) / 4


@dataclass(frozen=True)
class Hinge:
    """max(0, 1 − m), of support vector machines, with its corner rounded off (Chapelle 2007).

    Parameters
    ----------
    width : float
        Within this distance of the corner it is a parabola, which touches both sides.
    """

    width: float = 0.1

    def value(self, margins: Array) -> Array:
        """Return the loss at each margin."""
        beyond = namespace(margins).clip(1 - margins - self.width, min=0.0)
        return self._near(margins) ** 2 / (4 * self.width) + beyond

    def slope(self, margins: Array) -> Array:
        """Return its derivative."""
        return self._near(margins) / (-2 * self.width)

    def curve(self, margins: Array) -> Array:
        """Return its second derivative."""
        xp = namespace(margins)
        return xp.astype(xp.abs(1 - margins) < self.width, margins.dtype) / (2 * self.width)

    def _near(self, margins: Array) -> Array:
        return namespace(margins).clip(1 + self.width - margins, 0.0, 2 * self.width)


LOSSES: dict[str, MarginLoss] = {"hinge": Hinge(), "log": Logistic()}
