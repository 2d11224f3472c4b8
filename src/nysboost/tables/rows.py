"""Rows of any table as numbers, by the schema that an estimator has fitted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_feature_names, validate_data

from nysboost.data.lazy import compute_parts, is_lazy
from nysboost.data.recognise import as_rows, rows_of, stays_where_it_is, stream_of, table_of
from nysboost.data.rows import EncodedRows, scan_size
from nysboost.numerics.arrays import Array, Floats, as_float, dense, is_sparse, to_host
from nysboost.numerics.checks import NotFiniteError, column_sizes, refuse_unequal
from nysboost.tables.codes import Codes
from nysboost.tables.columns import SAMPLE_ROWS, Look, add_looks, is_far, look_at, say_far
from nysboost.tables.frames import columns_of, frame_of, is_frame, names_of, refuse_unnamed
from nysboost.tables.schema import Schema

USUAL = 1e-60, 1e15
"""Columns of sizes between these need no look at each: their squares are in range."""

Found = tuple[Codes | None, Any]


def fit_rows(
    estimator: Any, X: Any, missing: str, Y: Floats | None = None, weights: Floats | None = None
) -> Any:
    """Decide what the columns of a table are, and return its rows as numbers.

    The estimator gets `schema_`, `n_features_in_`, `feature_names_in_` and `_table`, its `Codes`
    or None. With `missing` "refuse" gaps are errors. Y (n, t) and weights (n,) are for the codes.
    """
    if is_frame(X):
        codes, rows = _fit_frame(X, missing, Y, weights)
        names = names_of(X)
        text = not hasattr(X, "iloc") or all(isinstance(c, str) for c in X.columns)
        name_columns(estimator, names if text else None, len(names))
    elif stays_where_it_is(X):
        codes, rows = _fit_array(X, missing, Y, weights)
        name_columns(estimator, None, rows.n_features if codes is None else codes.schema.width)
    else:
        X = _check_table(estimator, X, missing, reset=True)
        codes, rows = _fit_array(X, missing, Y, weights)
    estimator._table = codes
    estimator.schema_ = Schema((), estimator.n_features_in_) if codes is None else codes.schema
    return rows


def new_rows(estimator: Any, X: Any, missing: str) -> Any:
    """Return the rows of another table as numbers, as the fit of an estimator had them."""
    codes = estimator._table
    if isinstance(X, Iterator):
        return stream_of(_coded_blocks(estimator, X, missing))
    if is_frame(X):
        return rows_of(_frame_numbers(estimator, X, missing, 0))
    if not stays_where_it_is(X):
        X = _check_table(estimator, X, missing, reset=False)
        return rows_of(_array_numbers(codes, missing, X, 0))
    rows = stream_of(X)
    refuse_width(estimator, rows.n_features)
    if rows.lazy:
        return rows if codes is None else rows_of(codes.lazily(X, missing))
    if codes is None and rows.in_memory:  # on a device
        return rows_of(_array_numbers(codes, missing, X, 0))
    return EncodedRows(rows, partial(_array_numbers, codes, missing))


def frame_numbers(X: Any) -> tuple[Codes | None, Any]:
    """Return the codes of a data frame without targets, and its rows as an array of numbers."""
    codes, rows = _fit_frame(X, "refuse", None, None)
    return codes, rows.data


# Fitting


def _fit_frame(X: Any, missing: str, Y: Floats | None, weights: Floats | None) -> Found:
    if not is_lazy(X):
        frame = frame_of(X)
        _refuse_empty(frame, "a fit")
        codes, numbers = _train(frame.to_native(), missing, Y, weights)
        return codes, as_rows(_as_narrow(numbers, frame))
    refuse_unnamed(X)
    if all(getattr(kind, "kind", "O") in "fiu" for kind in X.dtypes):
        try:
            rows = as_rows(X)
        except NotFiniteError:
            if missing != "fill":
                raise
        else:  # in which there is nothing to look for
            return _codes([look_at(X._meta)], missing, named=True), rows
    return _fit_parts(X, missing)


def _fit_array(X: Any, missing: str, Y: Floats | None, weights: Floats | None) -> Found:
    """Fit to an array of any namespace or store, as it is where each column is of usual size."""
    text = isinstance(X, np.ndarray) and X.dtype.kind == "O"
    try:
        if not text:
            rows = as_rows(X)
            sizes = rows.sizes
            if np.all((sizes == 0) | ((sizes > USUAL[0]) & (sizes < USUAL[1]))):
                return None, rows
    except NotFiniteError:
        if missing != "fill" or is_sparse(X):
            raise
    if is_sparse(X):
        _refuse_far(X, 0, float(np.min(np.abs(X.data), where=X.data != 0, initial=np.inf)))
        return None, rows
    if not stays_where_it_is(X):
        codes, numbers = _train(X, missing, Y, weights)
        return codes, as_rows(numbers)
    if is_lazy(X):
        return _fit_parts(X, missing)
    rows = rows_of(X)
    looks = map(look_at, rows.pieces(scan_size(rows)))
    codes = _codes(looks, missing, named=False)
    return codes, EncodedRows(rows, partial(_array_numbers, codes, missing))


def _train(X: Any, missing: str, Y: Floats | None, weights: Floats | None) -> tuple[Codes, Floats]:
    """Return the codes of a table in memory, trained on Y, and its rows as numbers."""
    refuse_unequal(len(X), len(X) if Y is None else len(Y))
    cells = list(columns_of(X))
    schema = Schema.of_looks(list(map(Look.at, cells)), missing, named=is_frame(X))
    return Codes.train(schema, schema.read_cells(cells, missing), Y, weights)


def _fit_parts(X: Any, missing: str) -> Found:
    """Look at each part of a lazy table where it is, decide, and code it there."""
    size = max(1, SAMPLE_ROWS // X.npartitions)
    codes = _codes(compute_parts(X, partial(look_at, size=size)), missing, named=is_frame(X))
    return codes, as_rows(codes.lazily(X, missing))


def _codes(looks: Iterable[list[Look]], missing: str, *, named: bool) -> Codes:
    looked: list[Look] = reduce(add_looks, looks)
    return Codes.of(Schema.of_looks(looked, missing, named=named))


# Reading


def _frame_numbers(estimator: Any, X: Any, missing: str, start: int) -> Any:
    """Return the rows of a data frame as numbers, lazy ones as a lazy array."""
    codes = estimator._table
    refuse_unnamed(X)
    if not estimator.schema_.named:
        refuse_width(estimator, len(names_of(X)))
    if is_lazy(X):
        return X if codes is None else codes.lazily(X, missing)
    frame = frame_of(X)
    _refuse_empty(frame, type(estimator).__name__)
    if codes is not None:
        return _as_narrow(codes(frame.to_native(), missing, start), frame)
    _check_feature_names(estimator, X, reset=False)
    columns = Schema((), estimator.n_features_in_).read(frame.to_native(), missing, start)
    return _as_narrow(np.stack(columns, axis=1), frame)


def _array_numbers(codes: Codes | None, missing: str, X: Any, start: int) -> Any:
    """Return the rows of an array or a CSR matrix as numbers."""
    if codes is not None:
        return codes(X, missing, start)
    _refuse_far(X, start)
    return X


def _coded_blocks(estimator: Any, blocks: Iterator[Any], missing: str) -> Iterator[Any]:
    codes, start = estimator._table, 0
    for block in blocks:
        if is_frame(block):
            numbers = _frame_numbers(estimator, block, missing, start)
        else:
            part = block if hasattr(block, "shape") else np.asarray(block)
            refuse_width(estimator, part.shape[1])
            numbers = _array_numbers(codes, missing, part, start)
        start += numbers.shape[0]
        yield numbers


def _as_narrow(numbers: Floats, frame: Any) -> Any:
    """Return them in float32 if that is what the columns were."""
    import narwhals as nw

    narrow = all(kind == nw.Float32 for kind in frame.schema.values())
    return numbers.astype(np.float32) if narrow else numbers


def _check_table(estimator: Any, X: Any, missing: str, *, reset: bool) -> Any:
    """Return an array or a CSR matrix after scikit-learn's checks; one with text as objects."""
    text = _text_of(X)
    if text is not None and (reset or estimator._table is not None):
        if reset:
            name_columns(estimator, None, text.shape[1])
        refuse_width(estimator, text.shape[1])
        return text
    finite: Any = False if missing == "refuse" else "allow-nan"  # gaps are told of elsewhere
    how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": finite}
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up
        return validate_data(estimator, table_of(X), reset=reset, **how)


