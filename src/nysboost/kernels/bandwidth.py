"""Kernel parameters: checked when a kernel is made, turned into numbers when it meets data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np

from nysboost.data.passes import BlockTask
from nysboost.data.rows import MEASURED, Rows, scan_size, spread_indices
from nysboost.numerics.arrays import Array, dense, floats_on_host, to_host, unit_of
from nysboost.numerics.checks import require_number, require_positive

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that reads it off the data; None is the kernel's default."""


RANGES = {"sigma": (1e-150, 1e150), "gamma": (1e-300, 1e300)}
"""Beyond these the squares of distances in units of σ leave the range of floating point."""


def require_bandwidth(name: str, value: Bandwidth) -> None:
    """Refuse what is neither a positive number nor a rule."""
    if isinstance(value, str):
        if value not in ("median", "scale"):
            msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
            raise ValueError(msg)
    elif value is not None:
        require_positive(name, value)
        low, high = RANGES[name]
        if not low < float(value) < high:
            msg = f"{name}={value!r} leaves no digits of a distance: scale the data instead."
            raise ValueError(msg)


def require_shared(name: str, value: Any) -> None:
    """Check one of the parameters that scikit-learn's kernels share; None is its default."""
    if value is None:
        return
    if name == "gamma":
        require_bandwidth(name, value)
    elif name == "degree":
        require_positive(name, value)
    else:
        require_number(name, value)


def number(kernel: Any, name: str) -> float:
    """Return a parameter that must be a number by now."""
    value = getattr(kernel, name)
    if isinstance(value, str) or value is None:
        raise ValueError(f"{kernel} takes {name} from data: call kernel.resolve(as_rows(X)) first.")
    return float(value)


def measure_bandwidth(
    rows: Rows, rule: Bandwidth, pairwise: Callable[[Array, Array], Array], typical: float
) -> float | None:
    """Return the σ that a rule reads off the data; None if `rule` is no rule.

    "median" is the median of the `pairwise` distances, "scale" is `typical` times the standard
    deviation of all entries.
    """
    if rule == "median":
        sample = rows.take(spread_indices(rows.n, MEASURED))
        unit = unit_of(sample)
        matrix = to_host(pairwise(sample / unit, sample / unit))
        pairs = matrix[np.triu_indices(len(matrix), 1)]
        found = unit * float(np.median(pairs)) if pairs.size else 0.0
    elif rule == "scale":
        found = typical * _standard_deviation(rows)
    else:
        return None
    return found if found > 0 else 1.0  # all points are equal: any bandwidth will do


def _standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    sample = rows.take(spread_indices(rows.n, MEASURED))
    unit = unit_of(sample)
    shift = float(floats_on_host(dense(sample[:1])).mean()) / unit
    task = BlockTask("moments", _moments, (unit, shift), scan_size(rows))
    mean, square = rows.fold(task, np.add) / (rows.n * rows.n_features)
    return unit * float(np.sqrt(max(0.0, square - mean**2)))


def _moments(how: tuple[float, float], block: Array) -> Array:
    """Return the sums of entries, in a unit and about a shift, and of their squares."""
    unit, shift = how
    gap = floats_on_host(dense(block)) / unit - shift
    return np.array([gap.sum(), (gap * gap).sum()])
