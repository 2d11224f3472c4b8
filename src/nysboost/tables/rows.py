"""Rows of any table as numbers, by the schema that an estimator has fitted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.sparsefuncs import csc_median_axis_0
from sklearn.utils.validation import _check_feature_names, validate_data

from nysboost.numerics.arrays import Floats, floats_on_host, is_sparse
from nysboost.numerics.budget import spaced_indices
from nysboost.rows.checks import NotFiniteError, has_rows, refuse_unequal
from nysboost.rows.driver import scan_size
from nysboost.rows.lazy import compute_parts, is_lazy
from nysboost.rows.recognise import (
    is_external,
    make_rows,
    make_stream,
    scan_rows,
    to_table,
)
from nysboost.rows.sizes import MEDIAN_ROWS
from nysboost.rows.views import EncodedRows
from nysboost.tables.codes import Codes, TrainingCodes, refuse_far
from nysboost.tables.frames import is_frame, list_column_names, read_columns, to_narwhals
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import ColumnSummary, median, sample_step, summarise_columns

SMALL, LARGE = 1e-60, 1e15
"""Columns of sizes between these need no look at each: their squares are in range."""

CHECKS: Any = {
    "accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False,
}  # fmt: skip
"""How scikit-learn checks a table; gaps are told of elsewhere."""


# The training table


def fit_rows(
    estimator: Any, X: Any, missing: str, Y: Floats | None = None, weights: Floats | None = None
) -> Any:
    """Decide what the columns of a table are, and return its rows as numbers.

    The estimator gets `schema_`, `n_features_in_`, `feature_names_in_` and `_table`, its `Codes`.

    Parameters
    ----------
    estimator : estimator
        Its setting `ids`, if it has one, says whether columns that number the rows are used.
    X : any table
    missing : "fill", "raise" or "refuse"
        With "refuse" gaps are errors.
    Y : ndarray of shape (n, t) or None
        Targets, whose means are codes of categories.
    weights : ndarray of shape (n,) or None
    """
    if not is_frame(X) and not is_external(X):
        X = _check_table(estimator, X, missing, reset=True)
    codes, rows = fit_codes(X, missing, Y, weights, ids=getattr(estimator, "ids", "keep"))

    has_names = is_frame(X)
    if hasattr(X, "iloc"):  # numbers are no names for scikit-learn
        has_names = all(isinstance(name, str) for name in X.columns)
    name_columns(estimator, list_column_names(X) if has_names else None, codes.schema.width)
    estimator._table = codes
    estimator.schema_ = codes.schema
    return rows


def fit_codes(
    X: Any,
    missing: str,
    Y: Floats | None = None,
    weights: Floats | None = None,
    ids: str = "keep",
) -> tuple[Codes, Any]:
    """Return the codes of a table, trained on Y, and its rows as numbers."""
    rows = _scan_numbers(X, missing)
    if rows is not None:
        schema = _schema_of_numbers(X, rows, missing, ids)
        return Codes.of(schema), _fill_sparse(rows, schema, missing)
    if is_lazy(X):
        return _fit_lazy(X, missing, Y, weights, ids)
    if is_external(X):
        return _fit_stored(X, missing)
    return _fit_in_memory(X, missing, Y, weights, ids)


def _fit_lazy(
    X: Any, missing: str, Y: Floats | None, weights: Floats | None, ids: str
) -> tuple[Codes, Any]:
    """Look at each part of a lazy table where it is, decide, and code it there."""
    summaries: Any = compute_parts(X, partial(summarise_columns, parts=X.npartitions))
    schema = Schema.from_summaries(summaries, missing, named=is_frame(X), ids=ids)
    training, lengths = TrainingCodes.of_lazy(schema, X, Y, weights)
    return training.codes, scan_rows(training.code_lazily(X, lengths, missing))


def _fit_stored(X: Any, missing: str) -> tuple[Codes, Any]:
    """Look at each piece of an array in a store, whose rows are coded as they are read."""
    stored = make_rows(X)
    summaries = map(summarise_columns, stored.pieces(scan_size(stored)))
    codes = Codes.of(Schema.from_summaries(summaries, missing, named=False))
    return codes, EncodedRows(stored, partial(codes, missing=missing))


def _fit_in_memory(
    X: Any, missing: str, Y: Floats | None, weights: Floats | None, ids: str
) -> tuple[Codes, Any]:
    named = is_frame(X)
    table = _frame_with_rows(X, "a fit") if named else X
    if Y is not None:
        refuse_unequal(len(table), len(Y))

    cells = list(read_columns(table))
    summaries = [ColumnSummary.at(column) for column in cells]
    schema = Schema.from_summaries([summaries], missing, named=named, ids=ids)
    columns = schema.read_cells(cells, missing)

    positions = {j: columns[j] for j in Codes.of(schema).many_valued}
    training = TrainingCodes.of(schema, positions, Y, weights)
    numbers = training.encode(columns)
    if named:
        numbers = _as_narrow(numbers, table)
    return training.codes, scan_rows(numbers)


def _scan_numbers(X: Any, missing: str) -> Any:
    """Return rows that are numbers as they are; None if some are no numbers, NaN or far from 1."""
    if not _has_only_numbers(X):
        return None
    sparse = is_sparse(X)
    if sparse and missing == "fill" and np.isnan(X.data).any():
        return make_rows(X)
    try:
        rows = scan_rows(X)
    except NotFiniteError:
        if missing != "fill" or sparse:
            raise
        return None

    sizes: Any = rows.sizes
    is_usual = bool(np.all((sizes == 0) | ((sizes > SMALL) & (sizes < LARGE))))
    if is_usual:
        return rows
    if sparse:
        least = float(np.min(np.abs(X.data), where=X.data != 0, initial=np.inf))
        refuse_far(X, sizes, 0, least)
        return rows
    return None


def _has_only_numbers(X: Any) -> bool:
    if is_frame(X):
        return is_lazy(X) and all(getattr(kind, "kind", "O") in "fiu" for kind in X.dtypes)
    return getattr(X.dtype, "kind", "f") != "O"


def _schema_of_numbers(X: Any, rows: Any, missing: str, ids: str) -> Schema:
    """Return what the columns of a lazy frame are, or of an array the medians."""
    named = is_frame(X)
    if not named and missing != "fill":
        return Schema((), rows.n_features)
    if rows.in_memory:
        table = rows.take(slice(None, None, sample_step(rows.n)))
    else:  # rows that a scan of rows elsewhere has kept
        table = rows.take(spaced_indices(rows.n, MEDIAN_ROWS))

    if is_sparse(table):
        return Schema((), rows.n_features, medians=_sparse_medians(table))
    if not named:
        medians = np.array([median(column) for column in floats_on_host(table).T])
        return Schema((), rows.n_features, medians=medians)
    pairs = zip(summarise_columns(table), list_column_names(X), strict=True)
    summaries = [replace(summary, name=name) for summary, name in pairs]
    return Schema.from_summaries([summaries], missing, named=True, ids=ids)


def _sparse_medians(table: Any) -> Floats:
    """Return the medians of the columns of a sparse table, without gaps, shape (d,)."""
    columns = table.tocsc()
    medians = np.asarray(csc_median_axis_0(columns), dtype=np.float64)
    with_gaps = np.unique(
        np.repeat(np.arange(columns.shape[1]), np.diff(columns.indptr))[np.isnan(columns.data)]
    )
    for j in with_gaps:
        values = columns[:, [j]].toarray()[:, 0]
        medians[j] = median(values[~np.isnan(values)])
    return medians


def _fill_sparse(rows: Any, schema: Schema, missing: str) -> Any:
    """Return rows whose gaps, if a sparse table has some, are the medians of the columns."""
    if rows.sizes is not None:  # of a scan, which found no gaps
        return rows
    return scan_rows(Codes.of(schema)(rows.data, missing=missing))


# Later tables


def new_rows(estimator: Any, X: Any, missing: str) -> Any:
    """Return the rows of another table as numbers, as the fit of an estimator had them."""
    encode = TableEncoder(estimator, missing)
    if isinstance(X, Iterator):
        return make_stream(_encode_blocks(X, encode))
    if is_frame(X):
        return make_rows(encode(X))
    if not is_external(X):
        return make_rows(encode(_check_table(estimator, X, missing, reset=False)))

    rows: Any = make_stream(X)
    on_device = rows.in_memory and not estimator.schema_.columns
    if rows.lazy or on_device:
        return make_rows(encode(rows.data))
    return EncodedRows(rows, encode)


@dataclass(frozen=True)
class TableEncoder:
    """Turns rows of frames, arrays and CSR matrices into numbers, lazy ones into lazy ones."""

    estimator: Any
    missing: str

    def __call__(self, X: Any, start: int = 0) -> Any:
        """Return the rows as numbers; `start` is the number of the first in messages."""
        estimator = self.estimator
        codes = estimator._table or Codes.of(estimator.schema_)  # None of a transformer of an array
        named = is_frame(X)
        if not named or not codes.schema.named:
            refuse_width(estimator, len(list_column_names(X)) if named else X.shape[1])
        if is_lazy(X):
            return codes.code_lazily(X, self.missing)
        if not named:
            return codes(X, start, self.missing)

        frame = _frame_with_rows(X, type(estimator).__name__)
        if not codes.schema.columns:
            _check_feature_names(estimator, X, reset=False)
        return _as_narrow(codes(frame, start, self.missing), frame)


def _encode_blocks(blocks: Iterator[Any], encode: Callable[[Any, int], Any]) -> Iterator[Any]:
    start = 0
    for block in filter(has_rows, blocks):
        is_table = hasattr(block, "shape") or is_frame(block)
        found = encode(block if is_table else np.asarray(block), start)
        start += found.shape[0]
        yield found


def _frame_with_rows(X: Any, who: str) -> Any:
    """Return a data frame as narwhals sees it, and refuse one without rows."""
    frame = to_narwhals(X)
    if len(frame) == 0:
        raise ValueError(
            f"X is a data frame with 0 sample(s) (shape={tuple(frame.shape)}), while a minimum of "
            f"1 is required by {who}."
        )
    return frame


def _as_narrow(numbers: Floats, frame: Any) -> Any:
    """Return them in float32 if that is what the columns were."""
    import narwhals as nw

    if all(kind == nw.Float32 for kind in frame.schema.values()):
        return numbers.astype(np.float32)
    return numbers


# Checks


def _check_table(estimator: Any, X: Any, missing: str, *, reset: bool) -> Any:
    """Return an array or a CSR matrix after scikit-learn's checks; one with text as objects."""
    text = _text_of(X)
    if text is not None:
        return text
    checks = CHECKS
    if missing != "refuse":
        checks = CHECKS | {"ensure_all_finite": "allow-nan"}
    with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up
        return validate_data(estimator, to_table(X), reset=reset, **checks)


def _text_of(X: Any) -> Any:
    """Return a table of objects some of which are text, no numbers, or None."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if is_sparse(X) or kind not in "OUT":
        return None
    try:
        cells = np.asarray(X).astype(object)
    except ValueError:  # rows that differ in length
        return None
    try:
        cells.astype(np.float64)
    except ValueError:
        if cells.ndim == 2 and len(cells) > 0:
            return cells
    except (TypeError, OverflowError):
        pass
    return None


def name_columns(estimator: Any, names: Sequence[str] | None, width: int) -> None:
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
