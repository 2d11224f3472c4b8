"""Rows of any table as numbers, by the schema that an estimator has fitted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.sparsefuncs import csc_median_axis_0
from sklearn.utils.validation import _check_feature_names, validate_data

from nysboost.numerics.arrays import Floats, floats_on_host, is_sparse
from nysboost.numerics.indices import spaced_indices
from nysboost.rows.checks import NotFiniteError, has_rows, refuse_unequal
from nysboost.rows.lazy import compute_parts, is_lazy
from nysboost.rows.recognise import (
    is_external,
    make_rows,
    make_stream,
    scan_rows,
    to_table,
)
from nysboost.rows.sizes import MEDIAN_ROWS, scan_size
from nysboost.rows.views import EncodedRows
from nysboost.tables.codes import Codes, refuse_far
from nysboost.tables.columns import ColumnSummary, median, sample_step, summarise_columns
from nysboost.tables.frames import is_frame, list_column_names, read_columns, to_narwhals
from nysboost.tables.schema import Schema

USUAL = 1e-60, 1e15
"""Columns of sizes between these need no look at each: their squares are in range."""

CHECKS: Any = {
    "accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False,
}  # fmt: skip
"""How scikit-learn checks a table; gaps are told of elsewhere."""


def fit_rows(
    estimator: Any, X: Any, missing: str, Y: Floats | None = None, weights: Floats | None = None
) -> Any:
    """Decide what the columns of a table are, and return its rows as numbers.

    The estimator gets `schema_`, `n_features_in_`, `feature_names_in_` and `_table`, its `Codes`.
    With `missing` "refuse" gaps are errors. Y (n, t) and weights (n,) are for the codes.
    """
    if not is_frame(X) and not is_external(X):
        X = _check_table(estimator, X, missing, reset=True)
    codes, rows = fit_codes(X, missing, Y, weights)
    named = is_frame(X) and (not hasattr(X, "iloc") or all(isinstance(c, str) for c in X.columns))
    name_columns(estimator, list_column_names(X) if named else None, codes.schema.width)
    estimator._table, estimator.schema_ = codes, codes.schema
    return rows


def new_rows(estimator: Any, X: Any, missing: str) -> Any:
    """Return the rows of another table as numbers, as the fit of an estimator had them."""
    encode = partial(_encode, estimator, missing)
    if isinstance(X, Iterator):
        return make_stream(_encode_blocks(X, encode))
    if is_frame(X):
        return make_rows(encode(X))
    if not is_external(X):
        return make_rows(encode(_check_table(estimator, X, missing, reset=False)))
    rows: Any = make_stream(X)
    if rows.lazy or (rows.in_memory and not estimator.schema_.columns):  # elsewhere, or on a device
        return make_rows(encode(rows.data))
    return EncodedRows(rows, encode)


def fit_codes(
    X: Any, missing: str, Y: Floats | None = None, weights: Floats | None = None
) -> tuple[Codes, Any]:
    """Return the codes of a table, trained on Y where it is in memory, and its rows as numbers."""
    named = is_frame(X)
    names = list_column_names(X) if named else None
    if (rows := _scan_numbers(X, missing)) is not None:
        return Codes.of(_schema_of_numbers(rows, names, missing)), rows
    if is_lazy(X):  # look at each part where it is, decide, and code it there
        summaries: Any = compute_parts(X, partial(summarise_columns, parts=X.npartitions))
        codes = Codes.of(Schema.from_summaries(summaries, missing, named=named))
        return codes, scan_rows(codes.code_lazily(X, missing))
    if is_external(X):
        stored = make_rows(X)
        summaries = map(summarise_columns, stored.pieces(scan_size(stored)))
        codes = Codes.of(Schema.from_summaries(summaries, missing, named=False))
        return codes, EncodedRows(stored, partial(codes, missing=missing))
    table = _frame_with_rows(X, "a fit") if named else X
    refuse_unequal(len(table), len(table) if Y is None else len(Y))
    cells = list(read_columns(table))
    schema = Schema.from_summaries([[*map(ColumnSummary.at, cells)]], missing, named=named)
    codes, numbers = Codes.train(schema, schema.read_cells(cells, missing), Y, weights)
    return codes, scan_rows(_as_narrow(numbers, table) if named else numbers)


def _scan_numbers(X: Any, missing: str) -> Any:
    """Return rows that are numbers as they are; None if some are no numbers, NaN or far from 1."""
    if is_frame(X):
        plain = is_lazy(X) and all(getattr(kind, "kind", "O") in "fiu" for kind in X.dtypes)
    else:
        plain = getattr(X.dtype, "kind", "f") != "O"
    if not plain:
        return None
    try:
        rows = scan_rows(X)
    except NotFiniteError:
        if missing != "fill" or is_sparse(X):
            raise
        return None
    sizes: Any = rows.sizes
    usual = bool(np.all((sizes == 0) | ((sizes > USUAL[0]) & (sizes < USUAL[1]))))
    if not usual and is_sparse(X):
        refuse_far(X, sizes, 0, float(np.min(np.abs(X.data), where=X.data != 0, initial=np.inf)))
    return rows if usual or is_sparse(X) else None


def _schema_of_numbers(rows: Any, names: list[str] | None, missing: str) -> Schema:
    """Return what the columns of a lazy frame are, or of an array the medians."""
    if names is None and missing != "fill":
        return Schema((), rows.n_features)
    spread = spaced_indices(rows.n, MEDIAN_ROWS)  # which a scan of rows elsewhere has kept
    table = rows.take(slice(None, None, sample_step(rows.n)) if rows.in_memory else spread)
    if is_sparse(table):
        return Schema((), rows.n_features, medians=csc_median_axis_0(table.tocsc()))
    if names is None:
        medians = np.array([median(column) for column in floats_on_host(table).T])
        return Schema((), rows.n_features, medians=medians)
    pairs = zip(summarise_columns(table), names, strict=True)
    summaries = [replace(summary, name=name) for summary, name in pairs]
    return Schema.from_summaries([summaries], missing, named=True)


def _encode(estimator: Any, missing: str, X: Any, start: int = 0) -> Any:
    """Return the rows of a frame, an array or a CSR matrix as numbers, lazy ones as lazy ones."""
    codes = estimator._table or Codes.of(estimator.schema_)  # None of a transformer of an array
    names = list_column_names(X) if is_frame(X) else None
    if names is None or not codes.schema.named:
        refuse_width(estimator, X.shape[1] if names is None else len(names))
    if is_lazy(X):
        return codes.code_lazily(X, missing)
    if names is None:
        return codes(X, start, missing)
    frame = _frame_with_rows(X, type(estimator).__name__)
    if not codes.schema.columns:
        _check_feature_names(estimator, X, reset=False)
    return _as_narrow(codes(frame, start, missing), frame)


def _encode_blocks(blocks: Iterator[Any], encode: Any) -> Iterator[Any]:
    start = 0
    for block in filter(has_rows, blocks):
        part = block if hasattr(block, "shape") or is_frame(block) else np.asarray(block)
        found = encode(part, start)
        start += found.shape[0]
        yield found


def _frame_with_rows(X: Any, who: str) -> Any:
    """Return a data frame as narwhals sees it, and refuse one without rows."""
    frame = to_narwhals(X)
    if not len(frame):
        raise ValueError(
            f"X is a data frame with 0 sample(s) (shape={tuple(frame.shape)}), while a minimum of "
            f"1 is required by {who}."
        )
    return frame


def _as_narrow(numbers: Floats, frame: Any) -> Any:
    """Return them in float32 if that is what the columns were."""
    import narwhals as nw

    narrow = all(kind == nw.Float32 for kind in frame.schema.values())
    return numbers.astype(np.float32) if narrow else numbers


def _check_table(estimator: Any, X: Any, missing: str, *, reset: bool) -> Any:
    """Return an array or a CSR matrix after scikit-learn's checks; one with text as objects."""
    if (text := _text_of(X)) is not None:
        return text
    how = CHECKS if missing == "refuse" else CHECKS | {"ensure_all_finite": "allow-nan"}
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up
        return validate_data(estimator, to_table(X), reset=reset, **how)


def _text_of(X: Any) -> Any:
    """Return a table of objects some of which are text, no numbers, or None."""
    if is_sparse(X) or getattr(getattr(X, "dtype", None), "kind", "O") not in "OUT":
        return None
    cells = np.empty(0)
    try:
        cells = np.asarray(X).astype(object)
        cells.astype(np.float64)
    except ValueError:  # of text, or of rows that differ in length
        return cells if cells.ndim == 2 and len(cells) else None
    except (TypeError, OverflowError):
        pass
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
