"""Outputs that a user chooses: an existing array, a store, or a file."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    describe_location,
    dtype_name,
    find_map,
    is_sparse,
    release_pages,
    slices,
    to_host,
)
from nysboost.rows import files
from nysboost.rows.driver import ArrayOutput, Output, refuse_fewer_rows, refuse_more_rows
from nysboost.rows.files import is_hdf5, refuse_full_disk

MARKED_ROWS = 4096  # marked at a time: many writes are slow, and all rows might not fit

Store: TypeAlias = Any
"""An HDF5 or Zarr array, or anything else with a shape, a dtype, chunks and slices."""


class MappedOutput(ArrayOutput):
    """A memory map that is filled in place, and whose pages are written to the file."""

    in_memory = False

    def begin(self) -> None:
        """Claim the disk space of a memory map: a full disk would end the process later."""
        file = find_map(self.out)
        if file is None or file.mode == "c" or file.filename is None:
            return

        path = Path(file.filename)
        if not path.is_file():  # it may have been removed since it was mapped
            return
        size = path.stat().st_size
        with path.open("r+b") as handle:
            files.reserve(handle.fileno(), size, path)

    def _put(self, rows: Array) -> None:
        release_pages(rows)


class StoreOutput(Output):
    """An HDF5 or Zarr array; if the pass fails, the remaining rows become NaN.

    After a failed write, nothing else is written, because HDF5 can crash the process on a full
    disk.
    """

    def __init__(self, out: Store, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.out = out
        self._failed = False

    def begin(self) -> None:
        """Do nothing: each write checks its own space."""

    def room(self, count: int) -> Array:
        """Return an array in memory, which is copied to the store when it is full."""
        refuse_more_rows(self.written + count, self.out)
        return super().room(count)

    def _put(self, rows: Array) -> None:
        count = rows.shape[0]
        start = self.written
        stop = start + count
        values = to_host(rows)
        try:
            self._refuse_full_disk(count)
            self.out[start:stop, :] = values
        except (OSError, RuntimeError) as error:  # HDF5 raises either
            self._failed = True
            says = getattr(error, "strerror", None) or error
            msg = f"Rows {start} to {stop - 1} could not be written to out: {says}"
            raise OSError(msg) from error

    def _refuse_full_disk(self, count: int) -> None:
        """Raise if the next rows of an HDF5 dataset, without space of their own, may not fit."""
        if not is_hdf5(self.out):
            return
        has_space = self.out.id.get_storage_size() >= self.out.nbytes
        if not has_space:
            refuse_full_disk(self.out, count)

    def finish(self) -> Array:
        """Return the store, if it is full."""
        refuse_fewer_rows(self.written, self.out)
        filled: Array = self.out
        return filled

    def abandon(self) -> None:
        """Set the rows that were not reached to NaN, unless writing itself has failed."""
        if self._failed:
            return
        n = self.out.shape[0]
        with suppress(Exception):  # the first error is the one to be shown
            for at in slices(self.written, n, MARKED_ROWS):
                self.out[at, :] = float("nan")


class NpyOutput(Output):
    """A .npy file, which is renamed when it is complete."""

    def __init__(self, path: Path, n: int | None, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.path = path
        self._n = n or 0
        self._opened = ExitStack()
        self._dtype = np.dtype(dtype_name(template))
        self._row_bytes = n_columns * self._dtype.itemsize

    def begin(self) -> None:
        """Open the file, and claim its disk space if its size is known."""
        # the file beside that of the name
        try:
            beside = self._opened.enter_context(files.atomic_path(self.path))
            self._file = self._opened.enter_context(beside.open("xb"))
        except OSError as error:
            raise files.write_error(self.path, "The features", error) from error

        # its header, and room for the rows
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
        # in the byte order that the header states
        values = np.ascontiguousarray(to_host(rows), dtype=self._dtype)
        try:
            self._file.write(values.data)
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
        """Remove what was written; an existing file with this name is not changed."""
        with suppress(OSError):  # what is still in a buffer may find the disk full again
            self._opened.__exit__(*sys.exc_info())


def make_output(out: Store, n: int | None, n_columns: int, template: Array) -> Output:
    """Return the output for `out`, an array, a store or a .npy path; n may be None."""
    if isinstance(out, str | os.PathLike):
        return _make_file(Path(out), n, n_columns, template)

    # a store
    _refuse_unfit(out, n, n_columns, template)
    if hasattr(out, "chunks"):
        return StoreOutput(out, n_columns, template)

    # an array, which is filled where it lies
    there = describe_location(out)
    here = describe_location(template)
    if there != here:
        raise ValueError(f"out is {there}, but the features are {here}.")

    # in memory, or mapped
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        msg = 'out cannot be written to: open the file with mode "r+", or copy the array.'
        raise ValueError(msg)
    if find_map(out) is not None:
        return MappedOutput(out, n_columns, template)
    return ArrayOutput(out, n_columns, template)


def _make_file(path: Path, n: int | None, n_columns: int, template: Array) -> NpyOutput:
    """Return the output to a .npy file of that name."""
    if path.suffix != ".npy":
        msg = f"Features are written to a .npy file, but out={str(path)!r} was given."
        raise ValueError(msg)
    files.refuse_no_place(path)
    return NpyOutput(path, n, n_columns, template)


def _refuse_unfit(out: Store, n: int | None, n_columns: int, template: Array) -> None:
    """Raise unless `out` is an array or store with the shape and dtype of the features."""
    shape = tuple(getattr(out, "shape", ()))
    rows: object = n
    if n is None:
        rows = "number of rows"
    has_columns = len(shape) == 2 and shape[1] == n_columns
    if not has_columns or n not in (None, shape[0]):
        raise ValueError(
            f"out has shape {shape}, but the features have shape ({rows}, {n_columns})."
        )

    is_other = is_sparse(out) or isinstance(out, np.ma.MaskedArray)
    if not hasattr(out, "dtype") or is_other:
        msg = f"out is a {type(out).__name__}; an array, an HDF5 or Zarr array or a path is needed."
        raise TypeError(msg)

    kind = dtype_name(template)
    if dtype_name(out) != kind:
        msg = f"out has dtype {dtype_name(out)}, but the features of {kind} rows are {kind}."
        raise ValueError(msg)
