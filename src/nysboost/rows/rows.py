"""Rows wherever they are, the passes over them, and the only place that knows how they are stored.

Every kind of rows has the members of `Rows`, which says what they mean.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices, as_float, convert_like, take
from nysboost.numerics.blocks import slices
from nysboost.rows.checks import refuse_non_finite, refuse_unequal
from nysboost.rows.driver import PairTask, Plan, Task, run_blocks
from nysboost.rows.lazy import gather
from nysboost.rows.outputs import Output, make_output
from nysboost.rows.sizes import ENDLESS

T = TypeVar("T")
Blocks: TypeAlias = list[tuple[Indices, Array]]
"""Of each block of rows, numbers of groups in rising order, and a table of as many rows."""


class Rows:
    """A table of n points of which rows are taken, never the whole, and passes over them.

    They are read here, piece by piece: arrays, memory maps, stores, iterators; all but Dask's.

    `sizes`, (d,), are the largest in each column, where `scan_rows` has looked; `lazy` rows come
    when they are asked for: Dask's, and those of an iterator.
    """

    lazy: bool = False
    sizes: Any = None

    if TYPE_CHECKING:  # which every kind of rows has; a view leaves some to the rows that it shows

        @property
        def in_memory(self) -> bool:
            """Whether rows take no memory that the caller does not hold already."""

        @property
        def n(self) -> int:
            """Number of rows; None if only the end will tell."""

        @property
        def n_features(self) -> int:
            """Number of columns."""

        @property
        def numbers_per_row(self) -> int:
            """How many numbers a row takes; of a sparse one, also those that say where."""

        @property
        def template(self) -> Array:
            """One row in floating point: it shows the namespace, the device and the dtype."""

        def take(self, indices: Indices | slice) -> Array:
            """Return the rows at `indices` in floating point, shape (len(indices), d)."""

        def pieces(self, size: int) -> Iterator[Array]:
            """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices` as rows of their own, which are taken when asked for."""
        return SelectedRows(self, indices)

    def count(self) -> Rows:
        """Return the rows with n known: of lazy ones it may not be."""
        return self

    def map(self, task: Task, columns: int, *aligned: Array, out: Any = None) -> Array:
        """Return the task's results for all blocks of rows, one below the other."""
        function = task.prepare(self.template)
        if not task.in_place:
            plan = task.plan(self, not self.in_memory)
            return arrays.stack_tables(list(self._run(task, function, plan, aligned)))
        both = (getattr(self, "data", None), out)
        if all(isinstance(part, np.ndarray) for part in both) and np.may_share_memory(*both):
            raise ValueError("out lies in the memory of X: give it memory of its own.")
        output = make_output(out, self.n, columns, arrays.dense(self.template))
        plan = task.plan(self, not (self.in_memory and output.in_memory))
        output.begin()
        try:
            deque(self._run(task, function, plan, aligned, output), maxlen=0)
            return output.finish()
        except BaseException:
            output.abandon()
            raise

    def fold(self, task: Task, merge: Callable[[T, T], T], *aligned: Array) -> T:
        """Return the task's results for all blocks of rows, merged in the order of the rows."""
        plan = task.plan(self, not self.in_memory)
        merged: T = reduce(merge, self._run(task, task.prepare(self.template), plan, aligned))
        return merged

    def group(
        self, task: Task, function: Callable[[Any, Array], T], items: Sequence[Any], *aligned: Array
    ) -> list[T | None]:
        """Return function(item, table) of each group of rows: as many as there are items.

        The task returns numbers of groups, and a table of as many rows, for each block. A group's
        table has its rows in their order; of a group without rows the result is None.
        """
        everything = np.array([0, len(items)])
        return apply_to_groups(function, items, *self.sort_blocks(task, everything, *aligned))

    def sort_blocks(self, task: Task, bounds: Indices, *aligned: Array) -> list[Blocks]:
        """Return what the task returns for each block, sorted by groups, and cut at bounds."""
        plan, found = task.plan(self, not self.in_memory), []
        for numbers, table in self._run(task, task.prepare(self.template), plan, aligned):
            order = np.argsort(numbers, kind="stable")
            found.append((numbers[order], take(table, order)))
        return cut_blocks(found, bounds)

    def fold_pairs(self, task: PairTask, merge: Callable[[T, T], T], *aligned: Array) -> T:
        """Return the task's results for all tiles of the n×n matrix of pairs of rows, merged."""

        def load(at: slice) -> tuple[Array, ...]:
            block = convert_like(self.template, as_float(self.take(at)))
            return task.load(task.shared, block, *(other[at, ...] for other in aligned))

        def results() -> Iterator[Any]:
            for strip in slices(0, self.n, task.size):
                upper = load(strip)
                yield from task.run(upper, upper)
                for part in slices(strip.stop, self.n, task.size):
                    yield from task.run(upper, load(part))

        merged: T = reduce(merge, results())
        return merged

    def _run(
        self, task: Task, function: Any, plan: Plan, aligned: Any, output: Output | None = None
    ) -> Iterator[Any]:
        """Yield the function's result for each block of rows, in order; or fill the output."""
        for other in aligned:
            refuse_unequal(self.n, other.shape[0], "{} came with them")
        fused = None if output is None else task.fuse(self.template, self.n or ENDLESS)
        start = 0
        for piece in self.pieces(plan.piece):
            space: Any = None if output is None else output.room(piece.shape[0])

            def work(at: slice, piece: Array = piece, space: Any = space, row: int = start) -> Any:
                block = convert_like(self.template, as_float(take(piece, at)))
                if task.finite:  # the first look at these rows
                    refuse_non_finite(block, row + at.start)
                others = (other[row + at.start : row + at.stop, ...] for other in aligned)
                into = {} if space is None else {"out": space[at, :]}
                return function(block, *others, **into)

            if fused is None or not fused(as_float(piece), space):
                yield from run_blocks(work, piece.shape[0], plan)
            if output is not None:
                output.write(space)
            start += piece.shape[0]

    gather = staticmethod(gather)


def apply_to_groups(
    function: Callable[[Any, Array], T], items: Sequence[Any], blocks: Blocks
) -> list[T | None]:
    """Return function(item, rows of its group) for each item; None where there are no rows."""
    found: list[T | None] = []
    for item, parts in zip(items, cut_blocks(blocks, np.arange(len(items) + 1)), strict=True):
        tables = [table for _, table in parts]
        found.append(function(item, arrays.stack_tables(tables)) if tables else None)
    return found


def cut_blocks(blocks: Blocks, bounds: Indices) -> list[Blocks]:
    """Return the rows of groups between one bound and the next, of each block that has some."""
    cuts = [np.searchsorted(numbers, bounds).tolist() for numbers, _ in blocks]
    return [
        [
            (numbers[cut[i] : cut[i + 1]], table[cut[i] : cut[i + 1], :])
            for (numbers, table), cut in zip(blocks, cuts, strict=True)
            if cut[i] < cut[i + 1]
        ]
        for i in range(len(bounds) - 1)
    ]


# Views


@dataclass(frozen=True, eq=False)
class RowsView(Rows):
    """Rows of another table, seen otherwise; what a view does not say is as it is there."""

    rows: Any

    def __getattr__(self, name: str) -> Any:
        if name == "rows" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.rows, name)


@dataclass(frozen=True, eq=False)
class SelectedRows(RowsView):
    """Some rows of a table, in any order, which are taken when asked for."""

    indices: Indices

    @property
    def n(self) -> int:
        return len(self.indices)

    def take(self, indices: Indices | slice) -> Array:
        taken: Array = self.rows.take(self.indices[indices])
        return taken

    def pieces(self, size: int) -> Iterator[Array]:
        return (self.take(at) for at in slices(0, self.n, size))
