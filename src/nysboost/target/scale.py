"""Standardised coordinates, in which a search begins, and the way back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.kernels import Kernel, Metric
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.target.candidates import Found
from nysboost.target.linear import Basis

CONSTANT = 1e-12
"""A feature whose spread is below this share of its size is constant but for rounding."""


@dataclass(frozen=True, eq=False)
class Scale:
    """x ↦ (x − centre) · factor, one factor for each feature.

    A shift does not change a distance, and a factor is part of a metric: what is found in these
    coordinates becomes a kernel of the rows as they are.

    Parameters
    ----------
    centre, factor : arrays of shape (d,)
        Mean and inverse spread; the factor of a constant feature is 0.
    """

    centre: Floats
    factor: Floats

    @classmethod
    def of(cls, X: Array, *, standardise: bool) -> Scale:
        """Return the scale of a sample: each feature's own spread, or one for all."""
        xp = namespace(X)
        centre = to_host(xp.mean(X, axis=0))
        spread = to_host(xp.std(X, axis=0))
        varies = spread > CONSTANT * np.abs(centre)
        if not standardise:
            spread = np.full_like(spread, np.sqrt(np.mean(spread**2)))
        safe = np.where(varies & (spread > 0), spread, 1.0)
        return cls(centre, np.where(varies & (spread > 0), 1 / safe, 0.0))

    def __call__(self, X: Array) -> Array:
        """Return the rows in standardised coordinates."""
        return (X - like(self.centre, X)) * like(self.factor, X)

    def undone(self, found: Found) -> Basis:
        """Return what was found as features of the rows as they are."""
        A = to_host(found.point.A)
        metric = self.factor[:, None] * A if A.ndim == 2 else self.factor * A
        inverse = np.where(self.factor > 0, 1 / np.where(self.factor > 0, self.factor, 1.0), 0.0)
        Z = found.point.Z * like(inverse, found.point.Z) + like(self.centre, found.point.Z)
        kernel: Kernel = replace(found.kernel, metric=Metric(metric))
        return Basis.of(kernel, Z)
