"""Row numbers: what a user's index selects, and evenly spread samples."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Indices

T = TypeVar("T")


def positions(rows: Any, n: int, name: str = "rows") -> NDArray[np.intp]:
    """Return what NumPy would index a vector of length n with as positions, all in range(n).

    `rows` is a slice, a mask of length n or a sequence of whole numbers, of which negative ones
    count from the end.
    """
    if isinstance(rows, slice):
        return np.ascontiguousarray(np.arange(n)[rows])  # PyTorch takes no negative strides
    given = arrays.to_host(rows) if is_array_api_obj(rows) else np.asarray(rows)
    if given.ndim != 1 or (given.dtype.kind not in "iub" and given.size):
        raise ValueError(
            f"{name} must be a slice, a mask or a sequence of row numbers, but an array of shape "
            f"{given.shape} and dtype {given.dtype} was given."
        )
    if given.dtype == bool:
        if len(given) != n:
            raise ValueError(f"{name} is a mask of length {len(given)}, but there are {n} rows.")
        return np.flatnonzero(given)
    outside = given[(given < -n) | (given >= n)]
    if outside.size:
        msg = f"{name} contains {outside[0]}, but there are {n} rows, numbered from 0 to {n - 1}."
        raise IndexError(msg)
    return np.arange(n)[given.astype(np.intp)]


def spaced_indices(n: int, at_most: int) -> Indices:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.intp)
