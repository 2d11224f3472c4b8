"""Rows of an HDF5 or Zarr array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Array, Indices, Selection, as_float, slices
from nysboost.rows.driver import scan_size
from nysboost.rows.rows import ArrayRows
from nysboost.rows.sizes import FEW_ROWS, STORED_ROWS
from nysboost.user_error import TableError


class StoredRows(ArrayRows):
    """Rows of an HDF5 or Zarr array, or of anything else with slices, a shape and chunks."""

    data: Any
    in_memory = False

    @property
    def chunk(self) -> int:
        """Number of rows in a chunk of the store."""
        rows: int | Sequence[int] = STORED_ROWS
        if self.data.chunks:
            rows = self.data.chunks[0]
        if isinstance(rows, Sequence):
            rows = max(rows)
        return min(int(rows), scan_size(self))  # a chunk may be a whole column

    def shares_memory(self, array: object) -> bool:
        """Whether both are the same array of a store."""
        if type(array) is not type(self.data):
            return False
        return bool(self.data == array)

    @cached_property
    def template(self) -> Array:
        """The first row, kept after a scan."""
        return self.take(np.array([0]))

    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices` in floating point; no chunk is read twice."""
        if isinstance(indices, slice):
            return as_float(self._read(indices))

        held = self.take_held(indices)
        if held is not None:
            return held

        # each row is read once, in rising order
        wanted, places = np.unique(indices, return_inverse=True)
        no_rows = self.take(slice(0, 0))
        shape = (len(wanted), self.n_features)
        found = np.empty(shape, no_rows.dtype)
        for at in self._reads(wanted):
            rows = wanted[at]
            first = rows[0]
            end = rows[-1] + 1
            together = self._read(slice(first, end))
            found[at] = together[rows - first]
        return found[places]

    def _reads(self, wanted: Indices) -> Iterator[slice]:
        """Split increasing row numbers into groups that are read together, by chunk.

        A few rows of a chunk are read one by one, which skips the rows between them.
        """
        last_of_chunk = np.flatnonzero(np.diff(wanted // self.chunk))
        stops = [*(last_of_chunk + 1), len(wanted)]

        start = 0
        for stop in stops:
            if stop - start <= FEW_ROWS:
                yield from slices(start, stop, 1)
            else:
                yield slice(start, stop)
            start = stop

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, in whole chunks if `size` allows it."""
        whole_chunks = size // self.chunk * self.chunk
        for at in slices(0, self.n, whole_chunks or size):
            yield self._read(at)

    def _read(self, at: slice) -> Array:
        """Return neighbouring rows of the store; raise if it is damaged."""
        try:
            return np.asarray(self.data[at])
        except MemoryError:
            raise
        except Exception as error:  # each store, and each of its codecs, has errors of its own
            # an error of the operating system is no damage; h5py raises OSError without a number
            if getattr(error, "errno", None) is not None:
                raise

            first, end, _ = at.indices(self.n)
            raise TableError(
                f"Rows {first} to {end - 1} of the stored array cannot be read, as in a damaged "
                f"file: {error}. Use another copy of the file."
            ) from error
