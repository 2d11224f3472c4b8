"""Rows of a Dask collection: they stay where they are, and tasks go to them.

A chunk of rows is a table in a worker's memory, over which the driver passes there. `map` makes a
lazy array of what comes of the chunks, `fold` reduces it to one small value, by a tree of merges
on the workers, and in `group` rows of a group meet on one of them. Dask is imported when a
collection comes in, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain, combinations_with_replacement, pairwise
from math import inf, isnan
from typing import Any, TypeAlias, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, as_float
from nysboost.numerics.devices import describe_location
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.magnitudes import column_sizes
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.threads import limit_threads
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.checks import refuse_empty, refuse_non_finite, refuse_unequal, refuse_wrong_shape
from nysboost.rows.driver import PairTask, Task
from nysboost.rows.lazy import as_node, is_lazy
from nysboost.rows.rows import Blocks, Rows, apply_to_groups

T = TypeVar("T")

TAKE_BYTES = 2**31  # rows that are brought here at once take no more than this
HELD_BYTES = 2**27  # so few bytes come here with the scan: some methods take few rows often
MERGED = 16  # values that one task merges: the tree over a million chunks has five levels
NO_VALUES = np.empty((0, 0), dtype=object)  # shows Dask that a task returns one value for a chunk


@dataclass(frozen=True, eq=False)
class DaskRows(ArrayRows):
    """Rows of a Dask array that has one chunk of features; n may be unknown (NaN)."""

    data: Any
    name: str = "X"
    in_memory = False
    lazy = True

    @property
    def numbers_per_row(self) -> int:
        return self.n_features  # of a sparse row at most so many

    @cached_property
    def template(self) -> Array:
        meta, shape = self.data._meta, (1, self.n_features)
        if arrays.is_sparse(meta):
            return as_float(csr_matrix(shape, dtype=self.data.dtype))
        reference = meta if arrays.is_supported(meta) else np.empty(0, dtype=self.data.dtype)
        return as_float(arrays.namespace(reference).zeros_like(arrays.empty(shape, reference)))

    @cached_property
    def starts(self) -> Indices:
        """The number of the first row of each chunk, and n."""
        return np.cumsum([0, *self.data.chunks[0]])

    def count(self) -> DaskRows:
        import dask.array as da

        X = self.data
        if not isnan(X.shape[0]):
            return self
        own = da.Array(X.dask, X.name, X.chunks, meta=X._meta)  # the user's stays as it is
        return recognise_dask(own.compute_chunk_sizes(), self.name)

    # Some of the rows

    def take(self, indices: Indices | slice) -> Array:
        if self.held is not None and len(self.held[0]) == self.n:
            return arrays.take(self.held[1], indices)
        asked = range(*indices.indices(self.n)) if isinstance(indices, slice) else indices
        size = len(asked) * self.n_features * self.template.dtype.itemsize
        if size > TAKE_BYTES:
            raise ValueError(
                f"{len(asked)} rows of {self.name} were asked for at once, {format_bytes(size)}, "
                "but Dask's rows stay on their workers. Take a method that looks at a sample, such "
                f'as "joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )
        held = self.take_held(np.asarray(asked, dtype=np.intp))
        if held is not None:
            return held
        wanted, places = np.unique(asked, return_inverse=True)
        return self._lazy_rows(wanted).compute()[places] if len(wanted) else self.template[:0]

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices`, left where they are if in rising order."""
        if (np.diff(indices) > 0).all():
            return DaskRows(self._lazy_rows(indices), name=self.name)
        return ArrayRows(self.take(indices))

    def _lazy_rows(self, wanted: Indices) -> Any:
        """Return the rows at `wanted`, in rising order, as a Dask array of few rows."""
        local = self.positions(wanted)
        chunks, node = (tuple(map(len, local)), (self.n_features,)), as_node(local, "positions")
        few = self.send(_rows_of_chunk, "sample-rows", chunks, self.template[:0], local=node)
        # the choice comes after: so a task reads its chunk itself, and no chunk travels
        return few.blocks[[i for i, at in enumerate(local) if len(at)]]

    def positions(self, wanted: Indices) -> list[Indices]:
        """Return where rows, given in rising order, stand in each chunk."""
        parts = np.split(wanted, np.searchsorted(wanted, self.starts[1:-1]))
        return [part - start for part, start in zip(parts, self.starts[:-1], strict=True)]

    def pieces(self, size: int) -> Iterator[Array]:
        """Bring the rows here, one chunk at a time, as tables of at most `size` rows."""
        for i in range(self.data.numblocks[0]):
            yield from ArrayRows(self.data.blocks[i].compute()).pieces(size)

    # Passes

    def map(self, task: Task, columns: int, *aligned: Any, out: Any = None) -> Any:
        """Return the task's results for all blocks of rows, computed when they are asked for."""
        if out is not None:
            raise ValueError(
                "The features of a Dask collection are a Dask array, which says itself where it "
                "goes: transform(X).to_zarr(path), or dask.array.store(transform(X), out)."
            )
        task.prepare(self.template)  # which refuses rows that do not fit
        chunks = self.data.chunks[0], (columns,)
        meta = arrays.empty((0, columns), arrays.dense(self.template))
        how = {"method": "map", "given": as_node((task, columns), "task"), "otherwise": meta}
        return self.send(_on_chunk, task.name, chunks, meta, *aligned, **how)

    def fold(self, task: Task, merge: Callable[[T, T], T], *aligned: Any) -> T:
        """Return the task's results for all blocks of rows, merged by a tree in their order."""
        how = {"method": "fold", "given": as_node((task, merge), "task"), "otherwise": None}
        parts = self.send(_on_chunk, task.name, None, NO_VALUES, *aligned, **how)
        value: T = _merge_on_workers(_delayed(parts), merge)
        return value

    def group(
        self, task: Task, function: Callable[[Any, Array], T], items: Sequence[Any], *aligned: Any
    ) -> list[T | None]:
        """Return function(item, table) of each group, computed where its rows meet.

        Neighbouring groups, as many parts of them as there are chunks, meet on one worker.
        """
        import dask

        parts = min(len(items), self.data.numblocks[0])
        bounds = np.linspace(0, len(items), parts + 1).astype(np.intp)
        given = as_node((task, bounds), "task")
        how = {"method": "sort_blocks", "given": given, "otherwise": [[]] * parts}
        cut = self.send(_on_chunk, task.name, None, NO_VALUES, *aligned, **how)
        chunks, work = _delayed(cut), as_node(function, "function")
        found = [
            dask.delayed(_apply_to_part)(work, items[a:b], a, [chunk[i] for chunk in chunks])
            for i, (a, b) in enumerate(pairwise(bounds.tolist()))
        ]
        return list(chain(*dask.compute(*found)))

    def fold_pairs(self, task: PairTask, merge: Callable[[T, T], T], *aligned: Any) -> T:
        """Return the merged results for all tiles of pairs of rows: take few, large chunks."""
        import dask

        tables = [self.data, *map(self.align, aligned)]
        chunks = list(zip(*map(_delayed, tables), strict=True))
        fold = dask.delayed(_fold_pair)
        work = as_node((task, merge), "task")
        pairs = combinations_with_replacement(range(len(chunks)), 2)
        parts = [fold(work, chunks[i], None if i == j else chunks[j]) for i, j in pairs]
        value: T = _merge_on_workers(parts, merge)
        return value

    def send(
        self, function: Callable[..., Any], token: str, chunks: Any, meta: Any, *aligned: Any,
        **shared: Any,
    ) -> Any:  # fmt: skip
        """Return function(chunk, *beside, **shared) of all chunks: lazy, one value each if None."""
        import dask.array as da

        others, each = map(self.align, aligned), ((1,) * self.data.numblocks[0], (1,))
        how = {"chunks": chunks or each, "dtype": meta.dtype, "meta": meta, "token": token}
        return da.map_blocks(function, self.data, *others, **how, **shared)

    def align(self, other: Any) -> Any:
        """Return a table of n rows as a Dask array with the row chunks of this one."""
        import dask.array as da

        if not is_lazy(other):
            return da.from_array(other, chunks=(self.data.chunks[0], other.shape[1]))
        sizes = self.data.chunks[0]
        if isnan(other.shape[0]) and other.numblocks[0] == len(sizes):
            # columns of one data frame: where the rows have been counted, these are too
            other = da.Array(other.dask, other.name, (sizes, *other.chunks[1:]), meta=other._meta)
        refuse_unequal(self.n, other.shape[0], "{} came with them", self.name)
        return other.rechunk({0: sizes, 1: -1})


