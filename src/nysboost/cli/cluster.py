"""The same commands on a Dask cluster: files that every worker sees, in and out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nysboost._version import SOFTWARE
from nysboost.cli.choice import Choice
from nysboost.cli.errors import CommandError
from nysboost.cli.models import Mapper, output_names
from nysboost.cli.sinks import whole
from nysboost.cli.tables import Table
from nysboost.experiments.user_error import need

CHUNK_BYTES = 2**26
"""What one task reads of a .npy file: Dask advises chunks of about a hundred megabytes at most."""


@contextmanager
def connected(address: str, *, quiet: bool = True) -> Iterator[Any]:
    """Connect to a Dask scheduler and say where its progress is seen, or that nobody answers."""
    distributed = need("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=20)
    except (OSError, ValueError) as error:
        msg = f"No Dask scheduler answers at {address!r}: {error}"
        raise CommandError(msg) from error
    if not quiet:
        print(f"progress: {client.dashboard_link}", file=sys.stderr, flush=True)
    with client:
        yield client


def dask_table(choice: Choice) -> Any:
    """Return the chosen columns as a Dask array whose chunks the workers read themselves."""
    import dask.array as da
    import dask.dataframe as dd

    path, names = choice.table.path.resolve(), choice.names
    if choice.drop_missing:
        msg = "--drop-missing and --scheduler do not go together: leave rows out beforehand."
        raise CommandError(msg)
    if path.suffix == ".zarr":
        return da.from_zarr(str(path))[:, choice.columns]
    if path.suffix == ".npy":
        return _npy_array(path, choice)
    if names is not None and path.suffix != ".csv":
        return dd.read_parquet(str(path), columns=names)
    if names is not None:
        return dd.read_csv(str(path))[names]
    msg = f"On a cluster .zarr, .npy, .csv and .parquet are read, but {path.name} was given."
    raise CommandError(msg)


def dask_column(table: Table, column: int) -> Any:
    """Return one column as a Dask array of one dimension."""
    found = dask_table(Choice(table, [column]))
    if hasattr(found, "to_dask_array"):
        return found[found.columns[0]].to_dask_array()
    return found[:, 0]


def _npy_array(path: Path, choice: Choice) -> Any:
    import dask.array as da

    table: Any = choice.table
    dtype, row = table.data.dtype, table.width * table.data.dtype.itemsize
    size = max(1, CHUNK_BYTES // row)
    sizes = [min(size, table.n - start) for start in range(0, table.n, size)]
    meta = np.empty((0, len(choice.columns)), dtype=dtype)
    return da.map_blocks(
        _read_npy,
        str(path),
        choice.columns,
        chunks=(tuple(sizes), (len(choice.columns),)),
        dtype=dtype,
        meta=meta,
        token="read-npy",
    )


def _read_npy(path: str, columns: list[int], block_info: Any = None) -> Any:
    (start, stop), _ = block_info[None]["array-location"]
    return np.array(np.load(path, mmap_mode="r")[start:stop, columns])


def apply(
    function: Mapper,
    choice: Choice,
    out: Path,
    address: str,
    *,
    force: bool,
    quiet: bool,
    what: str,
) -> dict[str, Any]:
    """Apply a model on the workers, which write a Zarr array or Parquet files themselves."""
    import dask.dataframe as dd

    if out.suffix not in (".zarr", ".parquet"):
        msg = f"On a cluster results go to .zarr or .parquet, but {out.name} was given."
        raise CommandError(msg)
    begun = time.perf_counter()
    with connected(address, quiet=quiet), whole(out.resolve(), force=force) as beside:
        rows = dask_table(choice)
        result = function(rows)
        if out.suffix == ".zarr":
            zarr = need("zarr", "files")
            _with_sizes(result, rows).rechunk({0: "auto"}).to_zarr(str(beside))
            zarr.open_array(str(beside), mode="r+").attrs["software"] = SOFTWARE
        else:
            names = output_names(what, result.shape[1])
            dd.from_dask_array(result, columns=names).to_parquet(
                str(beside), write_index=False, custom_metadata={"software": SOFTWARE}
            )
    seconds, n = time.perf_counter() - begun, int(choice.table.n or 0)
    return {
        "out": str(out),
        "rows": n,
        "columns": int(result.shape[1]),
        "seconds": round(seconds, 3),
        "rows_per_second": round(n / seconds),
    }


def _with_sizes(result: Any, rows: Any) -> Any:
    """Return what was made of rows with the sizes of its chunks known; a frame's are counted."""
    import dask.array as da

    if not np.isnan(result.shape[0]):
        return result
    sizes = tuple(int(size) for size in rows.map_partitions(len).compute())
    return da.Array(result.dask, result.name, (sizes, result.chunks[1]), meta=result._meta)
