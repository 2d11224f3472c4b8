"""Rows of a Dask collection: they stay where they are, and tasks go to them.

Two passes are all that anything here needs. `map` makes a lazy array, block for block;
`fold` reduces the blocks to one small value, by a tree of merges on the workers. Dask is
imported when a collection comes in, never before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.data.dask_graph import (
    apply,
    apply_to_pair,
    as_node,
    brought,
    is_dask,
    rows_at,
    tree,
)
from nysboost.data.rows import as_float
from nysboost.numerics.arrays import (
    Array,
    Indices,
    dense,
    empty,
    is_sparse,
    is_supported,
    namespace,
)
from nysboost.numerics.memory import readable

T = TypeVar("T")

TAKE_BYTES = 2**31
"""Rows that are brought here at once take no more than this."""


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows of a Dask array that has one chunk of features.

    Parameters
    ----------
    data : dask.array.Array of shape (n, d)
        The rows; n may be unknown (NaN) where they are only transformed.
    name : str
        What to call them in an error message.
    """

    data: Any
    name: str = "X"
    in_memory = False
    lazy = True

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    @property
    def numbers_per_row(self) -> int:
        """How many numbers a row takes; of a sparse one at most so many."""
        return self.n_features

    @cached_property
    def form(self) -> Array:
        """One row in floating point: it shows the namespace, the device and the dtype."""
        meta, shape = self.data._meta, (1, self.n_features)
        if is_sparse(meta):
            return as_float(csr_matrix(shape, dtype=self.data.dtype))
        reference = meta if is_supported(meta) else np.empty(0, dtype=self.data.dtype)
        return as_float(namespace(reference).zeros_like(empty(shape, reference)))

    @cached_property
    def starts(self) -> Indices:
        """The number of the first row of each chunk, and n."""
        return np.cumsum([0, *self.data.chunks[0]])

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point: no other row leaves its worker."""
        if isinstance(indices, slice):
            span = range(*indices.indices(self.n))
            self._refuse_too_many(len(span))
            indices = np.arange(span.start, span.stop, span.step)
        self._refuse_too_many(len(indices))
        wanted, places = np.unique(indices, return_inverse=True)
        return self.rows_at(wanted).compute()[places] if len(wanted) else self.form[:0]

    def rows_at(self, wanted: Indices) -> Any:
        """Return the rows at `wanted`, in rising order, as a Dask array of few rows."""
        local = self.positions(wanted)
        few = self.data.map_blocks(
            rows_at,
            local=as_node(local, "positions"),
            chunks=(tuple(len(at) for at in local), (self.n_features,)),
            dtype=self.form.dtype,
            meta=self.form[:0],
            token="sample-rows",
        )
        # the choice comes after: so a task reads its chunk itself, and no chunk travels
        return few.blocks[[i for i, at in enumerate(local) if len(at)]]

    def only(self, wanted: Indices) -> DaskRows:
        """Return the rows at `wanted`, in rising order, as rows that stay where they are."""
        return DaskRows(self.rows_at(wanted), self.name)

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

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Any,
        task: str,
        size: int = 0,  # noqa: ARG002
    ) -> Any:
        """Return function(shared, block, *others) for each block of rows, when it is asked for.

        Parameters
        ----------
        function : callable
            Returns an array of as many rows as the block has.
        shared : object
            What it needs everywhere: it travels to each worker once.
        columns : int
            Number of columns of the result.
        *beside : arrays of shape (n, q)
            More columns of the same rows; each block comes with its part of them.
        task : str
            The name of the tasks in Dask's dashboard.
        size : int
            Rows of a block elsewhere; here the chunks are the blocks.

        Returns
        -------
        dask.array.Array of shape (n, columns)
        """
        import dask.array as da

        form = self._dense_form
        return da.map_blocks(
            apply,
            self.data,
            *(self.aligned(other) for other in beside),
            function=function,
            shared=as_node(shared, "shared"),
            chunks=(self.data.chunks[0], (columns,)),
            dtype=form.dtype,
            meta=empty((0, columns), form),
            token=task,
        )

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *beside: Any,
        task: str,
        size: int = 0,  # noqa: ARG002
    ) -> T:
        """Return the merger of function(shared, block, *others) over all blocks of rows.

        Values are merged in the order of the rows, by a tree of tasks on the workers.

        The parameters are those of `map`, and `merge` makes one value of two neighbours.
        """
        import dask.array as da

        parts = da.map_blocks(
            apply,
            self.data,
            *(self.aligned(other) for other in beside),
            function=function,
            shared=as_node(shared, "shared"),
            chunks=((1,) * self.data.numblocks[0], (1,)),
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
            token=task,
        )
        value: T = brought(tree(parts, merge, task))
        return value

    def fold_pairs(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *,
        task: str,
    ) -> T:
        """Return the merger of function(shared, upper, lower) over all pairs of blocks.

        Each pair comes once, a block with itself too: `lower` is `upper` then, or a block
        further down. There is half a task for each pair of chunks: take few, large chunks.
        """
        import dask.array as da

        numbers = da.arange(self.data.numblocks[0], chunks=1)
        parts = da.blockwise(
            apply_to_pair,
            "ij",
            *(self.data, "id", self.data, "jd", numbers, "i", numbers, "j"),
            function=function,
            shared=as_node(shared, "shared"),
            align_arrays=False,
            concatenate=True,
            adjust_chunks={"i": 1, "j": 1},
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
            token=task,
        )
        value: T = brought(tree(parts, merge, task))
        return value

    @cached_property
    def _dense_form(self) -> Array:
        return dense(self.form)

    def aligned(self, other: Any) -> Any:
        """Return a table of n rows as a Dask array with the row chunks of this one."""
        import dask.array as da

        if not is_dask(other):
            return da.from_array(other, chunks=(self.data.chunks[0], other.shape[1]))
        sizes = self.data.chunks[0]
        if isnan(other.shape[0]) and other.numblocks[0] == len(sizes):
            # columns of one data frame: where the rows have been counted, these are too
            other = da.Array(other.dask, other.name, (sizes, *other.chunks[1:]), meta=other._meta)
        if other.shape[0] != self.n:
            msg = (
                f"{self.name} has {self.n} rows, but {other.shape[0]} came with them: give as many "
                "of one as of the other."
            )
            raise ValueError(msg)
        return other.rechunk({0: sizes, 1: -1})

    def _refuse_too_many(self, count: int) -> None:
        size = count * self.n_features * self.form.dtype.itemsize
        if size > TAKE_BYTES:
            msg = (
                f"{count} rows of {self.name} were asked for at once, {readable(size)}, but Dask's "
                "rows stay on their workers. Take a method that looks at a sample, such as "
                f'"joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )
            raise ValueError(msg)
