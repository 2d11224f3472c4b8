"""Dask's arrays and data frames: recognised, and looked at once before a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import isnan
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.dask_graph import as_node, merge_on_workers, rows_at
from nysboost.data.dask_rows import DaskRows
from nysboost.data.passes import column_sizes, no_samples, refuse_non_finite
from nysboost.data.rows import ArrayRows, spread_indices
from nysboost.numerics.arrays import (
    Array,
    Indices,
    as_float,
    entries,
    namespace,
    stack_tables,
    take,
    whereabouts,
)


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
        raise ValueError(no_samples(name, X.shape))
    return DaskRows(X if X.numblocks[1] == 1 else X.rechunk({1: -1}), name)


def with_known_sizes(rows: DaskRows) -> DaskRows:
    """Return the rows with the size of each chunk known: counted, where Dask does not say."""
    import dask.array as da

    X = rows.data
    if not isnan(X.shape[0]):
        return rows
    counted = da.Array(X.dask, X.name, X.chunks, meta=X._meta)  # the user's own stays as it is
    return dask_rows(counted.compute_chunk_sizes(), rows.name)


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
    values: Array = frame.to_numpy(dtype=dtype, na_value=np.nan)
    return values


HELD_BYTES = 2**27
"""So little is brought here with the first look: some methods look at all of few rows often."""


@dataclass(frozen=True)
class Survey:
    """The `count` of entries, their mean, and the sum of their `squares` about it.

    `sizes`, (d,), are the largest of each column; `trouble` entries come before the first block
    that is not finite; None if all are.
    """

    count: int
    mean: float = 0.0
    squares: float = 0.0
    sizes: Any = 0.0
    trouble: int | None = None

    @classmethod
    def of(cls, block: Array) -> Survey:
        """Look at one block."""
        table = as_float(block)
        count = int(np.prod(table.shape))
        if count == 0:
            return cls(0)
        flat = entries(table)
        xp = namespace(flat)
        if not bool(xp.all(xp.isfinite(flat))):
            return cls(count, trouble=0)
        zeros = count - int(np.prod(flat.shape))  # those that a sparse block does not store
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(xp.sum(flat, dtype=xp.float64)) / count
            gaps = xp.astype(flat, xp.float64) - mean
            squares = float(xp.sum(gaps * gaps)) + zeros * mean * mean
        return cls(count, mean, squares, column_sizes(table))

    def __add__(self, other: Survey) -> Survey:
        """Return the survey of both (Chan, Golub and LeVeque 1979: no digits are lost)."""
        count = self.count + other.count
        gap, share = other.mean - self.mean, other.count / max(1, count)
        trouble = self.trouble
        if trouble is None and other.trouble is not None:
            trouble = self.count + other.trouble
        squares = self.squares + other.squares + gap * gap * share * self.count
        sizes = np.maximum(self.sizes, other.sizes)
        return Survey(count, self.mean + gap * share, squares, sizes, trouble)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of all entries."""
        return float(np.sqrt(self.squares / self.count))


@dataclass(frozen=True, eq=False, kw_only=True)
class SurveyedRows(DaskRows):
    """Dask rows that have been looked at, with `held_rows`, (len(held), d), in memory."""

    survey: Survey  # type: ignore[misc]
    held: Indices
    held_rows: Array

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point: no other row leaves its worker."""
        if len(self.held) == self.n:
            return take(self.held_rows, indices)
        if isinstance(indices, slice):
            span = range(*indices.indices(self.n))
            indices = np.arange(span.start, span.stop, span.step) if len(span) == 1 else indices
        if not isinstance(indices, slice):
            places = np.minimum(np.searchsorted(self.held, indices), len(self.held) - 1)
            if np.array_equal(self.held[places], indices):
                return self.held_rows[places]
        return super().take(indices)

    def pieces(self, size: int) -> Iterator[Array]:
        """Read all rows once, in order, as tables of at most `size` rows."""
        if len(self.held) == self.n:
            return ArrayRows(self.held_rows).pieces(size)
        return super().pieces(size)


def survey_rows(rows: DaskRows, sizes: Sequence[int]) -> SurveyedRows:
    """Read every chunk once, and keep the rows of evenly spread samples of these sizes."""
    rows = with_known_sizes(rows)
    held = reduce(np.union1d, [spread_indices(rows.n, size) for size in (1, *sizes)])
    if rows.n * rows.n_features * rows.form.dtype.itemsize <= HELD_BYTES:
        held = np.arange(rows.n)
    looks = rows.data.map_blocks(
        _look,
        local=as_node(rows.positions(held), "positions"),
        chunks=((1,) * rows.data.numblocks[0], (1,)),
        dtype=object,
        meta=np.empty((0, 0), dtype=object),
        token="survey-rows",
    )
    survey, found = merge_on_workers(looks, _both, "survey-rows")
    if survey.trouble is not None:
        start = survey.trouble // rows.n_features
        chunk = int(np.searchsorted(rows.starts, start, side="right")) - 1
        refuse_non_finite(as_float(rows.data.blocks[chunk].compute()), start, rows.name)
    if whereabouts(found) != whereabouts(rows.form):
        msg = (
            f"Dask says that {rows.name} has chunks like {whereabouts(rows.form)}, but one is "
            f"{whereabouts(found)}. Say it with meta=, or turn them into NumPy arrays: "
            f"{rows.name}.map_blocks(numpy.asarray). Dask arrays of PyTorch tensors there are none."
        )
        raise ValueError(msg)
    return SurveyedRows(rows.data, rows.name, survey=survey, held=held, held_rows=found)


Look: TypeAlias = tuple[Survey, Array]


def _look(block: Array, local: list[Indices], block_id: tuple[int, ...]) -> Look:
    """Look at a block once: one task does all, so that no chunk has to travel to another."""
    return Survey.of(block), rows_at(block, local, block_id)


def _both(upper: Look, lower: Look) -> Look:
    return upper[0] + lower[0], stack_tables([upper[1], lower[1]])
