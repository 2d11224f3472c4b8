"""Magnitudes: the largest entry, the largest of each column, and whether all are finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, entries, namespace


def max_abs(array: Array) -> float:
    """Return the size of the largest entry of an array or sparse matrix, 0 where there is none."""
    values = entries(array)
    xp = namespace(values)
    return float(xp.max(xp.abs(values))) if 0 not in values.shape else 0.0


def unit_of(array: Array) -> float:
    """Return the power of two just below the largest entry, in whose units squares are in range."""
    largest = max_abs(array)
    return float(2.0 ** (np.frexp(largest)[1] - 1)) if largest > 0 else 1.0


def positive_or_one(values: NDArray[Any]) -> Floats:
    """Return the values with 1 in the place of those that are not positive, to divide by."""
    return np.where(values > 0, values, 1.0)


def column_sizes(values: Array) -> Floats:
    """Return the largest size in each column of a table, shape (d,), NaN where there is one."""
    if arrays.is_sparse(values):
        found: Floats = abs(values).max(axis=0).toarray().ravel()  # of a sparse array 1-d
        return found
    xp = arrays.namespace(values)
    return arrays.floats_on_host(xp.maximum(xp.max(values, axis=0), -xp.min(values, axis=0)))


def all_finite(values: Array) -> bool:
    """Whether an array has neither NaN nor infinity, by its sum first, which needs no mask."""
    xp = arrays.namespace(values)
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(xp.isfinite(xp.sum(values))) or bool(xp.all(xp.isfinite(values)))
