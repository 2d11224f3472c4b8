"""Tables of rows: the abstract base classes, and the passes that all tables share.

A `RowStream` can be read once, and `Rows` any number of times and in any order. Only subclasses
know how rows are stored.
"""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import NoReturn, TypeAlias, TypeVar

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Numbers,
    Selection,
    as_float,
    convert_like,
    dense,
    empty,
    find_map,
    is_sparse,
    release_pages,
    slices,
    stack_tables,
    take,
)
from nysboost.numerics.checks import refuse_non_finite, refuse_unequal
from nysboost.rows.driver import (
    ArrayOutput,
    BlockFunction,
    GrowingOutput,
    Merge,
    Output,
    Plan,
    Result,
    Task,
    run_blocks,
)
from nysboost.rows.outputs import make_output
from nysboost.rows.pairs import PairTask
from nysboost.rows.sizes import ENDLESS, TAKEN_ROWS

T = TypeVar("T")
Item = TypeVar("Item")


class RowStream(ABC):
    """A table of n rows and d columns that can be read once, from the first row to the last.

    Attributes
    ----------
    lazy : bool
        Whether rows are computed when they are read, as with Dask and iterators.
    """

    lazy: bool = False

    @property
    @abstractmethod
    def n(self) -> int | None:
        """Number of rows; None if unknown before the end."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of columns, d."""

    @property
    @abstractmethod
    def numbers_per_row(self) -> int:
        """Number of values of a row in memory: d, or the values and positions of a sparse row."""

    @property
    @abstractmethod
    def template(self) -> Array:
        """One row in floating point, shape (1, d): an example of namespace, device and dtype."""

    @property
    @abstractmethod
    def in_memory(self) -> bool:
        """Whether reading the rows takes no memory in addition to that of the caller."""

    @abstractmethod
    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of about `size` rows in their own dtype."""

    def shares_memory(self, array: object) -> bool:  # noqa: ARG002
        """Whether writing to the array would change these rows."""
        return False

    def map(self, task: Task, columns: int, *aligned: Array, out: object = None) -> Array:
        """Return the task's results for all blocks of rows, stacked: shape (n, columns).

        Parameters
        ----------
        task : Task
            The work on a block.
        columns : int
            Columns of a result.
        *aligned : arrays of shape (n, ...)
            Tables with corresponding rows; the task receives the same rows of each.
        out : array, store, path or None
            Output for the results of a task that is `in_place`; None returns a new array.
        """
        ready = self._prepare(task, aligned)
        if task.in_place:
            return self._map_into(ready, columns, out)

        # the results of blocks are stacked in the order of the rows
        plan = task.plan(self, streamed=not self.in_memory)
        tables = list(self._results(ready, plan))
        return stack_tables(tables)

    def fold(self, task: Task, merge: Merge[T], *aligned: Array) -> T:
        """Return the task's results for all blocks of rows, merged in the order of the rows."""
        ready = self._prepare(task, aligned)
        plan = task.plan(self, streamed=not self.in_memory)
        merged: T = reduce(merge, self._results(ready, plan))
        return merged

    def _prepare(self, task: Task, aligned: Sequence[Array]) -> _PreparedTask:
        """Return the task, ready for blocks of these rows and of aligned tables."""
        for other in aligned:
            refuse_unequal(self.n, other.shape[0], "{} came with them")

        template = self.template
        return _PreparedTask(task, task.prepare(template), template, aligned)

    def _map_into(self, ready: _PreparedTask, columns: int, out: object) -> Array:
        """Write the task's results to `out`, and return it."""
        if self.shares_memory(out):
            raise ValueError("out shares memory with X: pass an array with its own memory.")

        output = self._output(columns, out)

        # pieces are held only where rows or results go through files
        in_memory = self.in_memory and output.in_memory
        plan = ready.task.plan(self, streamed=not in_memory)

        output.begin()
        try:
            self._fill(output, ready, plan)
            return output.finish()
        except BaseException:
            output.abandon()
            raise

    def _output(self, columns: int, out: object) -> Output:
        """Return the output for results with this number of columns: `out`, or a new array."""
        template = dense(self.template)
        if out is not None:
            return make_output(out, self.n, columns, template)
        if self.n is None:
            return GrowingOutput(columns, template)
        shape = (self.n, columns)
        return ArrayOutput(empty(shape, template), columns, template)

    def _fill(self, output: Output, ready: _PreparedTask, plan: Plan) -> None:
        """Write the task's results to an output, piece by piece."""
        fused = ready.task.fuse(self.template, self.n or ENDLESS)

        for start, piece in self._numbered_pieces(plan.piece):
            space = output.room(piece.shape[0])

            # by one kernel of a GPU if there is one and no row is out of its range, else by blocks
            is_filled = fused is not None and fused(as_float(piece), space)
            if not is_filled:
                for _ in ready.run(piece, start, plan, space):
                    pass

            output.write(space)

    def _results(self, ready: _PreparedTask, plan: Plan) -> Iterator[Result]:
        """Yield the task's result for each block of rows, in order."""
        for start, piece in self._numbered_pieces(plan.piece):
            yield from ready.run(piece, start, plan)

    def _numbered_pieces(self, size: int) -> Iterator[tuple[int, Array]]:
        """Yield each piece of rows with the number of its first row."""
        start = 0
        for piece in self.pieces(size):
            yield start, piece
            start += piece.shape[0]


