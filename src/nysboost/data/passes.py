"""Passes over rows: what is done to each block, and rows that are read here, piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from nysboost.data.driver import ENDLESS, Plan, in_order, run_blocks, slices
from nysboost.data.lazy import gather
from nysboost.data.outputs import Output, make_output
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices, as_float, convert_like, take
from nysboost.numerics.checks import refuse_non_finite, refuse_unequal
from nysboost.numerics.resources import Budget, usable_threads

T = TypeVar("T")
Blocks: TypeAlias = list[tuple[Indices, Array]]
"""Of each block of rows, numbers of groups in rising order, and a table of as many rows."""

TILE_ROWS, TILE_COLS = 512, 4096
"""A tile of pairs of rows: 16 MB, beside which sums over it cost nothing."""


class Task(ABC):
    """What a pass does to each block of rows. It can be sent to where the rows are.

    `finite` tasks refuse NaN and infinity; those `in_place` leave their result in ``out``.
    """

    name: str
    finite = False
    in_place = False

    @abstractmethod
    def prepare(self, form: Array) -> Callable[..., Any]:
        """Return (block, *others) ↦ result for blocks like `form`, once in each process."""

    def fuse(self, form: Array, n: int) -> Callable[[Array, Array], bool] | None:  # noqa: ARG002
        """Return (piece, out) ↦ whether `out` was filled in one go, where a device can do that."""
        return None

    @abstractmethod
    def plan(self, rows: Any, streamed: bool) -> Plan:
        """Return the sizes of a pass over rows; `streamed` if rows or results go through files."""


@dataclass(frozen=True)
class BlockTask(Task):
    """function(shared, block, *others): a plain function, which can be pickled."""

    name: str
    function: Callable[..., Any]
    shared: Any = None
    size: int = 2**14

    def prepare(self, form: Array) -> Callable[..., Any]:  # noqa: ARG002
        """Return the function with what it shares."""
        return partial(self.function, self.shared)

    def plan(self, rows: Any, streamed: bool) -> Plan:  # noqa: ARG002
        """Return blocks of `size` rows, one after the other with all of BLAS's threads."""
        return Plan(self.size, self.size)


@dataclass(frozen=True)
class PairTask:
    """What a pass over all pairs of rows does to each tile of the n×n matrix of pairs.

    load(shared, block, *others) returns arrays of as many rows, function(shared, upper, lower) a
    number or an array from two of these.
    """

    name: str
    load: Callable[..., tuple[Array, ...]]
    function: Callable[..., Any]
    shared: Any
    size: int
    budget: Budget

    def run(self, upper: tuple[Array, ...], lower: tuple[Array, ...]) -> Iterator[Any]:
        """Yield the results of all tiles of two blocks, or of one with itself, mirrored once."""

        def work(tile: tuple[slice, slice, int]) -> Any:
            rows, columns, times = tile
            left, right = ([take(part, at) for part in side] for side, at in
                           ((upper, rows), (lower, columns)))  # fmt: skip
            return times * self.function(self.shared, left, right)

        tiles = list(_tiles(upper[0].shape[0], lower[0].shape[0], same=upper is lower))
        parallel = len(tiles) > 1 and arrays.is_numpy(upper[0])
        return in_order(work, tiles, usable_threads(self.budget) if parallel else 1)


def _tiles(rows: int, columns: int, *, same: bool) -> Iterator[tuple[slice, slice, int]]:
    """Cut rows × columns into tiles, each with how often it counts."""
    for tile in slices(0, rows, TILE_ROWS):
        if same:
            yield tile, tile, 1
        for part in slices(tile.stop if same else 0, columns, TILE_COLS):
            yield tile, part, 2


