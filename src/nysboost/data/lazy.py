"""Values that are computed when they are asked for, as Dask's are, and methods that return such."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from nysboost.data.dask_graph import as_node, is_dask
from nysboost.numerics.arrays import Array, namespace

T = TypeVar("T")
Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(values: object) -> bool:
    """Whether values are somewhere else, and computed when they are asked for."""
    return is_dask(values)


def gather(values: Any) -> Any:
    """Return values that are lazy as an array in memory, and others as they are."""
    return values.compute() if is_dask(values) else values


def map_rows(values: Any, function: Callable[[Array], Array], dtype: Any) -> Any:
    """Return a function of each row of a table, shape (n,): lazy where the table is."""
    if not is_dask(values):
        return function(values)
    return values.map_blocks(function, drop_axis=1, dtype=dtype)


def code_table(X: Any, function: Callable[..., Array], width: int, *shared: Any) -> Any:
    """Return function(part, *shared) of each part of a lazy table or array, of `width` columns."""
    meta, nodes = np.empty((0, width)), [as_node(value, "codes") for value in shared]
    if hasattr(X, "map_partitions"):
        return X.map_partitions(function, *nodes, meta=meta)
    chunks = (X.chunks[0], (width,))
    return X.map_blocks(function, *nodes, chunks=chunks, dtype=np.float64, meta=meta)


def compute_parts(X: Any, function: Callable[[Any], T]) -> list[T]:
    """Return function(part) of each part of a lazy table or array, computed where it is."""
    import dask

    parts = np.ravel(X.to_delayed())
    return list(dask.compute(*[dask.delayed(function)(part) for part in parts]))


def by_blocks(method: Method) -> Method:
    """Let a method of a learner, rows ↦ an array, take an iterator of tables."""

    @wraps(method)
    def on_rows(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(X, Iterator):
            return method(self, X, *args, **kwargs)
        filled = (block for block in X if getattr(block, "shape", (len(block),))[0])
        return _join([method(self, block, *args, **kwargs) for block in filled])

    return on_rows  # type: ignore[return-value]


def _join(parts: list[Any]) -> Any:
    """Return the answers for the blocks of an iterator as one."""
    if not parts:
        msg = "X is an iterator that gave no block of rows."
        raise ValueError(msg)
    if isinstance(parts[0], tuple):
        return tuple(_join(list(part)) for part in zip(*parts, strict=True))
    return namespace(*parts).concat(parts) if len(parts) > 1 else parts[0]
