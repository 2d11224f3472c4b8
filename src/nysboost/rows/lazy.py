"""Values that are not in memory: computed when they are asked for, as Dask's are, or in a file.

Dask is imported when a collection comes in, never before.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeGuard, TypeVar
from uuid import uuid4

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from nysboost.numerics.arrays import Array, library

T = TypeVar("T")


def is_lazy(values: object) -> TypeGuard[Any]:
    """Whether values are computed when they are asked for: Dask's, which is not imported here."""
    return library(values) in ("dask", "dask_expr")


def gather(values: T, like: Any = None) -> T:
    """Return values that are lazy as an array in memory, unless `like` is lazy itself."""
    found: T = values.compute() if is_lazy(values) and not is_lazy(like) else values
    return found


def map_rows(values: Any, function: Callable[[Array], Array], dtype: Any) -> Any:
    """Return a function of each row of a table, shape (n,): lazy where the table is."""
    if not is_lazy(values):
        return function(values)
    return values.map_blocks(function, drop_axis=1, dtype=dtype)


def label_largest(scores: Any, labels: NDArray[Any]) -> NDArray[Any]:
    """Return the label of the largest score of each row, shape (n,)."""

    def label(block: Array) -> NDArray[Any]:
        largest: NDArray[Any] = labels[np.argmax(block, axis=1)]
        return largest

    found: NDArray[Any] = map_rows(scores, label, labels.dtype)
    return found


def code_table(
    X: Any, function: Callable[..., Array], width: int, *shared: Any, meta: Any = None
) -> Any:
    """Return function(part, *shared) of each part of a lazy table or array, of `width` columns."""
    if meta is None:
        meta = np.empty((0, width))
    nodes = [as_node(value, "codes") for value in shared]
    if hasattr(X, "map_partitions"):
        return X.map_partitions(function, *nodes, meta=meta)
    chunks = (X.chunks[0], (width,))
    return X.map_blocks(function, *nodes, chunks=chunks, dtype=meta.dtype, meta=meta)


def code_parts(
    X: Any,
    function: Callable[..., Array],
    lengths: Sequence[int],
    width: int,
    of_parts: Sequence[Any],
    *shared: Any,
) -> Any:
    """Return function(part, its own value, *shared) of each part of a lazy table, side by side.

    Parts have so many rows as `lengths` says, and the results `width` columns of floats.
    """
    import dask.array as da
    from dask.delayed import delayed

    nodes = [as_node(value, "codes") for value in shared]
    call = delayed(function)
    blocks = []
    for part, own, n in zip(np.ravel(X.to_delayed()), of_parts, lengths, strict=True):
        coded = call(part, as_node(own, "part"), *nodes)
        blocks.append(da.from_delayed(coded, (n, width), dtype=np.float64))
    return da.concatenate(blocks)


def compute_parts(X: Any, function: Callable[[Any], T]) -> list[T]:
    """Return function(part) of each part of a lazy table or array, computed where it is."""
    import dask

    parts = np.ravel(X.to_delayed())
    return list(dask.compute(*[dask.delayed(function)(part) for part in parts]))


def as_node(value: Any, what: str) -> Any:
    """Return a value as one node of the graph, which each worker fetches once."""
    from dask.delayed import delayed

    return delayed(value, name=f"{what}-{uuid4().hex}", traverse=False)


@contextmanager
def counted_from(start: int, what: str) -> Iterator[None]:
    """Let an error that names a row say from which row of the whole it counts."""
    try:
        yield
    except ValueError as error:
        if start and "row" in str(error):
            msg = f"{error} (Rows are counted from row {start} of {what}.)"
            raise ValueError(msg) from error
        raise


MemoryMap: TypeAlias = np.memmap[Any, Any]


def find_map(array: object) -> MemoryMap | None:
    """Return the memory map that the array is, or is a view of; None if it is not in a file."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner.base, mmap.mmap):
            return owner if isinstance(owner, np.memmap) else None
        owner = owner.base
    return None


def release_pages(array: NDArray[np.generic]) -> None:
    """Let the system drop the array's pages; what was written to them stays in the file."""
    owner = find_map(array)
    if owner is None or owner.mode == "c" or array.size == 0:
        return
    file = owner.base
    if not isinstance(file, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return

    # the array's bytes, counted from the start of the map, and from the start of a page
    origin, _ = byte_bounds(np.frombuffer(file, dtype=np.uint8))
    low, high = byte_bounds(array)
    first = (low - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, first, high - origin - first)