class Rows:
    """A table of n points of which rows are taken, never the whole, and passes over them.

    They are read here, piece by piece: arrays, memory maps, stores, iterators; all but Dask's.

    `in_memory` rows take no memory that the caller does not hold already. `sizes`, (d,), are the
    largest in each column, where `as_rows` has looked; `lazy` rows are Dask's.
    """

    in_memory: bool
    lazy: bool = False
    sizes: Any = None

    if TYPE_CHECKING:  # which every kind of rows has; a view leaves some to the rows that it shows

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
        def form(self) -> Array:
            """One row in floating point: it shows the namespace, the device and the dtype."""

        def take(self, indices: Indices | slice) -> Array:
            """Return the rows at `indices` in floating point, shape (len(indices), d)."""

        def only(self, indices: Indices) -> Any:
            """Return the rows at `indices` as rows of their own."""

        def pieces(self, size: int) -> Iterator[Array]:
            """Read all rows once, in order, as tables of about `size` rows, in their own dtype."""

    def map(self, task: Task, columns: int, *beside: Array, out: Any = None) -> Array:
        """Return the task's results for all blocks of rows, one below the other."""
        function = task.prepare(self.form)
        if not task.in_place:
            plan = task.plan(self, not self.in_memory)
            return arrays.stack_tables(list(self._run(task, function, plan, beside)))
        refuse_overlap(self, out)
        output = make_output(out, self.n, columns, arrays.dense(self.form))
        plan = task.plan(self, not (self.in_memory and output.in_memory))
        output.begin()
        try:
            deque(self._run(task, function, plan, beside, output), maxlen=0)
            return output.finish()
        except BaseException:
            output.abandon()
            raise

    def fold(self, task: Task, merge: Callable[[T, T], T], *beside: Array) -> T:
        """Return the task's results for all blocks of rows, merged in the order of the rows."""
        plan = task.plan(self, not self.in_memory)
        merged: T = reduce(merge, self._run(task, task.prepare(self.form), plan, beside))
        return merged

    def group(
        self, task: Task, function: Callable[[Any, Array], T], items: Sequence[Any], *beside: Array
    ) -> list[T | None]:
        """Return function(item, table) of each group of rows: as many as there are items.

        The task returns numbers of groups, and a table of as many rows, for each block. A group's
        table has its rows in their order; of a group without rows the result is None.
        """
        everything = np.array([0, len(items)])
        return apply_to_groups(function, items, *self.sort_blocks(task, everything, *beside))

    def sort_blocks(self, task: Task, bounds: Indices, *beside: Array) -> list[Blocks]:
        """Return what the task returns for each block, sorted by groups, and cut at bounds."""
        plan, found = task.plan(self, not self.in_memory), []
        for numbers, table in self._run(task, task.prepare(self.form), plan, beside):
            order = np.argsort(numbers, kind="stable")
            found.append((numbers[order], take(table, order)))
        return cut_blocks(found, bounds)

    def fold_pairs(self, task: PairTask, merge: Callable[[T, T], T], *beside: Array) -> T:
        """Return the task's results for all tiles of the n×n matrix of pairs of rows, merged."""

        def load(at: slice) -> tuple[Array, ...]:
            block = convert_like(self.form, as_float(self.take(at)))
            return task.load(task.shared, block, *(other[at, ...] for other in beside))

        def results() -> Iterator[Any]:
            for strip in slices(0, self.n, task.size):
                upper = load(strip)
                yield from task.run(upper, upper)
                for part in slices(strip.stop, self.n, task.size):
                    yield from task.run(upper, load(part))

        merged: T = reduce(merge, results())
        return merged

    def _run(
        self, task: Task, function: Any, plan: Plan, beside: Any, output: Output | None = None
    ) -> Iterator[Any]:
        """Yield the function's result for each block of rows, in order; or fill the output."""
        for other in beside:
            refuse_unequal(self.n, other.shape[0], "{} came with them")
        fused = None if output is None else task.fuse(self.form, self.n or ENDLESS)
        start = 0
        for piece in self.pieces(plan.piece):
            space: Any = None if output is None else output.room(piece.shape[0])

            def work(at: slice, piece: Array = piece, space: Any = space, row: int = start) -> Any:
                block = convert_like(self.form, as_float(take(piece, at)))
                if task.finite:  # the first look at these rows
                    refuse_non_finite(block, row + at.start)
                others = (other[row + at.start : row + at.stop, ...] for other in beside)
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


def refuse_overlap(rows: Any, out: Any) -> None:
    """Raise if results would be written over rows that are still to be read."""
    both = (getattr(rows, "data", None), out)
    if all(isinstance(part, np.ndarray) for part in both) and np.may_share_memory(*both):
        raise ValueError("out lies in the memory of X: give it memory of its own.")