# On the workers


def _on_chunk(
    chunk: Array,
    *aligned: Array,
    method: str,
    given: Any,
    otherwise: Any,
    block_id: tuple[int, ...],
) -> Any:
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
            "says: give map_blocks the chunks that come of it, or call compute_chunk_sizes()."
        )
    return as_float(chunk[wanted])


def _apply_to_part(function: Any, items: Any, first: int, chunks: list[Blocks]) -> list[Any]:
    with limit_threads(1):
        blocks = [(numbers - first, table) for part in chunks for numbers, table in part]
        return apply_to_groups(function, items, blocks)


def _fold_pair(work: Any, upper: Sequence[Any], lower: Sequence[Any] | None) -> Any:
    """Fold over the tiles of two chunks, or of one with itself."""
    task, merge = work
    if 0 in (upper[0].shape[0], (lower or upper)[0].shape[0]):
        return None
    with limit_threads(1):
        left = task.load(task.shared, as_float(upper[0]), *upper[1:])
        right = task.load(task.shared, as_float(lower[0]), *lower[1:]) if lower else left
        return reduce(merge, task.run(left, right))


def _delayed(chunks: Any) -> list[Any]:
    """Return the chunks of an array of one column of them, each as a value to come."""
    return list(chunks.to_delayed()[:, 0])


