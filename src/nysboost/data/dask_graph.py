"""Graphs for Dask: values that every task shares, and trees that merge what tasks return.

Dask is imported when a collection comes in, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeGuard, TypeVar
from uuid import uuid4

import numpy as np

from nysboost.data.rows import as_float
from nysboost.numerics.arrays import Array, Indices
from nysboost.numerics.threads import on_one_core

T = TypeVar("T")

MERGED = 16
"""Values that one task merges: the tree over a million chunks has five levels."""


def is_dask(X: object) -> TypeGuard[Any]:
    """Whether X comes from Dask, found out without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def as_node(value: Any, what: str) -> Any:
    """Return a value as one node of the graph, which each worker fetches once."""
    from dask.delayed import delayed

    return delayed(value, name=f"{what}-{uuid4().hex}", traverse=False)


def tree(parts: Any, merge: Callable[[Any, Any], Any], task: str) -> Any:
    """Return the merger of all values as a Dask array without dimensions."""
    import dask.array as da

    return da.reduction(
        parts,
        chunk=_as_it_is,
        combine=_Merge(merge),
        aggregate=_Merge(merge),
        axis=(0, 1),
        concatenate=False,
        split_every={0: MERGED, 1: MERGED},
        dtype=object,
        meta=np.empty((), dtype=object),
        name=f"merge-{task}",
    )


def brought(tree: Any) -> Any:
    """Compute a value and bring it here; as an array's it would have to be an array."""
    return tree.to_delayed().item().compute()


def here(result: Any) -> Any:
    """Return an array of few columns as one that is here: a Dask array is computed."""
    return result.compute() if is_dask(result) else result


# What the tasks do


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


def apply(
    block: Array,
    *beside: Array,
    function: Callable[..., T],
    shared: Any,
    block_id: tuple[int, ...] = (0,),
) -> T:
    """Do what is to be done to a block."""
    with on_one_core():
        try:
            return function(shared, block, *beside)
        except ValueError as error:
            msg = f"In chunk {block_id[0]}, with its rows counted from 0: {error}"
            raise ValueError(msg) from error


def apply_to_pair(
    upper: Array, lower: Array, i: Any, j: Any, *, function: Callable[..., T], shared: Any
) -> T | None:
    """Do what is to be done to a pair of blocks; below the diagonal there is nothing to do."""
    if i[0] > j[0]:
        return None
    with on_one_core():
        return function(shared, upper, upper if i[0] == j[0] else lower)


def _as_it_is(part: Any, axis: Any, keepdims: Any) -> Any:  # noqa: ARG001
    return part


@dataclass(frozen=True)
class _Merge:
    """A merger of two values as one of the nested lists that Dask's reductions hand over."""

    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: Any, axis: Any, keepdims: Any) -> Any:  # noqa: ARG002
        with on_one_core():
            found = [part for part in _flat(parts) if part is not None]
            return reduce(self.merge, found) if found else None


def _flat(parts: Any) -> Iterator[Any]:
    if isinstance(parts, list):
        for part in parts:
            yield from _flat(part)
    else:
        yield parts
