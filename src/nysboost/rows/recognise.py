"""Recognise the user's input once: an array, a store, an iterator, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from array_api_compat import is_array_api_obj

from nysboost.numerics.arrays import (
    SUPPORTED,
    as_float,
    find_map,
    is_lazy,
    is_sparse,
    is_supported,
    spaced_indices,
    sum_duplicates,
)
from nysboost.numerics.checks import (
    Given,
    has_rows,
    refuse_empty,
    refuse_non_finite,
    refuse_wrong_shape,
    to_numbers,
)
from nysboost.numerics.linalg import column_sizes
from nysboost.rows.dask_rows import DaskRows, recognise_dask
from nysboost.rows.dask_survey import survey_rows
from nysboost.rows.driver import scan_size
from nysboost.rows.iterated_rows import IteratedRows
from nysboost.rows.rows import ArrayRows, Rows, RowStream
from nysboost.rows.sizes import MEDIAN_ROWS, PROBE_ROWS
from nysboost.rows.stored_rows import StoredRows


def make_rows(X: Given, *, name: str = "X") -> ArrayRows:
    """Recognise how a table of shape (n, d) is stored, and check that it holds numbers."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"{name} is an iterator, which yields each row once, but a fit needs random access. "
            "Fit to an array, a memory map, an HDF5 or a Zarr array, and transform the iterator."
        )
    if is_lazy(X):
        return recognise_dask(X, name)

    # a store is anything that has chunks beside what an array has
    _refuse_closed(X, name)
    stored = all(hasattr(X, part) for part in ("chunks", "shape", "dtype"))
    if not stored:
        X = _to_array(X, name)
    refuse_wrong_shape(X, name)
    refuse_empty(X, name)

    if stored:
        return StoredRows(X)
    return ArrayRows(X)


def _to_array(X: Given, name: str) -> Given:
    """Return data in memory as an array of its namespace, or as a CSR matrix."""
    if is_sparse(X):
        return sum_duplicates(X.tocsr())
    if isinstance(X, np.ndarray) or not is_array_api_obj(X):
        return to_numbers(X, name)

    if not is_supported(X):
        raise TypeError(
            f"{name} is a {type(X).__module__}.{type(X).__name__}, but only {SUPPORTED} arrays are "
            "supported. Pass numpy.asarray(X)."
        )
    if getattr(X, "is_sparse", False):
        raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense(), or SciPy's CSR.")
    if hasattr(X, "detach"):
        X = X.detach()  # no gradients here
    return X


def make_stream(X: Given) -> RowStream:
    """Recognise input that is read once: a table, or an iterator of tables."""
    if isinstance(X, RowStream):
        return X
    if isinstance(X, Iterator):
        blocks = filter(has_rows, X)
        return IteratedRows(make_rows(block, name="A block of X") for block in blocks)
    return make_rows(X)


def scan_rows(X: Given, *, name: str = "X") -> Rows:
    """Recognise the input of a fit, and check that all values are finite."""
    if isinstance(X, Rows):
        return X
    rows = make_rows(X, name=name)
    if isinstance(rows, DaskRows):
        return survey_rows(rows, (PROBE_ROWS, MEDIAN_ROWS))

    # a store is not read again for the rows on which kernels and bandwidths are looked at
    for_kernels = spaced_indices(rows.n, PROBE_ROWS)
    for_bandwidths = spaced_indices(rows.n, MEDIAN_ROWS)
    spread = np.union1d(for_kernels, for_bandwidths)
    held = []

    sizes = np.zeros(rows.n_features)
    start = 0
    for stored in rows.pieces(scan_size(rows)):
        # the largest sizes, which are NaN or infinite where an entry is
        piece = as_float(stored)
        sizes = np.maximum(sizes, column_sizes(piece))
        if not np.isfinite(sizes).all():
            refuse_non_finite(piece, start, name)

        # the rows that are held
        stop = start + piece.shape[0]
        if isinstance(rows, StoredRows):
            is_here = (spread >= start) & (spread < stop)
            held.append(piece[spread[is_here] - start])
        start = stop

    rows = replace(rows, sizes=sizes)
    if held:
        rows = replace(rows, held=(spread, np.concatenate(held)))
    return rows


def is_external(X: Given) -> bool:
    """Whether X is on a device, on disk or lazy, so that it should not be copied into memory."""
    if isinstance(X, np.ndarray):
        return find_map(X) is not None
    _refuse_closed(X, "X")
    return is_lazy(X) or is_array_api_obj(X) or hasattr(X, "chunks") or isinstance(X, Iterator)


def is_frame(X: object) -> bool:
    """Whether X is a data frame: columns with names and types of their own."""
    if is_lazy(X) and not hasattr(X, "_meta"):  # a value of Dask that may be anything
        return False
    of_frames = ("collect_schema", "column_names", "columns")
    return any(hasattr(X, name) for name in of_frames)


def _refuse_closed(X: Given, name: str) -> None:
    """Raise if X belongs to a closed file."""
    if type(X).__module__.startswith("h5py") and not X:
        raise ValueError(f"{name} is an HDF5 dataset whose file is closed: open the file again.")
