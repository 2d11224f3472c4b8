"""Where features go: a new array, one that the user has made, a store, or a file."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    describe_location,
    dtype_name,
    empty,
    find_map,
    namespace,
    release_pages,
    to_host,
)
from nysboost.rows import files
from nysboost.rows.files import is_hdf5, refuse_full_disk

MARKED_ROWS = 4096  # marked at a time: many writes are slow, and all rows might not fit

Store: TypeAlias = Any
"""An HDF5 or Zarr array, or anything else with a shape, a dtype, chunks and slices."""


class Output(ABC):
    """A table of `n_columns` features like `template`, written once and in order.

    The rows are written piece by piece: `room` gives an array, which the caller fills, and `write`
    takes it. `begin` comes before, and either `finish` or `abandon` at the end.

    Attributes
    ----------
    in_memory : bool
        Whether the rows take no memory beyond what the caller holds already.
    written : int
        Number of rows that were written so far.
    """

    in_memory: bool = False

    def __init__(self, n_columns: int, template: Array) -> None:
        self.n_columns = n_columns
        self.template = template
        self.written = 0

    @abstractmethod
    def begin(self) -> None:
        """Make ready, and raise here if the result has no place."""

    def room(self, count: int) -> Array:
        """Return an array for the next `count` rows, to be filled."""
        return empty((count, self.n_columns), self.template)

    def write(self, rows: Array) -> None:
        """Write the next rows: the array that `room` returned, filled."""
        self._put(rows)
        self.written += rows.shape[0]

    @abstractmethod
    def _put(self, rows: Array) -> None:
        """Store rows behind those that were written before."""

    @abstractmethod
    def finish(self) -> Array:
        """Return the result, now that all rows are there."""

    @abstractmethod
    def abandon(self) -> None:
        """Remove or mark an incomplete result; this is called while an error is handled."""


class GrowingOutput(Output):
    """A new array for as many rows as will come."""

    def __init__(self, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self._parts: list[Array] = []

    def begin(self) -> None:
        """Nothing has to be ready."""

    def _put(self, rows: Array) -> None:
        self._parts.append(rows)

    def finish(self) -> Array:
        """Return all rows in one array."""
        return namespace(*self._parts).concat(self._parts)

    def abandon(self) -> None:
        """Nobody has the incomplete result."""


class ArrayOutput(Output):
    """An array that is filled where it lies; rows that are not reached become NaN."""

    def __init__(self, out: Array, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.out = out
        self.in_memory = find_map(out) is None

    def begin(self) -> None:
        """Claim the disk space of a memory map: a full disk would end the process later."""
        file = find_map(self.out)
        if file is None or file.mode == "c" or file.filename is None:
            return

        path = Path(file.filename)
        if path.is_file():  # it may have been removed since it was mapped
            with path.open("r+b") as handle:
                files.reserve(handle.fileno(), path.stat().st_size, path)

    def room(self, count: int) -> Array:
        """Return the next rows of the array itself."""
        stop = self.written + count
        _refuse_more_rows(stop, self.out)
        return self.out[self.written : stop, :]

    def _put(self, rows: Array) -> None:
        release_pages(rows)

    def finish(self) -> Array:
        """Return the array, if it is full."""
        _refuse_fewer_rows(self.written, self.out)
        return self.out

    def abandon(self) -> None:
        """Set the rows that were not reached to NaN."""
        self.out[self.written :, :] = float("nan")


class StoreOutput(Output):
    """An HDF5 or Zarr array; rows that are not reached become NaN.

    After a write has failed nothing else is written: HDF5 can crash the process on a full disk.
    """

    def __init__(self, out: Store, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.out = out
        self._failed = False

    def begin(self) -> None:
        """Nothing has to be ready: each write asks for its own space."""

    def room(self, count: int) -> Array:
        """Return an array in memory, which is copied to the store when it is full."""
        _refuse_more_rows(self.written + count, self.out)
        return super().room(count)

    def _put(self, rows: Array) -> None:
        start = self.written
        stop = start + rows.shape[0]
        values = to_host(rows)
        try:
            self._refuse_full_disk(rows.shape[0])
            self.out[start:stop, :] = values
        except (OSError, RuntimeError) as error:  # HDF5 raises either
            self._failed = True

            says = getattr(error, "strerror", None) or error
            msg = f"Rows {start} to {stop - 1} could not be written to out: {says}"
            raise OSError(msg) from error

    def _refuse_full_disk(self, count: int) -> None:
        """Raise if the next rows of an HDF5 dataset, without space of their own, may not fit."""
        if is_hdf5(self.out) and self.out.id.get_storage_size() < self.out.nbytes:
            refuse_full_disk(self.out, count)

    def finish(self) -> Array:
        """Return the store, if it is full."""
        _refuse_fewer_rows(self.written, self.out)
        filled: Array = self.out
        return filled

    def abandon(self) -> None:
        """Set the rows that were not reached to NaN, unless writing itself has failed."""
        if self._failed:
            return
        with suppress(Exception):  # the first error is the one to be shown
            for start in range(self.written, self.out.shape[0], MARKED_ROWS):
                self.out[start : start + MARKED_ROWS, :] = float("nan")


def _refuse_more_rows(stop: int, out: Store) -> None:
    if stop > out.shape[0]:
        raise ValueError(f"out has {out.shape[0]} rows, but there are more rows of X than that.")


def _refuse_fewer_rows(written: int, out: Store) -> None:
    if written < out.shape[0]:
        raise ValueError(
            f"X ended after {written} rows, but out has {out.shape[0]}: the rest of it has been "
            "set to NaN."
        )


class NpyOutput(Output):
    """A .npy file, which gets its name when it is complete."""

    def __init__(self, path: Path, n: int | None, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.path = path
        self._n = n or 0
        self._opened = ExitStack()
        self._dtype = np.dtype(dtype_name(template))
        self._row_bytes = n_columns * self._dtype.itemsize

    def begin(self) -> None:
        """Open the file, and claim its disk space if its size is known."""
        try:
            beside = self._opened.enter_context(files.atomic_path(self.path))
            self._file = self._opened.enter_context(beside.open("xb"))
        except OSError as error:
            raise files.write_error(self.path, "The features", error) from error

        try:
            self._write_header(self._n)
            self._start = self._file.tell()
            size = self._start + self._n * self._row_bytes
            files.reserve(self._file.fileno(), size, self.path)
        except OSError:
            self.abandon()
            raise

    def _write_header(self, n: int) -> None:
        # NumPy leaves room for any number of rows, so the header can be written again
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (n, self.n_columns),
        }
        np.lib.format.write_array_header_1_0(self._file, header)

    def _put(self, rows: Array) -> None:
        try:
            self._file.write(to_host(rows).data)
            self._file.flush()
        except OSError as error:
            if error.errno not in files.NO_ROOM:
                raise

            needed = (self.written + rows.shape[0]) * self._row_bytes
            raise files.no_room_error(self.path, needed, error) from error

    def finish(self) -> Array:
        """Give the file its name, and return a memory map of it."""
        size = self._start + self.written * self._row_bytes

        # the header again, now that the number of rows is known
        self._file.truncate(size)
        self._file.seek(0)
        self._write_header(self.written)
        self._opened.close()

        features: Array = np.load(self.path, mmap_mode="r")
        return features

    def abandon(self) -> None:
        """Remove what was written; a file of that name from before stays as it is."""
        with suppress(OSError):  # what is still in a buffer may find the disk full again
            self._opened.__exit__(*sys.exc_info())


def make_output(out: Store | None, n: int | None, n_columns: int, template: Array) -> Output:
    """Turn `out`, None, an array, a store or a .npy path, into an output; n may be None."""
    if isinstance(out, str | os.PathLike):
        return _make_file(Path(out), n, n_columns, template)
    if out is None:
        if n is None:
            return GrowingOutput(n_columns, template)
        new = empty((n, n_columns), template)
        return ArrayOutput(new, n_columns, template)

    _refuse_unfit(out, n, n_columns, template)
    if hasattr(out, "chunks"):
        return StoreOutput(out, n_columns, template)

    # an array, which is filled where it lies
    there = describe_location(out)
    here = describe_location(template)
    if there != here:
        raise ValueError(f"out is {there}, but the features are {here}.")

    if isinstance(out, np.ndarray) and not out.flags.writeable:
        msg = 'out cannot be written to: open the file with mode "r+", or copy the array.'
        raise ValueError(msg)
    return ArrayOutput(out, n_columns, template)


def _make_file(path: Path, n: int | None, n_columns: int, template: Array) -> NpyOutput:
    """Return the output to a .npy file of that name."""
    if path.suffix != ".npy":
        msg = f"Features are written to a .npy file, but out={str(path)!r} was given."
        raise ValueError(msg)
    files.refuse_no_place(path)
    return NpyOutput(path, n, n_columns, template)


def _refuse_unfit(out: Store, n: int | None, n_columns: int, template: Array) -> None:
    """Raise if `out` has another shape or dtype than the features, or is no array or store."""
    shape = tuple(getattr(out, "shape", ()))
    rows: object = n
    if n is None:
        rows = "number of rows"
    if len(shape) != 2 or shape[1] != n_columns or n not in (None, shape[0]):
        raise ValueError(
            f"out has shape {shape}, but the features have shape ({rows}, {n_columns})."
        )

    if not hasattr(out, "dtype") or isinstance(out, np.ma.MaskedArray):
        msg = f"out is a {type(out).__name__}; an array, an HDF5 or Zarr array or a path is needed."
        raise TypeError(msg)

    kind = dtype_name(template)
    if dtype_name(out) != kind:
        msg = f"out has dtype {dtype_name(out)}, but the features of {kind} rows are {kind}."
        raise ValueError(msg)
