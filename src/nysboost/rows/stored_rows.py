"""Rows of an HDF5 or Zarr array."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Array, Indices, as_float
from nysboost.numerics.blocks import slices
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.sizes import FEW_ROWS, SCAN_BYTES, STORED_ROWS


class StoredRows(ArrayRows):
    """Rows of an HDF5 or Zarr array, or of anything else that is sliced and has chunks."""

    data: Any
    in_memory = False

    @property
    def chunk(self) -> int:
        """Number of rows that the store reads together."""
        rows = (self.data.chunks or (STORED_ROWS,))[0]
        most = max(1, SCAN_BYTES // (8 * self.n_features))  # chunks may be whole columns
        return min(most, int(max(rows) if isinstance(rows, tuple) else rows))

    @cached_property
    def template(self) -> Array:
        return self.take(np.array([0]))  # which is held after a scan

    def take(self, indices: Indices | slice) -> Array:
        if isinstance(indices, slice):
            return as_float(np.asarray(self.data[indices]))
        held = self.take_held(indices)
        if held is not None:
            return held
        wanted, places = np.unique(indices, return_inverse=True)
        found = np.empty((len(wanted), self.n_features), self.take(slice(0, 0)).dtype)
        ends = [*(np.flatnonzero(np.diff(wanted // self.chunk)) + 1), len(wanted)]
        for start, stop in zip([0, *ends], ends, strict=False):
            for at in slices(start, stop, 1 if stop - start <= FEW_ROWS else stop - start):
                rows = wanted[at]  # of one chunk, which is read once, or one by one
                found[at] = np.asarray(self.data[rows[0] : rows[-1] + 1])[rows - rows[0]]
        return found[places]

    def pieces(self, size: int) -> Iterator[Array]:
        whole_chunks = size // self.chunk * self.chunk or size
        return (np.asarray(self.data[at]) for at in slices(0, self.n, whole_chunks))
