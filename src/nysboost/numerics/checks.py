"""Checks of what a user passes: numbers, seeds, row numbers, memory, and tables in memory."""

from __future__ import annotations

import re
from collections.abc import Sized
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Numbers,
    entries,
    gather,
    is_array,
    is_sparse,
    to_host,
)
from nysboost.numerics.linalg import all_finite
from nysboost.numerics.messages import format_cell, format_value

Given: TypeAlias = Any
"""Anything that a user passed, not yet checked."""

LARGEST = float(np.finfo(float).max)


def require_number(name: str, value: object) -> None:
    """Raise unless the value is a finite number."""
    _require(name, "must be a number", value, -np.inf, np.inf)


def require_positive(name: str, value: object) -> None:
    """Raise unless the value is a positive finite number."""
    _require(name, "must be a positive number", value, 0, LARGEST)


def require_fraction(name: str, value: object) -> None:
    """Raise unless the value is a number between 0 and 1."""
    _require(name, "lies between 0 and 1", value, 0, 1)


def require_count(name: str, value: object) -> None:
    """Raise unless the value is a positive whole number."""
    _require(name, "must be a positive whole number", value, 0, np.inf, Integral)


def _require(
    name: str,
    rule: str,
    value: Given,
    low: float,
    high: float,
    kind: type = Real,
) -> None:
    """Raise unless the value is a number of this kind in a range."""
    is_number = isinstance(value, kind) and not isinstance(value, bool)

    # a float32 cannot be compared with LARGEST
    number = value
    if isinstance(value, np.generic):
        number = value.item()
    if not is_number or not low < number < high:
        raise ValueError(f"{name} {rule}, but {name}={format_value(value)} was given.")


RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def make_rng(random_state: RandomState) -> np.random.Generator:
    """Return a generator for any seed; None follows ``np.random.seed``, as in scikit-learn."""
    if random_state is None:
        random_state = check_random_state(None)
    if isinstance(random_state, np.random.RandomState):
        seed = random_state.randint(2**32, dtype=np.uint64)
        return np.random.default_rng(seed)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = f"random_state is a whole number or a generator, but {random_state!r} was given."
        raise ValueError(msg) from error


def positions(rows: Given, n: int, name: str = "rows") -> Indices:
    """Return the positions in range(n) for any index of a vector of length n.

    `rows` is a slice, a mask of length n or a sequence of whole numbers; negative ones count from
    the end.
    """
    if isinstance(rows, slice):
        return np.ascontiguousarray(np.arange(n)[rows])  # PyTorch takes no negative strides

    if is_array(rows):
        rows = to_host(rows)
    given = np.asarray(rows)
    are_whole = given.size == 0 or given.dtype.kind in "iub"
    if given.ndim != 1 or not are_whole:
        raise ValueError(
            f"{name} must be a slice, a mask or a sequence of row numbers, but an array of shape "
            f"{given.shape} and dtype {given.dtype} was given."
        )

    # a mask
    if given.dtype == bool:
        if len(given) != n:
            raise ValueError(f"{name} is a mask of length {len(given)}, but there are {n} rows.")
        return np.flatnonzero(given)

    # row numbers

    is_outside = (given < -n) | (given >= n)
    outside = given[is_outside]
    if outside.size:
        msg = f"{name} contains {outside[0]}, but there are {n} rows, numbered from 0 to {n - 1}."
        raise IndexError(msg)
    return np.arange(n)[given.astype(np.intp)]


# Memory and cores

MAX_MEMORY = 2**30  # working memory of a pass, beyond what goes in and what comes out


UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """Working memory of a pass, and number of cores; None is the number for matrix products."""

    bytes: int = MAX_MEMORY
    threads: int | None = None

    @classmethod
    def of(cls, max_memory: int | str = MAX_MEMORY, n_jobs: int | None = None) -> Budget:
        """Return the budget for a user's `max_memory` and `n_jobs`."""
        memory = as_bytes(max_memory)
        if n_jobs is None:
            return cls(memory)

        if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool):
            raise ValueError(f"n_jobs is a whole number or None, but n_jobs={n_jobs!r} was given.")
        if n_jobs <= 0:
            return cls(memory)
        return cls(memory, int(n_jobs))


DEFAULT_BUDGET = Budget()


def as_bytes(max_memory: int | str) -> int:
    """Return 500_000_000, "500MB" or "0.5GiB" as a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Z]*)\s*", str(max_memory).upper())
    if isinstance(max_memory, bool) or match is None or match[2] not in UNITS:
        raise ValueError(
            'max_memory is a number of bytes or a text such as "500MB" or "2GiB", but '
            f"max_memory={max_memory!r} was given."
        )

    number, unit = match.groups()
    return int(float(number) * UNITS[unit])


def keep_freed_memory() -> None:
    """Make GNU's C library keep about 64 MB of freed memory: small fits take 0.8 of the time.

    It adapts to the largest freed piece below 32 MB.
    """
    np.empty(2**25 - 2**16, dtype=np.uint8)


# Tables

CURES = {
    "NaN": "Remove such rows or fill them in first, for example with sklearn.impute.SimpleImputer.",
    "infinity": "Remove such rows or clip them first, for example with numpy.clip.",
}
"""What to do about NaN and infinity in X."""

LEAVE_OUT = "Leave such rows out."
"""What to do about both in what belongs to its rows."""


class NotFiniteError(ValueError):
    """A table contains NaN or infinity."""


class NumberTable(Protocol):
    """Anything with a shape and a dtype: an array, a sparse matrix, a store, a Dask array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""

    @property
    def dtype(self) -> object:
        """The dtype of its entries."""


