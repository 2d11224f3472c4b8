"""The same commands on a Dask cluster: every worker can read and write the files."""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.cli.sinks import FOLDERS, number_names
from nysboost.cli.source import Source
from nysboost.numerics.arrays import Array
from nysboost.rows.files import atomic_path
from nysboost.rows.lazy import LazyTable
from nysboost.tables.array_files import ArrayFile
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import PACKINGS
from nysboost.user_error import UserError, import_optional

if TYPE_CHECKING:
    import pandas as pd

CHUNK_BYTES = 2**26
"""Bytes of a file that one task reads: Dask recommends chunks of at most about 100 MB."""


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Connect to a Dask scheduler and print the address of its dashboard, or raise."""
    distributed = import_optional("distributed")
    dask = import_optional("dask")

    # a client that fails does not put its setting back
    with dask.config.set(scheduler=None):
        client = None
        why = ""
        try:
            client = distributed.Client(address, timeout=20)
        except (OSError, ValueError) as error:
            why = str(error)

        # what failed is closed here: where another client starts, it would hang
        if client is None:
            gc.collect()
            raise UserError(f"No Dask scheduler answers at {address!r}: {why}")
        print(f"progress: {client.dashboard_link}", file=sys.stderr, flush=True)
        with client:
            yield


def dask_table(source: Source, chunk_bytes: int = CHUNK_BYTES) -> LazyTable:
    """Return the chosen columns of a file that every worker can read."""
    # Dask needs to know the number of rows: none can be left out
    if source.drops:
        what = "--drop-missing-target"
        if source.drop_missing:
            what = "--drop-missing"
        msg = f"{what} and --scheduler cannot be combined: remove such rows beforehand."
        raise UserError(msg)

    # formats of which each worker can read its own part
    file = source.file
    path = file.path.resolve()
    columns = list(source.columns)
    if isinstance(file, ArrayFile) and path.suffix in (".zarr", ".npy"):
        positions = [int(name) for name in columns]
        return _dask_array(file, path, chunk_bytes)[:, positions]
    if isinstance(file, CsvFile) and path.suffix not in PACKINGS:
        return _dask_lines(replace(file, path=path, exact=False), columns, chunk_bytes)
    if path.suffix in (".parquet", ".pq", ""):
        return import_optional("dask.dataframe").read_parquet(str(path), columns=columns)
    msg = f"On a cluster, a table is .zarr, .npy, .csv or .parquet, but {path.name} was given."
    raise UserError(msg)


def _dask_array(file: ArrayFile, path: Path, chunk_bytes: int) -> LazyTable:
    """Return a Zarr or NumPy array in a file as a Dask array."""
    da = import_optional("dask.array")
    if path.suffix == ".zarr":
        return da.from_zarr(str(path))

    # chunks of whole rows
    shape = file.data.shape
    dtype = file.data.dtype
    row_bytes = shape[1] * dtype.itemsize
    chunk_rows = max(1, chunk_bytes // row_bytes)
    chunks = da.core.normalize_chunks((chunk_rows, -1), shape)
    meta = np.empty((0, 0), dtype)
    return da.map_blocks(_read_rows, str(path), chunks=chunks, dtype=dtype, meta=meta)


BlockInfo: TypeAlias = Mapping[None, Mapping[str, Sequence[tuple[int, int]]]]
"""What Dask says of the chunk that a function returns, for instance where it lies."""


def _read_rows(path: str, block_info: BlockInfo) -> Array:
    """Return the rows of one chunk of a NumPy file."""
    start, stop = block_info[None]["array-location"][0]
    stored = np.load(path, mmap_mode="r")
    rows = np.array(stored[start:stop])
    if rows.ndim == 1:
        return rows[:, None]
    return rows


def _dask_lines(file: CsvFile, columns: list[str], chunk_bytes: int) -> LazyTable:
    """Return columns of a text file as a Dask data frame."""
    # a byte is no line end where characters have two
    size = file.path.stat().st_size
    step = chunk_bytes
    if file.writing.encoding.startswith("utf-16"):
        step = size

    # Dask learns the types from a part without lines
    meta = _read_lines(size, step, file, columns)
    begins = range(0, size, step)
    dd = import_optional("dask.dataframe")
    return dd.from_map(_read_lines, begins, meta=meta, size=step, file=file, columns=columns)


def _read_lines(start: int, size: int, file: CsvFile, columns: list[str]) -> pd.DataFrame:
    """Return the lines that begin in some bytes of a text file as a frame."""
    import pyarrow as pa

    read_block = import_optional("fsspec.utils").read_block
    with file.path.open("rb") as stream:
        block = read_block(stream, start, size, b"\n")

    # a table without rows has the types of all columns
    no_rows = pa.array([], pa.string())
    tables = [pa.table({name: file.convert(name, no_rows) for name in columns})]
    if start > 0:
        file = replace(file, header=0)
    if block.strip():
        tables += file.batches(columns, block=block)

    # categories of all parts in one dictionary
    table = pa.concat_tables(tables)
    return table.unify_dictionaries().to_pandas()


def dask_target(source: Source) -> LazyTable:
    """Return the target as a one-dimensional Dask array, or unchanged if it is an array."""
    if source.target is None:
        return source.y

    # a frame or an array with one column
    found = dask_table(Source(source.file, [source.target]))
    if hasattr(found, "to_dask_array"):
        return found[found.columns[0]].to_dask_array()
    return found[:, 0]


def write(
    what: str, function: Callable[[LazyTable], LazyTable], source: Source, options: Namespace
) -> tuple[int, int]:
    """Apply a function on the workers, which also write the Zarr array or Parquet files.

    Return the numbers of rows and columns.
    """
    out = options.out
    if out.suffix not in FOLDERS:
        msg = f"On a cluster, write results to .zarr or .parquet, but {out.name} was given."
        raise UserError(msg)
    with connect(options.scheduler), atomic_path(out.resolve()) as beside:
        rows = dask_table(source)
        result = function(rows)
        if result.ndim == 1:
            result = result[:, None]

        # a frame does not know its rows, which are counted without the function
        if np.isnan(result.shape[0]):
            sizes = rows.map_partitions(len).compute()
            result._chunks = (tuple(map(int, sizes)), result.chunks[1])
        n, width = map(int, result.shape)

        # each worker writes its rows
        if out.suffix == ".zarr":
            result.rechunk({0: "auto"}).to_zarr(str(beside))
            made = import_optional("zarr").open_array(str(beside), mode="r+")
            made.attrs["software"] = SOFTWARE
        else:
            dd = import_optional("dask.dataframe")
            frame = dd.from_dask_array(result, columns=number_names(what, width))
            metadata = {"software": SOFTWARE}
            frame.to_parquet(str(beside), write_index=False, custom_metadata=metadata)
    return n, width
