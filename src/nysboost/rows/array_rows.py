"""Rows of an array, a sparse matrix or a memory map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Selection,
    as_float,
    find_map,
    is_sparse,
    release_pages,
    slices,
    take,
)
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import TAKEN_ROWS


@dataclass(frozen=True, eq=False)
class ArrayRows(Rows):
    """Rows of an array, of a CSR matrix or of a memory map.

    Attributes
    ----------
    data : array of shape (n, d)
        The table. Pages of a memory map are released after they were read.
    held : pair of ndarray of shape (s,) and array of shape (s, d), or None
        Of a table on disk or on a cluster: the numbers of some rows, rising, and these rows.
    """

    data: Array
    sizes: Floats | None = None
    held: tuple[Indices, Array] | None = None

    def __deepcopy__(self, memo: object) -> ArrayRows:
        return self  # rows are read, never changed

    # cached, because a store may be closed when a model is saved
    @cached_property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @cached_property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes; the mean over all rows of a sparse matrix."""
        if not is_sparse(self.data):
            return self.n_features
        n_values = int(self.data.nnz)
        values_per_row = -(-n_values // max(1, self.n))
        return 2 * values_per_row

    @cached_property
    def template(self) -> Array:
        """The first row, in floating point."""
        return self.take(slice(0, 1))

    @cached_property
    def in_memory(self) -> bool:
        """Whether it is no memory map."""
        return find_map(self.data) is None

    def shares_memory(self, array: object) -> bool:
        """Whether both are NumPy arrays with bytes in common."""
        if not isinstance(self.data, np.ndarray) or not isinstance(array, np.ndarray):
            return False
        return np.may_share_memory(self.data, array)

    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices` in floating point; of a memory map, some at a time."""
        if self.in_memory or isinstance(indices, slice) or len(indices) <= TAKEN_ROWS:
            return as_float(take(self.data, indices))

        parts = []
        for at in slices(0, len(indices), TAKEN_ROWS):
            # each row may lie on a page of its own
            parts.append(as_float(self.data[indices[at]]))
            release_pages(self.data)
        return np.concatenate(parts)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, and release the pages of each piece."""
        if size >= self.n:
            yield self.data
            release_pages(self.data)
            return

        for at in slices(0, self.n, size):
            piece = self.data[at]
            yield piece
            release_pages(piece)

    def take_held(self, indices: Indices) -> Array | None:
        """Return the rows at `indices` if all of them are held, else None."""
        if self.held is None:
            return None

        # where a row would stand among those held, and whether it does
        known, rows = self.held
        places = np.searchsorted(known, indices)
        places = np.minimum(places, len(known) - 1)
        if not np.array_equal(known[places], indices):
            return None
        return take(rows, places)
