"""Where results go: files that are whole or not there at all, or standard output."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.numerics.arrays import Array
from nysboost.numerics.messages import printable
from nysboost.rows.files import atomic_path, is_hdf5, refuse_full_disk, refuse_no_place, write_npz
from nysboost.rows.outputs import NpyOutput, Store
from nysboost.tables.files import IN_FOLDERS
from nysboost.user_error import (
    ExistsError,
    NoFileError,
    TableError,
    UserError,
    import_optional,
    raise_as,
)

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet

CHUNK_BYTES = 2**23
"""Size of a chunk of an HDF5 or Zarr array."""

FOLDERS = (".zarr", ".parquet")
"""Outputs that may be folders, which --force replaces."""

ZARR_MARKERS = {"zarr.json", ".zarray", ".zgroup"}
ZARR_PARTS = re.compile(r"zarr\.json|\.z\w+|c|[\d.]+")
PARQUET_PARTS = re.compile(r".*\.parquet|_(common_)?metadata|\..*\.crc")
"""Names of what is in an array of Zarr, and in a folder of Parquet files."""

Block: TypeAlias = Array
"""Rows of an output, shape (n, d)."""

Put: TypeAlias = "Callable[[Block | pa.Table], object]"
"""What writes the next rows."""

Opener: TypeAlias = "Callable[[Path, Block | pa.Table, int | None], AbstractContextManager[Put]]"
"""Opens an output that has such rows as the first ones, and so many if that is known."""

Found: TypeAlias = dict[str, object]
"""What a command has found out, by name: text, numbers and lists of them."""

Column: TypeAlias = "NDArray[np.generic] | pa.ChunkedArray"
"""A column of a table, of NumPy or of Arrow, shape (n,)."""

Columns: TypeAlias = Mapping[str, Column]
"""Columns of a table by name."""


@contextmanager
def _open_npy(path: Path, block: Block, n: int | None) -> Iterator[Put]:
    """Write an array to a file whose header has its shape at the end."""
    file = NpyOutput(path, n, block.shape[1], block)
    file.begin()
    try:
        yield file.write
    except BaseException:
        file.abandon()  # the first error counts
        raise
    file.finish()


@contextmanager
def _open_npz(path: Path, _block: Block, _n: int | None) -> Iterator[Put]:
    """Hold one array, X, in memory until it is whole."""
    parts: list[Block] = []
    yield parts.append
    write_npz(path, X=np.concatenate(parts))


@contextmanager
def _open_array(path: Path, block: Block, _n: int | None) -> Iterator[Put]:
    """Make an HDF5 or Zarr array that grows."""
    width = block.shape[1]
    row_bytes = width * block.dtype.itemsize
    chunk_rows = max(1, CHUNK_BYTES // row_bytes)
    how: dict[str, object] = {
        "shape": (0, width),
        "dtype": block.dtype,
        "chunks": (chunk_rows, width),
    }

    # an array of Zarr is a folder of its own
    if path.suffix.lower() == ".zarr":
        zarr = import_optional("zarr")
        array = zarr.create_array(str(path), **how)
        array.attrs["software"] = SOFTWARE
        yield GrowingArray(array).append
        return

    # one of HDF5 has a name in its file
    h5py = import_optional("h5py")
    with h5py.File(path, "w") as store:
        store.attrs["software"] = SOFTWARE
        array = store.create_dataset("X", maxshape=(None, width), **how)
        yield GrowingArray(array).append


@dataclass
class GrowingArray:
    """An array of HDF5 or Zarr to which rows are added."""

    array: Store

    def append(self, rows: Block) -> None:
        """Write rows below those that are there."""
        if is_hdf5(self.array):
            refuse_full_disk(self.array, len(rows))
        start, width = self.array.shape
        self.array.resize((start + len(rows), width))
        self.array[start:] = rows


@contextmanager
def _open_columns(path: Path, block: pa.Table, _n: int | None) -> Iterator[Put]:
    """Open a CSV, Parquet or Feather file with named columns, or CSV on standard output."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as arrow_parquet

    place: BinaryIO | str = str(path)
    if place == "-":
        place = sys.stdout.buffer
    schema = block.schema.with_metadata({"software": SOFTWARE})  # CSV has no place for it

    form = path.suffix.lower()
    if form == ".parquet":
        opened = arrow_parquet.ParquetWriter(place, schema)
    elif form == ".feather":
        opened = pa.ipc.new_file(place, schema)
    else:
        opened = arrow_csv.CSVWriter(place, schema)
    with opened as writer:
        yield ColumnWriter(writer, schema).write


@dataclass
class ColumnWriter:
    """A writer of Arrow tables with one schema."""

    writer: pa.ipc.RecordBatchFileWriter | pa.parquet.ParquetWriter
    schema: pa.Schema

    def write(self, table: pa.Table) -> None:
        """Write the next rows."""
        self.writer.write_table(table.cast(self.schema))


SINKS: dict[str, Opener] = {
    ".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_array, ".h5": _open_array,
    ".hdf5": _open_array, ".csv": _open_columns, ".parquet": _open_columns,
    ".feather": _open_columns,
}  # fmt: skip


@contextmanager
def open_sink(
    path: Path, expected: int | None, *, force: bool
) -> Iterator[Callable[[Columns], None]]:
    """Give what writes the next rows, columns by name, to an output of the form its name says.

    The first rows show types; `expected` is the number of all rows, where it is known.
    """
    on_standard_output = str(path) == "-"
    form = path.suffix.lower()
    if on_standard_output:
        form = ".csv"
    if form not in SINKS:
        msg = f"{path} has a form that is not known: {', '.join(SINKS)} are written."
        raise NoFileError(msg)
    refuse_existing(path, force)

    # a file is written beside its place, and gets its name when it is whole
    place: AbstractContextManager[Path] = atomic_path(path)
    if on_standard_output:
        place = nullcontext(path)
    with place as beside, ExitStack() as opened:
        sink = Sink(form, beside, expected, opened)
        yield sink.write
        if not sink.has_rows:
            raise TableError("There are no rows to write.")


