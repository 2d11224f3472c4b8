"""A Gram matrix held whole, for experiments that ask for the same blocks many times."""

from __future__ import annotations

import numpy as np

from nysboost.data.rows import ArrayRows
from nysboost.gram import Gram, PrecomputedGram
from nysboost.numerics.arrays import Array, Indices, namespace, take


class SharedGram(PrecomputedGram):
    """The whole matrix of another Gram, evaluated once; blocks are copied out of it.

    Columns are read as rows, which lie together in memory, since the matrix is symmetric.
    """

    def __init__(self, gram: Gram) -> None:
        everything = np.arange(gram.n)
        values = gram.block(everything, everything)
        values = namespace(values).astype(values, namespace(values).float64, copy=False)
        self.values = (values + values.T) / 2
        super().__init__(ArrayRows(self.values))

    def _entries(self, rows: Indices, columns: Indices) -> Array:
        return take(take(self.values, columns), rows, axis=1).T
