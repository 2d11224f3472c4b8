"""Outputs: files that are written completely or not at all, or standard output."""

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
from nysboost.tables.dates import format_span
from nysboost.tables.files import IN_FOLDERS
from nysboost.tables.typed_cells import is_text
from nysboost.tables.values import as_number
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
"""Names of the files in a Zarr array, and in a folder of Parquet files."""

Block: TypeAlias = Array
"""Rows of an output, shape (n, d)."""

Put: TypeAlias = "Callable[[Block | pa.Table], object]"
"""A function that writes the next rows."""

Opener: TypeAlias = "Callable[[Path, Block | pa.Table, int | None], AbstractContextManager[Put]]"
"""A function that opens an output for rows like the first ones, with their total number if
known."""

Found: TypeAlias = dict[str, object]
"""The results of a command by name: text, numbers and lists of them."""

OutputColumn: TypeAlias = "NDArray[np.generic] | pa.ChunkedArray"
"""A column of a table, of NumPy or of Arrow, shape (n,)."""

OutputColumns: TypeAlias = Mapping[str, OutputColumn]
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
    """Collect one array, X, in memory until all rows are there."""
    parts: list[Block] = []
    yield parts.append
    write_npz(path, X=np.concatenate(parts))


@contextmanager
def _open_array(path: Path, block: Block, _n: int | None) -> Iterator[Put]:
    """Create an HDF5 or Zarr array that can grow."""
    width = block.shape[1]
    row_bytes = width * block.dtype.itemsize
    chunk_rows = max(1, min(CHUNK_BYTES // row_bytes, len(block)))
    how: dict[str, object] = {
        "shape": (0, width),
        "dtype": block.dtype,
        "chunks": (chunk_rows, width),
    }

    # a Zarr array is a folder
    if path.suffix.lower() == ".zarr":
        zarr = import_optional("zarr")
        array = zarr.create_array(str(path), **how)
        array.attrs["software"] = SOFTWARE
        yield GrowingArray(array).append
        return

    # an HDF5 file holds arrays by name
    h5py = import_optional("h5py")
    with h5py.File(path, "w") as store:
        store.attrs["software"] = SOFTWARE
        array = store.create_dataset("X", maxshape=(None, width), **how)
        yield GrowingArray(array).append


@dataclass
class GrowingArray:
    """An HDF5 or Zarr array to which rows are appended."""

    array: Store

    def append(self, rows: Block) -> None:
        """Append rows."""
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

    # a file of Python has any name, and its errors are those of the operating system
    file: AbstractContextManager[BinaryIO]
    if str(path) == "-":
        file = nullcontext(sys.stdout.buffer)
    else:
        file = path.open("wb")
    schema = block.schema.with_metadata({"software": SOFTWARE})  # CSV has no place for it

    make = arrow_csv.CSVWriter
    form = path.suffix.lower()
    if form == ".parquet":
        make = arrow_parquet.ParquetWriter
    elif form == ".feather":
        make = pa.ipc.new_file
    with file as place, make(place, schema) as writer:
        yield ColumnWriter(writer, schema).write


@dataclass
class ColumnWriter:
    """A writer of Arrow tables with one schema."""

    writer: pa.ipc.RecordBatchFileWriter | pa.parquet.ParquetWriter
    schema: pa.Schema

    def write(self, table: pa.Table) -> None:
        """Write the next rows; text does not become numbers, which would lose its zeros."""
        for first, next_one in zip(self.schema, table.schema, strict=True):
            if is_text(next_one.type) and not is_text(first.type):
                raise TableError(
                    f"The column {first.name!r} of --id or --keep has text after values of type "
                    f"{first.type}: write it in one way in all files, or leave it out."
                )
        self.writer.write_table(table.cast(self.schema))


SINKS: dict[str, Opener] = {
    ".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_array, ".h5": _open_array,
    ".hdf5": _open_array, ".csv": _open_columns, ".parquet": _open_columns,
    ".feather": _open_columns,
}  # fmt: skip


@contextmanager
def open_sink(
    path: Path, expected: int | None, *, force: bool
) -> Iterator[Callable[[OutputColumns], None]]:
    """Yield a function that writes rows, as columns by name, in the format of the file's name.

    The first rows determine the types. `expected` is the total number of rows, if known.
    """
    on_standard_output = str(path) == "-"
    form = path.suffix.lower()
    if on_standard_output:
        form = ".csv"
    if form not in SINKS:
        msg = f"The format of {path} is unknown: write to one of {', '.join(SINKS)}."
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
    """An output that is opened with the first rows, which determine its types."""

    form: str
    path: Path
    expected: int | None
    opened: ExitStack
    put: Put | None = None

    @property
    def has_rows(self) -> bool:
        """Whether rows were written."""
        return self.put is not None

    def write(self, columns: OutputColumns) -> None:
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

    def _write_table(self, columns: OutputColumns) -> None:
        """Write columns to CSV, Parquet or Feather."""
        import pyarrow as pa

        # contiguous arrays, which Arrow does not copy, in the byte order that it takes
        contiguous = dict(columns)
        for name, values in columns.items():
            if isinstance(values, np.ndarray):
                native = values.dtype.newbyteorder("=")
                contiguous[name] = np.ascontiguousarray(values, dtype=native)
            elif self.form == ".csv" and pa.types.is_duration(values.type):
                contiguous[name] = _durations_as_text(values)
            elif self.form == ".csv" and pa.types.is_string_view(values.type):
                contiguous[name] = _as_strings(values)

        # Arrow refuses lists in CSV, and text after numbers
        try:
            self._put(pa.table(contiguous))
        except pa.ArrowException as error:
            msg = f"A column of --id or --keep cannot be written to a {self.form} file: {error}."
            raise TableError(f"{msg} Leave it out.") from error

    def _write_array(self, columns: OutputColumns) -> None:
        """Write columns of numbers to one array."""
        for values in columns.values():
            dtype = getattr(values, "dtype", np.dtype(object))
            if dtype.kind not in "fiub":
                msg = f"A {self.form} file cannot hold text: write to a .csv or .parquet file."
                raise UserError(msg)
        block = np.stack(list(columns.values()), axis=1)
        self._put(block)


TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Units of Arrow's durations."""


def _durations_as_text(column: pa.ChunkedArray) -> pa.Array:
    """Return durations as text: Arrow would write their numbers without the unit."""
    import pyarrow as pa

    per_second = TICKS_PER_SECOND[column.type.unit]
    ticks = column.cast(pa.int64()).to_pylist()
    return pa.array(
        [None if n is None else format_span(n, per_second) for n in ticks], type=pa.string()
    )


def refuse_existing(path: Path, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise if `path` must not be replaced, or if its folder does not exist."""
    if str(path) == "-":
        return

    # refuse a place that does not exist, or that holds an input
    is_output_folder = path.is_dir() and path.suffix in FOLDERS
    if not is_output_folder:
        with raise_as(NoFileError):
            refuse_no_place(path)
    if any(_is_input(path, other) for other in inputs):
        msg = f"{path} is an input of this command, or in its folder: write to another file."
        raise ExistsError(msg)

    # replace an output only with --force, and never a folder of other files
    if path.exists() and not force:
        raise ExistsError(f"{path} already exists: --force replaces it.")
    if path.is_dir() and not _is_store(path):
        raise ExistsError(f"{path} is a folder that contains other files: give another name.")


def _is_store(folder: Path) -> bool:
    """Whether a folder contains nothing, only a Zarr array, or only Parquet files."""
    entries = list(folder.iterdir())
    if folder.suffix != ".parquet":
        return not entries or _is_zarr(folder)
    return all(entry.is_file() and PARQUET_PARTS.fullmatch(entry.name) for entry in entries)


def _is_zarr(folder: Path) -> bool:
    """Whether a folder contains only a Zarr array or group."""
    entries = list(folder.iterdir())
    names = {entry.name for entry in entries}
    if not names & ZARR_MARKERS:
        return False

    # it may hold its own files, and the arrays of a group
    for entry in entries:
        if ZARR_PARTS.fullmatch(entry.name):
            continue
        is_array = entry.is_dir() and _is_zarr(entry)
        if not is_array:
            return False
    return True


def _is_input(path: Path, other: Path) -> bool:
    """Whether an output is the input, contains it, or is a table in the input folder."""
    if path.exists() and other.exists() and path.samefile(other):
        return True

    # realpath is not stopped by a loop of links
    place = Path(os.path.realpath(path))
    read = Path(os.path.realpath(other))
    if place.is_relative_to(read) and place.suffix.lower() in IN_FOLDERS:
        return True
    return place.is_dir() and read.is_relative_to(place)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""Characters with which a formula begins in a spreadsheet."""


def escape_formulas(columns: OutputColumns) -> OutputColumns:
    """Return columns with texts and names that a spreadsheet does not run as formulas.

    Texts that begin like a formula get an apostrophe in front.
    """
    return {_escape(name): _escape_values(values) for name, values in columns.items()}


def _escape(text: str) -> str:
    if text.startswith(FORMULA_STARTS) and as_number(text) is None:
        return f"'{text}"
    return text


def _escape_values(values: OutputColumn) -> OutputColumn:
    """Return a NumPy or Arrow column with escaped texts."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "fiub":
            return values
        texts = [_escape(str(value)) for value in values]
        return np.array(texts)

    import pyarrow as pa

    if not is_text(values.type):
        return values

    # Arrow has nulls, and bytes that are no text
    try:
        cells = _as_strings(values).to_pylist()
    except pa.ArrowInvalid as error:
        raise TableError(
            "A column of --id or --keep has bytes that are no text: leave it out, or leave out "
            "--escape-formulas."
        ) from error
    return pa.array([cell if cell is None else _escape(cell) for cell in cells], pa.string())


def _as_strings(text: pa.Array) -> pa.Array:
    """Return text as Arrow's plain type; older versions of Arrow cannot cast from views."""
    import pyarrow as pa

    if pa.types.is_string_view(text.type):
        return pa.array(text.to_pylist(), pa.string())
    return text.cast(pa.string())


def number_names(what: str, width: int) -> list[str]:
    """Return names of columns: the word itself, numbered if there are several."""
    if width == 1:
        return [what]
    return [f"{what}_{i}" for i in range(width)]


def print_found(found: Mapping[str, object]) -> None:
    """Print the results of a command, one per line."""
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
