"""What evaluates a kernel against points that have been prepared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nysboost.numerics.arrays import Array


class Evaluator(Protocol):
    """x ↦ k(x, Z) for points Z, shape (m, d), that have been prepared."""

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(X, Z), shape (n, m); it may be put in `out`, memory of that shape."""


@dataclass(frozen=True, eq=False)
class Pairwise(Evaluator):
    """x ↦ f(x, Z) for a function of two sets of points, with nothing to prepare."""

    function: Callable[[Array, Array], Array]
    Z: Array

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return f(X, Z), shape (n, m)."""
        return self.function(X, self.Z)
