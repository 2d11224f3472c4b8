"""Uniform samples of rows, and the columns that no learner has used yet."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.numerics.arrays import Floats, Indices


class Pool:
    """The columns that are not yet used, as a boolean mask."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Return up to `size` distinct unused columns, which stay in the pool.

        They are drawn uniformly or, with `weights` of shape (n,), in proportion to these. Columns
        of weight zero are drawn last.
        """
        free = np.flatnonzero(self._free)
        size = min(size, len(free))
        if weights is None or not weights[free].any():
            return rng.choice(free, size=size, replace=False)

        probabilities = weights[free] / weights[free].sum()
        possible = int(np.count_nonzero(probabilities))
        drawn = rng.choice(free, size=min(size, possible), replace=False, p=probabilities)

        others = np.setdiff1d(free, drawn)
        rest = rng.choice(others, size=size - len(drawn), replace=False)
        return np.concatenate([drawn, rest])

    def draw(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Sample columns, and take them out of the pool."""
        columns = self.sample(size, rng, weights)
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Take these columns out of the pool."""
        self._free[columns] = False


def sample_rows(rows: Indices, at_most: int, rng: Generator) -> Indices:
    """Return all these rows or, where they are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    chosen = rng.choice(len(rows), size=at_most, replace=False)
    return rows[np.sort(chosen)]
