"""Rows of a Dask collection, which stay on their workers; tasks are sent to them.

A chunk of rows is a table in the memory of a worker, where the driver passes over it. `map` returns
the results of the chunks as a lazy array, `fold` reduces them to one small value by a tree of
merges on the workers, and `group` collects the rows of a group on one worker. Dask is imported only
when a collection is passed.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import chain, combinations_with_replacement, pairwise
from math import isnan
from typing import TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Selection,
    as_float,
    dense,
    empty,
    is_lazy,
    is_sparse,
    is_supported,
    namespace,
    take,
)
from nysboost.numerics.checks import refuse_empty, refuse_unequal, refuse_wrong_shape
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import limit_threads
from nysboost.rows.driver import Merge, Result, Task
from nysboost.rows.lazy import Delayed, LazyTable, as_node, delayed_parts
from nysboost.rows.pairs import PairTask
from nysboost.rows.rows import ArrayRows, GroupedBlock, GroupFunction, Rows, apply_to_groups

T = TypeVar("T")
Item = TypeVar("Item")

DaskArray: TypeAlias = LazyTable
"""A Dask array."""

TAKE_BYTES = 2**31  # rows that are brought here at once take no more than this
MERGED = 16  # values that one task merges: the tree over a million chunks has five levels
NO_VALUES = np.empty((0, 0), dtype=object)  # shows Dask that a task returns one value for a chunk


@dataclass(frozen=True, eq=False)
class DaskRows(ArrayRows):
    """Rows of a Dask array with one chunk of columns; n may be unknown (NaN)."""

    data: DaskArray
    name: str = "X"
    in_memory = False
    lazy = True

    @property
    def numbers_per_row(self) -> int:
        """Largest number of numbers in a row; sparse chunks have fewer."""
        return self.n_features

    @cached_property
    def template(self) -> Array:
        """A row of zeros of the same type as the chunks."""
        meta = self.data._meta
        shape = 1, self.n_features
        if is_sparse(meta):
            return as_float(csr_matrix(shape, dtype=self.data.dtype))

        if not is_supported(meta):
            meta = np.empty(0, dtype=self.data.dtype)
        row = empty(shape, meta)
        return as_float(namespace(row).zeros_like(row))

    @cached_property
    def starts(self) -> Indices:
        """The number of the first row of each chunk, and n."""
        return np.cumsum([0, *self.data.chunks[0]])

    def count(self) -> DaskRows:
        """Return the same rows with known n; chunk sizes are computed if necessary."""
        import dask.array as da

        X = self.data
        if not isnan(X.shape[0]):
            return self

        # compute_chunk_sizes changes its array: the user's own stays as it is
        own = da.Array(X.dask, X.name, X.chunks, meta=X._meta)
        counted = own.compute_chunk_sizes()
        return recognise_dask(counted, self.name)

    # Some of the rows

    def take(self, indices: Selection) -> Array:
        """Compute the rows at `indices` in floating point, unless they are already held."""
        if self.held is not None:
            numbers, table = self.held
            if len(numbers) == self.n:
                return take(table, indices)

        # how many there are is known before their numbers take memory
        asked: range | Indices
        if isinstance(indices, slice):
            asked = range(self.n)[indices]
        else:
            asked = indices
        self._refuse_many(len(asked))

        rows = np.asarray(asked, dtype=np.intp)
        held = self.take_held(rows)
        if held is not None:
            return held
        if len(rows) == 0:
            return self.template[:0]

        # each row is brought once, in rising order
        wanted, places = np.unique(rows, return_inverse=True)
        found: Array = self._lazy_rows(wanted).compute()
        return found[places]

    def _refuse_many(self, count: int) -> None:
        """Raise if this many rows would not fit in local memory."""
        size = count * self.n_features * self.template.dtype.itemsize
        if size > TAKE_BYTES:
            raise ValueError(
                f"{count} rows of {self.name} were asked for at once, {format_bytes(size)}, but "
                "rows of Dask stay on their workers. Use a method that looks at a sample, such as "
                f'"joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices`: lazy if `indices` are increasing, else computed."""
        if (np.diff(indices) > 0).all():
            return DaskRows(self._lazy_rows(indices), name=self.name)
        return ArrayRows(self.take(indices))

    def _lazy_rows(self, wanted: Indices) -> DaskArray:
        """Return the rows at increasing `wanted` as a small Dask array."""
        local = self.positions(wanted)
        counts = tuple(len(at) for at in local)
        few = self.send(
            rows_of_chunk,
            "sample-rows",
            (counts, (self.n_features,)),
            self.template[:0],
            local=as_node(local, "positions"),
        )

        # chunks without such rows are left out only here: each task reads its own chunk, and no
        # chunk travels
        return few.blocks[np.flatnonzero(counts).tolist()]

    def positions(self, wanted: Indices) -> list[Indices]:
        """Return the positions of increasing row numbers in each chunk."""
        bounds = np.searchsorted(wanted, self.starts[1:-1])
        parts = np.split(wanted, bounds)

        # counted from the first row of the chunk
        local = []
        for part, start in zip(parts, self.starts[:-1], strict=True):
            local.append(part - start)
        return local

    def pieces(self, size: int) -> Iterator[Array]:
        """Compute the rows chunk by chunk, as tables of at most `size` rows."""
        for i in range(self.data.numblocks[0]):
            chunk = self.data.blocks[i].compute()
            yield from ArrayRows(chunk).pieces(size)

    # Passes

    def map(self, task: Task, columns: int, *aligned: Array, out: object = None) -> DaskArray:
        """Return the task's results for all blocks of rows, lazily."""
        if out is not None:
            raise ValueError(
                "out is for rows in memory or on disk. The features of a Dask collection are a "
                "Dask array: write that, with transform(X).to_zarr(path) or "
                "dask.array.store(transform(X), out)."
            )
        task.prepare(self.template)  # which refuses rows that do not fit

        # what Dask is told of the results: an empty one, and the sizes of chunks
        shape = (0, columns)
        meta = empty(shape, dense(self.template))
        chunks = (self.data.chunks[0], (columns,))
        given = (task, columns)
        return self._on_chunks("map", task, given, meta, aligned, chunks, otherwise=meta)

    def fold(self, task: Task, merge: Merge[T], *aligned: Array) -> T:
        """Return the task's results for all blocks of rows, merged by a tree in their order."""
        given = (task, merge)
        parts = self._on_chunks("fold", task, given, NO_VALUES, aligned)
        value: T = merge_on_workers(delayed_parts(parts), merge)
        return value

    def group(
        self,
        task: Task,
        function: GroupFunction[Item, T],
        items: Sequence[Item],
        *aligned: Array,
    ) -> list[T | None]:
        """Return function(item, table) for each group, computed on one worker.

        Neighbouring groups form as many parts as there are chunks, each on one worker.
        """
        import dask

        # every chunk sorts its rows by groups, and cuts them into parts
        n_groups = len(items)
        n_parts = min(n_groups, self.data.numblocks[0])
        bounds = np.linspace(0, n_groups, n_parts + 1).astype(np.intp)
        given = (task, bounds)
        no_rows: list[list[GroupedBlock]] = [[]] * n_parts
        cut = self._on_chunks("sort_blocks", task, given, NO_VALUES, aligned, otherwise=no_rows)

        # a worker applies the function to the groups of one part, of all chunks
        chunks = delayed_parts(cut)
        apply = dask.delayed(_apply_to_part)
        work = as_node(function, "function")

        results = []
        for i, (first, stop) in enumerate(pairwise(bounds.tolist())):
            own = items[first:stop]
            parts = [chunk[i] for chunk in chunks]
            results.append(apply(work, own, first, parts))
        computed = dask.compute(*results)
        return list(chain(*computed))

    def fold_pairs(self, task: PairTask, *aligned: Array) -> Floats:
        """Return the sum of the results for all tiles of pairs of rows: take few, large chunks."""
        import dask

        # the chunks, each with the same rows of the other tables
        tables = [self.data, *map(self.align, aligned)]
        columns = map(delayed_parts, tables)
        chunks = list(zip(*columns, strict=True))

        # pairs of chunks on and above the diagonal
        fold = dask.delayed(_fold_pair)
        work = as_node(task, "task")
        numbers = range(len(chunks))
        parts = []
        for i, j in combinations_with_replacement(numbers, 2):
            lower = None
            if i != j:
                lower = chunks[j]
            parts.append(fold(work, chunks[i], lower))

        total: Floats = merge_on_workers(parts, operator.add)
        return total

    def _on_chunks(
        self,
        method: str,
        task: Task,
        given: tuple[object, ...],
        meta: Array,
        aligned: Sequence[Array],
        chunks: object = None,
        *,
        otherwise: object = None,
    ) -> DaskArray:
        """Return the results of a method of `ArrayRows` on each chunk, called with `given`.

        `otherwise` is the result of a chunk without rows; `chunks` and `meta` are as in `send`.
        """
        node = as_node(given, "task")
        return self.send(
            _on_chunk, task.name, chunks, meta, *aligned,
            method=method, given=node, otherwise=otherwise,
        )  # fmt: skip

    def send(
        self,
        function: Callable[..., object],
        token: str,
        chunks: object,
        meta: Array,
        *aligned: Array,
        **shared: Delayed,
    ) -> DaskArray:
        """Return function(chunk, *aligned, **shared) for all chunks, lazily.

        `chunks` are the sizes of the results, and `meta` is an empty result; None means one value
        each.
        """
        import dask.array as da

        if chunks is None:
            one_each = (1,) * self.data.numblocks[0]
            chunks = (one_each, (1,))
        return da.map_blocks(
            function,
            self.data,
            *map(self.align, aligned),
            chunks=chunks,
            dtype=meta.dtype,
            meta=meta,
            token=token,
            **shared,
        )

    def align(self, other: DaskArray | Array) -> DaskArray:
        """Return a table of n rows as a Dask array with the row chunks of this one."""
        import dask.array as da

        sizes = self.data.chunks[0]
        if not is_lazy(other):
            return da.from_array(other, chunks=(sizes, other.shape[1]))

        # columns of one data frame: if the rows have been counted, these are too
        is_uncounted = isnan(other.shape[0])
        if is_uncounted and other.numblocks[0] == len(sizes):
            chunks = (sizes, *other.chunks[1:])
            other = da.Array(other.dask, other.name, chunks, meta=other._meta)

        refuse_unequal(self.n, other.shape[0], "{} came with them", self.name)
        return other.rechunk({0: sizes, 1: -1})


