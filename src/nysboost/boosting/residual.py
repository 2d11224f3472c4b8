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
from nysboost.numerics.tolerances import EXHAUSTED, cutoff

WHOLE_DIAGONAL = 2**17
"""Up to so many rows joint looks at the residual's diagonal in full, which takes n·c kernel
values; beyond that on its sample, so that the cost of a fit does not grow with n."""


class Residual:
    """G less a mixture, on columns of which the true values may be shared between steps.

    Parameters
    ----------
    found : Found
        What a run has found so far.
    rows : array of int or None
        Where columns are observed, in rising order; None observes them on themselves.
    """

    def __init__(self, found: Found, rows: Indices | None) -> None:
        self.found, self.rows = found, rows
        self.considered: Indices = np.arange(0)
        self._values: Array | None = None

    def consider(self, columns: Indices, *, shared: bool) -> None:
        """Say which columns will be asked for from now on.

        If they are shared between steps, their true values are evaluated now, and each
        learner's features in one go.
        """
        self.considered, self._values = columns, None
        if shared and self.rows is not None:
            self._values = self.found.sample.gram.block(columns, self.rows)
            self.found.table.expect(np.concatenate([self.rows, columns, self.found.glance.cols]))

    def __call__(self, mixture: Mixture, V: Indices) -> Array:
        """Return the residual's columns V, shape (rows, len(V)).

        A residual is large on its diagonal. In whole columns each has its own; in a sample of
        rows a few columns would, and would stand apart from the others by chance: rows that
        are in V count for nothing there.
        """
        rows = V if self.rows is None else self.rows
        missed = self._true(rows, V) - self.found.table.block(mixture, rows, V)
        own = np.isin(rows, V)
        if self.rows is None or len(rows) == len(self.found.observed) or own.all():
            return missed
        return missed * like(np.asarray(~own, dtype=np.float64)[:, None], missed)

    def _true(self, rows: Indices, V: Indices) -> Array:
        if self._values is None:
            return self.found.sample.gram.block(rows, V)
        return take(self._values, np.searchsorted(self.considered, V)).T


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
