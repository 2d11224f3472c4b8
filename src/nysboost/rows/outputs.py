"""Where features go: a new array, one that the user has made, a store, or a file."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Array, dtype_name, empty, namespace, to_host
from nysboost.numerics.devices import describe_location
from nysboost.rows import files
from nysboost.rows.memory_maps import find_map, release_pages

MARKED_ROWS = 4096  # marked at a time: many writes are slow, and all rows might not fit


class Output:
    """A table of `n_columns` features like `template`, written once, in order, whole or not at all.

    This one is a new array for as many rows as will come; others have a place for them.
    """

    in_memory = False

    def __init__(self, n_columns: int, template: Array) -> None:
        self.n_columns, self.template, self.written = n_columns, template, 0
        self._parts: list[Array] = []

    def begin(self) -> None:
        """Make ready; whatever is wrong shows before this, or here."""

    def room(self, count: int) -> Array:
        """Return an array for the next `count` rows."""
        return empty((count, self.n_columns), self.template)

    def write(self, rows: Array) -> None:
        """Write the next rows: the array that `room` returned, filled."""
        self._put(rows)
        self.written += rows.shape[0]

    def _put(self, rows: Array) -> None:
        """Store rows behind those that were written before."""
        self._parts.append(rows)

    def finish(self) -> Array:
        """Return the result, now that all rows are there."""
        return namespace(*self._parts).concat(self._parts)

    def abandon(self) -> None:
        """Leave nothing behind that looks like a whole result, as an error is handled."""


class ExistingOutput(Output):
    """An array that is filled where it lies, or a store; rows that are not reached become NaN."""

    def __init__(self, out: Any, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.out: Array = out  # or a store that is written like one
        self.in_place = not hasattr(out, "chunks")
        self.in_memory = self.in_place and find_map(out) is None

    def begin(self) -> None:
        """Claim the disk space of a memory map: a full disk would end the process later."""
        file = find_map(self.out)
        if file is not None and file.mode != "c" and file.filename is not None:
            path = Path(file.filename)
            if path.is_file():  # it may have been removed since it was mapped
                with path.open("r+b") as handle:
                    files.reserve(handle.fileno(), path.stat().st_size, path)

    def room(self, count: int) -> Array:
        stop = self.written + count
        if stop > self.out.shape[0]:
            msg = f"out has {self.out.shape[0]} rows, but there are more rows of X than that."
            raise ValueError(msg)
        return self.out[self.written : stop, :] if self.in_place else super().room(count)

    def _put(self, rows: Array) -> None:
        if self.in_place:
            release_pages(rows)
            return
        start, stop = self.written, self.written + rows.shape[0]
        try:
            self.out[start:stop, :] = to_host(rows)
        except OSError as error:
            msg = f"Rows {start} to {stop - 1} could not be written to out: {error}"
            raise OSError(msg) from error

    def finish(self) -> Array:
        if self.written < self.out.shape[0]:
            raise ValueError(
                f"X ended after {self.written} rows, but out has {self.out.shape[0]}: the rest of "
                "it has been set to NaN."
            )
        return self.out

    def abandon(self) -> None:
        with suppress(Exception):  # a store that cannot be written: the first error counts
            for start in range(self.written, self.out.shape[0], MARKED_ROWS):
                self.out[start : start + MARKED_ROWS, :] = float("nan")


class NpyOutput(Output):
    """A .npy file under another name that gets its own when it is whole."""

    def __init__(self, path: Path, n: int | None, n_columns: int, template: Array) -> None:
        super().__init__(n_columns, template)
        self.path, self._n, self._opened = path, n or 0, ExitStack()
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
            files.reserve(self._file.fileno(), self._start + self._n * self._row_bytes, self.path)
        except OSError:
            self.abandon()
            raise

    def _write_header(self, n: int) -> None:
        # NumPy leaves room for any number of rows, so the header can be written again
        descr = np.lib.format.dtype_to_descr(self._dtype)
        fields = {"descr": descr, "fortran_order": False, "shape": (n, self.n_columns)}
        np.lib.format.write_array_header_1_0(self._file, fields)

    def _put(self, rows: Array) -> None:
        try:
            self._file.write(to_host(rows).data)
            self._file.flush()
        except OSError as error:
            if error.errno not in files.NO_ROOM:
                raise
            needed = (self.written + rows.shape[0]) * self._row_bytes
            raise files.disk_full_error(self.path, needed) from error

    def finish(self) -> Array:
        self._file.truncate(self._start + self.written * self._row_bytes)
        self._file.seek(0)
        self._write_header(self.written)
        self._opened.close()
        whole: Array = np.load(self.path, mmap_mode="r")
        return whole

    def abandon(self) -> None:
        """Remove what was written; a file of that name from before stays as it is."""
        with suppress(OSError):  # what is still in a buffer may find the disk full again
            self._opened.__exit__(*sys.exc_info())


def make_output(out: Any, n: int | None, n_columns: int, template: Array) -> Output:
    """Turn `out`, None, an array, a store or a .npy path, into an output; n may be None."""
    if isinstance(out, str | os.PathLike):
        path = Path(out)
        if path.suffix != ".npy":
            msg = f"Features are written to a .npy file, but out={str(path)!r} was given."
            raise ValueError(msg)
        files.refuse_no_place(path)
        return NpyOutput(path, n, n_columns, template)
    if out is None:
        if n is None:
            return Output(n_columns, template)
        return ExistingOutput(empty((n, n_columns), template), n_columns, template)
    shape, kind = tuple(getattr(out, "shape", ())), dtype_name(template)
    if len(shape) != 2 or shape[1] != n_columns or n not in (None, shape[0]):
        expected = f"({'number of rows' if n is None else n}, {n_columns})"
        raise ValueError(f"out has shape {shape}, but the features have shape {expected}.")
    if not hasattr(out, "dtype") or isinstance(out, np.ma.MaskedArray):
        msg = f"out is a {type(out).__name__}; an array, an HDF5 or Zarr array or a path is needed."
        raise TypeError(msg)
    if dtype_name(out) != kind:
        msg = f"out has dtype {dtype_name(out)}, but the features of {kind} rows are {kind}."
        raise ValueError(msg)
    given = ExistingOutput(out, n_columns, template)
    if given.in_place and describe_location(out) != describe_location(template):
        raise ValueError(
            f"out is {describe_location(out)}, but the features are {describe_location(template)}."
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        msg = 'out cannot be written to: open the file with mode "r+", or copy the array.'
        raise ValueError(msg)
    return given