def _text_of(X: Any) -> Any:
    """Return a table of objects some of which are text, no numbers, or None."""
    if is_sparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUT":
        return None
    cells = None
    try:
        cells = np.asarray(X).astype(object)
        cells.astype(np.float64)
    except (TypeError, OverflowError):
        return None
    except ValueError:  # of text, or of rows that differ in length
        return cells if cells is not None and cells.ndim == 2 and len(cells) else None
    return None


def name_columns(estimator: Any, names: list[str] | None, width: int) -> None:
    """Let an estimator know how many columns there are, and their names, if they have any."""
    estimator.n_features_in_ = width
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def refuse_width(estimator: Any, width: int) -> None:
    """Raise if a table has not as many columns as that of the fit."""
    if width != estimator.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def _refuse_empty(frame: Any, who: str) -> None:
    if not len(frame):
        raise ValueError(
            f"X is a data frame with 0 sample(s) (shape={tuple(frame.shape)}), while a minimum of "
            f"1 is required by {who}."
        )


def _refuse_far(X: Array, start: int, usual: float = 0.0) -> None:
    """Refuse a code for "no data" in an array or a CSR matrix, and say where it is."""
    if not X.shape[0]:
        return
    sizes = column_sizes(as_float(X))
    j = int(np.argmax(sizes))
    if np.isfinite(sizes[j]) and is_far(sizes[j], usual):
        column = to_host(dense(X[:, j : j + 1]))[:, 0]
        row = int(np.argmax(np.abs(column)))
        raise ValueError(say_far(str(j), float(column[row]), start + row))
