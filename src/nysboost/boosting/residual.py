"""The residual: what a mixture misses of some columns, and of each row's own entry."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import Learner, Mixture
from nysboost.boosting.validation import Found
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

    Parameters
    ----------
    found : Found
        What a run has found so far. A glance, at a part of the rows that are observed, is in
        float32 where its table is, as long as that shows what there is to see.
    rows : array of int or None
        Where columns are observed, in rising order; None observes them on themselves.
    """

    def __init__(self, found: Found, rows: Indices | None) -> None:
        self.found, self.table, self.rows = found, found.table, rows
        self.glance = rows is not None and len(rows) < len(found.observed)
        self.considered: Indices = np.arange(0)
        self._values: Array | None = None

    def consider(self, columns: Indices, *, shared: bool) -> None:
        """Say which columns will be asked for from now on.

        If they are shared between steps, their true values are evaluated now, and each
        learner's features in one go.
        """
        self.considered, self._values = columns, None
        if shared and self.rows is not None:
            self._values = self.table.gram.block(columns, self.rows)
        if self.glance:
            self.table.hold(np.concatenate([self.rows, columns]))

    def __call__(self, mixture: Mixture, V: Indices) -> Array:
        """Return the residual's columns V, shape (rows, len(V)).

        A residual is large on its diagonal. In whole columns each has its own; in a sample of
        rows a few columns would, and would stand apart from the others by chance: rows that
        are in V count for nothing there.
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


def residual_diagonal(gram: Gram, learner: Learner) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)| for all rows, and zero where that is rounding.

    Parameters
    ----------
    gram : Gram
        G.
    learner : Learner
        Landmarks Z and a projection P with M = P Pᵀ.

    Returns
    -------
    array of shape (n,)
        On the host, in float64.
    """
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
