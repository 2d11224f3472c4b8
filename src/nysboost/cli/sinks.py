"""Where results go: files that appear when they are whole."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.cli.errors import CommandError, DataError, ExistsError, NoFileError
from nysboost.data.outputs import File
from nysboost.data.whole import whole_npz
from nysboost.experiments.user_error import need

CHUNK_BYTES = 2**23
"""Size of a chunk of an HDF5 or Zarr array."""


class Sink(ABC):
    """A table that is written block by block.

    Parameters
    ----------
    path : Path
        Where it is written.
    names : sequence of str
        What its columns are called, where columns have names.
    expected : int or None
        How many rows will come at most, if that is known.
    """

    numbers_only = True

    def __init__(self, path: Path, names: Sequence[str], expected: int | None = None) -> None:
        self.path, self.names, self.expected = path, list(names), expected
        self.rows = 0

    def write(self, block: NDArray[Any]) -> None:
        """Write the next rows, shape (len(block), columns)."""
        if self.numbers_only and block.dtype.kind not in "fiub":
            msg = f"Labels that are text go to a .csv or .parquet file, not to {self.path.suffix}."
            raise CommandError(msg)
        if self.rows == 0:
            self.begin(block)
        self.put(block)
        self.rows += len(block)

    @abstractmethod
    def begin(self, block: NDArray[Any]) -> None:
        """Make the file, now that the first block shows its columns and dtype."""

    @abstractmethod
    def put(self, block: NDArray[Any]) -> None:
        """Write a block behind those before it."""

    @abstractmethod
    def finish(self) -> None:
        """Close the file: all is there."""

    def abandon(self) -> None:
        """Close the file, which is to be removed."""
        if self.rows:
            with suppress(Exception):  # the first error counts
                self.finish()


class NpySink(Sink):
    """A .npy file of any length."""

    def begin(self, block: NDArray[Any]) -> None:
        """Make the file."""
        self._file = File(self.path, self.expected, block.shape[1], block)
        self._file.begin()

    def put(self, block: NDArray[Any]) -> None:
        """Write a block behind those before it."""
        self._file.write(np.ascontiguousarray(block))

    def finish(self) -> None:
        """Close the file: all is there."""
        self._file.finish()


class NpzSink(Sink):
    """An .npz file with one array, X, which is held in memory until it is whole."""

    def begin(self, block: NDArray[Any]) -> None:  # noqa: ARG002
        """Begin with nothing."""
        self._parts: list[NDArray[Any]] = []

    def put(self, block: NDArray[Any]) -> None:
        """Hold a block."""
        self._parts.append(block)

    def finish(self) -> None:
        """Write the file."""
        whole_npz(self.path, X=np.concatenate(self._parts))


class ChunkedSink(Sink):
    """An HDF5 or Zarr array that grows."""

    def begin(self, block: NDArray[Any]) -> None:
        """Make the array."""
        width = block.shape[1]
        chunk = (max(1, CHUNK_BYTES // (width * block.dtype.itemsize)), width)
        if self.path.suffix.startswith(".zarr"):
            zarr = need("zarr", "files")
            self._store: Any = None
            self._array = zarr.create_array(
                str(self.path),
                shape=(0, width),
                chunks=chunk,
                dtype=block.dtype,
                attributes={"software": SOFTWARE},
            )
            return
        self._store = need("h5py", "files").File(self.path, "w")
        self._store.attrs["software"] = SOFTWARE
        self._array = self._store.create_dataset(
            "X", shape=(0, width), maxshape=(None, width), chunks=chunk, dtype=block.dtype
        )

    def put(self, block: NDArray[Any]) -> None:
        """Write a block behind those before it."""
        self._array.resize((self.rows + len(block), block.shape[1]))
        self._array[self.rows :] = block

    def finish(self) -> None:
        """Close the file: all is there."""
        if self._store is not None:
            self._store.close()


class ColumnSink(Sink):
    """A CSV or Parquet file with named columns."""

    numbers_only = False

    def begin(self, block: NDArray[Any]) -> None:
        """Make the file."""
        need("pyarrow", "experiments")
        import pyarrow.csv as arrow_csv
        import pyarrow.parquet as arrow_parquet

        # CSV has no place for it, and its writer leaves the metadata out
        schema = self._batch(block[:1]).schema.with_metadata({"software": SOFTWARE})
        make = arrow_csv.CSVWriter if self.path.suffix == ".csv" else arrow_parquet.ParquetWriter
        self._writer = make(self.path, schema)

    def _batch(self, block: NDArray[Any]) -> Any:
        import pyarrow as pa

        columns = [pa.array(np.ascontiguousarray(column)) for column in block.T]
        return pa.RecordBatch.from_arrays(columns, names=self.names)

    def put(self, block: NDArray[Any]) -> None:
        """Write a block behind those before it."""
        self._writer.write_batch(self._batch(block))

    def finish(self) -> None:
        """Close the file: all is there."""
        self._writer.close()


SINKS: dict[str, type[Sink]] = {
    ".npy": NpySink,
    ".npz": NpzSink,
    ".zarr": ChunkedSink,
    ".h5": ChunkedSink,
    ".hdf5": ChunkedSink,
    ".csv": ColumnSink,
    ".parquet": ColumnSink,
}


FOLDERS = (".zarr", ".parquet")
"""Outputs that may be folders, which --force replaces."""


def refuse_existing(path: Path, force: bool) -> None:
    """Raise if there is something at `path` that may not be replaced, or no place for it."""
    if not path.parent.is_dir():
        msg = f"There is no folder {path.parent} to write {path.name} to."
        raise NoFileError(msg)
    if path.is_dir() and path.suffix not in FOLDERS:
        msg = f"{path} is a folder: give the name of a file in it."
        raise NoFileError(msg)
    if path.exists() and not force:
        msg = f"{path} is there already: --force replaces it."
        raise ExistsError(msg)


@contextmanager
def whole(path: Path, *, force: bool) -> Iterator[Path]:
    """Give a path to write to; what is there takes its place at the end, or disappears."""
    refuse_existing(path, force)
    beside = path.with_name(f".{path.stem}.{uuid4().hex}.partial{path.suffix}")
    try:
        yield beside
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif beside.is_dir():
            path.unlink(missing_ok=True)
        beside.replace(path)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


@contextmanager
def open_sink(
    path: Path, names: Sequence[str], expected: int | None = None, *, force: bool
) -> Iterator[Sink]:
    """Open an output by the form that its name says; it appears when it is whole."""
    if path.suffix.lower() not in SINKS:
        msg = f"{path} has a form that is not known: {', '.join(SINKS)} are written."
        raise NoFileError(msg)
    with whole(path, force=force) as beside:
        sink = SINKS[path.suffix.lower()](beside, names, expected)
        try:
            yield sink
            if sink.rows == 0:
                msg = "There are no rows to write."
                raise DataError(msg)
            sink.finish()
        except BaseException:
            sink.abandon()
            raise
