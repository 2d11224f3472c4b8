"""Rows of a Dask collection: they stay where they are, and tasks go to them.

A chunk of rows is a table in a worker's memory, over which the driver passes there. `map` makes a
lazy array of what comes of the chunks, `fold` reduces it to one small value, by a tree of merges
on the workers, and in `group` rows of a group meet on one of them. Dask is imported when a
collection comes in, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import chain, pairwise
from math import isnan
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.data.lazy import as_node, is_lazy, merge_on_workers
from nysboost.data.passes import Blocks, PairTask, Task, apply_to_groups
from nysboost.data.rows import ArrayRows, Rows
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices, as_float, dense, empty
from nysboost.numerics.checks import refuse_unequal
from nysboost.numerics.resources import format_bytes, on_one_core

T = TypeVar("T")

TAKE_BYTES = 2**31
"""Rows that are brought here at once take no more than this."""

NO_VALUES = np.empty((0, 0), dtype=object)
"""Shows Dask that a task returns one value for a chunk."""


@dataclass(frozen=True, eq=False)
class DaskRows(ArrayRows):
    """Rows of a Dask array that has one chunk of features; n may be unknown (NaN).

    Those at `held`, in rising order, are in memory, as `held_rows` (len(held), d).
    """

    data: Any
    name: str = "X"
    held: Indices = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    held_rows: Any = None
    in_memory = False
    lazy = True

    @property
    def numbers_per_row(self) -> int:
        """How many numbers a row takes; of a sparse one at most so many."""
        return self.n_features

    @cached_property
    def form(self) -> Array:
        """One row in floating point: it shows the namespace, the device and the dtype."""
        meta, shape = self.data._meta, (1, self.n_features)
        if arrays.is_sparse(meta):
            return as_float(csr_matrix(shape, dtype=self.data.dtype))
        reference = meta if arrays.is_supported(meta) else np.empty(0, dtype=self.data.dtype)
        return as_float(arrays.namespace(reference).zeros_like(empty(shape, reference)))

    @cached_property
    def starts(self) -> Indices:
        """The number of the first row of each chunk, and n."""
        return np.cumsum([0, *self.data.chunks[0]])

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point: no other row leaves its worker."""
        if len(self.held) == self.n:
            return arrays.take(self.held_rows, indices)
        if isinstance(indices, slice):
            self._refuse_too_many(len(range(*indices.indices(self.n))))
            indices = np.arange(*indices.indices(self.n))
        if len(self.held):
            places = np.minimum(np.searchsorted(self.held, indices), len(self.held) - 1)
            if np.array_equal(self.held[places], indices):
                return arrays.take(self.held_rows, places)
        self._refuse_too_many(len(indices))
        wanted, places = np.unique(indices, return_inverse=True)
        return self.rows_at(wanted).compute()[places] if len(wanted) else self.form[:0]

    def rows_at(self, wanted: Indices) -> Any:
        """Return the rows at `wanted`, in rising order, as a Dask array of few rows."""
        local = self.positions(wanted)
        chunks = tuple(len(at) for at in local), (self.n_features,)
        node = as_node(local, "positions")
        few = self.send(rows_at, "sample-rows", chunks, self.form[:0], local=node)
        # the choice comes after: so a task reads its chunk itself, and no chunk travels
        return few.blocks[[i for i, at in enumerate(local) if len(at)]]

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices`, left where they are if in rising order."""
        if (np.diff(indices) > 0).all():
            return DaskRows(self.rows_at(indices), self.name)
        return ArrayRows(self.take(indices))

    def positions(self, wanted: Indices) -> list[Indices]:
        """Return where rows, given in rising order, stand in each chunk."""
        cuts = np.searchsorted(wanted, self.starts)
        return [
            wanted[begin:end] - start
            for begin, end, start in zip(cuts[:-1], cuts[1:], self.starts[:-1], strict=True)
        ]

    def pieces(self, size: int) -> Iterator[Array]:
        """Bring the rows here, one chunk at a time, as tables of at most `size` rows."""
        for i in range(self.data.numblocks[0]):
            chunk = self.data.blocks[i].compute()
            for start in range(0, chunk.shape[0], size):
                yield chunk[start : start + size]

    def map(self, task: Task, columns: int, *beside: Any, out: Any = None) -> Any:
        """Return the task's results for all blocks of rows, computed when they are asked for."""
        if out is not None:
            raise ValueError(
                "The features of a Dask collection are a Dask array, which says itself where it "
                "goes: transform(X).to_zarr(path), or dask.array.store(transform(X), out)."
            )
        task.prepare(self.form)  # which refuses rows that do not fit
        chunks, meta = (self.data.chunks[0], (columns,)), empty((0, columns), dense(self.form))
        how = {"method": "map", "given": as_node((task, columns), "task"), "otherwise": meta}
        return self.send(_on_chunk, task.name, chunks, meta, *beside, **how)

    def send(
        self, function: Callable[..., Any], token: str, chunks: Any, meta: Any, *beside: Any,
        **shared: Any,
    ) -> Any:  # fmt: skip
        """Return function(chunk, *beside, **shared) of all chunks: lazy, one value each if None."""
        import dask.array as da

        others, each = map(self.align, beside), ((1,) * self.data.numblocks[0], (1,))
        how = {"chunks": chunks or each, "dtype": meta.dtype, "meta": meta, "token": token}
        return da.map_blocks(function, self.data, *others, **how, **shared)

    def fold(self, task: Task, merge: Callable[[T, T], T], *beside: Any) -> T:
        """Return the task's results for all blocks of rows, merged by a tree in their order."""
        how = {"method": "fold", "given": as_node((task, merge), "task"), "otherwise": None}
        parts = self.send(_on_chunk, task.name, None, NO_VALUES, *beside, **how)
        value: T = merge_on_workers(parts, merge, task.name)
        return value

    def group(
        self, task: Task, function: Callable[[Any, Array], T], items: Sequence[Any], *beside: Any
    ) -> list[T | None]:
        """Return function(item, table) of each group, computed where its rows meet.

        Neighbouring groups, as many parts of them as there are chunks, meet on one worker.
        """
        import dask

        parts = min(len(items), self.data.numblocks[0])
        bounds = np.linspace(0, len(items), parts + 1).astype(np.intp)
        given = as_node((task, bounds), "task")
        how = {"method": "sort_blocks", "given": given, "otherwise": [[]] * parts}
        cut = self.send(_on_chunk, task.name, None, NO_VALUES, *beside, **how)
        chunks, work = np.ravel(cut.to_delayed()), as_node(function, "function")
        found = [
            dask.delayed(_apply_to_part)(work, items[a:b], a, [chunk[i] for chunk in chunks])
            for i, (a, b) in enumerate(pairwise(bounds.tolist()))
        ]
        return list(chain(*dask.compute(*found)))

    def fold_pairs(self, task: PairTask, merge: Callable[[T, T], T], *beside: Any) -> T:
        """Return the merged results for all tiles of pairs of rows: take few, large chunks."""
        import dask.array as da

        numbers = da.arange(self.data.numblocks[0], chunks=1)
        tables = [self.data, *(self.align(other) for other in beside)]
        sides = [part for side in "ij" for k, table in enumerate(tables) for part in
                 (table, side + "abcdefgh"[k])]  # fmt: skip
        parts = da.blockwise(
            _fold_pair,
            "ij",
            *sides,
            *(numbers, "i", numbers, "j"),
            task=as_node(task, "task"),
            merge=merge,
            align_arrays=False,
            concatenate=True,
            adjust_chunks={"i": 1, "j": 1},
            dtype=object,
            meta=NO_VALUES,
            token=task.name,
        )
        value: T = merge_on_workers(parts, merge, task.name)
        return value

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

    def _refuse_too_many(self, count: int) -> None:
        size = count * self.n_features * self.form.dtype.itemsize
        if size > TAKE_BYTES:
            raise ValueError(
                f"{count} rows of {self.name} were asked for at once, {format_bytes(size)}, but "
                "Dask's rows stay on their workers. Take a method that looks at a sample, such as "
                f'"joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )


def rows_at(block: Array, local: list[Indices], block_id: tuple[int, ...]) -> Array:
    """Return those rows of a block that are wanted, in floating point."""
    wanted = local[block_id[0]]
    if len(wanted) and wanted[-1] >= block.shape[0]:
        raise ValueError(
            f"Chunk {block_id[0]} of a Dask array has {block.shape[0]} rows, fewer than the array "
            "says: give map_blocks the chunks that come of it, or call compute_chunk_sizes()."
        )
    return as_float(block[wanted])


def _on_chunk(
    chunk: Array, *beside: Array, method: str, given: Any, otherwise: Any, block_id: tuple[int, ...]
) -> Any:
    """Return what a method of the chunk's rows returns, if there are any; errors say where."""
    if chunk.shape[0] == 0:
        return otherwise
    with on_one_core():
        try:
            return getattr(ArrayRows(chunk), method)(*given, *beside)
        except ValueError as error:
            where = f"In chunk {block_id[0]}, with its rows counted from 0"
            raise ValueError(f"{where}: {error}") from error


def _apply_to_part(function: Any, items: Any, first: int, chunks: list[Blocks]) -> list[Any]:
    with on_one_core():
        blocks = [(numbers - first, table) for part in chunks for numbers, table in part]
        return apply_to_groups(function, items, blocks)


def _fold_pair(*blocks: Any, task: PairTask, merge: Callable[[Any, Any], Any]) -> Any:
    """Fold over the tiles of two chunks; below the diagonal there is nothing to do."""
    *tables, i, j = blocks
    upper, lower = tables[: len(tables) // 2], tables[len(tables) // 2 :]
    if i[0] > j[0] or not upper[0].shape[0] or not lower[0].shape[0]:
        return None
    with on_one_core():
        left = task.load(task.shared, as_float(upper[0]), *upper[1:])
        right = left if i[0] == j[0] else task.load(task.shared, as_float(lower[0]), *lower[1:])
        return reduce(merge, task.run(left, right))