def _merge_on_workers(values: list[Any], merge: Callable[[Any, Any], Any]) -> Any:
    """Return the merger of values to come, those that are None left out, by a tree of tasks."""
    import dask

    merge_some = dask.delayed(_merge)
    while len(values) > 1:
        values = [merge_some(merge, values[i : i + MERGED]) for i in range(0, len(values), MERGED)]
    return values[0].compute()


def _merge(merge: Callable[[Any, Any], Any], values: Sequence[Any]) -> Any:
    with limit_threads(1):
        found = [value for value in values if value is not None]
        return reduce(merge, found) if found else None


# What the user passed in


def recognise_dask(X: Any, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    import dask.array as da

    if hasattr(X, "_meta") and hasattr(X, "columns"):
        X = _frame_values(X, name)
    if not isinstance(X, da.Array):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}; of Dask's collections, arrays "
            "and data frames are what NysBoost works with: dask.array.from_delayed makes one."
        )
    refuse_wrong_shape(X, name)
    if X.dtype.kind not in "fiub":
        msg = f"No numbers: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float)."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    refuse_empty(X, name)
    return DaskRows(X if X.numblocks[1] == 1 else X.rechunk({1: -1}), name=name)


def _frame_values(X: Any, name: str) -> Any:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    from dask.utils import M

    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]
    others = [str(c) for c, kind in zip(X.columns, kinds, strict=True) if kind not in "fiub"]
    if others:
        raise ValueError(
            f"{name} has columns that are no numbers: {', '.join(others)}. Leave them out, "
            f"{name}.drop(columns={others}), or encode them."
        )
    narrow = all(kind == np.float32 for kind in X.dtypes)
    meta = np.empty((0, len(X.columns)), np.float32 if narrow else np.float64)
    return X.map_partitions(M.to_numpy, dtype=meta.dtype, na_value=np.nan, meta=meta)


Scan: TypeAlias = tuple[Floats, float, Array]
"""The largest of each column, the first chunk that is not finite, and the rows that are held."""


def survey_rows(rows: DaskRows, sizes: Sequence[int]) -> DaskRows:
    """Read every chunk once, and hold the rows of evenly spread samples of these sizes."""
    rows = rows.count()
    held = reduce(np.union1d, [spaced_indices(rows.n, size) for size in (1, *sizes)])
    if rows.n * rows.n_features * rows.template.dtype.itemsize <= HELD_BYTES:
        held = np.arange(rows.n)
    node = as_node(rows.positions(held), "positions")
    scans = rows.send(_scan_chunk, "survey-rows", None, NO_VALUES, local=node)
    largest, chunk, found = _merge_on_workers(_delayed(scans), _merge_scans)
    if chunk < inf:
        bad = as_float(rows.data.blocks[chunk].compute())
        refuse_non_finite(bad, int(rows.starts[chunk]), rows.name)
    if describe_location(found) != describe_location(rows.template):
        raise ValueError(
            f"Dask says that {rows.name} has chunks like {describe_location(rows.template)}, but "
            f"one is {describe_location(found)}. Say it with meta=, or turn them into NumPy "
            f"arrays: {rows.name}.map_blocks(numpy.asarray). Dask arrays of PyTorch tensors "
            "are not supported."
        )
    return replace(rows, sizes=largest, held=(held, found))


def _scan_chunk(chunk: Array, local: list[Indices], block_id: tuple[int, ...]) -> Scan:
    """Scan a chunk once: one task does all, so that no chunk has to travel to another."""
    sizes = column_sizes(as_float(chunk)) if chunk.shape[0] else np.zeros(chunk.shape[1])
    bad = block_id[0] if not np.isfinite(sizes).all() else inf
    return sizes, bad, _rows_of_chunk(chunk, local, block_id)


def _merge_scans(upper: Scan, lower: Scan) -> Scan:
    found = arrays.stack_tables([upper[2], lower[2]])
    return np.maximum(upper[0], lower[0]), min(upper[1], lower[1]), found
