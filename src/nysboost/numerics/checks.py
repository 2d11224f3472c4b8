"""Checks of parameters and tables, each with a sentence, and generators from seeds."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_array_api_obj
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """Return a sentence that there is no such name, with the nearest ones, or all of a few."""
    folded = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(str(name).lower(), folded, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(repr(folded[one]) for one in near)}?" if near else ""
    # of many names the nearest are enough
    all_ = "" if near and len(folded) > 20 else f" Known are {', '.join(folded.values())}."
    return f"There is no {what} {name!r}.{hint}{all_}"


def format_value(value: Any) -> str:
    """Return a value as an error message shows it: an array by its shape alone."""
    shape = getattr(value, "shape", ())
    return f"<array of shape {tuple(shape)}>" if shape else repr(value)


def format_count(n: int, what: str) -> str:
    """Return a number of things as a sentence has it: "1 row", "2 rows"."""
    return f"{n} {what}{'s' if n != 1 else ''}"


def require_number(name: str, value: Any) -> None:
    """Raise unless the value is a finite number."""
    _require(name, "must be a number", value, -np.inf, np.inf)


def require_positive(name: str, value: Any) -> None:
    """Raise unless the value is a positive finite number."""
    _require(name, "must be a positive number", value, 0, np.inf)


def require_fraction(name: str, value: Any) -> None:
    """Raise unless the value is a number between 0 and 1."""
    _require(name, "lies between 0 and 1", value, 0, 1)


def require_count(name: str, value: Any) -> None:
    """Raise unless the value is a positive whole number."""
    _require(name, "must be a positive whole number", value, 0, np.inf, Integral)


def _require(name: str, rule: str, value: Any, low: float, high: float, kind: Any = Real) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not low < value < high:
        raise ValueError(f"{name} {rule}, but {name}={format_value(value)} was given.")


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


# Tables


class NotFiniteError(ValueError):
    """A table that has a NaN or an infinity."""


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


def refuse_non_finite(values: Array, start: int, name: str = "X") -> None:
    """Raise if a table has a NaN or an infinity, and say where; `start` is its first row."""
    if not all_finite(arrays.entries(values)):
        table = arrays.to_host(arrays.dense(values))
        row, column = np.argwhere(~np.isfinite(table))[0]
        what = "NaN" if np.isnan(table[row, column]) else "infinity"
        raise NotFiniteError(
            f"{name} contains {what}, first at row {start + row}, column {column}. "
            "Remove such rows or fill them in first, with sklearn.impute.SimpleImputer say."
        )


def refuse_wrong_shape(X: Any, name: str) -> None:
    """Raise if an array has not two axes, or its numbers are complex."""
    refuse_complex(X, name)
    if len(X.shape) != 2:
        raise ValueError(
            f"{name} has shape {tuple(X.shape)}; a table of shape (n, d) is needed. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a vector."
        )


def refuse_empty(table: Any, name: str) -> None:
    """Raise if a table has no rows or no columns."""
    if 0 in table.shape:
        what = "sample" if table.shape[0] == 0 else "feature"
        said = f"{name} has 0 {what}(s) (shape={tuple(table.shape)})"
        raise ValueError(f"{said}: there is nothing to approximate, to learn from or to predict.")


def refuse_unequal(n: int | None, count: int, said: str = "y has {}", name: str = "X") -> None:
    """Raise if a table of n rows, if that is known, came with more or fewer than so many."""
    if n is not None and n != count:
        what = f"{name} has {n} rows, but {said.format(count)}"
        raise ValueError(f"{what}: give as many of one as of the other.")


def refuse_complex(X: Any, name: str) -> None:
    """Raise if the numbers are complex."""
    if getattr(X.dtype, "kind", None) == "c":
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)


# Seeds


RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def make_rng(random_state: RandomState) -> np.random.Generator:
    """Turn any seed into a generator; None follows ``np.random.seed``, as in scikit-learn."""
    random_state = check_random_state(None) if random_state is None else random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, dtype=np.uint64))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        msg = f"random_state is a whole number or a generator, but {random_state!r} was given."
        raise ValueError(msg) from error