@dataclass
class Sink:
    """An output that is opened when its first rows, and with them its types, are known."""

    form: str
    path: Path
    expected: int | None
    opened: ExitStack
    put: Put | None = None

    @property
    def has_rows(self) -> bool:
        """Whether rows were written."""
        return self.put is not None

    def write(self, columns: Columns) -> None:
        """Write the next rows, columns by name."""
        if SINKS[self.form] is _open_columns:
            self._write_table(columns)
        else:
            self._write_array(columns)

    def _put(self, block: Block | pa.Table) -> None:
        """Write the next rows; the first ones open the output."""
        if self.put is None:
            sink = SINKS[self.form](self.path, block, self.expected)
            self.put = self.opened.enter_context(sink)
        self.put(block)

    def _write_table(self, columns: Columns) -> None:
        """Write columns to CSV, Parquet or Feather."""
        import pyarrow as pa

        # contiguous arrays, which Arrow does not copy
        contiguous = dict(columns)
        for name, values in columns.items():
            if isinstance(values, np.ndarray):
                contiguous[name] = np.ascontiguousarray(values)

        # it refuses lists in CSV, and text after numbers
        try:
            self._put(pa.table(contiguous))
        except pa.ArrowException as error:
            msg = f"A column to keep does not go into this {self.form} file: {error}."
            raise TableError(f"{msg} Leave it out of --id and --keep.") from error

    def _write_array(self, columns: Columns) -> None:
        """Write columns of numbers to one array."""
        for values in columns.values():
            dtype = getattr(values, "dtype", np.dtype(object))
            if dtype.kind not in "fiub":
                raise UserError(f"Text goes to a .csv or .parquet file, not to {self.form}.")
        block = np.stack(list(columns.values()), axis=1)
        self._put(block)


def refuse_existing(path: Path, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise if there is something at `path` that may not be replaced, or no place for it."""
    if str(path) == "-":
        return

    # there has to be a place for it, which no input takes
    is_output_folder = path.is_dir() and path.suffix in FOLDERS
    if not is_output_folder:
        with raise_as(NoFileError):
            refuse_no_place(path)
    if any(_is_input(path, other) for other in inputs):
        msg = f"{path} is an input of this command, or would be one: write to another file."
        raise ExistsError(msg)

    # what is there is replaced if it may be, and never a folder of other files
    if path.exists() and not force:
        raise ExistsError(f"{path} is there already: --force replaces it.")
    if path.is_dir() and not _is_store(path):
        raise ExistsError(f"{path} is a folder with other files in it: give another name.")


def _is_store(folder: Path) -> bool:
    """Whether a folder is empty, or a Zarr array or Parquet files and nothing else."""
    entries = list(folder.iterdir())
    if folder.suffix != ".parquet":
        return not entries or _is_zarr(folder)
    return all(entry.is_file() and PARQUET_PARTS.fullmatch(entry.name) for entry in entries)


def _is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr array or group, and has nothing else in it."""
    entries = list(folder.iterdir())
    names = {entry.name for entry in entries}
    if not names & ZARR_MARKERS:
        return False

    # its own files, and arrays of a group
    for entry in entries:
        if ZARR_PARTS.fullmatch(entry.name):
            continue
        is_array = entry.is_dir() and _is_zarr(entry)
        if not is_array:
            return False
    return True


def _is_input(path: Path, other: Path) -> bool:
    """Whether an output is what is read, holds it, or is a table of the folder that is read."""
    if path.exists() and other.exists() and path.samefile(other):
        return True

    # realpath is not stopped by a loop of links
    place = Path(os.path.realpath(path))
    read = Path(os.path.realpath(other))
    if place.is_relative_to(read) and place.suffix.lower() in IN_FOLDERS:
        return True
    return place.is_dir() and read.is_relative_to(place)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the start of a formula."""


def escape_formulas(columns: Columns) -> Columns:
    """Return columns whose texts, and names, a spreadsheet does not run as formulas.

    Texts that begin as a formula get an apostrophe in front.
    """
    return {_escape(name): _escape_values(values) for name, values in columns.items()}


def _escape(text: str) -> str:
    if text.startswith(FORMULA_STARTS):
        return f"'{text}"
    return text


def _escape_values(values: Column) -> Column:
    """Return a column, of NumPy or of Arrow, with its texts escaped."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "fiub":
            return values
        texts = [_escape(str(value)) for value in values]
        return np.array(texts)

    import pyarrow as pa

    # text of Arrow may be in a dictionary, and has nulls
    is_text = pa.types.is_string(values.type) or pa.types.is_dictionary(values.type)
    if not is_text:
        return values
    cells = values.cast(pa.string()).to_pylist()
    return pa.array([cell if cell is None else _escape(cell) for cell in cells])


def name_columns(what: str, width: int) -> list[str]:
    """Return the names of columns: the word itself, numbered if there are several."""
    if width == 1:
        return [what]
    return [f"{what}_{i}" for i in range(width)]


def print_found(found: Mapping[str, object]) -> None:
    """Print what a command has found out, a line for each thing."""
    for name, value in found.items():
        values = [value]
        if isinstance(value, list):
            values = value
        lines = [printable(str(one)) for one in values]

        # a schema has a line for each kind of column
        heading = f"{name.replace('_', ' ')}:"
        if name == "schema":
            print("\n  ".join([heading, *lines]))
        else:
            print(heading, ", ".join(lines))