# On the workers


def _on_chunk(
    chunk: Array,
    *aligned: Array,
    method: str,
    given: tuple[object, ...],
    otherwise: object,
    block_id: tuple[int, ...],
) -> object:
    """Call a method of the rows of a chunk, if it has rows; errors name the chunk."""
    if chunk.shape[0] == 0:
        return otherwise

    # Dask has a thread for each core already
    with limit_threads(1):
        try:
            return getattr(ArrayRows(chunk), method)(*given, *aligned)
        except ValueError as error:
            where = f"In chunk {block_id[0]}, with its rows counted from 0"
            raise ValueError(f"{where}: {error}") from error


def rows_of_chunk(chunk: Array, local: list[Indices], block_id: tuple[int, ...]) -> Array:
    """Return the wanted rows of a chunk in floating point."""
    wanted = local[block_id[0]]
    if len(wanted) and wanted[-1] >= chunk.shape[0]:
        raise ValueError(
            f"Chunk {block_id[0]} of a Dask array has {chunk.shape[0]} rows, fewer than the array "
            "says: pass chunks= with the real sizes to map_blocks, or call compute_chunk_sizes()."
        )
    return as_float(chunk[wanted])


def _apply_to_part(
    function: GroupFunction[Item, T],
    items: Sequence[Item],
    first: int,
    chunks: list[list[GroupedBlock]],
) -> list[T | None]:
    """Apply the function to the groups of a part; `first` is the number of its first group."""
    # groups are numbered from the first of the part
    blocks = [(numbers - first, table) for numbers, table in chain(*chunks)]
    with limit_threads(1):
        return apply_to_groups(function, items, blocks)


