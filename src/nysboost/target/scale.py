"""The coordinates in which a search begins, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.kernels import Kernel, Metric
from nysboost.kernels.warp import Quantiles
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.target.candidates import Found
from nysboost.target.linear import Basis

CONSTANT = 1e-12
"""A feature whose spread is below this share of its size is constant but for rounding."""


@dataclass(frozen=True, eq=False)
class Scale:
    """x ↦ (h(x) − centre) · factor, one factor for each feature; h leaves x as it is, or warps it.

    A shift does not change a distance, a factor is part of a metric and so is a warp: what is
    found in these coordinates becomes a kernel of the rows as they are.

    Parameters
    ----------
    centre, factor : arrays of shape (d,)
        Mean and inverse spread; the factor of a constant feature is 0.
    warp : Quantiles or None
        h.
    """

    centre: Floats
    factor: Floats
    warp: Quantiles | None = None

    def __call__(self, X: Array) -> Array:
        """Return the rows in the search's coordinates."""
        warped = X if self.warp is None else self.warp(X)
        return (warped - like(self.centre, X)) * like(self.factor, X)

    def back(self, U: Array) -> Array:
        """Return the rows as they are; a constant feature has its one value."""
        warped = U * like(_inverse(self.factor), U) + like(self.centre, U)
        return warped if self.warp is None else self.warp.inverse(warped)

    def undone(self, found: Found) -> Basis:
        """Return what was found as features of the rows as they are."""
        A = to_host(found.point.A)
        metric = self.factor[:, None] * A if A.ndim == 2 else self.factor * A
        kernel: Kernel = replace(found.kernel, metric=Metric(metric, self.warp))
        return Basis.of(kernel, self.back(found.point.Z), found.N)


Scaling: TypeAlias = Callable[[Array, Array, Array | None], Scale]
"""From a sample of rows, its targets and weights to the coordinates of a search."""


def each_alone(X: Array, *_: Any) -> Scale:
    """Return the coordinates in which each feature has unit spread."""
    centre, spread = _location_and_spread(X)
    return Scale(centre, _inverse(spread))


def as_it_is(X: Array, *_: Any) -> Scale:
    """Return the coordinates in which the rows are."""
    return Scale(np.zeros(X.shape[1]), np.ones(X.shape[1]))


def all_alike(X: Array, *_: Any) -> Scale:
    """Return the coordinates in which features keep their proportions."""
    centre, spread = _location_and_spread(X)
    common = np.sqrt(np.mean(spread**2))
    return Scale(centre, _inverse(np.where(spread > 0, common, 0.0)))


def by_quantiles(X: Array, *_: Any) -> Scale:
    """Return the coordinates in which each feature is at its normal quantiles, at unit spread."""
    warp = Quantiles.of(X)
    return replace(each_alone(warp(X)), warp=warp)


SCALES: dict[str | None, Scaling | None] = {
    "auto": None,
    "standard": each_alone,
    "quantile": by_quantiles,
    None: all_alike,
}
"""What the learners' `scale` stands for; "auto" is for scouts to find out."""


def _location_and_spread(X: Array) -> tuple[Floats, Floats]:
    """Return each feature's mean and standard deviation, 0 where it is constant."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        centre, spread = to_host(xp.mean(X, axis=0)), to_host(xp.std(X, axis=0))
    if not np.isfinite(spread).all():
        column = int(np.argmin(np.isfinite(spread)))
        msg = (
            f"The numbers in column {column} of X are so large that their squares are out of "
            "range: divide the column by a constant, or take its logarithm."
        )
        raise ValueError(msg)
    return centre, np.where(spread > CONSTANT * np.abs(centre), spread, 0.0)


def _inverse(values: Floats) -> Floats:
    """Return 1 / v, and 0 for 0."""
    return np.where(values > 0, 1 / np.where(values > 0, values, 1.0), 0.0)