class Rows(RowStream):
    """A table (n, d) that is read in subsets and passes, and never loaded as a whole.

    Attributes
    ----------
    sizes : ndarray of shape (d,) or None
        The largest absolute value in each column, if `scan_rows` has read the table.
    """

    sizes: Floats | None = None

    @property
    @abstractmethod
    def n(self) -> int:
        """Number of rows."""

    @abstractmethod
    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""

    def only(self, indices: Indices) -> Rows:
        """Return the rows at `indices` as a table; they are read when needed."""
        return SelectedRows(self, indices)

    def count(self) -> Rows:
        """Return the same table with known n, which a lazy table may have to compute."""
        return self

    def group(
        self,
        task: Task,
        function: GroupFunction[Item, T],
        items: Sequence[Item],
        *aligned: Array,
    ) -> list[T | None]:
        """Return function(item, table) for each group of rows.

        The task returns, for each block, the number of each row's group and a table of as many
        rows. There is one group for each item. The table of a group has its rows in order, and the
        result of a group without rows is None.
        """
        one_part = np.array([0, len(items)])
        (blocks,) = self.sort_blocks(task, one_part, *aligned)
        return apply_to_groups(function, items, blocks)

    def sort_blocks(self, task: Task, bounds: Indices, *aligned: Array) -> list[list[GroupedBlock]]:
        """Return the task's results for each block, sorted by groups and cut at `bounds`."""
        ready = self._prepare(task, aligned)
        plan = task.plan(self, streamed=not self.in_memory)
        results = self._results(ready, plan)
        sorted_blocks = [sort_by_group(*result) for result in results]
        return cut_blocks(sorted_blocks, bounds)

    def fold_pairs(self, task: PairTask, *aligned: Array) -> Floats:
        """Return the sum of the task's results for all tiles of the n×n matrix of pairs of rows."""
        return reduce(operator.add, task.run_all(self, aligned))


@dataclass(frozen=True, eq=False)
class _PreparedTask:
    """A task, ready for blocks like `template`, with the same rows of aligned tables."""

    task: Task
    function: BlockFunction
    template: Array
    aligned: Sequence[Array]

    def run(
        self,
        piece: Array,
        start: int,
        plan: Plan,
        space: Array | None = None,
    ) -> Iterator[Result]:
        """Yield the results for the blocks of a piece, whose first row has the number `start`.

        With `space`, which has as many rows as the piece, results are written there.
        """

        def work(at: slice) -> Result:
            rows = slice(start + at.start, start + at.stop)
            taken = as_float(take(piece, at))
            block = convert_like(self.template, taken)
            if self.task.finite:
                refuse_non_finite(block, rows.start)

            # the same rows of the other tables
            others = [other[rows, ...] for other in self.aligned]
            if space is None:
                return self.function(block, *others)
            return self.function(block, *others, out=space[at, :])

        return run_blocks(work, piece.shape[0], plan)


# Rows that are in memory, or look like it


