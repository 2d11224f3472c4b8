"""The residual: what a mixture misses of some columns, and of each row's own entry."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import Mixture
from nysboost.boosting.validation import Found
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    like,
    namespace,
    row_blocks,
    take,
    to_host,
)
from nysboost.numerics.tolerances import COARSE, EXHAUSTED, cutoff

WHOLE_DIAGONAL = 2**17
"""Up to so many rows joint looks at the residual's diagonal in full, which takes n·c kernel
values; beyond that on its sample, so that the cost of a fit does not grow with n."""


class Residual:
    """G less a mixture, on columns of which the true values may be shared between steps.

    `rows`, in rising order, are where columns are observed; None observes them on themselves. On a
    part of the observed rows it is in float32 where the table of `found` is.
    """

    def __init__(self, found: Found, rows: Indices | None) -> None:
        self.found, self.table, self.rows = found, found.table, rows
        self.glance = rows is not None and len(rows) < len(found.observed)
        self.considered: Indices = np.arange(0)
        self._values: Array | None = None

    def consider(self, columns: Indices, *, shared: bool) -> None:
        """Evaluate the true values and features of columns that steps will share."""
        self.considered, self._values = columns, None
        if shared and self.rows is not None:
            self._values = self.table.gram.block(columns, self.rows)
        if self.glance:
            self.table.hold(np.concatenate([self.rows, columns]))

    def __call__(self, mixture: Mixture, V: Indices) -> Array:
        """Return the residual's columns V, shape (rows, len(V)).

        In a sample of rows, those that are in V are zero: a few columns would have their diagonal.
        """
        rows = V if self.rows is None else self.rows
        true = self._true(rows, V)
        missed = true - self.table.block(mixture, V, rows)
        exact = self.found.sample.gram
        if self.table.gram is not exact and not _clear(missed, true):
            self.table.look_closely(exact)
            self.consider(self.considered, shared=self._values is not None)
            return self(mixture, V)
        if not self.glance:
            xp = namespace(missed)
            return xp.astype(missed, xp.float64, copy=False).T
        own = np.isin(rows, V)
        if own.any() and not own.all():
            missed *= like(np.asarray(~own, float), missed)
        return missed.T

    def _true(self, rows: Indices, V: Indices) -> Array:
        if self._values is None:
            return self.table.gram.block(V, rows)
        return take(self._values, np.searchsorted(self.considered, V))


def _clear(missed: Array, true: Array) -> bool:
    """Whether a residual is large enough for float32 to show it."""
    xp = namespace(missed)
    largest, whole = (max(float(xp.max(A)), -float(xp.min(A))) for A in (missed, true))
    return largest > COARSE * whole


def residual_diagonal(gram: Gram, learner: FeatureMap) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)|, shape (n,), float64 on the host; rounding is zero."""
    width = 8 * (len(learner.landmarks) + learner.rank)
    floor = cutoff(EXHAUSTED * max(1, learner.rank), gram.eps)
    parts = []
    for block in row_blocks(gram.n, width, block_bytes(learner.projection)):
        F = gram.cross(block, learner.landmarks) @ learner.projection
        reached = to_host(namespace(F).sum(F * F, axis=1)).astype(np.float64)
        whole = to_host(gram.diag(block)).astype(np.float64)
        missing = np.abs(whole - reached)
        parts.append(np.where(missing > floor * whole, missing, 0.0))
    return np.concatenate(parts)
