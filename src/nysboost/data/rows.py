"""Where data rows come from, and the only place that knows how they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from nysboost.data.mapping import give_back
from nysboost.data.passes import LocalPasses
from nysboost.numerics.arrays import (
    Array,
    Indices,
    dense,
    dtype_name,
    entries,
    in_float64,
    is_sparse,
    namespace,
    take,
    to_host,
)

T = TypeVar("T")

SCAN_BYTES = 64 * 2**20
"""A scan holds this much: far more than the reads it is made of cost, far less than memory."""

FEW_ROWS = 4
"""So many rows of one chunk, or fewer, are read one by one."""

PROBED = 256
"""Rows, spread evenly, on which a kernel is looked at before any work is done."""

MEASURED = 1000
"""Rows, spread evenly, whose median distance stands for that of all."""

TAKEN_ROWS = 512
"""Rows that are taken together from a memory map: 32 MB, if each is on a page of its own, of which
systems map 16 at a time."""

STORED_ROWS = 1024
"""Rows that are read together from a store that does not say how it is chunked."""


class Stream(Protocol):
    """Rows that are read once, in order."""

    @property
    def n(self) -> int | None:
        """Number of rows; None if only the end will tell."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    @property
    def numbers_per_row(self) -> int:
        """How many numbers a row takes; of a sparse one, also those that say where."""

    @property
    def form(self) -> Array:
        """One row in floating point: it shows the namespace, the device and the dtype."""

    @property
    def in_memory(self) -> bool:
        """Whether a piece of rows takes no memory that the caller does not hold already."""

    @property
    def lazy(self) -> bool:
        """Whether the rows are somewhere else, and results are made when they are asked for."""

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""


class Rows(Stream, Protocol):
    """A table of n points of which rows are taken, never the whole."""

    @property
    def n(self) -> int:
        """Number of rows."""

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Array,
        task: str,
        size: int,
    ) -> Array:
        """Return function(shared, block, *others) for each block of rows, one below the other.

        Parameters
        ----------
        function : callable
            Returns an array of as many rows as the block has.
        shared : object
            What it needs at every block.
        columns : int
            Number of columns of the result.
        *beside : arrays of shape (n, q)
            More columns of the same rows; each block comes with its part of them.
        task : str
            What this is called where tasks have names.
        size : int
            Rows of a block.
        """

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *beside: Array,
        task: str,
        size: int,
    ) -> T:
        """Return the merger of function(shared, block, *others) over all blocks of rows.

        The parameters are those of `map`, and `merge` makes one value of two neighbours.
        """


@dataclass(frozen=True, eq=False)
class ArrayRows(LocalPasses):
    """Rows of an array in memory or of a CSR matrix."""

    data: Array
    in_memory = True
    lazy = False

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


def _runs(wanted: Indices, chunk: int) -> Iterator[Indices]:
    """Yield rows, in rising order, that are read with one call.

    All rows of a chunk are, since a store reads it whole. Few of them are read one by one: most
    stores then hand over those rows alone, and the rest of the chunk is never copied.
    """
    for group in np.split(wanted, np.flatnonzero(np.diff(wanted // chunk)) + 1):
        yield from np.split(group, len(group)) if len(group) <= FEW_ROWS else [group]


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
        found[new] = self._read(wanted[new])
        return as_float(found[places])

    def _read(self, wanted: Indices) -> Array:
        """Return rows, which stand in rising order, each chunk of them read once."""
        parts = [np.asarray(self.data[:0])]
        for together in _runs(wanted, self.chunk) if len(wanted) else ():
            rows = np.asarray(self.data[together[0] : together[-1] + 1])
            parts.append(rows[together - together[0]])
        return np.concatenate(parts)

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


def as_float(block: Array) -> Array:
    """Return float32 and float64 as they are, and every other number as float64."""
    return block if dtype_name(block) in ("float32", "float64") else in_float64(block)


def scan(rows: Rows) -> Iterator[Array]:
    """Read all rows once, in order, in tables that take little memory."""
    return (as_float(piece) for piece in rows.pieces(scan_size(rows)))


def scan_size(rows: Rows) -> int:
    """Return how many rows take little memory."""
    return max(1, SCAN_BYTES // (8 * rows.n_features))


def spread_indices(n: int, at_most: int) -> Indices:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.intp)


def refuse_non_finite(values: Array, start: int, name: str = "X") -> None:
    """Raise if a table has a NaN or an infinity, and say where; `start` is its first row."""
    flat = entries(values)
    xp = namespace(flat)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not bool(xp.isfinite(xp.sum(flat)))
    if suspicious and not bool(xp.all(xp.isfinite(flat))):
        table = to_host(dense(values))
        row, column = np.argwhere(~np.isfinite(table))[0]
        what = "NaN" if np.isnan(table[row, column]) else "infinity"
        msg = (
            f"{name} contains {what}, first at row {start + row}, column {column}. "
            "Remove such rows or fill them in first, with sklearn.impute.SimpleImputer say."
        )
        raise ValueError(msg)
