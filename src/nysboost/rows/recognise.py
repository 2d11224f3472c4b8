"""What the user passed in, recognised once: an array, a store, an iterator, or a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from array_api_compat import is_array_api_obj

from nysboost.numerics.arrays import SUPPORTED, Array, as_float, is_sparse, is_supported
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.magnitudes import column_sizes
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.checks import (
    has_rows,
    refuse_complex,
    refuse_empty,
    refuse_non_finite,
    refuse_wrong_shape,
)
from nysboost.rows.dask_rows import DaskRows, recognise_dask, survey_rows
from nysboost.rows.lazy import is_lazy
from nysboost.rows.memory_maps import find_map
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS, PROBE_ROWS, scan_size
from nysboost.rows.stored_rows import StoredRows


class IteratedRows(Rows):
    """Rows that come once, block after block: to be transformed, not to fit on."""

    n = None  # type: ignore[assignment]
    in_memory, lazy = False, True
    template: Array
    n_features: int
    numbers_per_row: int

    def __init__(self, blocks: Iterator[Any]) -> None:
        self._rest = (make_rows(block, name="A block of X") for block in filter(has_rows, blocks))
        first = next(self._rest, None)
        if first is None:
            raise ValueError("X is an iterator that gave no block of rows.")
        self._first, self.template, self.n_features = first, first.template, first.n_features
        self.numbers_per_row = first.numbers_per_row

    def pieces(self, size: int) -> Iterator[Array]:
        """Yield the blocks as they come, those of more than `size` rows in parts."""
        for number, table in enumerate(chain([self._first], self._rest)):
            if table.n_features != self.n_features:
                raise ValueError(
                    f"Block {number} of X has {table.n_features} columns, but the blocks before it "
                    f"have {self.n_features}."
                )
            yield from table.pieces(size)


def make_rows(X: Any, *, name: str = "X") -> ArrayRows:
    """Recognise how a table, of shape (n, d), is stored, and check that it is one of numbers."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"{name} is an iterator, which gives each row once, but fitting asks for any row. "
            "Fit on an array, a memory map, an HDF5 or a Zarr array, and transform the iterator."
        )
    if is_lazy(X):
        return recognise_dask(X, name)
    _refuse_closed(X, name)
    stored = all(hasattr(X, part) for part in ("chunks", "shape", "dtype"))
    if is_array_api_obj(X) and not isinstance(X, np.ndarray) and not stored:
        if not is_supported(X):
            raise TypeError(
                f"{name} is a {type(X).__module__}.{type(X).__name__}, but {SUPPORTED} arrays are "
                "what NysBoost works with. Pass numpy.asarray(X)."
            )
        if getattr(X, "is_sparse", False):
            raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense(), or SciPy's CSR.")
        X = X.detach() if hasattr(X, "detach") else X  # no gradients here
    elif not is_sparse(X) and not stored:
        X = to_numbers(X, name)
    refuse_wrong_shape(X, name)
    refuse_empty(X, name)
    return StoredRows(X) if stored else ArrayRows(X.tocsr() if is_sparse(X) else X)


def scan_rows(X: Any, *, name: str = "X") -> Rows:
    """Recognise what the user passed in to fit on, once, and check that all is finite."""
    if isinstance(X, Rows):
        return X
    rows, start = make_rows(X, name=name), 0
    if isinstance(rows, DaskRows):
        return survey_rows(rows, (PROBE_ROWS, MEDIAN_ROWS))
    spread = np.union1d(spaced_indices(rows.n, PROBE_ROWS), spaced_indices(rows.n, MEDIAN_ROWS))
    sizes, parts = np.zeros(rows.n_features), []
    for stored in rows.pieces(scan_size(rows)):
        piece = as_float(stored)
        sizes = np.maximum(sizes, column_sizes(piece))
        if not np.isfinite(sizes).all():
            refuse_non_finite(piece, start, name)
        if isinstance(rows, StoredRows):
            here = spread[(spread >= start) & (spread < start + piece.shape[0])]
            parts.append(piece[here - start])
        start += piece.shape[0]
    return replace(rows, sizes=sizes, held=(spread, np.concatenate(parts)) if parts else None)


def is_external(X: Any) -> bool:
    """Whether X is on a device, on disk or yet to come: not to be copied into memory."""
    if isinstance(X, np.ndarray):
        return find_map(X) is not None
    _refuse_closed(X, "X")
    return is_lazy(X) or is_array_api_obj(X) or hasattr(X, "chunks") or isinstance(X, Iterator)


def make_stream(X: Any) -> Rows:
    """Recognise what the user passed in to be read once: a table, or an iterator of tables."""
    if isinstance(X, Rows):
        return X
    return IteratedRows(X) if isinstance(X, Iterator) else make_rows(X)


def to_table(X: Any, *, name: str = "X") -> Any:
    """Return what lies in memory as an array, or a sparse matrix or data frame as it is."""
    array = X if is_sparse(X) else to_numbers(X, name)
    refuse_wrong_shape(array, name)
    return X if hasattr(X, "columns") else array


def _refuse_closed(X: Any, name: str) -> None:
    if type(X).__module__.startswith("h5py") and not X:
        raise ValueError(f"{name} is an HDF5 dataset whose file is closed: open the file again.")


def to_numbers(X: Any, name: str) -> np.ndarray[Any, Any]:
    """Return what lies in memory as an array of numbers, or say why it is none."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(
            f"{name} is a masked array, and its masked values would count: fill them in first, "
            "with sklearn.impute.SimpleImputer say."
        )
    dtypes: Any = getattr(X, "dtypes", None)  # a data frame has a dtype for each column
    dtypes = list(dtypes) if hasattr(dtypes, "__iter__") else [getattr(X, "dtype", None)]
    if any(getattr(dtype, "kind", None) in ("m", "M") for dtype in dtypes):
        raise ValueError(
            f"{name} has dates or spans of time, which are no numbers until you choose a unit and "
            "an origin: (dates - dates.min()) / numpy.timedelta64(1, 'D'), say."
        )
    try:
        array = np.asarray(X)
    except ValueError as error:
        msg = f"{name} is no table: its rows differ in length. Give each row as many numbers."
        raise ValueError(msg) from error
    if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8:
        return array
    if array.ndim == 0 and array.dtype.kind in "OSU":  # a dictionary, or the name of a file
        said = f"{name} is a {type(X).__name__} ({X!r:.60}), and no table"
        raise TypeError(f"{said}: make an array or a data frame of what is in it.")
    if array.dtype.kind == "V":
        raise ValueError(
            f"{name} is an array of records: turn these into columns first, with "
            "numpy.lib.recfunctions.structured_to_unstructured."
        )
    refuse_complex(array, name)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{name} has dtype {array.dtype} and does not convert to numbers: {error}."
        raise (TypeError if isinstance(error, TypeError) else ValueError)(msg) from error
