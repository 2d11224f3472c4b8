"""Coordinates of scaled features, and the equivalent metric of the raw rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from nysboost.kernels.metric import Metric, Quantiles
from nysboost.numerics.arrays import Array, Floats, like, namespace, to_host
from nysboost.numerics.linalg import positive_or_one

CONSTANT = 1e-12  # of its size: a feature with a smaller spread is constant but for rounding
PRINCIPAL_ROWS = 2048  # rows that give principal components


@dataclass(frozen=True, eq=False)
class Scale:
    """x ↦ ((h(x) − centre) · factor) P: a shift, and a part that belongs to the metric.

    The factor of a constant feature is 0; h is the warp, and the projection P has shape (d, q).
    """

    centre: Floats
    factor: Floats
    warp: Quantiles | None = None
    projection: Floats | None = None

    def __call__(self, X: Array) -> Array:
        """Return the rows in these coordinates, shape (n, q)."""
        if self.warp is not None:
            X = self.warp(X)

        centred = X - like(self.centre, X)
        scaled = centred * like(self.factor, X)
        if self.projection is None:
            return scaled
        return scaled @ like(self.projection, X)

    def to_rows(self, U: Array) -> Array:
        """Return raw rows with these coordinates; a constant feature has its one value."""
        # the projection is undone as far as it can be
        if self.projection is not None:
            back = np.linalg.pinv(self.projection)
            U = U @ like(back, U)

        spread = _inverse(self.factor)
        centred = U * like(spread, U)
        X = centred + like(self.centre, U)
        if self.warp is None:
            return X
        return self.warp.inverse(X)

    def metric(self, A: Array) -> Metric:
        """Convert a metric of these coordinates, shape (), (q,) or (q, r), to one of raw rows."""
        # (x · factor) P A, with P and A matrices or scales
        inner = to_host(A)
        P = self.projection
        if P is not None and inner.ndim == 2:
            inner = P @ inner
        elif P is not None:
            inner = P * inner

        factor = self.factor
        if inner.ndim == 2:
            factor = factor[:, None]
        return Metric(factor * inner, self.warp)


Scaling: TypeAlias = Callable[[Array], Scale]
"""A function from rows of a sample to coordinates."""


def unit_spread(X: Array) -> Scale:
    """Return coordinates in which each feature has unit standard deviation."""
    centre, spread = _location_and_spread(X)
    return Scale(centre, _inverse(spread))


def in_proportion(X: Array) -> Scale:
    """Return coordinates in which all features are scaled by the same factor."""
    centre, spread = _location_and_spread(X)
    common = np.sqrt(np.mean(spread**2))
    spreads = np.where(spread > 0, common, 0.0)
    return Scale(centre, _inverse(spreads))


def by_quantiles(X: Array) -> Scale:
    """Return coordinates in which each feature is transformed to normal quantiles."""
    warp = Quantiles.of(X)
    scale = unit_spread(warp(X))
    return replace(scale, warp=warp)


@dataclass(frozen=True)
class PrincipalComponents:
    """Coordinates of a limited number of leading principal components of scaled features."""

    scaling: Scaling
    most: int

    def __call__(self, X: Array) -> Scale:
        """Return the scaling to the components of rows X, with unit variance on average."""
        scale = self.scaling(X)
        sample = to_host(scale(X[:PRINCIPAL_ROWS, :]))
        U = sample - sample.mean(axis=0)
        n, d = U.shape

        # eigenvectors of the smaller one of UUᵀ and UᵀU
        if n < d:
            values, V = np.linalg.eigh(U @ U.T)
        else:
            values, V = np.linalg.eigh(U.T @ U)

        # the leading ones, if features are not all constant
        least = CONSTANT * max(values[-1], CONSTANT)
        falling = np.flatnonzero(values > least)[::-1]
        kept = falling[: self.most]
        if len(kept) == 0:
            return scale
        directions = V[:, kept]
        leading = values[kept]

        # those of UUᵀ are mapped to features
        if n < d:
            directions = U.T @ directions / np.sqrt(leading)

        # unit spread on average
        mean_variance = leading.mean() / n
        factor = scale.factor / np.sqrt(mean_variance)
        return Scale(scale.centre, factor, scale.warp, directions)


@dataclass(frozen=True, eq=False)
class FixedScale:
    """Coordinates that do not depend on the sample."""

    scale: Scale

    def __call__(self, X: Array) -> Scale:  # noqa: ARG002
        """Return the scale."""
        return self.scale


SCALINGS: dict[str, Scaling] = {
    "auto": unit_spread,
    "standard": unit_spread,
    "quantile": by_quantiles,
    "none": in_proportion,
}


def _location_and_spread(X: Array) -> tuple[Floats, Floats]:
    """Return the mean and standard deviation of each feature, 0 if it is constant."""
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):
        centre = to_host(xp.mean(X, axis=0))
        spread = to_host(xp.std(X, axis=0))

    in_range = np.isfinite(spread)
    if not in_range.all():
        column = int(np.argmin(in_range))
        msg = (
            f"The numbers in column {column} of X are so large that their squares are out of "
            "range: divide the column by a constant, or take its logarithm."
        )
        raise ValueError(msg)

    varies = spread > CONSTANT * np.abs(centre)
    return centre, np.where(varies, spread, 0.0)


def _inverse(values: Floats) -> Floats:
    """Return 1 / v, and 0 for 0."""
    inverses = 1 / positive_or_one(values)
    return np.where(values > 0, inverses, 0.0)
