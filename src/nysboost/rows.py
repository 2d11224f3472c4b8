"""Where data rows come from, and the only place that knows how they are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import numpy as np
from array_api_compat import is_array_api_obj
from scipy.sparse import issparse

from nysboost.arrays import Array, Indices, dtype_name, namespace, row_blocks, to_host

SCAN_BYTES = 64 * 2**20


class Rows(Protocol):
    """A table of n points of which rows are taken, never the whole."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns."""

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Rows of an array in memory, of a memory map, or of a CSR matrix."""

    data: Array

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    def take(self, indices: Indices | slice) -> Array:
        """Return the rows at `indices` in floating point, shape (len(indices), d)."""
        if isinstance(indices, slice) or issparse(self.data) or isinstance(self.data, np.ndarray):
            return as_float(self.data[indices])
        xp = namespace(self.data)
        return as_float(xp.take(self.data, _on_device(indices, self.data), axis=0))


@dataclass(frozen=True)
class ForgottenRows:
    """What is left of the rows of an approximation that was saved without its data."""

    n: int
    n_features: int

    def take(self, indices: Indices | slice) -> NoReturn:  # noqa: ARG002
        """Say that the rows are gone."""
        msg = (
            "This approximation was restored from a saved estimator, which does not keep the "
            f"{self.n} training rows. Call transform on the rows you need, or fit again."
        )
        raise RuntimeError(msg)


def as_rows(X: Any, *, name: str = "X") -> Rows:
    """Recognise what the user passed in, once, and check that it is numbers.

    Parameters
    ----------
    X : array-like, memory map or sparse matrix of shape (n, d)
        The data; lists and data frames are converted to NumPy.
    name : str
        What to call it in an error message.
    """
    if issparse(X):
        _refuse_complex(X, name)
        rows = ArrayRows(X.tocsr())
    elif is_array_api_obj(X) and not isinstance(X, np.ndarray):
        rows = ArrayRows(X)
    else:
        rows = ArrayRows(_as_numbers(X, name))
    if len(rows.data.shape) != 2:
        msg = (
            f"{name} has shape {tuple(rows.data.shape)}; a table of shape (n, d) is needed. "
            "Reshape your data: X.reshape(-1, 1) makes one feature of a vector."
        )
        raise ValueError(msg)
    if rows.n == 0 or rows.n_features == 0:
        msg = f"{name} has shape {tuple(rows.data.shape)}: there is nothing to approximate."
        raise ValueError(msg)
    _refuse_non_finite(rows, name)
    return rows


def as_float(block: Array) -> Array:
    """Return float32 and float64 as they are, and every other number as float64."""
    if dtype_name(block) in ("float32", "float64"):
        return block
    if issparse(block) or isinstance(block, np.ndarray):
        return block.astype(np.float64)
    xp = namespace(block)
    return xp.astype(block, xp.float64)


def scan(rows: Rows) -> Iterator[tuple[slice, Array]]:
    """Read all rows once, in blocks, as pairs of a slice and its rows."""
    for block in row_blocks(rows.n, 8 * rows.n_features, SCAN_BYTES):
        yield block, rows.take(block)


def spread_indices(n: int, at_most: int) -> Indices:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.intp)


def _as_numbers(X: Any, name: str) -> np.ndarray[Any, Any]:
    try:
        array = np.asarray(X)
    except ValueError as error:
        msg = f"{name} is no table: its rows differ in length. Give each row as many numbers."
        raise ValueError(msg) from error
    if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
        return array
    _refuse_complex(array, name)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        msg = f"{name} has dtype {array.dtype} and does not convert to numbers: {error}."
        raise ValueError(msg) from error


def _refuse_complex(X: Any, name: str) -> None:
    if np.iscomplexobj(X):
        msg = f"Complex data not supported: {name} has dtype {X.dtype}. Pass real numbers."
        raise ValueError(msg)


def _on_device(indices: Indices, reference: Array) -> Array:
    xp = namespace(reference)
    return xp.asarray(indices, device=reference.device)


def _refuse_non_finite(rows: Rows, name: str) -> None:
    for block, values in scan(rows):
        flat = values.data if issparse(values) else values
        xp = namespace(flat)
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not bool(xp.isfinite(xp.sum(flat)))
        if suspicious and not bool(xp.all(xp.isfinite(flat))):
            dense = to_host(values.toarray() if issparse(values) else values)
            row, column = np.argwhere(~np.isfinite(dense))[0]
            what = "NaN" if np.isnan(dense[row, column]) else "infinity"
            msg = (
                f"{name} contains {what}, first at row {block.start + row}, column {column}. "
                "Remove such rows or fill them in first, with sklearn.impute.SimpleImputer say."
            )
            raise ValueError(msg)
