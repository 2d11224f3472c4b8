"""Bandwidths computed from data: the median distance, and the standard deviation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nysboost.numerics.arrays import Array, Floats, dense, floats_on_host, spaced_indices, to_host
from nysboost.numerics.linalg import unit_of
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS


def spread_rows(rows: Rows) -> Array:
    """Return a few evenly spaced rows that represent all."""
    spread = spaced_indices(rows.n, MEDIAN_ROWS)
    return rows.take(spread)


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


def standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    # about the mean of one row, in units of the largest entry of a few, sums of squares neither
    # cancel nor overflow
    sample = spread_rows(rows)
    unit = unit_of(sample)
    first_row = floats_on_host(dense(sample[:1]))
    shift = float(first_row.mean())

    # the sums of entries and of their squares, in one pass
    scale = (unit, shift / unit)
    task = BlockTask("moments", _moments, scale, scan_size(rows))
    sums = rows.fold(task, np.add)
    n_entries = rows.n * rows.n_features
    mean, mean_square = sums / n_entries
    variance = max(0.0, mean_square - mean**2)
    return unit * float(np.sqrt(variance))


def _moments(scale: tuple[float, float], block: Array) -> Floats:
    """Return the sums of x / unit − shift over the entries of a block, and of its square."""
    unit, shift = scale
    values = floats_on_host(dense(block))
    entries = values / unit - shift
    squares = entries * entries
    sums = [entries.sum(), squares.sum()]
    return np.array(sums)
