"""Where results go: files that are whole or not there at all, or standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.rows.files import atomic_path, refuse_no_place, write_npz
from nysboost.rows.outputs import NpyOutput
from nysboost.tables.files import IN_FOLDERS
from nysboost.user_error import (
    EXISTS,
    NO_FILE,
    WRONG_DATA,
    UserError,
    import_optional,
    with_exit_code,
)

CHUNK_BYTES = 2**23
"""Size of a chunk of an HDF5 or Zarr array."""

FOLDERS = (".zarr", ".parquet")
"""Outputs that may be folders, which --force replaces."""

IN_STORES = ("zarr.json", ".zarray", ".zgroup", "*.parquet")
"""What such a folder has in it."""

Put = Callable[[Any], Any]
"""What writes the next rows."""


@contextmanager
def _open_npy(path: Path, block: NDArray[Any], n: int | None) -> Iterator[Put]:
    file = NpyOutput(path, n, block.shape[1], block)
    file.begin()
    try:
        yield file.write
    except BaseException:
        file.abandon()  # the first error counts
        raise
    file.finish()


@contextmanager
def _open_npz(path: Path, _block: NDArray[Any], _n: int | None) -> Iterator[Put]:
    """Hold one array, X, in memory until it is whole."""
    parts: list[NDArray[Any]] = []
    yield parts.append
    write_npz(path, X=np.concatenate(parts))


@contextmanager
def _open_array(path: Path, block: NDArray[Any], _n: int | None) -> Iterator[Put]:
    """Make an HDF5 or Zarr array that grows."""
    width, dtype = block.shape[1], block.dtype
    chunks = (max(1, CHUNK_BYTES // (width * dtype.itemsize)), width)
    how: dict[str, Any] = {"shape": (0, width), "dtype": dtype, "chunks": chunks}

    def put(rows: NDArray[Any]) -> None:
        start = array.shape[0]
        array.resize((start + len(rows), width))
        array[start:] = rows

    if path.suffix.lower() == ".zarr":
        array = import_optional("zarr").create_array(str(path), **how)
        array.attrs["software"] = SOFTWARE
        yield put
        return
    with import_optional("h5py").File(path, "w") as store:
        store.attrs["software"] = SOFTWARE
        array = store.create_dataset("X", maxshape=(None, width), **how)
        yield put


@contextmanager
def _open_columns(path: Path, block: Any, _n: int | None) -> Iterator[Put]:
    """Open a CSV, Parquet or Feather file with named columns, or CSV on standard output."""
    import pyarrow as pa
    import pyarrow.csv as arrow_csv
    import pyarrow.parquet as arrow_parquet

    # CSV has no place for it, and its writer leaves the metadata out
    schema = block.schema.with_metadata({"software": SOFTWARE})
    make = {".parquet": arrow_parquet.ParquetWriter, ".feather": pa.ipc.new_file}
    place = sys.stdout.buffer if str(path) == "-" else str(path)
    with make.get(path.suffix.lower(), arrow_csv.CSVWriter)(place, schema) as writer:
        yield lambda table: writer.write_table(table.cast(schema))


SINKS: dict[str, Callable[[Path, Any, int | None], AbstractContextManager[Put]]] = {
    ".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_array, ".h5": _open_array,
    ".hdf5": _open_array, ".csv": _open_columns, ".parquet": _open_columns,
    ".feather": _open_columns,
}  # fmt: skip


@contextmanager
def open_sink(
    path: Path, expected: int | None, *, force: bool
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Give what writes the next rows, columns by name, to an output of the form its name says.

    The first rows show types; `expected` is the number of all rows, where it is known.
    """
    form = ".csv" if str(path) == "-" else path.suffix.lower()
    if form not in SINKS:
        msg = f"{path} has a form that is not known: {', '.join(SINKS)} are written."
        raise UserError(msg, NO_FILE)
    refuse_existing(path, force)
    writers: list[Put] = []
    place = nullcontext(path) if str(path) == "-" else atomic_path(path)
    with place as beside, ExitStack() as opened:

        def put(block: Any) -> None:
            if not writers:
                writers.append(opened.enter_context(SINKS[form](beside, block, expected)))
            writers[0](block)

        yield partial(_write_table if SINKS[form] is _open_columns else _write_array, form, put)
        if not writers:
            raise UserError("There are no rows to write.", WRONG_DATA)


def _write_table(form: str, put: Put, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa

    numpy = {n: np.ascontiguousarray(v) for n, v in columns.items() if isinstance(v, np.ndarray)}
    try:
        put(pa.table({**columns, **numpy}))  # which Arrow does not copy
    except pa.ArrowException as error:  # lists in CSV, or text after numbers
        msg = f"A column to keep does not go into this {form} file: {error}."
        raise UserError(f"{msg} Leave it out of --id and --keep.", WRONG_DATA) from error


def _write_array(form: str, put: Put, columns: Mapping[str, Any]) -> None:
    kinds = {getattr(values, "dtype", np.dtype(object)).kind for values in columns.values()}
    if not kinds <= set("fiub"):
        raise UserError(f"Text goes to a .csv or .parquet file, not to {form}.")
    put(np.stack(list(columns.values()), axis=1))


def refuse_existing(path: Path, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Raise if there is something at `path` that may not be replaced, or no place for it."""
    if str(path) == "-":
        return
    if not (path.is_dir() and path.suffix in FOLDERS):
        with with_exit_code(NO_FILE):
            refuse_no_place(path)
    if any(_is_input(path, other) for other in inputs):
        msg = f"{path} is an input of this command, or would be one: write to another file."
        raise UserError(msg, EXISTS)
    if path.exists() and not force:
        raise UserError(f"{path} is there already: --force replaces it.", EXISTS)
    if path.is_dir() and any(path.iterdir()) and not any(map(any, map(path.glob, IN_STORES))):
        raise UserError(f"{path} is a folder with other files in it: give another name.", EXISTS)


def _is_input(path: Path, other: Path) -> bool:
    """Whether an output is what is read, holds it, or is a table of the folder that is read."""
    if path.exists() and other.exists() and path.samefile(other):
        return True
    place, read = path.resolve(), other.resolve()
    inside = place.is_relative_to(read) and place.suffix.lower() in IN_FOLDERS
    return inside or (place.is_dir() and read.is_relative_to(place))


def name_columns(what: str, width: int) -> list[str]:
    """Return the names of columns: the word itself, numbered if there are several."""
    return [what] if width == 1 else [f"{what}_{i}" for i in range(width)]


def print_found(found: Mapping[str, Any]) -> None:
    """Print what a command has found out, a line for each thing."""
    for name, value in found.items():
        lines = [str(line) for line in (value if isinstance(value, list) else [value])]
        text = "\n  " + "\n  ".join(lines) if name == "schema" else " " + ", ".join(lines)
        print(f"{name.replace('_', ' ')}:{text}")
