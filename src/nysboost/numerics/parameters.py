"""What a user passes as a parameter: numbers, seeds and row numbers."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from nysboost.numerics.arrays import Indices, is_array, to_host
from nysboost.numerics.messages import format_value


def require_number(name: str, value: object) -> None:
    """Raise unless the value is a finite number."""
    _require(name, "must be a number", value, -np.inf, np.inf)


def require_positive(name: str, value: object) -> None:
    """Raise unless the value is a positive finite number."""
    _require(name, "must be a positive number", value, 0, np.inf)


def require_fraction(name: str, value: object) -> None:
    """Raise unless the value is a number between 0 and 1."""
    _require(name, "lies between 0 and 1", value, 0, 1)


def require_count(name: str, value: object) -> None:
    """Raise unless the value is a positive whole number."""
    _require(name, "must be a positive whole number", value, 0, np.inf, Integral)


def _require(name: str, rule: str, value: Any, low: float, high: float, kind: type = Real) -> None:
    """Raise unless the value is a number of this kind between two others."""
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    if not is_number or not low < value < high:
        raise ValueError(f"{name} {rule}, but {name}={format_value(value)} was given.")


RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def make_rng(random_state: RandomState) -> np.random.Generator:
    """Turn any seed into a generator; None follows ``np.random.seed``, as in scikit-learn."""
    if random_state is None:
        random_state = check_random_state(None)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = f"random_state is a whole number or a generator, but {random_state!r} was given."
        raise ValueError(msg) from error


def positions(rows: Any, n: int, name: str = "rows") -> Indices:
    """Return what NumPy would index a vector of length n with as positions, all in range(n).

    `rows` is a slice, a mask of length n or a sequence of whole numbers, of which negative ones
    count from the end.
    """
    if isinstance(rows, slice):
        return np.ascontiguousarray(np.arange(n)[rows])  # PyTorch takes no negative strides

    if is_array(rows):
        rows = to_host(rows)
    given = np.asarray(rows)
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
