"""Sums over rows of features and targets: all that least squares needs to know of the rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields

from nysboost.features.feature_map import FeatureMap
from nysboost.features.feature_pass import FeaturePass
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, like
from nysboost.numerics.budget import Budget
from nysboost.rows.rows import Rows


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over n rows with features F (n, r) and targets Y (n, t).

    `weight` is Σω; F (r,) and Y (t,) are Σωf and Σωy; FF (r, r), FY (r, t) and YY (t,) are Σωffᵀ,
    Σωfyᵀ and Σωy².
    """

    weight: Array
    F: Array
    Y: Array
    FF: Array
    FY: Array
    YY: Array

    @classmethod
    def of(cls, F: Array, Y: Array, weights: Array | None = None) -> Moments:
        """Return the moments of rows in memory."""
        xp = arrays.namespace(F)
        if weights is None:  # FᵀF of one and the same array costs BLAS half of a product
            weights = xp.ones_like(F[:, 0])
            weighted_F = F
            weighted_Y = Y
        else:
            weighted_F = F * weights[:, None]
            weighted_Y = Y * weights[:, None]
        return cls(
            weight=xp.sum(weights),
            F=xp.sum(weighted_F, axis=0),
            Y=xp.sum(weighted_Y, axis=0),
            FF=weighted_F.T @ F,
            FY=weighted_F.T @ Y,
            YY=xp.sum(weighted_Y * Y, axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(*map(operator.add, self._sums, other._sums))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*map(operator.sub, self._sums, other._sums))

    @property
    def _sums(self) -> list[Array]:
        return [getattr(self, field.name) for field in fields(self)]

    @property
    def mean(self) -> Array:
        """The mean target, shape (t,)."""
        return self.Y / self.weight


def moments_of(
    transform: FeatureMap,
    rows: Rows,
    Y: Array,
    *,
    weights: Array | None = None,
    budget: Budget | None = None,
) -> Moments:
    """Return the moments of all rows in one pass, in float64; Y is (n, t), `weights` (n,)."""
    result_bytes = 8 * transform.rank * (transform.rank + Y.shape[1])
    task = FeaturePass(
        transform, "moments", _moments, result_bytes=result_bytes, double=True, budget=budget
    )
    aligned = [Y]
    if weights is not None:
        aligned.append(weights[:, None])
    found: Moments = rows.fold(task, operator.add, *aligned)
    return found


def _moments(_: None, F: Array, Y: Array, weights: Array | None = None) -> Moments:
    """Return the moments of a block of rows."""
    if weights is None:
        return Moments.of(F, like(Y, F))
    return Moments.of(F, like(Y, F), like(weights[:, 0], F))
