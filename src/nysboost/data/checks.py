"""What every table of numbers is checked for, wherever it is, each with a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, entries, namespace


class NotFiniteError(ValueError):
    """A table that has a NaN or an infinity."""


def column_sizes(values: Array) -> Floats:
    """Return the largest size in each column of a table, shape (d,), NaN where there is one."""
    if arrays.is_sparse(values):
        found: Floats = abs(values).max(axis=0).toarray().ravel()  # of a sparse array 1-d
        return found
    xp = namespace(values)
    return arrays.floats_on_host(xp.maximum(xp.max(values, axis=0), -xp.min(values, axis=0)))


def refuse_non_finite(values: Array, start: int, name: str = "X") -> None:
    """Raise if a table has a NaN or an infinity, and say where; `start` is its first row."""
    flat = entries(values)
    xp = namespace(flat)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not bool(xp.isfinite(xp.sum(flat)))
    if suspicious and not bool(xp.all(xp.isfinite(flat))):
        table = arrays.to_host(arrays.dense(values))
        row, column = np.argwhere(~np.isfinite(table))[0]
        what = "NaN" if np.isnan(table[row, column]) else "infinity"
        raise NotFiniteError(
            f"{name} contains {what}, first at row {start + row}, column {column}. "
            "Remove such rows or fill them in first, with sklearn.impute.SimpleImputer say."
        )


def refuse_other_shapes(array: Any, name: str) -> None:
    """Raise if an array has not two axes."""
    if len(array.shape) != 2:
        raise ValueError(
            f"{name} has shape {tuple(array.shape)}; a table of shape (n, d) is needed. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a vector."
        )


def refuse_empty(table: Any, name: str) -> None:
    """Raise if a table has no rows or no columns."""
    if 0 in table.shape:
        what = "sample" if table.shape[0] == 0 else "feature"
        said = f"{name} has 0 {what}(s) (shape={tuple(table.shape)})"
        raise ValueError(f"{said}: there is nothing to approximate, to learn from or to predict.")


def refuse_complex(X: Any, name: str) -> None:
    """Raise if the numbers are complex."""
    if np.iscomplexobj(X):
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)
