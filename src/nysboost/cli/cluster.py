"""The same commands on a Dask cluster: files that every worker sees, in and out."""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.cli.sinks import FOLDERS, name_columns
from nysboost.cli.source import Source
from nysboost.rows.files import atomic_path
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import PACKINGS
from nysboost.user_error import UserError, import_optional

CHUNK_BYTES = 2**26
"""What one task reads of a file: Dask advises chunks of about a hundred megabytes at most."""


@contextmanager
def connect(address: str) -> Iterator[None]:
    """Connect to a Dask scheduler and say where its progress is seen, or that nobody answers."""
    distributed, dask = import_optional("distributed"), import_optional("dask")
    with dask.config.set(scheduler=None):  # a client that fails does not put it back
        client, why = None, ""
        try:
            client = distributed.Client(address, timeout=20)
        except (OSError, ValueError) as error:
            why = str(error)
        if client is None:
            gc.collect()  # what failed is closed here: where another client starts, it would hang
            raise UserError(f"No Dask scheduler answers at {address!r}: {why}")
        print(f"progress: {client.dashboard_link}", file=sys.stderr, flush=True)
        with client:
            yield


def dask_table(source: Source, chunk_bytes: int = CHUNK_BYTES) -> Any:
    """Return the chosen columns as a Dask collection whose parts the workers read themselves."""
    import dask.array as da
    import dask.dataframe as dd

    file, path, columns = source.file, source.file.path.resolve(), list(source.columns)
    if source.drops:
        what = "--drop-missing" if source.drop_missing else "--drop-missing-target"
        msg = f"{what} and --scheduler do not go together: leave rows out beforehand."
        raise UserError(msg)
    if path.suffix == ".zarr":
        return da.from_zarr(str(path))[:, [int(name) for name in columns]]
    if path.suffix == ".npy":
        shape, dtype = file.data.shape, file.data.dtype
        rows = max(1, chunk_bytes // (shape[1] * dtype.itemsize))
        chunks = da.core.normalize_chunks((rows, -1), shape)
        meta = np.empty((0, 0), dtype)
        array = da.map_blocks(_read_rows, str(path), chunks=chunks, dtype=dtype, meta=meta)
        return array[:, [int(name) for name in columns]]
    if isinstance(file, CsvFile) and path.suffix not in PACKINGS:
        size, file = path.stat().st_size, replace(file, path=path)
        # a byte is no line end where characters have two
        step = size if file.writing.encoding.startswith("utf-16") else chunk_bytes
        how: Any = {"size": step, "file": file, "columns": columns}
        meta = _read_lines(size, **how)
        return dd.from_map(_read_lines, range(0, size, step), meta=meta, **how)
    if path.suffix in (".parquet", ".pq", ""):
        return dd.read_parquet(str(path), columns=columns)
    msg = f"On a cluster .zarr, .npy, .csv and .parquet are read, but {path.name} was given."
    raise UserError(msg)


def dask_target(source: Source) -> Any:
    """Return the target as a Dask array of one dimension, or as the array that it is."""
    if source.target is None:
        return source.y
    found = dask_table(Source(source.file, [source.target]))
    if hasattr(found, "to_dask_array"):
        return found[found.columns[0]].to_dask_array()
    return found[:, 0]


def _read_rows(path: str, block_info: Any) -> Any:
    start, stop = block_info[None]["array-location"][0]
    rows = np.array(np.load(path, mmap_mode="r")[start:stop])
    return rows[:, None] if rows.ndim == 1 else rows


def _read_lines(start: int, size: int, file: CsvFile, columns: list[str]) -> Any:
    """Return the lines that begin in some bytes of a text file as a frame of pandas."""
    import pyarrow as pa

    with file.path.open("rb") as stream:
        block = import_optional("fsspec.utils").read_block(stream, start, size, b"\n")
    none = {name: file.convert(name, pa.array([], pa.string())) for name in columns}
    here = replace(file, header=0) if start else file
    rows = here.batches(columns, block) if block.strip() else ()
    return pa.concat_tables([pa.table(none), *rows]).unify_dictionaries().to_pandas()


def write(
    what: str, function: Callable[[Any], Any], source: Source, options: Namespace
) -> tuple[int, int]:
    """Apply a function on the workers, which write a Zarr array or Parquet files themselves.

    Return the numbers of rows and columns.
    """
    import dask.dataframe as dd

    out = options.out
    if out.suffix not in FOLDERS:
        raise UserError(f"On a cluster results go to .zarr or .parquet, but {out.name} was given.")
    with connect(options.scheduler), atomic_path(out.resolve()) as beside:
        rows = dask_table(source)
        result = function(rows)
        result = result[:, None] if result.ndim == 1 else result
        if np.isnan(result.shape[0]):  # of a frame, whose rows are counted without the function
            sizes = tuple(int(size) for size in rows.map_partitions(len).compute())
            result._chunks = (sizes, result.chunks[1])
        n, width = map(int, result.shape)
        if out.suffix == ".zarr":
            result.rechunk({0: "auto"}).to_zarr(str(beside))
            made = import_optional("zarr").open_array(str(beside), mode="r+")
            made.attrs["software"] = SOFTWARE
        else:
            dd.from_dask_array(result, columns=name_columns(what, width)).to_parquet(
                str(beside), write_index=False, custom_metadata={"software": SOFTWARE}
            )
    return n, width