@dataclass(frozen=True, eq=False)
class ArrayRows(Rows):
    """Rows of an array, of a CSR matrix or of a memory map.

    Attributes
    ----------
    data : array of shape (n, d)
        The table. Pages of a memory map are released after they were read.
    held : pair of ndarray of shape (s,) and array of shape (s, d), or None
        For a table on disk or on a cluster: the increasing numbers of some rows, and these rows.
    """

    data: Array
    sizes: Floats | None = None
    held: tuple[Indices, Array] | None = None

    def __deepcopy__(self, memo: object) -> ArrayRows:
        return self  # rows are read, never changed

    # cached, because a store may be closed when a model is saved
    @cached_property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @cached_property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Number of values in a row; for a sparse matrix, the mean over all rows."""
        if not is_sparse(self.data):
            return self.n_features
        n_values = int(self.data.nnz)
        values_per_row = -(-n_values // max(1, self.n))
        return 2 * values_per_row

    @cached_property
    def template(self) -> Array:
        """The first row, in floating point."""
        return self.take(slice(0, 1))

    @cached_property
    def in_memory(self) -> bool:
        """Whether the array is not a memory map."""
        return find_map(self.data) is None

    def shares_memory(self, array: object) -> bool:
        """Whether both have bytes in common, in memory or in a file; a path names a file."""
        if not isinstance(self.data, np.ndarray):
            return False
        if isinstance(array, str | os.PathLike):
            return _is_mapped_from(self.data, array)
        if not isinstance(array, np.ndarray):
            return False
        return np.may_share_memory(self.data, array) or _share_file(self.data, array)

    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices` in floating point; a memory map is read in parts."""
        if isinstance(indices, slice) or self.in_memory or len(indices) <= TAKEN_ROWS:
            return as_float(take(self.data, indices))

        parts = []
        for at in slices(0, len(indices), TAKEN_ROWS):
            # each row may lie on a page of its own
            parts.append(as_float(self.data[indices[at]]))
            release_pages(self.data)
        return np.concatenate(parts)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, and release the pages of each piece."""
        if size >= self.n:
            yield self.data
            release_pages(self.data)
            return

        for at in slices(0, self.n, size):
            piece = self.data[at]
            yield piece
            release_pages(piece)

    def take_held(self, indices: Indices) -> Array | None:
        """Return the rows at `indices` if all of them are held, else None."""
        if self.held is None:
            return None

        # where a row would stand among those held, and whether it does
        known, rows = self.held
        last = len(known) - 1
        places = np.searchsorted(known, indices)
        places = np.minimum(places, last)
        if not np.array_equal(known[places], indices):
            return None
        return take(rows, places)


# Views of other tables


def _is_mapped_from(array: Numbers, path: str | os.PathLike[str]) -> bool:
    """Return whether an array is a memory map of the file."""
    mapped = find_map(array)
    if mapped is None or mapped.filename is None or not os.path.exists(path):
        return False
    return os.path.samefile(mapped.filename, path)


def _share_file(first: Numbers, second: Numbers) -> bool:
    """Return whether two memory maps have bytes of a file in common."""
    a = find_map(first)
    b = find_map(second)
    if a is None or b is None or a.filename is None or b.filename is None:
        return False
    begin = max(a.offset, b.offset)
    end = min(a.offset + a.nbytes, b.offset + b.nbytes)
    return begin < end and os.path.samefile(a.filename, b.filename)


@dataclass(frozen=True, eq=False)
class RowsView(Rows):
    """A view of another table; subclasses override the differences."""

    rows: Rows

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.n

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.rows.n_features

    @property
    def numbers_per_row(self) -> int:
        """Numbers that a row takes in memory."""
        return self.rows.numbers_per_row

    @property
    def template(self) -> Array:
        """One row in floating point."""
        return self.rows.template

    @property
    def in_memory(self) -> bool:
        """Whether the rows of the other table take no memory of their own."""
        return self.rows.in_memory

    def take(self, indices: Selection) -> Array:
        """Return the rows at `indices`."""
        return self.rows.take(indices)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order."""
        return self.rows.pieces(size)

    def shares_memory(self, array: object) -> bool:
        """Whether writing to the array would change the other table."""
        return self.rows.shares_memory(array)


