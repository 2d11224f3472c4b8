"""A sample: rows that are taken once, with what is computed on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nysboost.gram.gram import Gram
from nysboost.gram.landmarks import Landmarks
from nysboost.numerics.arrays import Array, Indices


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that an algorithm looks at, in memory, with a Gram matrix of their own.

    However many learners are found on it, a store is read once.

    Parameters
    ----------
    indices : array of int
        Where its rows stand in the data, in rising order.
    gram : Gram
        G[S, S]; positions in it are positions in the sample.
    """

    indices: Indices
    gram: Gram

    @classmethod
    def of(cls, gram: Gram, indices: Indices) -> Sample:
        """Take these rows, each of them once; all of them, if in memory, are not copied."""
        indices = np.unique(indices)
        whole = len(indices) == gram.n and gram.rows.in_memory
        return cls(indices, gram if whole else gram.restricted(indices))

    def positions(self, indices: Indices) -> Indices:
        """Return where rows of the data stand in the sample."""
        return np.searchsorted(self.indices, indices)

    def __len__(self) -> int:
        return len(self.indices)

    @cached_property
    def matrix(self) -> Array:
        """All of G[S, S], evaluated once, when it is first asked for."""
        everything = np.arange(len(self))
        return self.gram.block(everything, everything)

    def lifted(self, landmarks: Landmarks) -> Landmarks:
        """Return landmarks of the sample as landmarks of the whole matrix."""
        if landmarks.indices is None or len(self) == self.indices[-1] + 1:
            return landmarks  # points, or columns of a sample that is the whole
        return replace(landmarks, indices=self.indices[landmarks.indices])


def take_sample(gram: Gram, size: int, rng: np.random.Generator) -> Sample:
    """Return all rows or, where there are more than `size`, a uniform sample of them.

    Rows that lie in memory and are all taken are not copied.
    """
    everything = gram.n <= size
    return Sample.of(
        gram, np.arange(gram.n) if everything else rng.choice(gram.n, size=size, replace=False)
    )