def refuse_non_finite(
    values: Array, start: int, name: str = "X", advice: str = "", *, gaps: bool = False
) -> None:
    """Raise if a table or column has an infinity, or without `gaps` a NaN, and say where.

    `start` is its first row. `advice` says what to do, instead of `CURES`.
    """
    if all_finite(entries(values)):
        return

    # all entries, or those that a sparse matrix stores
    numbers = to_host(entries(values))
    wrong = ~np.isfinite(numbers)
    if gaps:
        wrong = np.isinf(numbers)
    if not wrong.any():
        return

    # the first of them, for the message
    first = np.argwhere(wrong)[0]
    what = "infinity"
    if np.isnan(numbers[tuple(first)]):
        what = "NaN"
    cure = advice or CURES[what]

    # its row, and its column in a table
    place = first
    if is_sparse(values):
        coordinates = np.stack(values.tocoo().coords, axis=1)
        place = coordinates[first[0]]
    where = f"row {start + place[0]}"
    if len(place) > 1:
        where += f", column {place[1]}"
    raise NotFiniteError(f"{name} contains {what}, first at {where}. {cure}")


def refuse_wrong_shape(X: NumberTable, name: str) -> None:
    """Raise unless an array has two axes and real numbers."""
    refuse_complex(X, name)
    if len(X.shape) == 2:
        return

    x = "x"
    if name.isidentifier():
        x = name
    advice = f"numpy.reshape({x}, (-1, 1)) makes one feature of a vector, and (1, -1) one row."
    if len(X.shape) > 2:
        advice = f"numpy.reshape({x}, (len({x}), -1)) makes one row of each entry."
    raise ValueError(
        f"{name} has shape {tuple(X.shape)}; a table of shape (n, d) is needed. "
        f"Reshape your data: {advice}"
    )


def refuse_empty(table: NumberTable, name: str) -> None:
    """Raise if a table has no rows or no columns."""
    if 0 in table.shape:
        what = "feature" if table.shape[0] else "sample"
        said = f"{name} has 0 {what}(s) (shape={tuple(table.shape)})"
        raise ValueError(f"{said}: there is nothing to approximate, to learn from or to predict.")


def refuse_unequal(n: int | None, count: int, said: str = "y has {}", name: str = "X") -> None:
    """Raise if something has `count` rows instead of n; n may be None if unknown."""
    if n is not None and n != count:
        what = f"{name} has {n} rows, but {said.format(count)}"
        raise ValueError(f"{what}: give the same number of both.")


def refuse_complex(X: NumberTable, name: str) -> None:
    """Raise if the numbers are complex."""
    if getattr(X.dtype, "kind", None) == "c":
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)


def has_rows(block: object) -> bool:
    """Whether a block has rows, or may have rows, as a lazy frame."""
    if hasattr(block, "shape"):
        return bool(block.shape[0])
    if isinstance(block, Sized):
        return len(block) > 0
    return True


def to_table(X: Given, *, name: str = "X") -> Given:
    """Return data in memory as an array; sparse matrices and data frames are unchanged."""
    array = X
    if not is_sparse(X):
        array = to_numbers(X, name)
    refuse_wrong_shape(array, name)

    if hasattr(X, "columns"):
        return X
    return array


def to_numbers(X: Given, name: str) -> Numbers:
    """Return data in memory as an array of numbers, or raise an error that says why not."""
    is_masked = isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X)
    if is_masked:
        raise ValueError(
            f"{name} is a masked array, and its masked values would be used: fill them in first, "
            f"for example with numpy.ma.filled({name}, numpy.nan) and sklearn.impute.SimpleImputer."
        )
    _refuse_dates(X, name)

    try:
        array = np.asarray(X)
    except ValueError as error:
        msg = f"{name} is not a table: its rows differ in length. Give rows of equal length."
        raise ValueError(msg) from error

    if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
        return array

    # what is no table of numbers, or not yet
    if array.ndim == 0 and array.dtype.kind in "OSU":  # a dictionary, or the name of a file
        said = f"{name} is a {type(X).__name__} ({format_cell(X)}), not a table"
        raise TypeError(f"{said}: pass an array or a data frame with its content.")

    if array.dtype.kind == "V":
        raise ValueError(
            f"{name} is an array of records: turn these into columns first, with "
            "numpy.lib.recfunctions.structured_to_unstructured."
        )

    refuse_complex(array, name)
    return _to_float64(array, name)


def _refuse_dates(X: Given, name: str) -> None:
    """Raise if an array or a column of a frame has dates, which need a unit to become numbers."""
    dtypes: Given = getattr(X, "dtypes", None)  # a data frame has a dtype for each column
    if not hasattr(dtypes, "__iter__"):
        dtypes = [getattr(X, "dtype", None)]

    kinds = [getattr(dtype, "kind", None) for dtype in dtypes]
    if "m" in kinds or "M" in kinds:
        raise ValueError(
            f"{name} has dates or durations. Convert them to numbers, for example with "
            "(dates - dates.min()) / numpy.timedelta64(1, 'D')."
        )


def _to_float64(array: Numbers, name: str) -> Floats:
    """Convert an array of other numbers, or of objects, to float64."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{name} has dtype {array.dtype}, which does not convert to numbers: {error}."
        if array.ndim == 2:
            msg += " Convert it, or pass a data frame, which may have dates and text."
        if isinstance(error, TypeError):
            raise TypeError(msg) from error
        raise ValueError(msg) from error


# Targets


def bring_to_host(y: Given, learner: object, what: str = "targets") -> Given:
    """Return y on the host; raise if it is None."""
    if y is None:
        raise ValueError(
            f"{type(learner).__name__} requires y to be passed, but the target y is None: "
            f"give as many {what} as X has rows."
        )

    y = gather(y)
    if hasattr(y, "device") and not isinstance(y, np.ndarray):
        return to_host(y)
    return y
