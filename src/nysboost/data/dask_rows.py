"""Rows of a Dask collection: they stay where they are, and tasks go to them.

Two passes are all that anything here needs. `map` makes a lazy array, block for block;
`fold` reduces the blocks to one small value, by a tree of merges on the workers. Dask is
imported when a collection comes in, never before.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import isnan
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_matrix

from nysboost.data.rows import as_float
from nysboost.numerics.arrays import Array, Indices, empty, is_sparse, is_supported, namespace
from nysboost.numerics.memory import readable
from nysboost.numerics.threads import on_one_core

T = TypeVar("T")

MERGED = 16
"""Values that one task merges: the tree over a million chunks has five levels."""

TAKE_BYTES = 2**31
"""Rows that are brought here at once take no more than this."""


def is_dask(X: Any) -> bool:
    """Whether X comes from Dask, found out without importing it."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


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
        cuts = np.searchsorted(wanted, self.starts)
        chunks = np.flatnonzero(np.diff(cuts))
        local = [wanted[cuts[i] : cuts[i + 1]] - self.starts[i] for i in chunks]
        return self.data.blocks[chunks.tolist()].map_blocks(
            _rows_at,
            local=_shared(local, "positions"),
            chunks=(tuple(len(at) for at in local), (self.n_features,)),
            dtype=self.form.dtype,
            meta=self.form[:0],
            token="sample-rows",
        )

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
            _apply,
            self.data,
            *(self._aligned(other) for other in beside),
            function=function,
            shared=_shared(shared, "shared"),
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
        value: T = _brought(self.folded(function, merge, shared, *beside, task=task))
        return value

    def folded(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any,
        *beside: Any,
        task: str,
    ) -> Any:
        """Return what `fold` returns as a Dask array without dimensions, yet to be computed."""
        import dask.array as da

        parts = da.map_blocks(
            _apply,
            self.data,
            *(self._aligned(other) for other in beside),
            function=function,
            shared=_shared(shared, "shared"),
            chunks=((1,) * self.data.numblocks[0], (1,)),
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
            token=task,
        )
        return _tree(parts, merge, task)

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
            _apply_to_pair,
            "ij",
            *(self.data, "id", self.data, "jd", numbers, "i", numbers, "j"),
            function=function,
            shared=_shared(shared, "shared"),
            align_arrays=False,
            concatenate=True,
            adjust_chunks={"i": 1, "j": 1},
            dtype=object,
            meta=np.empty((0, 0), dtype=object),
            token=task,
        )
        value: T = _brought(_tree(parts, merge, task))
        return value

    @cached_property
    def _dense_form(self) -> Array:
        return self.form.toarray() if is_sparse(self.form) else self.form

    def _aligned(self, other: Any) -> Any:
        """Return a table of n rows as a Dask array with the row chunks of this one."""
        import dask.array as da

        if not is_dask(other):
            return da.from_array(other, chunks=(self.data.chunks[0], other.shape[1]))
        return other.rechunk({0: self.data.chunks[0], 1: -1})

    def _refuse_too_many(self, count: int) -> None:
        size = count * self.n_features * self.form.dtype.itemsize
        if size > TAKE_BYTES:
            msg = (
                f"{count} rows of {self.name} were asked for at once, {readable(size)}, but Dask's "
                "rows stay on their workers. Take a method that looks at a sample, such as "
                f'"joint", or pass a sample of the rows: {self.name}[::100].compute().'
            )
            raise ValueError(msg)


def dask_rows(X: Any, name: str) -> DaskRows:
    """Recognise a Dask array or data frame, and check that it is a table of numbers."""
    import dask.array as da

    if hasattr(X, "to_dask_array") and hasattr(X, "columns"):
        X = _frame_values(X, name)
    if not isinstance(X, da.Array):
        msg = (
            f"{name} is a {type(X).__module__}.{type(X).__name__}; of Dask's collections, arrays "
            "and data frames are what NysBoost works with: dask.array.from_delayed makes one."
        )
        raise TypeError(msg)
    if X.ndim != 2:
        msg = (
            f"{name} has shape {X.shape}; a table of shape (n, d) is needed. "
            "Reshape your data: X[:, None] makes one feature of a vector."
        )
        raise ValueError(msg)
    if X.dtype.kind not in "fiub":
        kind = "Complex data not supported" if X.dtype.kind == "c" else "No numbers"
        msg = f"{kind}: {name} has dtype {X.dtype}. Pass real numbers: {name}.astype(float), say."
        raise ValueError(msg)
    if isnan(X.shape[1]):
        msg = f"{name} has an unknown number of columns: call {name}.compute_chunk_sizes() first."
        raise ValueError(msg)
    if 0 in X.shape:
        msg = f"{name} has shape {X.shape}: there is nothing to approximate."
        raise ValueError(msg)
    return DaskRows(X if X.numblocks[1] == 1 else X.rechunk({1: -1}), name)


