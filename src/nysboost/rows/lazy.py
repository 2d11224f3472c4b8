"""Functions of Dask tables, applied to their parts.

Dask is imported only when a collection is passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.arrays import Array, is_lazy

T = TypeVar("T")


LazyTable: TypeAlias = Any
"""A Dask array or data frame, or values that may be one; Dask has no types."""

Delayed: TypeAlias = Any
"""A value that Dask has not computed yet, or its name in the graph."""

LabelArray: TypeAlias = NDArray[Any]
"""An array of numbers, text or other objects."""


def map_rows(values: LazyTable, function: Callable[[Array], Array], dtype: object) -> LazyTable:
    """Apply a function to each row of a table, shape (n,); lazily if the table is lazy."""
    if not is_lazy(values):
        return function(values)
    return values.map_blocks(function, drop_axis=1, dtype=dtype)


def label_largest(scores: LazyTable, labels: LabelArray) -> LabelArray:
    """Return the label of the largest score of each row, shape (n,)."""

    def label(block: Array) -> LabelArray:
        largest: LabelArray = labels[np.argmax(block, axis=1)]
        return largest

    found: LabelArray = map_rows(scores, label, labels.dtype)
    return found


def code_table(
    X: LazyTable,
    function: Callable[..., Array],
    width: int,
    *shared: object,
    meta: Array | None = None,
) -> LazyTable:
    """Apply function(part, *shared) to each part of a lazy table; results have `width` columns."""
    if meta is None:
        meta = np.empty((0, width))
    nodes = [as_node(value, "codes") for value in shared]

    # parts of a data frame, or chunks of an array
    if hasattr(X, "map_partitions"):
        return X.map_partitions(function, *nodes, meta=meta)
    chunks = (X.chunks[0], (width,))
    return X.map_blocks(function, *nodes, chunks=chunks, dtype=meta.dtype, meta=meta)


def code_parts(
    X: LazyTable,
    function: Callable[..., Array],
    lengths: Sequence[int],
    width: int,
    of_parts: Sequence[object],
    *shared: object,
) -> LazyTable:
    """Apply function(part, its own value, *shared) to each part of a lazy table.

    `lengths` are the numbers of rows of the parts, and results have `width` columns of floats.
    """
    import dask.array as da
    from dask.delayed import delayed

    nodes = [as_node(value, "codes") for value in shared]
    call = delayed(function)

    blocks = []
    for part, own, n in zip(delayed_parts(X), of_parts, lengths, strict=True):
        coded = call(part, as_node(own, "part"), *nodes)
        block = da.from_delayed(coded, (n, width), dtype=np.float64)
        blocks.append(block)
    return da.concatenate(blocks)


def compute_parts(X: LazyTable, function: Callable[[LazyTable], T]) -> list[T]:
    """Compute function(part) for each part of a lazy table or array, on its worker."""
    import dask

    call = dask.delayed(function)
    results = [call(part) for part in delayed_parts(X)]
    return list(dask.compute(*results))


def delayed_parts(X: LazyTable) -> list[Delayed]:
    """Return the parts of a lazy table, or the chunks of an array with one column of chunks."""
    return list(np.ravel(X.to_delayed()))


def as_node(value: object, what: str) -> Delayed:
    """Return a value as a node of the graph, which each worker fetches once."""
    from dask.delayed import delayed

    return delayed(value, name=f"{what}-{uuid4().hex}", traverse=False)


@contextmanager
def counted_from(start: int, what: str, *, drops: bool = False) -> Iterator[None]:
    """Add to an error that names a row how rows are counted; `drops` if some are left out."""
    try:
        yield
    except ValueError as error:
        is_usual = start == 0 and not drops
        if is_usual or "row" not in str(error):
            raise
        counted = f"Rows are counted from row {start} of {what}"
        if drops:
            counted += ", without those that are left out"
        raise ValueError(f"{error} ({counted}.)") from error
