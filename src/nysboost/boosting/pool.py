"""The pool: the columns that no learner and no validation set has used yet."""

from __future__ import annotations

import numpy as np

from nysboost.numerics.arrays import Indices


class Pool:
    """Columns still allowed, as a boolean mask. No column leaves it twice."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(self, size: int, rng: np.random.Generator) -> Indices:
        """Return up to `size` free columns, uniformly and without repetition; they stay free."""
        free = np.flatnonzero(self._free)
        return rng.choice(free, size=min(size, len(free)), replace=False)

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
