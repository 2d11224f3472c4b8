"""Where data rows come from, and the only place that knows how they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse

from nysboost.data.dask_rows import DaskRows, dask_rows, is_dask
from nysboost.data.mapping import give_back, mapped
from nysboost.numerics.arrays import (
    SUPPORTED,
    Array,
    Indices,
    as_float,
    empty,
    is_supported,
    namespace,
    to_host,
)

T = TypeVar("T")

SCAN_BYTES = 64 * 2**20

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
class ArrayRows:
    """Rows of an array in memory or of a CSR matrix."""

    data: Array
    in_memory = True
    lazy = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    @property
    def form(self) -> Array:
        """One row in floating point: it shows the namespace, the device and the dtype."""
        return self.take(slice(0, 1))

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""
        if isinstance(indices, slice) or issparse(self.data) or isinstance(self.data, np.ndarray):
            return as_float(self.data[indices])
        xp = namespace(self.data)
        return as_float(xp.take(self.data, _on_device(indices, self.data), axis=0))

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        for start in range(0, self.n, size):
            yield self.data if size >= self.n else self.data[start : start + size]

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Array,
        task: str,  # noqa: ARG002
        size: int,
    ) -> Array:
        """Return function(shared, block, *others) for each block of rows, one below the other."""
        result = None
        for at, block in self._blocks(size):
            part = function(shared, block, *(other[at] for other in beside))
            result = empty((self.n, columns), part) if result is None else result
            result[at] = part
        return result

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *beside: Array,
        task: str,  # noqa: ARG002
        size: int,
    ) -> T:
        """Return the merger of function(shared, block, *others) over all blocks of rows."""
        return reduce(
            merge,
            (
                function(shared, block, *(other[at] for other in beside))
                for at, block in self._blocks(size)
            ),
        )

    def _blocks(self, size: int) -> Iterator[tuple[slice, Array]]:
        stop = 0
        for piece in self.pieces(size):
            start, stop = stop, stop + piece.shape[0]
            yield slice(start, stop), piece


class MappedRows(ArrayRows):
    """Rows of a file mapped into memory: what has been read is given back to the system."""

    in_memory = False

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        for piece in super().pieces(size):
            yield piece
            give_back(piece)


class StoredRows(ArrayRows):
    """Rows of an HDF5 or Zarr array, or of anything else that is sliced and has chunks."""

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
        cuts = np.flatnonzero(np.diff(wanted // self.chunk)) + 1
        groups = np.split(wanted, cuts) if len(wanted) else [wanted]
        found = [np.asarray(self.data[g[0] : g[-1] + 1])[g - g[0]] for g in groups if len(g)]
        empty = np.asarray(self.data[:0])
        return as_float(np.concatenate(found or [empty])[places])

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""
        whole_chunks = max(1, size // self.chunk) * self.chunk if self.chunk <= size else size
        for start in range(0, self.n, whole_chunks):
            yield np.asarray(self.data[start : start + whole_chunks])


class IteratedRows:
    """Rows that come once, block after block: to be transformed, not to fit on."""

    n = None
    in_memory = False
    lazy = False

    def __init__(self, blocks: Iterator[Any], name: str) -> None:
        self.name = name
        self._rest = (table for block in blocks for table in self._tables(block))
        first = next(self._rest, None)
        if first is None:
            msg = f"{name} is an iterator that gave no block of rows."
            raise ValueError(msg)
        self._first = first
        self.form = self._first.take(slice(0, 1))
        self.n_features = self._first.n_features

    def pieces(self, size: int) -> Iterator[Array]:
        """Yield the blocks as they come, those of more than `size` rows in parts."""
        for number, table in enumerate(chain([self._first], self._rest)):
            if table.n_features != self.n_features:
                msg = (
                    f"Block {number} of {self.name} has {table.n_features} columns, but the blocks "
                    f"before it have {self.n_features}."
                )
                raise ValueError(msg)
            yield from table.pieces(size)

    def _tables(self, block: Any) -> Iterator[ArrayRows]:
        """Yield the block as a table, if it has rows."""
        if getattr(block, "shape", (1,))[0] > 0:
            yield rows_of(block, name=f"A block of {self.name}")


@dataclass(frozen=True)
class ForgottenRows:
    """What is left of the rows of an approximation that was saved without its data."""

    n: int
    n_features: int
    in_memory = True
    lazy = False

    def take(self, indices: Indices | slice) -> NoReturn:  # noqa: ARG002
        """Say that the rows are gone."""
        msg = (
            "This approximation was restored from a saved estimator, which does not keep the "
            f"{self.n} training rows. Call transform on the rows you need, or fit again."
        )
        raise RuntimeError(msg)

    @property
    def form(self) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))

    def pieces(self, size: int) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, size))

    def map(self, *_: Any, **__: Any) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))

    def fold(self, *_: Any, **__: Any) -> NoReturn:
        """Say that the rows are gone."""
        self.take(slice(0, 1))


def rows_of(X: Any, *, name: str = "X") -> ArrayRows:
    """Recognise how a table is stored, and check that it is one of numbers.

    Parameters
    ----------
    X : array-like, memory map, HDF5 or Zarr array, or sparse matrix of shape (n, d)
        The data; lists and data frames are converted to NumPy.
    name : str
        What to call it in an error message.
    """
    if isinstance(X, Iterator):
        msg = (
            f"{name} is an iterator, which gives each row once, but fitting asks for any row. "
            "Fit on an array, a memory map, an HDF5 or a Zarr array, and transform the iterator."
        )
        raise TypeError(msg)
    rows: ArrayRows
    if issparse(X):
        _refuse_complex(X, name)
        rows = ArrayRows(X.tocsr())
    elif all(hasattr(X, part) for part in ("chunks", "shape", "dtype")):
        _refuse_complex(X, name)
        rows = StoredRows(X)
    elif is_array_api_obj(X) and not isinstance(X, np.ndarray):
        if not is_supported(X):
            msg = (
                f"{name} is a {type(X).__module__}.{type(X).__name__}, but {SUPPORTED} arrays are "
                "what NysBoost works with. Pass numpy.asarray(X)."
            )
            raise TypeError(msg)
        rows = ArrayRows(X.detach() if hasattr(X, "detach") else X)  # no gradients here
    else:
        array = _as_numbers(X, name)
        rows = ArrayRows(array) if mapped(array) is None else MappedRows(array)
    if len(rows.data.shape) != 2:
        msg = (
            f"{name} has shape {tuple(rows.data.shape)}; a table of shape (n, d) is needed. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a vector."
        )
        raise ValueError(msg)
    if rows.n == 0 or rows.n_features == 0:
        msg = f"{name} has shape {tuple(rows.data.shape)}: there is nothing to approximate."
        raise ValueError(msg)
    return rows


def as_rows(X: Any, *, name: str = "X", spread: Sequence[int] = ()) -> Rows:
    """Recognise what the user passed in to fit on, once, and check that all is finite.

    Parameters
    ----------
    X : array-like, memory map, HDF5 or Zarr array, sparse matrix or Dask collection
        The data, of shape (n, d).
    name : str
        What to call it in an error message.
    spread : sequence of int
        Sizes of evenly spread samples that will be asked for; where rows are far away they
        come with the first look.
    """
    if is_dask(X):
        from nysboost.data.survey import surveyed

        return surveyed(dask_rows(X, name), spread)
    rows, start = rows_of(X, name=name), 0
    for piece in scan(rows):
        refuse_non_finite(piece, start, name)
        start += piece.shape[0]
    return rows


def stays_where_it_is(X: Any) -> bool:
    """Whether X is on a device, on disk or yet to come: not to be copied into memory."""
    if isinstance(X, np.ndarray):
        return mapped(X) is not None
    return is_dask(X) or is_array_api_obj(X) or hasattr(X, "chunks") or isinstance(X, Iterator)


def stream_of(X: Any, *, name: str = "X") -> Stream:
    """Recognise what the user passed in to be read once: a table, or an iterator of tables."""
    if isinstance(X, ArrayRows | IteratedRows | DaskRows):
        return X
    if is_dask(X):
        return dask_rows(X, name)
    return IteratedRows(X, name) if isinstance(X, Iterator) else rows_of(X, name=name)


def scan(rows: Rows) -> Iterator[Array]:
    """Read all rows once, in order, in tables that take little memory."""
    size = max(1, SCAN_BYTES // (8 * rows.n_features))
    return (as_float(piece) for piece in rows.pieces(size))


def spread_indices(n: int, at_most: int) -> Indices:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.intp)


def _as_numbers(X: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(X)
    except ValueError as error:
        msg = f"{name} is no table: its rows differ in length. Give each row as many numbers."
        raise ValueError(msg) from error
    if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
        return array
    _refuse_complex(array, name)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} has dtype {array.dtype} and does not convert to numbers: {error}."
        raise ValueError(msg) from error


def _refuse_complex(X: Any, name: str) -> None:
    if np.iscomplexobj(X):
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)


def _on_device(indices: Indices, reference: Array) -> Array:
    xp = namespace(reference)
    return xp.asarray(indices, device=reference.device)


def refuse_non_finite(values: Array, start: int, name: str = "X") -> None:
    """Raise if a table has a NaN or an infinity, and say where; `start` is its first row."""
    flat = values.data if issparse(values) else values
    xp = namespace(flat)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not bool(xp.isfinite(xp.sum(flat)))
    if suspicious and not bool(xp.all(xp.isfinite(flat))):
        dense = to_host(values.toarray() if issparse(values) else values)
        row, column = np.argwhere(~np.isfinite(dense))[0]
        what = "NaN" if np.isnan(dense[row, column]) else "infinity"
        msg = (
            f"{name} contains {what}, first at row {start + row}, column {column}. "
            "Remove such rows or fill them in first, with sklearn.impute.SimpleImputer say."
        )
        raise ValueError(msg)
