"""Where data rows come from, and the only place that knows how they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from nysboost.data.driver import slices
from nysboost.data.files import give_back
from nysboost.data.passes import Rows as Rows
from nysboost.numerics.arrays import Array, Indices, as_float, is_sparse, take

SCAN_BYTES = 64 * 2**20
"""A scan holds this much: far more than the reads it is made of cost, far less than memory."""

FEW_ROWS = 4
"""So many rows of one chunk, or fewer, are read one by one."""

PROBED = 256
"""Rows, spread evenly, on which a kernel is looked at before any work is done."""

MEASURED = 1000
"""Rows, spread evenly, whose median distance stands for that of all."""

TAKEN_ROWS = 512
"""Rows taken together from a memory map: 32 MB, if each is on a page of its own."""

STORED_ROWS = 1024
"""Rows that are read together from a store that does not say how it is chunked."""


@dataclass(frozen=True, eq=False)
class ArrayRows(Rows):
    """Rows of an array in memory or of a CSR matrix."""

    data: Array
    in_memory = True

    def __deepcopy__(self, memo: object) -> ArrayRows:
        return self  # rows are read, never changed

    @cached_property
    def n(self) -> int:
        """Number of rows, known for good: a store may be closed when a model is saved."""
        return int(self.data.shape[0])

    @cached_property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """How many numbers a row takes; of a sparse one, also those that say where."""
        return 2 * -(-int(self.data.nnz) // self.n) if is_sparse(self.data) else self.n_features

    @cached_property
    def form(self) -> Array:
        """One row in floating point: it shows the namespace, the device and the dtype."""
        return self.take(slice(0, 1))

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""
        return as_float(take(self.data, indices))

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        for start in range(0, self.n, size):
            yield self.data if size >= self.n else self.data[start : start + size]

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices` as rows of their own, which are taken when asked for."""
        return SelectedRows(self, indices)


@dataclass(frozen=True, eq=False)
class RowsView(Rows):
    """Rows of another table, seen otherwise; what a view does not say is as it is there."""

    rows: Any

    def __getattr__(self, name: str) -> Any:
        if name == "rows" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.rows, name)

    only = ArrayRows.only


@dataclass(frozen=True, eq=False)
class SelectedRows(RowsView):
    """Some rows of a table, in any order, which are taken when asked for."""

    indices: Indices

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.indices)

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""
        taken: Array = self.rows.take(self.indices[indices])
        return taken

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows."""
        return (self.take(at) for at in slices(0, self.n, size))


@dataclass(frozen=True, eq=False)
class EncodedRows(RowsView):
    """Rows that become encoder(block, number of its first row) as they are read."""

    encoder: Callable[[Array, int], Array]
    in_memory = False

    @cached_property
    def form(self) -> Array:
        """One row in floating point."""
        return as_float(self.encoder(self.rows.form, 0))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.form.shape[1])

    numbers_per_row = n_features

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""
        return as_float(self.encoder(self.rows.take(indices), 0))

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows."""
        start = 0
        for piece in self.rows.pieces(size):
            yield self.encoder(piece, start)
            start += int(piece.shape[0])


class MappedRows(ArrayRows):
    """Rows of a file mapped into memory: what has been read is given back to the system."""

    in_memory = False

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices`; of many, some at a time: each may lie on its own page."""
        if isinstance(indices, slice) or len(indices) <= TAKEN_ROWS:
            return super().take(indices)
        parts = []
        for start in range(0, len(indices), TAKEN_ROWS):
            parts.append(super().take(indices[start : start + TAKEN_ROWS]))
            give_back(self.data)
        return np.concatenate(parts)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        for piece in super().pieces(size):
            yield piece
            give_back(piece)


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

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, each chunk of them read once."""
        if isinstance(indices, slice):
            return as_float(np.asarray(self.data[indices]))
        wanted, places = np.unique(indices, return_inverse=True)
        known, kept = self.kept
        new = ~np.isin(wanted, known)
        found = np.empty((len(wanted), self.n_features), dtype=kept.dtype)
        found[~new] = kept[np.searchsorted(known, wanted[~new])]
        places_of_new, chunk = np.flatnonzero(new), wanted[new] // self.chunk
        for group in np.split(places_of_new, np.flatnonzero(np.diff(chunk)) + 1):
            step = 1 if len(group) <= FEW_ROWS else len(group)
            for at in slices(0, len(group), step):
                rows = wanted[group[at]]
                read = np.asarray(self.data[rows[0] : rows[-1] + 1])
                found[group[at]] = read[rows - rows[0]]
        return as_float(found[places])

    @cached_property
    def kept(self) -> tuple[Indices, Array]:
        """Rows that a scan has kept, so that they are not read again, and where they stand."""
        return np.empty(0, dtype=np.intp), np.asarray(self.data[:0])

    def keep(self, indices: Indices, rows: Array) -> None:
        """Keep rows for later; their positions are in rising order."""
        self.__dict__["kept"] = (indices, rows)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        whole_chunks = max(1, size // self.chunk) * self.chunk if self.chunk <= size else size
        for start in range(0, self.n, whole_chunks):
            yield np.asarray(self.data[start : start + whole_chunks])


@dataclass(frozen=True)
class ForgottenRows(Rows):
    """What is left of the rows of an approximation that was saved without its data."""

    n: int
    n_features: int
    in_memory = True

    def take(self, *_: Any, **__: Any) -> NoReturn:
        """Raise: the rows are gone."""
        raise RuntimeError(
            "This approximation was restored from a saved estimator, which does not keep the "
            f"{self.n} training rows. Call transform on the rows you need, or fit again."
        )

    @property
    def form(self) -> NoReturn:
        """Raise: the rows are gone."""
        self.take()

    pieces = map = fold = fold_pairs = group = only = take


def scan_size(rows: Rows) -> int:
    """Return how many rows take little memory."""
    return max(1, SCAN_BYTES // (8 * rows.n_features))


def spread_indices(n: int, at_most: int) -> Indices:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.intp)
