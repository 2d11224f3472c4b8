"""Graphs for Dask: values that every task shares, and trees that merge what tasks return.

Dask is imported when a collection comes in, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, TypeGuard
from uuid import uuid4

import numpy as np

from nysboost.numerics.arrays import Array, Indices, as_float
from nysboost.numerics.resources import on_one_core

MERGED = 16
"""Values that one task merges: the tree over a million chunks has five levels."""


def is_dask(X: object) -> TypeGuard[Any]:
    """Whether X comes from Dask, found out without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_node(value: Any, what: str) -> Any:
    """Return a value as one node of the graph, which each worker fetches once."""
    from dask.delayed import delayed

    return delayed(value, name=f"{what}-{uuid4().hex}", traverse=False)


def merge_on_workers(parts: Any, merge: Callable[[Any, Any], Any], task: str) -> Any:
    """Return the merger of all values, the blocks of a Dask array, by a tree of tasks."""
    from dask.delayed import delayed

    values = list(np.ravel(parts.to_delayed()))
    while len(values) > 1:
        groups = [values[i : i + MERGED] for i in range(0, len(values), MERGED)]
        key = f"merge-{task}-{uuid4().hex}"
        values = [
            delayed(_merged, pure=False)(merge, group, dask_key_name=(key, i))
            for i, group in enumerate(groups)
        ]
    return values[0].compute()


def _merged(merge: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    with on_one_core():
        found = [value for value in values if value is not None]
        return reduce(merge, found) if found else None


def rows_at(block: Array, local: Sequence[Indices], block_id: tuple[int, ...]) -> Array:
    """Return those rows of a block that are wanted, in floating point."""
    wanted = local[block_id[0]]
    if len(wanted) and wanted[-1] >= block.shape[0]:
        msg = (
            f"Chunk {block_id[0]} of a Dask array has {block.shape[0]} rows, fewer than the array "
            "says: give map_blocks the chunks that come of it, or call compute_chunk_sizes()."
        )
        raise ValueError(msg)
    return as_float(block[wanted])