def _fold_pair(
    task: PairTask,
    upper: Sequence[Array],
    lower: Sequence[Array] | None,
) -> Floats | None:
    """Add up the tiles of two chunks, or of a chunk with itself if `lower` is None."""
    chunks = [upper]
    if lower is not None:
        chunks.append(lower)

    # one chunk with itself is loaded once, from which the task knows that tiles have mirror images
    loaded = []
    with limit_threads(1):
        for table, *others in chunks:
            if table.shape[0] == 0:
                return None
            loaded.append(task.load(as_float(table), *others))
        results = task.run(loaded[0], loaded[-1])
        return reduce(operator.add, results)


def merge_on_workers(values: list[Delayed], merge: Merge[T]) -> Result:
    """Merge lazy values by a tree of tasks, ignoring None."""
    import dask

    merge_some = dask.delayed(_merge)
    while len(values) > 1:
        starts = range(0, len(values), MERGED)
        values = [merge_some(merge, values[i : i + MERGED]) for i in starts]
    return values[0].compute()


def _merge(merge: Merge[T], values: Sequence[T | None]) -> T | None:
    """Merge values that are not None; return None if all are."""
    found = [value for value in values if value is not None]
    if not found:
        return None

    with limit_threads(1):
        return reduce(merge, found)


# What the user passed in


def refuse_other_collections(X: DaskArray, name: str = "X") -> None:
    """Raise if a value of Dask is neither an array nor a data frame."""
    import dask.array as da

    if isinstance(X, da.Array) or _is_frame(X):
        return
    raise TypeError(
        f"{name} is a {type(X).__module__}.{type(X).__name__}, but of Dask's collections only "
        "arrays and data frames are supported: dask.array.from_delayed makes an array."
    )


def _is_frame(X: DaskArray) -> bool:
    return hasattr(X, "_meta") and hasattr(X, "columns")


def recognise_dask(X: DaskArray, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    refuse_other_collections(X, name)
    if _is_frame(X):
        X = _frame_values(X, name)

    refuse_wrong_shape(X, name)
    if X.dtype.kind not in "fiub":
        msg = f"No numbers: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float)."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    refuse_empty(X, name)

    # a chunk has all columns of its rows
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return DaskRows(X, name=name)


def _frame_values(X: LazyTable, name: str) -> DaskArray:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    from dask.utils import M

    others = []
    for column, dtype in zip(X.columns, X.dtypes, strict=True):
        kind = getattr(dtype, "kind", "O")
        if kind not in "fiub":
            others.append(str(column))
    if others:
        raise ValueError(
            f"{name} has columns that are not numbers: {', '.join(others)}. Drop them, "
            f"{name}.drop(columns={others}), or encode them."
        )

    # float32 only if all columns are
    dtype = np.dtype(np.float64)
    if all(kind == np.float32 for kind in X.dtypes):
        dtype = np.dtype(np.float32)
    shape = (0, len(X.columns))
    meta = np.empty(shape, dtype)
    return X.map_partitions(M.to_numpy, dtype=dtype, na_value=np.nan, meta=meta)
