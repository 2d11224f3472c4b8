"""The first look at Dask rows: one pass that answers all that a fit asks before its sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeAlias

import numpy as np

from nysboost.data.dask_graph import as_node, brought, rows_at, tree
from nysboost.data.dask_rows import DaskRows
from nysboost.data.dask_tables import with_known_sizes
from nysboost.data.rows import ArrayRows, as_float, refuse_non_finite, spread_indices
from nysboost.numerics.arrays import Array, Indices, entries, namespace, stacked, take, whereabouts

HELD_BYTES = 2**27
"""So little is brought here with the first look: some methods look at all of few rows often."""


@dataclass(frozen=True)
class Survey:
    """What a pass over the entries tells.

    Parameters
    ----------
    count : int
        How many there are.
    mean, squares : float
        Their mean, and the sum of their squared distances from it.
    trouble : int or None
        How many come before the first block that is not finite; None if all are.
    """

    count: int
    mean: float = 0.0
    squares: float = 0.0
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
        mean = float(xp.sum(flat, dtype=xp.float64)) / count
        gaps = xp.astype(flat, xp.float64) - mean
        zeros = count - int(np.prod(flat.shape))  # those that a sparse block does not store
        return cls(count, mean, float(xp.sum(gaps * gaps)) + zeros * mean * mean)

    def __add__(self, other: Survey) -> Survey:
        """Return the survey of both (Chan, Golub and LeVeque 1979: no digits are lost)."""
        count = self.count + other.count
        gap, share = other.mean - self.mean, other.count / max(1, count)
        trouble = self.trouble
        if trouble is None and other.trouble is not None:
            trouble = self.count + other.trouble
        squares = self.squares + other.squares + gap * gap * share * self.count
        return Survey(count, self.mean + gap * share, squares, trouble)

    @property
    def standard_deviation(self) -> float:
        """The standard deviation of all entries."""
        return float(np.sqrt(self.squares / self.count))


@dataclass(frozen=True, eq=False, kw_only=True)
class SurveyedRows(DaskRows):
    """Dask rows that have been looked at, with some that every fit asks for at hand.

    Parameters
    ----------
    survey : Survey
        What was seen.
    held : array of int
        The numbers of the rows at hand, in rising order.
    held_rows : array of shape (len(held), d)
        Those rows.
    """

    survey: Survey
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


def surveyed(rows: DaskRows, sizes: Sequence[int]) -> SurveyedRows:
    """Read every chunk once, for all that is asked of the rows before a sample of them.

    Parameters
    ----------
    rows : DaskRows
        The rows; where Dask does not know how many there are, they are counted first.
    sizes : sequence of int
        Sizes of the evenly spread samples that will be asked for: these rows are kept.
    """
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
    survey, found = brought(tree(looks, _both, "survey-rows"))
    if survey.trouble is not None:
        _say_where(rows, survey.trouble // rows.n_features)
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
    return upper[0] + lower[0], stacked([upper[1], lower[1]])


def _say_where(rows: DaskRows, start: int) -> None:
    """Raise for the first entry that is not finite, in the chunk that begins at row `start`."""
    chunk = int(np.searchsorted(rows.starts, start, side="right")) - 1
    refuse_non_finite(as_float(rows.data.blocks[chunk].compute()), start, rows.name)
