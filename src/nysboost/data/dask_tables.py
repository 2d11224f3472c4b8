"""Dask's arrays and data frames, recognised: tables of numbers, in chunks of rows."""

from __future__ import annotations

import operator
from math import isnan
from typing import Any

import numpy as np

from nysboost.data.dask_rows import DaskRows
from nysboost.numerics.arrays import Array


def dask_rows(X: Any, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    import dask.array as da

    if hasattr(X, "to_dask_array") and hasattr(X, "columns"):
        X = _frame_values(X, name)
    if not isinstance(X, da.Array):
        msg = (
            f"{name} is a {type(X).__module__}.{type(X).__name__}; of Dask's collections, arrays "
            "and data frames are what NysBoost works with: dask.array.from_delayed makes one."
        )
        raise TypeError(msg)
    if X.ndim != 2:
        msg = (
            f"{name} has shape {X.shape}; a table of shape (n, d) is needed. "
            "Reshape your data: X[:, None] makes one feature of a vector."
        )
        raise ValueError(msg)
    if X.dtype.kind not in "fiub":
        kind = "Complex data not supported" if X.dtype.kind == "c" else "No numbers"
        msg = f"{kind}: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float), say."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    if 0 in X.shape:
        msg = f"{name} has shape {X.shape}: there is nothing to approximate."
        raise ValueError(msg)
    return DaskRows(X if X.numblocks[1] == 1 else X.rechunk({1: -1}), name)


def with_known_sizes(rows: DaskRows) -> DaskRows:
    """Return the rows with the size of each chunk known: counted, where Dask does not say."""
    import dask.array as da

    X = rows.data
    if not isnan(X.shape[0]):
        return rows
    sizes = rows.fold(_count, operator.add, None, task="count-rows")
    return dask_rows(da.Array(X.dask, X.name, (sizes, X.chunks[1]), meta=X._meta), rows.name)


def _frame_values(X: Any, name: str) -> Any:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]
    others = [str(c) for c, kind in zip(X.columns, kinds, strict=True) if kind not in "fiub"]
    if others:
        msg = (
            f"{name} has columns that are no numbers: {', '.join(others)}. Leave them out, "
            f"{name}.drop(columns={others}), or encode them."
        )
        raise ValueError(msg)
    narrow = all(kind == np.float32 for kind in X.dtypes)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    meta = np.empty((0, len(X.columns)), dtype=dtype)
    return X.map_partitions(_values, dtype, meta=meta)


def _values(frame: Any, dtype: np.dtype[Any]) -> Array:
    values: Array = frame.to_numpy(dtype=dtype, na_value=np.nan)
    return values


def _count(_: None, block: Array) -> tuple[int, ...]:
    return (int(block.shape[0]),)