def with_known_sizes(rows: DaskRows) -> DaskRows:
    """Return the rows with the size of each chunk known: counted, where Dask does not say."""
    import dask.array as da

    X = rows.data
    if not isnan(X.shape[0]):
        return rows
    sizes = rows.fold(_count, operator.add, None, task="count-rows")
    return dask_rows(da.Array(X.dask, X.name, (sizes, X.chunks[1]), meta=X._meta), rows.name)


def _frame_values(X: Any, name: str) -> Any:
    """Return a data frame of numbers as a Dask array; missing values become NaN."""
    kinds = [getattr(kind, "kind", "O") for kind in X.dtypes]
    others = [str(c) for c, kind in zip(X.columns, kinds, strict=True) if kind not in "fiub"]
    if others:
        msg = (
            f"{name} has columns that are no numbers: {', '.join(others)}. Leave them out, "
            f"{name}.drop(columns={others}), or encode them."
        )
        raise ValueError(msg)
    narrow = all(kind == np.float32 for kind in X.dtypes)
    dtype = np.dtype(np.float32 if narrow else np.float64)
    meta = np.empty((0, len(X.columns)), dtype=dtype)
    return X.map_partitions(_values, dtype, meta=meta)


def _values(frame: Any, dtype: np.dtype[Any]) -> Array:
    return frame.to_numpy(dtype=dtype, na_value=np.nan)


def _shared(value: Any, what: str) -> Any:
    """Return a value as one node of the graph, which each worker fetches once."""
    from dask.delayed import delayed

    return delayed(value, name=f"{what}-{uuid4().hex}", traverse=False)


def _tree(parts: Any, merge: Callable[[Any, Any], Any], task: str) -> Any:
    """Return the merger of all values as a Dask array without dimensions."""
    import dask.array as da

    return da.reduction(
        parts,
        chunk=_as_it_is,
        combine=_Merge(merge),
        aggregate=_Merge(merge),
        axis=(0, 1),
        concatenate=False,
        split_every={0: MERGED, 1: MERGED},
        dtype=object,
        meta=np.empty((), dtype=object),
        name=f"merge-{task}",
    )


def _brought(tree: Any) -> Any:
    """Compute a value and bring it here; as an array's it would have to be an array."""
    return tree.to_delayed().item().compute()


# What the tasks do


def _rows_at(block: Array, local: Sequence[Indices], block_id: tuple[int, ...]) -> Array:
    return as_float(block[local[block_id[0]]])


def _apply(block: Array, *beside: Array, function: Callable[..., T], shared: Any) -> T:
    with on_one_core():
        return function(shared, block, *beside)


def _apply_to_pair(
    upper: Array, lower: Array, i: Any, j: Any, *, function: Callable[..., T], shared: Any
) -> T | None:
    """Do what is to be done to a pair of blocks; below the diagonal there is nothing to do."""
    if i[0] > j[0]:
        return None
    with on_one_core():
        return function(shared, upper, upper if i[0] == j[0] else lower)


def _as_it_is(part: Any, axis: Any, keepdims: Any) -> Any:  # noqa: ARG001
    return part


@dataclass(frozen=True)
class _Merge:
    """A merger of two values as one of the nested lists that Dask's reductions hand over."""

    merge: Callable[[Any, Any], Any]

    def __call__(self, parts: Any, axis: Any, keepdims: Any) -> Any:  # noqa: ARG002
        with on_one_core():
            found = [part for part in _flat(parts) if part is not None]
            return reduce(self.merge, found) if found else None


def _flat(parts: Any) -> Iterator[Any]:
    if isinstance(parts, list):
        for part in parts:
            yield from _flat(part)
    else:
        yield parts


def _count(_: None, block: Array) -> tuple[int, ...]:
    return (int(block.shape[0]),)
