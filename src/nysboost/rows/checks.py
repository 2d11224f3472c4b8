"""Checks of tables: their shape, their kind of numbers, and whether these are finite."""

from __future__ import annotations

from collections.abc import Sized
from typing import Protocol, TypeAlias

import numpy as np

from nysboost.numerics.arrays import Array, all_finite, dense, entries, to_host


class NotFiniteError(ValueError):
    """A table that has a NaN or an infinity."""


class Table(Protocol):
    """Anything with a shape and a dtype: an array, a sparse matrix, a store, a Dask array."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, d)."""

    @property
    def dtype(self) -> object:
        """The dtype of its entries."""


Block: TypeAlias = object
"""A table that came out of an iterator, before anything is known of it."""


def refuse_non_finite(values: Array, start: int, name: str = "X") -> None:
    """Raise if a table has a NaN or an infinity, and say where; `start` is its first row."""
    if all_finite(entries(values)):
        return

    # the first of them, for the message
    table = to_host(dense(values))
    row, column = np.argwhere(~np.isfinite(table))[0]
    what = "infinity"
    if np.isnan(table[row, column]):
        what = "NaN"

    raise NotFiniteError(
        f"{name} contains {what}, first at row {start + row}, column {column}. "
        "Remove such rows or fill them in first, for example with sklearn.impute.SimpleImputer."
    )


def refuse_wrong_shape(X: Table, name: str) -> None:
    """Raise if an array has not two axes, or its numbers are complex."""
    refuse_complex(X, name)
    if len(X.shape) != 2:
        raise ValueError(
            f"{name} has shape {tuple(X.shape)}; a table of shape (n, d) is needed. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a vector."
        )


def refuse_empty(table: Table, name: str) -> None:
    """Raise if a table has no rows or no columns."""
    if 0 in table.shape:
        what = "feature"
        if table.shape[0] == 0:
            what = "sample"
        said = f"{name} has 0 {what}(s) (shape={tuple(table.shape)})"
        raise ValueError(f"{said}: there is nothing to approximate, to learn from or to predict.")


def refuse_unequal(n: int | None, count: int, said: str = "y has {}", name: str = "X") -> None:
    """Raise if something else has `count` rows, and not n; n is None if it is unknown."""
    if n is not None and n != count:
        what = f"{name} has {n} rows, but {said.format(count)}"
        raise ValueError(f"{what}: give as many of one as of the other.")


def refuse_complex(X: Table, name: str) -> None:
    """Raise if the numbers are complex."""
    if getattr(X.dtype, "kind", None) == "c":
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)


def has_rows(block: Block) -> bool:
    """Whether a block has rows, or may have: a lazy frame does not say."""
    if hasattr(block, "shape"):
        return bool(block.shape[0])
    if isinstance(block, Sized):
        return len(block) > 0
    return True
