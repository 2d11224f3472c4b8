"""The same commands on a Dask cluster: files that every worker sees, in and out."""

from __future__ import annotations

import gc
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.cli.sinks import FOLDERS
from nysboost.cli.source import Source
from nysboost.data.files import whole_path
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import PACKINGS
from nysboost.tables.values import MARKS, as_number
from nysboost.tables.writing import Writing
from nysboost.user_error import UserError, need

CHUNK_BYTES = 2**26
"""What one task reads of a .npy file: Dask advises chunks of about a hundred megabytes at most."""


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler and say where its progress is seen, or that nobody answers."""
    distributed, dask = need("distributed", "dask"), need("dask", "dask")
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
            yield client


def dask_table(source: Source) -> Any:
    """Return the chosen columns as a Dask collection whose parts the workers read themselves."""
    import dask.array as da
    import dask.dataframe as dd

    file, path, columns = source.file, source.file.path.resolve(), list(source.columns)
    if source.drop_missing:
        msg = "--drop-missing and --scheduler do not go together: leave rows out beforehand."
        raise UserError(msg)
    if path.suffix == ".zarr":
        return da.from_zarr(str(path))[:, [int(name) for name in columns]]
    if path.suffix == ".npy":
        return _npy_array(path, file, [int(name) for name in columns])
    if isinstance(file, CsvFile) and path.suffix not in PACKINGS:
        return _csv_frame(file, path)[columns]
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


def _csv_frame(file: CsvFile, path: Path) -> Any:
    """Return a text file as a Dask frame, written and typed as the reader has recognised it."""
    import dask.dataframe as dd

    marks = sorted({form for mark in MARKS for form in (mark, mark.upper(), mark.title(), "NaN")})
    plain = [name for name, unit in file.numbers.items() if not unit]
    frame = dd.read_csv(
        str(path),
        names=list(file.names),
        skiprows=max(0, file.header - 1),
        header=0 if file.header else None,
        sep=file.writing.separator,
        decimal=file.writing.decimal,
        thousands=file.writing.thousands or None,
        encoding=file.writing.encoding,
        na_values={name: marks for name in plain},
        dtype={name: np.float64 if name in plain else object for name in file.names},
    )
    for name, unit in file.numbers.items():
        if unit:
            how, meta = (file.writing, unit), (name, np.float64)
            frame[name] = frame[name].map_partitions(_read_numbers, *how, meta=meta)
    return frame


def _read_numbers(column: Any, writing: Writing, unit: str) -> Any:
    """Return a column of pandas as numbers, NaN where it has none."""
    import pandas as pd

    texts = [writing.plain(cell, unit) if isinstance(cell, str) else "" for cell in column]
    numbers = [as_number(text) for text in texts]
    if None in numbers:
        said = f"Column {column.name!r} has {texts[numbers.index(None)]!r:.60}"
        raise ValueError(f"{said}, which is not a number: correct it or leave it empty.")
    return pd.Series(numbers, column.index, np.float64, column.name)


def _npy_array(path: Path, file: Any, columns: list[int]) -> Any:
    import dask.array as da

    dtype = file.data.dtype
    size = max(1, CHUNK_BYTES // (int(file.data.shape[1]) * dtype.itemsize))
    sizes = tuple(min(size, file.n - start) for start in range(0, file.n, size))
    return da.map_blocks(
        _read_npy,
        str(path),
        columns,
        chunks=(sizes, (len(columns),)),
        dtype=dtype,
        meta=np.empty((0, len(columns)), dtype=dtype),
        token="read-npy",
    )


def _read_npy(path: str, columns: list[int], block_info: Any = None) -> Any:
    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop, columns])


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
    with connect(options.scheduler), whole_path(out.resolve()) as beside:
        rows = dask_table(source)
        result = function(rows)
        result = _add_chunk_sizes(result[:, None] if result.ndim == 1 else result, rows)
        n, width = map(int, result.shape)
        if out.suffix == ".zarr":
            result.rechunk({0: "auto"}).to_zarr(str(beside))
            made = need("zarr", "files").open_array(str(beside), mode="r+")
            made.attrs["software"] = SOFTWARE
        else:
            names = [what] if width == 1 else [f"{what}_{i}" for i in range(width)]
            dd.from_dask_array(result, columns=names).to_parquet(
                str(beside), write_index=False, custom_metadata={"software": SOFTWARE}
            )
    return n, width


def _add_chunk_sizes(result: Any, rows: Any) -> Any:
    """Return what was made of rows with the sizes of its chunks known; a frame's are counted."""
    import dask.array as da

    if not np.isnan(result.shape[0]):
        return result
    sizes = tuple(int(size) for size in rows.map_partitions(len).compute())
    return da.Array(result.dask, result.name, (sizes, result.chunks[1]), meta=result._meta)