@dataclass(frozen=True, eq=False)
class SelectedRows(RowsView):
    """Some rows of a table, in any order, which are read when needed."""

    indices: Indices

    @property
    def n(self) -> int:
        """Number of rows that are selected."""
        return len(self.indices)

    def take(self, indices: Selection) -> Array:
        """Return rows by their positions among the selected ones."""
        return self.rows.take(self.indices[indices])

    def pieces(self, size: int) -> Iterator[Array]:
        """Read the selected rows once, in order."""
        return (self.take(at) for at in slices(0, self.n, size))


@dataclass(frozen=True, eq=False)
class EncodedRows(RowsView):
    """Rows that are encoded as encoder(block, number of its first row) when they are read."""

    encoder: Callable[[Array, int], Array]
    in_memory = False

    @cached_property
    def template(self) -> Array:
        """One encoded row."""
        return as_float(self.encoder(self.rows.template, 0))

    @property
    def n_features(self) -> int:
        """Number of columns after encoding."""
        return int(self.template.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """Number of values of an encoded row, which is dense."""
        return self.n_features

    def take(self, indices: Selection) -> Array:
        """Return encoded rows."""
        encoded = self.encoder(self.rows.take(indices), 0)
        return as_float(encoded)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read and encode all rows once, in order."""
        start = 0
        for piece in self.rows.pieces(size):
            yield self.encoder(piece, start)
            start += int(piece.shape[0])


class DroppedRows(Rows):
    """Placeholder for the rows of an approximation that was saved without its training data."""

    in_memory = True

    def __init__(self, n: int, n_features: int) -> None:
        self._n = n
        self._n_features = n_features

    @property
    def n(self) -> int:
        """Number of rows of the original table."""
        return self._n

    @property
    def n_features(self) -> int:
        """Number of columns of the original table."""
        return self._n_features

    @property
    def numbers_per_row(self) -> int:
        """Number of values of a row of the original table."""
        return self._n_features

    @property
    def template(self) -> Array:
        """Raise a RuntimeError, because there are no rows."""
        self._refuse()

    def take(self, indices: Selection) -> Array:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def pieces(self, size: int) -> Iterator[Array]:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def only(self, indices: Indices) -> Rows:  # noqa: ARG002
        """Raise a RuntimeError that says what to do."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"This call needs the {self.n} training rows, but a saved model does not contain them. "
            "Fit again, or save an approximation with nysboost.save(model, path, with_rows=True). "
            "Features and predictions of rows that you pass work without them."
        )


# Rows sorted by their groups


GroupedBlock: TypeAlias = tuple[Indices, Array]
"""The number of each row's group, in increasing order, and a table with as many rows."""

GroupFunction: TypeAlias = Callable[[Item, Array], T]
"""(item, rows of its group) ↦ result."""


def sort_by_group(numbers: Indices, table: Array) -> GroupedBlock:
    """Return the rows of a table sorted by their groups; equal ones keep their order."""
    order = np.argsort(numbers, kind="stable")
    return numbers[order], take(table, order)


def cut_blocks(blocks: Sequence[GroupedBlock], bounds: Indices) -> list[list[GroupedBlock]]:
    """Return the rows of the groups between one bound and the next, without empty blocks."""
    parts: list[list[GroupedBlock]] = [[] for _ in bounds[1:]]

    for numbers, table in blocks:
        # where the groups of each part begin and end in this block
        cuts = np.searchsorted(numbers, bounds).tolist()
        ends = pairwise(cuts)
        for part, (start, stop) in zip(parts, ends, strict=True):
            if start < stop:
                rows = table[start:stop, :]
                part.append((numbers[start:stop], rows))
    return parts


def apply_to_groups(
    function: GroupFunction[Item, T],
    items: Sequence[Item],
    blocks: Sequence[GroupedBlock],
) -> list[T | None]:
    """Return function(item, rows of its group) for each item; None for a group without rows."""
    # a part for each group
    bounds = np.arange(len(items) + 1)
    groups = cut_blocks(blocks, bounds)

    results: list[T | None] = []
    for item, parts in zip(items, groups, strict=True):
        if not parts:
            results.append(None)
            continue
        table = stack_tables([rows for _, rows in parts])
        results.append(function(item, table))
    return results
