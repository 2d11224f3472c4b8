"""Kernel parameters: checked when a kernel is made, turned into numbers when it meets data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import issparse

from nysboost.data.rows import MEASURED, Rows, scan, spread_indices
from nysboost.kernels import distances
from nysboost.numerics.arrays import Array, to_host
from nysboost.numerics.checks import require_positive

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that reads it off the data; None is the kernel's default."""


def require_bandwidth(name: str, value: Bandwidth) -> None:
    """Refuse what is neither a positive number nor a rule."""
    if isinstance(value, str):
        if value not in ("median", "scale"):
            msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
            raise ValueError(msg)
    elif value is not None:
        require_positive(name, value)
        if not 1e-150 < value < 1e150:
            msg = f"{name}={value!r} leaves no digits of a distance: scale the data instead."
            raise ValueError(msg)


def require_at_most_one(sigma: Bandwidth, gamma: Bandwidth) -> None:
    """Check σ and γ, of which at most one may be given."""
    require_bandwidth("sigma", sigma)
    require_bandwidth("gamma", gamma)
    if sigma is not None and gamma is not None:
        msg = f"Give sigma or gamma, not both: sigma={sigma!r} and gamma={gamma!r} were given."
        raise ValueError(msg)


def number(kernel: Any, name: str) -> float:
    """Return a parameter that must be a number by now."""
    value = getattr(kernel, name)
    if isinstance(value, str) or value is None:
        msg = f"{kernel} takes {name} from data: call kernel.resolve(as_rows(X)) first."
        raise ValueError(msg)
    return float(value)


def measured(
    rows: Rows,
    rule: Bandwidth,
    pairwise: Callable[[Array, Array], Array],
    of_spread: Callable[[float], float],
) -> float | None:
    """Return the σ that a rule reads off the data; None if `rule` is no rule.

    Parameters
    ----------
    rows : Rows
        The data.
    rule : Bandwidth
        "median": the median of the pairwise distances; "scale": a function of the
        standard deviation of all entries.
    pairwise : callable
        The distance that belongs to the kernel.
    of_spread : callable
        Standard deviation → σ.
    """
    if rule == "median":
        sample = rows.take(spread_indices(rows.n, MEASURED))
        matrix = to_host(pairwise(sample, sample))
        pairs = matrix[np.triu_indices(len(matrix), 1)]
        found = float(np.median(pairs)) if pairs.size else 0.0
    elif rule == "scale":
        found = of_spread(_standard_deviation(rows))
    else:
        return None
    return found if found > 0 else 1.0  # all points are equal: any bandwidth will do


def euclidean(X: Array, Y: Array) -> Array:
    """Return ‖x−y‖ for all pairs."""
    return distances.squared_distances(X, Y) ** 0.5


def _standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    shift = float(_dense(rows.take(slice(0, 1))).mean())
    total = total_of_squares = 0.0
    for block in scan(rows):
        gap = _dense(block) - shift
        total += float(gap.sum())
        total_of_squares += float((gap * gap).sum())
    count = rows.n * rows.n_features
    return float(np.sqrt(max(0.0, total_of_squares / count - (total / count) ** 2)))


def _dense(block: Array) -> np.ndarray[Any, np.dtype[np.float64]]:
    return to_host(block.toarray() if issparse(block) else block).astype(np.float64)
