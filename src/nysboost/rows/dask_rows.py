"""Rows of a Dask collection: they stay where they are, and tasks go to them.

A chunk of rows is a table in a worker's memory, over which the driver passes there. `map` makes a
lazy array of what comes of the chunks, `fold` reduces it to one small value, by a tree of merges
on the workers, and in `group` rows of a group meet on one of them. Dask is imported when a
collection comes in, never before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain, combinations_with_replacement, pairwise
from math import inf, isnan
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    as_float,
    column_sizes,
    dense,
    describe_location,
    empty,
    is_sparse,
    is_supported,
    namespace,
    stack_tables,
    take,
)
from nysboost.numerics.budget import spaced_indices
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import limit_threads
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.checks import refuse_empty, refuse_non_finite, refuse_unequal, refuse_wrong_shape
from nysboost.rows.driver import PairTask, Task
from nysboost.rows.groups import GroupedBlock, apply_to_groups
from nysboost.rows.lazy import as_node, is_lazy
from nysboost.rows.rows import Rows

T = TypeVar("T")
Item = TypeVar("Item")

DaskArray: TypeAlias = Any
"""A Dask array; Dask has no types."""

Delayed: TypeAlias = Any
"""A value that Dask has not computed yet, or its name in the graph."""

TAKE_BYTES = 2**31  # rows that are brought here at once take no more than this
HELD_BYTES = 2**27  # so few bytes come here with the scan: some methods take few rows often
MERGED = 16  # values that one task merges: the tree over a million chunks has five levels
NO_VALUES = np.empty((0, 0), dtype=object)  # shows Dask that a task returns one value for a chunk


@dataclass(frozen=True, eq=False)
class DaskRows(ArrayRows):
    """Rows of a Dask array that has one chunk of features; n may be unknown (NaN)."""

    data: DaskArray
    name: str = "X"
    in_memory = False
    lazy = True

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes, at most: sparse chunks take fewer."""
        return self.n_features

    @cached_property
    def template(self) -> Array:
        """A row of zeros like those of the chunks, from what Dask knows of them."""
        meta = self.data._meta
        shape = 1, self.n_features
        if is_sparse(meta):
            return as_float(csr_matrix(shape, dtype=self.data.dtype))

        reference = meta if is_supported(meta) else np.empty(0, dtype=self.data.dtype)
        xp = namespace(reference)
        return as_float(xp.zeros_like(empty(shape, reference)))

    @cached_property
    def starts(self) -> Indices:
        """The number of the first row of each chunk, and n."""
        return np.cumsum([0, *self.data.chunks[0]])

    def count(self) -> DaskRows:
        """Return the same rows with n known, which computes the sizes of chunks if needed."""
        import dask.array as da

        X = self.data
        if not isnan(X.shape[0]):
            return self
        # compute_chunk_sizes changes its array: the user's own stays as it is
        own = da.Array(X.dask, X.name, X.chunks, meta=X._meta)
        return recognise_dask(own.compute_chunk_sizes(), self.name)

    # Some of the rows

    def take(self, indices: Indices | slice) -> Array:
        """Bring the rows at `indices` here, in floating point, unless they are held already."""
        if self.held is not None and len(self.held[0]) == self.n:
            return take(self.held[1], indices)

        asked = range(*indices.indices(self.n)) if isinstance(indices, slice) else indices
        self._refuse_many(len(asked))
        rows = np.asarray(asked, dtype=np.intp)
        held = self.take_held(rows)
        if held is not None:
            return held
        if len(rows) == 0:
            return self.template[:0]

        wanted, places = np.unique(rows, return_inverse=True)
        found: Array = self._lazy_rows(wanted).compute()
        return found[places]

    def _refuse_many(self, count: int) -> None:
        """Raise if so many rows would not fit here."""
        size = count * self.n_features * self.template.dtype.itemsize
        if size > TAKE_BYTES:
            raise ValueError(
                f"{count} rows of {self.name} were asked for at once, {format_bytes(size)}, but "
                "rows of Dask stay on their workers. Use a method that looks at a sample, such as "
                f'"joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices`: left where they are if in rising order, else here."""
        if (np.diff(indices) > 0).all():
            return DaskRows(self._lazy_rows(indices), name=self.name)
        return ArrayRows(self.take(indices))

    def _lazy_rows(self, wanted: Indices) -> DaskArray:
        """Return the rows at `wanted`, in rising order, as a Dask array of few rows."""
        local = self.positions(wanted)
        counts = tuple(len(at) for at in local)
        few = self.send(
            _rows_of_chunk,
            "sample-rows",
            (counts, (self.n_features,)),
            self.template[:0],
            local=as_node(local, "positions"),
        )
        # chunks without such rows are left out only here: each task reads its own chunk, and no
        # chunk travels
        return few.blocks[np.flatnonzero(counts).tolist()]

    def positions(self, wanted: Indices) -> list[Indices]:
        """Return where rows, given in rising order, stand in each chunk."""
        parts = np.split(wanted, np.searchsorted(wanted, self.starts[1:-1]))
        return [part - start for part, start in zip(parts, self.starts[:-1], strict=True)]

    def pieces(self, size: int) -> Iterator[Array]:
        """Bring the rows here, one chunk at a time, as tables of at most `size` rows."""
        for i in range(self.data.numblocks[0]):
            chunk = self.data.blocks[i].compute()
            yield from ArrayRows(chunk).pieces(size)

    # Passes

    def map(self, task: Task, columns: int, *aligned: Array, out: object = None) -> DaskArray:
        """Return the task's results for all blocks of rows, computed when they are needed."""
        if out is not None:
            raise ValueError(
                "out is for rows in memory or on disk. The features of a Dask collection are a "
                "Dask array: write that, with transform(X).to_zarr(path) or "
                "dask.array.store(transform(X), out)."
            )
        task.prepare(self.template)  # which refuses rows that do not fit
        meta = empty((0, columns), dense(self.template))
        chunks = self.data.chunks[0], (columns,)
        return self._on_chunks("map", task, (task, columns), meta, aligned, chunks, otherwise=meta)

    def fold(self, task: Task, merge: Callable[[T, T], T], *aligned: Array) -> T:
        """Return the task's results for all blocks of rows, merged by a tree in their order."""
        parts = self._on_chunks("fold", task, (task, merge), NO_VALUES, aligned)
        value: T = _merge_on_workers(_delayed(parts), merge)
        return value

    def group(
        self,
        task: Task,
        function: Callable[[Item, Array], T],
        items: Sequence[Item],
        *aligned: Array,
    ) -> list[T | None]:
        """Return function(item, table) of each group, computed where its rows meet.

        Neighbouring groups, as many parts of them as there are chunks, meet on one worker.
        """
        import dask

        # every chunk sorts its rows by groups, and cuts them into parts
        n_parts = min(len(items), self.data.numblocks[0])
        bounds = np.linspace(0, len(items), n_parts + 1).astype(np.intp)
        no_rows: list[list[GroupedBlock]] = [[]] * n_parts
        cut = self._on_chunks(
            "sort_blocks", task, (task, bounds), NO_VALUES, aligned, otherwise=no_rows
        )

        # a worker applies the function to the groups of one part, of all chunks
        chunks = _delayed(cut)
        apply = dask.delayed(_apply_to_part)
        work = as_node(function, "function")
        results = []
        for i, (first, stop) in enumerate(pairwise(bounds.tolist())):
            parts = [chunk[i] for chunk in chunks]
            results.append(apply(work, items[first:stop], first, parts))
        return list(chain(*dask.compute(*results)))

    def fold_pairs(self, task: PairTask, *aligned: Array) -> Floats:
        """Return the sum of the results for all tiles of pairs of rows: take few, large chunks."""
        import dask

        tables = [self.data, *map(self.align, aligned)]
        chunks = list(zip(*map(_delayed, tables), strict=True))
        fold = dask.delayed(_fold_pair)
        work = as_node(task, "task")

        parts = []
        for i, j in combinations_with_replacement(range(len(chunks)), 2):
            lower = None if i == j else chunks[j]
            parts.append(fold(work, chunks[i], lower))
        total: Floats = _merge_on_workers(parts, operator.add)
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
        """Return function(chunk, *aligned, **shared) of all chunks, not yet computed.

        `chunks` are the sizes of the results and `meta` is an empty one; None is one value each.
        """
        import dask.array as da

        one_each = (1,) * self.data.numblocks[0], (1,)
        return da.map_blocks(
            function,
            self.data,
            *map(self.align, aligned),
            chunks=chunks or one_each,
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

        if isnan(other.shape[0]) and other.numblocks[0] == len(sizes):
            # columns of one data frame: if the rows have been counted, these are too
            chunks = sizes, *other.chunks[1:]
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
    """Return what a method of the chunk's rows returns, if there are any; errors say where."""
    if chunk.shape[0] == 0:
        return otherwise
    with limit_threads(1):
        try:
            return getattr(ArrayRows(chunk), method)(*given, *aligned)
        except ValueError as error:
            where = f"In chunk {block_id[0]}, with its rows counted from 0"
            raise ValueError(f"{where}: {error}") from error


def _rows_of_chunk(chunk: Array, local: list[Indices], block_id: tuple[int, ...]) -> Array:
    """Return those rows of a chunk that are wanted, in floating point."""
    wanted = local[block_id[0]]
    if len(wanted) and wanted[-1] >= chunk.shape[0]:
        raise ValueError(
            f"Chunk {block_id[0]} of a Dask array has {chunk.shape[0]} rows, fewer than the array "
            "says: pass chunks= with the real sizes to map_blocks, or call compute_chunk_sizes()."
        )
    return as_float(chunk[wanted])


def _apply_to_part(
    function: Callable[[Item, Array], T],
    items: Sequence[Item],
    first: int,
    chunks: list[list[GroupedBlock]],
) -> list[T | None]:
    """Apply the function to the groups of a part, of which the first has the number `first`."""
    blocks = [(numbers - first, table) for numbers, table in chain(*chunks)]
    with limit_threads(1):
        return apply_to_groups(function, items, blocks)


def _fold_pair(
    task: PairTask, upper: Sequence[Array], lower: Sequence[Array] | None
) -> Floats | None:
    """Add up the tiles of two chunks, or of one with itself, for which `lower` is None."""
    chunks = [upper] if lower is None else [upper, lower]
    if any(table.shape[0] == 0 for table, *_ in chunks):
        return None

    with limit_threads(1):
        loaded = [task.load(as_float(table), *others) for table, *others in chunks]
        return reduce(operator.add, task.run(loaded[0], loaded[-1]))


def _delayed(chunks: DaskArray) -> list[Delayed]:
    """Return the chunks of an array of one column of them, each as a value to come."""
    return list(chunks.to_delayed()[:, 0])


def _merge_on_workers(values: list[Delayed], merge: Callable[[T, T], T]) -> Any:
    """Return the merger of values to come, those that are None left out, by a tree of tasks."""
    import dask

    merge_some = dask.delayed(_merge)
    while len(values) > 1:
        starts = range(0, len(values), MERGED)
        values = [merge_some(merge, values[i : i + MERGED]) for i in starts]
    return values[0].compute()


def _merge(merge: Callable[[T, T], T], values: Sequence[T | None]) -> T | None:
    """Return the merger of values that are not None, or None if all are."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    with limit_threads(1):
        return reduce(merge, found)


# What the user passed in


def recognise_dask(X: DaskArray, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    import dask.array as da

    if hasattr(X, "_meta") and hasattr(X, "columns"):
        X = _frame_values(X, name)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, but of Dask's collections only "
            "arrays and data frames are supported: dask.array.from_delayed makes an array."
        )
    refuse_wrong_shape(X, name)
    if X.dtype.kind not in "fiub":
        msg = f"No numbers: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float)."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    refuse_empty(X, name)

    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return DaskRows(X, name=name)


def _frame_values(X: Any, name: str) -> DaskArray:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    from dask.utils import M

    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]
    others = [str(c) for c, kind in zip(X.columns, kinds, strict=True) if kind not in "fiub"]
    if others:
        raise ValueError(
            f"{name} has columns that are not numbers: {', '.join(others)}. Drop them, "
            f"{name}.drop(columns={others}), or encode them."
        )
    narrow = all(kind == np.float32 for kind in X.dtypes)
    meta = np.empty((0, len(X.columns)), np.float32 if narrow else np.float64)
    return X.map_partitions(M.to_numpy, dtype=meta.dtype, na_value=np.nan, meta=meta)


# The first look at all rows


@dataclass(frozen=True)
class Scan:
    """What a scan finds in chunks: largest values, the first bad chunk, and sampled rows.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        The largest absolute value of each column, NaN if there is a NaN.
    bad_chunk : float
        The first chunk with NaN or infinity; infinity if there is none.
    found : array of shape (s, d)
        The rows that were asked for.
    """

    sizes: Floats
    bad_chunk: float
    found: Array


def survey_rows(rows: DaskRows, samples: Sequence[int]) -> DaskRows:
    """Read every chunk once, and hold the rows of evenly spread samples of these sizes."""
    rows = rows.count()
    held = _rows_to_hold(rows, samples)

    positions = as_node(rows.positions(held), "positions")
    scans = rows.send(_scan_chunk, "survey-rows", None, NO_VALUES, local=positions)
    scan: Scan = _merge_on_workers(_delayed(scans), _merge_scans)

    if scan.bad_chunk < inf:
        bad = int(scan.bad_chunk)
        values = as_float(rows.data.blocks[bad].compute())
        refuse_non_finite(values, int(rows.starts[bad]), rows.name)

    said = describe_location(rows.template)
    real = describe_location(scan.found)
    if real != said:
        raise ValueError(
            f"Dask says that {rows.name} has chunks like {said}, but one is {real}. Pass meta= "
            f"when the array is made, or make NumPy arrays: {rows.name}.map_blocks(numpy.asarray). "
            "Dask arrays of PyTorch tensors are not supported."
        )
    return replace(rows, sizes=scan.sizes, held=(held, scan.found))


def _rows_to_hold(rows: DaskRows, samples: Sequence[int]) -> Indices:
    """Return the numbers of the rows that a scan brings here: all of a small table."""
    size = rows.n * rows.n_features * rows.template.dtype.itemsize
    if size <= HELD_BYTES:
        return np.arange(rows.n)
    spread = [spaced_indices(rows.n, count) for count in (1, *samples)]
    return reduce(np.union1d, spread)


def _scan_chunk(chunk: Array, local: list[Indices], block_id: tuple[int, ...]) -> Scan:
    """Scan a chunk once: one task does all, so that no chunk has to travel to another."""
    sizes = np.zeros(chunk.shape[1])
    if chunk.shape[0]:
        sizes = column_sizes(as_float(chunk))
    bad_chunk = inf if np.isfinite(sizes).all() else block_id[0]
    return Scan(sizes, bad_chunk, _rows_of_chunk(chunk, local, block_id))


def _merge_scans(upper: Scan, lower: Scan) -> Scan:
    """Return the scan of the chunks of both."""
    return Scan(
        np.maximum(upper.sizes, lower.sizes),
        min(upper.bad_chunk, lower.bad_chunk),
        stack_tables([upper.found, lower.found]),
    )
