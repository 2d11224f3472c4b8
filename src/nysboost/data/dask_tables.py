"""Dask's arrays and data frames: recognised, and looked at once before a fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf, isnan
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.dask_rows import NO_VALUES, DaskRows, rows_at
from nysboost.data.lazy import as_node, merge_on_workers
from nysboost.data.rows import spread_indices
from nysboost.numerics import arrays, checks
from nysboost.numerics.arrays import Array, Floats, Indices, as_float, whereabouts


def dask_rows(X: Any, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    import dask.array as da

    if hasattr(X, "to_dask_array") and hasattr(X, "columns"):
        X = _frame_values(X, name)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}; of Dask's collections, arrays "
            "and data frames are what NysBoost works with: dask.array.from_delayed makes one."
        )
    checks.refuse_other_shapes(X, name)
    checks.refuse_complex(X, name)
    if X.dtype.kind not in "fiub":
        msg = f"No numbers: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float)."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    checks.refuse_empty(X, name)
    return DaskRows(X if X.numblocks[1] == 1 else X.rechunk({1: -1}), name)


def with_known_sizes(rows: DaskRows) -> DaskRows:
    """Return the rows with the size of each chunk known: counted, where Dask does not say."""
    import dask.array as da

    X = rows.data
    if not isnan(X.shape[0]):
        return rows
    counted = da.Array(X.dask, X.name, X.chunks, meta=X._meta)  # the user's own stays as it is
    return dask_rows(counted.compute_chunk_sizes(), rows.name)


def _frame_values(X: Any, name: str) -> Any:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]
    others = [str(c) for c, kind in zip(X.columns, kinds, strict=True) if kind not in "fiub"]
    if others:
        raise ValueError(
            f"{name} has columns that are no numbers: {', '.join(others)}. Leave them out, "
            f"{name}.drop(columns={others}), or encode them."
        )
    narrow = all(kind == np.float32 for kind in X.dtypes)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    meta = np.empty((0, len(X.columns)), dtype=dtype)
    return X.map_partitions(_values, dtype, meta=meta)


def _values(frame: Any, dtype: np.dtype[Any]) -> Array:
    values: Array = frame.to_numpy(dtype=dtype, na_value=np.nan)
    return values


HELD_BYTES = 2**27
"""So little is brought here with the first look: some methods look at all of few rows often."""


def survey_rows(rows: DaskRows, sizes: Sequence[int]) -> DaskRows:
    """Read every chunk once, and keep the rows of evenly spread samples of these sizes."""
    rows = with_known_sizes(rows)
    held = reduce(np.union1d, [spread_indices(rows.n, size) for size in (1, *sizes)])
    if rows.n * rows.n_features * rows.form.dtype.itemsize <= HELD_BYTES:
        held = np.arange(rows.n)
    node = as_node(rows.positions(held), "positions")
    looks = rows.send(_look, "survey-rows", None, NO_VALUES, local=node)
    largest, chunk, found = merge_on_workers(looks, _merge_looks, "survey-rows")
    if chunk < inf:
        bad = as_float(rows.data.blocks[chunk].compute())
        checks.refuse_non_finite(bad, int(rows.starts[chunk]), rows.name)
    if whereabouts(found) != whereabouts(rows.form):
        raise ValueError(
            f"Dask says that {rows.name} has chunks like {whereabouts(rows.form)}, but one is "
            f"{whereabouts(found)}. Say it with meta=, or turn them into NumPy arrays: "
            f"{rows.name}.map_blocks(numpy.asarray). Dask arrays of PyTorch tensors there are none."
        )
    surveyed = DaskRows(rows.data, rows.name, held, found)
    surveyed.__dict__["sizes"] = largest
    return surveyed


Look: TypeAlias = tuple[Floats, float, Array]
"""The largest of each column, the first chunk that is not finite, and the rows that are held."""


def _look(block: Array, local: list[Indices], block_id: tuple[int, ...]) -> Look:
    """Look at a block once: one task does all, so that no chunk has to travel to another."""
    sizes = checks.column_sizes(as_float(block)) if block.shape[0] else np.zeros(block.shape[1])
    bad = block_id[0] if not np.isfinite(sizes).all() else inf
    return sizes, bad, rows_at(block, local, block_id)


def _merge_looks(upper: Look, lower: Look) -> Look:
    found = arrays.stack_tables([upper[2], lower[2]])
    return np.maximum(upper[0], lower[0]), min(upper[1], lower[1]), found
