"""Bandwidths computed from data: the median distance, and the standard deviation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import Array, Floats, dense, floats_on_host, spaced_indices, to_host
from nysboost.numerics.linalg import unit_of
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS


def spread_rows(rows: Rows) -> Array:
    """Return a few evenly spaced rows that represent all."""
    return rows.take(spaced_indices(rows.n, MEDIAN_ROWS))


def median_distance(points: Array, distances: Callable[[Array, Array], Array]) -> float:
    """Return the median distance between two points, 0 if there is only one point."""
    # in units in which their squares are in range
    unit = unit_of(points)
    scaled = points / unit
    values = to_host(distances(scaled, scaled))

    # above the diagonal each pair stands once
    above_diagonal = np.triu_indices(len(values), 1)
    pairs = values[above_diagonal]
    if pairs.size == 0:
        return 0.0
    return unit * float(np.median(pairs))


@dataclass(frozen=True)
class _Scale:
    """A unit and a shift, in which sums of squares neither overflow nor cancel."""

    unit: float
    shift: float


def standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    # about the mean of one row, in units of the largest entry of a few
    sample = spread_rows(rows)
    unit = unit_of(sample)
    first_row = floats_on_host(dense(sample[:1]))
    shift = float(first_row.mean()) / unit
    scale = _Scale(unit, shift)

    # the sums of entries and of their squares, in one pass
    task = BlockTask("moments", _moments, scale, scan_size(rows))
    sums = rows.fold(task, np.add)
    n_entries = rows.n * rows.n_features
    mean, mean_square = sums / n_entries
    variance = max(0.0, mean_square - mean**2)
    return unit * float(np.sqrt(variance))


def _moments(scale: _Scale, block: Array) -> Floats:
    """Return the sums of the scaled entries of a block, and of their squares."""
    scaled = floats_on_host(dense(block)) / scale.unit
    entries = scaled - scale.shift
    squares = entries * entries
    return np.array([entries.sum(), squares.sum()])
