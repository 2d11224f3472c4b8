"""Rows of an array, a sparse matrix or a memory map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices, as_float, take
from nysboost.numerics.blocks import slices
from nysboost.rows.memory_maps import find_map, release_pages
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import TAKEN_ROWS


@dataclass(frozen=True, eq=False)
class ArrayRows(Rows):
    """Rows of an array or of a CSR matrix. What has been read of a memory map is given back.

    Of a table that is elsewhere `held` has some rows that are here: positions, in rising order,
    and a table.
    """

    data: Array
    sizes: Any = None
    held: tuple[Indices, Array] | None = None

    def __deepcopy__(self, memo: object) -> ArrayRows:
        return self  # rows are read, never changed

    @cached_property
    def n(self) -> int:  # known for good: a store may be closed when a model is saved
        return int(self.data.shape[0])

    @cached_property
    def n_features(self) -> int:
        return int(self.data.shape[1])

    @property
    def numbers_per_row(self) -> int:
        if arrays.is_sparse(self.data):
            return 2 * -(-int(self.data.nnz) // max(1, self.n))
        return self.n_features

    @cached_property
    def template(self) -> Array:
        return self.take(slice(0, 1))

    @cached_property
    def in_memory(self) -> bool:
        return find_map(self.data) is None

    def take(self, indices: Indices | slice) -> Array:
        if self.in_memory or isinstance(indices, slice) or len(indices) <= TAKEN_ROWS:
            return as_float(take(self.data, indices))
        parts = []  # each row may lie on a page of its own
        for at in slices(0, len(indices), TAKEN_ROWS):
            parts.append(as_float(self.data[indices[at]]))
            release_pages(self.data)
        return np.concatenate(parts)

    def pieces(self, size: int) -> Iterator[Array]:
        for at in slices(0, self.n, size):
            piece = self.data if size >= self.n else self.data[at]
            yield piece
            release_pages(piece)

    def take_held(self, indices: Indices) -> Array | None:
        """Return the rows at `indices` if all of them are held, else None."""
        if self.held is None:
            return None
        known, rows = self.held
        places = np.minimum(np.searchsorted(known, indices), len(known) - 1)
        return take(rows, places) if np.array_equal(known[places], indices) else None
