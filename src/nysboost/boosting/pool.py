"""The pool: the columns that no learner and no validation set has used yet."""

from __future__ import annotations

import numpy as np

from nysboost.numerics.arrays import Floats, Indices


class Pool:
    """Columns still allowed, as a boolean mask. No column leaves it twice."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(
        self,
        size: int,
        rng: np.random.Generator,
        shares: Floats | None = None,
        among: Indices | None = None,
    ) -> Indices:
        """Return up to `size` free columns without repetition; they stay free.

        Parameters
        ----------
        size : int
            How many.
        rng : numpy.random.Generator
            Source of all randomness.
        shares : array of shape (n,) or None
            Columns are drawn in proportion to these; those without a share come after all
            others. None draws uniformly.
        among : array of int or None
            The columns to draw from, in rising order; None is all.
        """
        free = np.flatnonzero(self._free) if among is None else self.left_of(among)
        size = min(size, len(free))
        if shares is None or not shares[free].any():
            return rng.choice(free, size=size, replace=False)
        mine = shares[free] / shares[free].sum()
        drawn = rng.choice(free, size=min(size, int(np.count_nonzero(mine))), replace=False, p=mine)
        rest = rng.choice(np.setdiff1d(free, drawn), size=size - len(drawn), replace=False)
        return np.concatenate([drawn, rest])

    def left_of(self, columns: Indices) -> Indices:
        """Return those of some columns that are still free."""
        return columns[self._free[columns]]

    def part(self, size: int, rng: np.random.Generator, apart_from: Indices) -> Indices:
        """Return `size` free columns, or all if there are no more than that, in rising order.

        None of those that they should be apart from is among them, where enough others are free.
        """
        free = np.flatnonzero(self._free)
        if size >= len(free):
            return free
        others = np.setdiff1d(free, apart_from)
        among = others if len(others) >= size else free
        return np.sort(rng.choice(among, size=size, replace=False))

    def draw(self, size: int, rng: np.random.Generator) -> Indices:
        """Take `size` free columns out of the pool, uniformly."""
        columns = self.sample(size, rng)
        if len(columns) < size:
            msg = (
                f"Only {len(columns)} columns are left, but a learner needs {size}. "
                "Lower n_learners or n_columns, or give more rows."
            )
            raise ValueError(msg)
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Take these columns out of the pool."""
        self._free[columns] = False
