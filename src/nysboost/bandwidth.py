"""Kernel parameters: checked when a kernel is made, turned into numbers when it meets data."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import issparse

from nysboost import distances
from nysboost.arrays import Array, to_host
from nysboost.rows import Rows, scan, spread_indices

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that reads it off the data; None is the kernel's default."""

SAMPLE = 1000
"""The median distance is that of this many rows, spread evenly over the data."""


def require_positive(name: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < np.inf:
        msg = f"{name} must be a positive number, but {name}={value!r} was given."
        raise ValueError(msg)


def check_bandwidth(name: str, value: Bandwidth) -> None:
    if isinstance(value, str):
        if value not in ("median", "scale"):
            msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
            raise ValueError(msg)
    elif value is not None:
        require_positive(name, value)


def require_at_most_one(kernel: Any) -> None:
    check_bandwidth("sigma", kernel.sigma)
    check_bandwidth("gamma", kernel.gamma)
    if kernel.sigma is not None and kernel.gamma is not None:
        msg = f"Give sigma or gamma, not both: {kernel} says the same thing twice."
        raise ValueError(msg)


def number(kernel: Any, name: str) -> float:
    value = getattr(kernel, name)
    if isinstance(value, str) or value is None:
        msg = f"{kernel} takes {name} from data: call kernel.resolve(as_rows(X)) first."
        raise ValueError(msg)
    return float(value)


def fixed_rate(kernel: Any, of: Callable[[float], float]) -> float:
    """Return γ, which was given as a number or follows from a σ that was."""
    return number(kernel, "gamma") if kernel.sigma is None else of(number(kernel, "sigma"))


def resolve(
    kernel: Any,
    rows: Rows,
    median: Callable[[Array], float],
    of_spread: Callable[[int, float], float],
) -> float | None:
    """Return σ, as given or by its rule; None if neither σ nor a rule for γ was given."""
    rule = kernel.sigma if kernel.sigma is not None else getattr(kernel, "gamma", None)
    if rule == "median":
        found = median(rows.take(spread_indices(rows.n, SAMPLE)))
    elif rule == "scale":
        found = of_spread(rows.n_features, _standard_deviation(rows))
    else:
        return None if kernel.sigma is None else float(kernel.sigma)
    return found if found > 0 else 1.0  # all points equal: any bandwidth will do


def rate(kernel: Any, rows: Rows, sigma: float | None, of: Callable[[float], float]) -> float:
    if sigma is not None:
        return float(of(sigma))
    return float(kernel.gamma if kernel.gamma is not None else 1 / rows.n_features)


def median_euclidean(sample: Array) -> float:
    return float(np.sqrt(_median_of_pairs(distances.squared_distances(sample, sample))))


def median_cityblock(sample: Array) -> float:
    return _median_of_pairs(distances.cityblock_distances(sample, sample))


def _median_of_pairs(matrix: Array) -> float:
    host = to_host(matrix)
    pairs = host[np.triu_indices(host.shape[0], 1)]
    return float(np.median(pairs)) if pairs.size else 0.0


def _standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    shift = float(to_host(_dense(rows.take(slice(0, 1)))).mean())
    total = total_of_squares = 0.0
    for _, block in scan(rows):
        gap = to_host(_dense(block)).astype(np.float64) - shift
        total += float(gap.sum())
        total_of_squares += float((gap * gap).sum())
    count = rows.n * rows.n_features
    return float(np.sqrt(max(0.0, total_of_squares / count - (total / count) ** 2)))


def _dense(block: Array) -> Array:
    return block.toarray() if issparse(block) else block
