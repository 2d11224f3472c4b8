"""Piecewise-linear codes of numerical features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, namespace
from nysboost.rows.dask_rows import DaskRows
from nysboost.rows.driver import BlockTask
from nysboost.rows.rows import Rows
from nysboost.rows.views import EncodedRows

LOOK = 2048
"""Number of rows that show which features have more than two values."""


def count_numeric(X: Array) -> int:
    """Return how many features have more than two values."""
    x = arrays.to_host(X[:LOOK, :])
    above_least = x > x.min(axis=0)
    below_largest = x < x.max(axis=0)
    between = above_least & below_largest
    return int(np.count_nonzero(between.any(axis=0)))


@dataclass(frozen=True, eq=False)
class PiecewiseCodes:
    """Piecewise-linear codes, added to the features (Gorishniy et al. 2022).

    Code j of a feature with increasing edges e is (x − e_j)/(e_{j+1} − e_j), clipped to [0, 1]. A
    feature with fewer than three edges has no codes.
    """

    edges: tuple[Floats, ...]

    @classmethod
    def of(cls, X: Array, most: int) -> PiecewiseCodes:
        """Choose edges for at most `most` codes: distinct values of each feature, or quantiles.

        A feature has at most 2∛n edges (Rice's rule), and at least three.
        """
        by_rows = int(2 * X.shape[0] ** (1 / 3))
        by_share = most // max(1, count_numeric(X))
        most = max(3, min(by_rows, by_share))

        # different values, or quantiles of these
        edges = []
        for column in arrays.to_host(X).T:
            values = np.unique(column)
            if len(values) > most + 1:
                shares = np.linspace(0, 1, most + 1)
                values = np.unique(np.quantile(values, shares))
            edges.append(values)
        return cls(tuple(edges))

    @cached_property
    def origins(self) -> Indices:
        """The feature from which each column comes."""
        features = np.arange(len(self.edges))
        n_pieces = np.array([len(e) - 1 for e in self.edges], dtype=np.intp)
        n_codes = np.where(n_pieces > 1, n_pieces, 0)
        return np.concatenate([features, np.repeat(features, n_codes)])

    @cached_property
    def _pieces(self) -> tuple[Floats, Floats]:
        """The start and the width of each code."""
        coded = [e for e in self.edges if len(e) > 2]
        if not coded:
            return np.empty(0), np.empty(0)
        begins = [e[:-1] for e in coded]
        widths = [np.diff(e) for e in coded]
        return np.concatenate(begins), np.concatenate(widths)

    def __call__(self, X: Array, start: int = 0) -> Array:  # noqa: ARG002
        """Return the features with their codes, shape (n, d + codes)."""
        X = arrays.dense(arrays.as_float(X))
        xp = namespace(X)

        # the features that have codes, once for each of them
        coded = self.origins[len(self.edges) :]
        x = arrays.take(X, coded, axis=1)

        begins, widths = (arrays.like(part, X) for part in self._pieces)
        steps = (x - begins) / widths
        codes = xp.clip(steps, min=0.0, max=1.0)
        return xp.concat([X, codes], axis=1)


def with_codes(rows: Rows, codes: PiecewiseCodes | None) -> Rows:
    """Return rows with their codes, if any."""
    if codes is None:
        return rows
    if not rows.lazy:
        return EncodedRows(rows, codes)
    task = BlockTask("codes", PiecewiseCodes.__call__, codes)
    return DaskRows(rows.map(task, len(codes.origins)))
