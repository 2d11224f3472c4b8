"""Encode the rows of any table as numbers, with the schema of a fitted estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.sparsefuncs import csc_median_axis_0
from sklearn.utils.validation import _check_feature_names, validate_data

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Selection,
    floats_on_host,
    is_lazy,
    is_sparse,
    sample_step,
    spaced_indices,
)
from nysboost.numerics.checks import (
    NotFiniteError,
    has_rows,
    refuse_unequal,
    to_table,
)
from nysboost.numerics.linalg import median
from nysboost.rows.dask_rows import refuse_other_collections
from nysboost.rows.driver import scan_size
from nysboost.rows.lazy import compute_parts
from nysboost.rows.recognise import is_external, is_frame, make_rows, make_stream, scan_rows
from nysboost.rows.rows import EncodedRows
from nysboost.rows.sizes import MEDIAN_ROWS, SAMPLE_ROWS
from nysboost.tables.codes import Codes, TrainingCodes, refuse_far
from nysboost.tables.frames import (
    Table,
    has_numbered_columns,
    list_column_names,
    read_columns,
    to_narwhals,
)
from nysboost.tables.schema import Schema
from nysboost.tables.summaries import (
    ColumnSummary,
    least_size,
    summarise_columns,
)

if TYPE_CHECKING:
    import narwhals as nw

AnyRows: TypeAlias = Any
"""`Rows` of any kind, or a `RowStream` from an iterator."""

SMALL = 1e-60
LARGE = 1e15
"""Columns with sizes within these limits are not examined further, because their squares are in
range."""

CHECKS = {
    "accept_sparse": "csr", "dtype": [np.float64, np.float32], "ensure_all_finite": False,
}  # fmt: skip
"""Settings of scikit-learn's check of a table; missing values are reported elsewhere."""


# The training table


@dataclass(frozen=True, eq=False)
class FitOptions:
    """Options for encoding the table of a fit.

    Attributes
    ----------
    missing : "fill", "raise" or "refuse"
        With "refuse", missing values are an error.
    ids : "keep" or "drop"
        Whether to use columns that number the rows.
    Y : ndarray of shape (n, t) or None
        Targets, whose means are used as codes of categories.
    weights : ndarray of shape (n,) or None
    """

    missing: str
    ids: str = "keep"
    Y: Floats | None = None
    weights: Floats | None = None


def fit_rows(
    estimator: BaseEstimator,
    X: Table,
    missing: str,
    Y: Floats | None = None,
    weights: Floats | None = None,
) -> AnyRows:
    """Decide the kinds of the columns of a table, and return its rows as numbers.

    The estimator gets `schema_`, `n_features_in_`, `feature_names_in_` and `_table`, its `Codes`.

    Parameters
    ----------
    estimator : estimator
        Its setting `ids`, if any, says whether to use columns that number the rows.
    X : any table
    missing : "fill", "raise" or "refuse"
        With "refuse", missing values are an error.
    Y : ndarray of shape (n, t) or None
        Targets, whose means are used as codes of categories.
    weights : ndarray of shape (n,) or None
    """
    if not is_frame(X) and not is_external(X):
        X = _check_table(estimator, X, reset=True)

    ids = getattr(estimator, "ids", "keep")
    codes, rows = fit_codes(X, FitOptions(missing, ids, Y, weights))

    # numbers are no names for scikit-learn
    names = None
    if is_frame(X) and not has_numbered_columns(X):
        names = list_column_names(X)
    note_columns(estimator, names, codes.schema.width)

    estimator._table = codes
    estimator.schema_ = codes.schema
    return rows


def fit_codes(X: Table, options: FitOptions) -> tuple[Codes, AnyRows]:
    """Return the codes of a table, trained on Y, and its rows as numbers."""
    if is_lazy(X):
        refuse_other_collections(X)

    rows = _scan_numbers(X, options.missing)
    if rows is not None:
        schema = _schema_of_numbers(X, rows, options)
        return Codes.of(schema), _fill_sparse(rows, schema, options.missing)

    # the columns have to be inspected, wherever they are stored
    if is_lazy(X):
        return _fit_lazy(X, options)
    if is_external(X):
        return _fit_stored(X, options.missing)
    return _fit_in_memory(X, options)


def _fit_lazy(X: Table, options: FitOptions) -> tuple[Codes, AnyRows]:
    """Survey and encode a lazy table part by part, on the workers."""
    missing = options.missing
    look = partial(summarise_columns, parts=X.npartitions)
    summaries = compute_parts(X, look)
    schema = Schema.from_summaries(summaries, missing, named=is_frame(X), ids=options.ids)

    training, lengths = TrainingCodes.of_lazy(schema, X, options.Y, options.weights)
    coded = training.code_lazily(X, lengths, missing)
    return training.codes, scan_rows(coded)


def _fit_stored(X: Table, missing: str) -> tuple[Codes, AnyRows]:
    """Survey a stored array piece by piece; its rows are encoded when they are read."""
    stored = make_rows(X)
    pieces = stored.pieces(scan_size(stored))
    summaries = map(summarise_columns, pieces)
    schema = Schema.from_summaries(summaries, missing, named=False)

    codes = Codes.of(schema)
    return codes, EncodedRows(stored, partial(codes, missing=missing))


def _fit_in_memory(X: Table, options: FitOptions) -> tuple[Codes, AnyRows]:
    """Survey and encode a table in memory."""
    named = is_frame(X)
    table = X
    if named:
        table = _frame_with_rows(X, "a fit")
    if options.Y is not None:
        refuse_unequal(len(table), len(options.Y))

    # what each column is
    cells = list(read_columns(table))
    summaries = [ColumnSummary.at(column) for column in cells]
    schema = Schema.from_summaries([summaries], options.missing, named=named, ids=options.ids)
    columns = schema.read_cells(cells, options.missing)

    # as numbers, with the means of Y for categories of many values
    positions = {j: columns[j] for j in Codes.of(schema).many_valued}
    training = TrainingCodes.of(schema, positions, options.Y, options.weights)
    numbers: Array = training.encode(columns)
    if named:
        numbers = _as_narrow(numbers, table)
    return training.codes, scan_rows(numbers)


def _scan_numbers(X: Table, missing: str) -> AnyRows:
    """Return numerical rows unchanged, or None if some values need to be encoded."""
    if not _has_only_numbers(X):
        return None

    # gaps of a sparse table are filled later
    sparse = is_sparse(X)
    if sparse and missing == "fill" and np.isnan(X.data).any():
        return make_rows(X)

    # if gaps may be filled, the table has to be coded
    try:
        rows: AnyRows = scan_rows(X)
    except NotFiniteError:
        if missing != "fill" or sparse:
            raise
        return None

    # numbers far from 1 are looked at column by column
    sizes = rows.sizes
    is_usual = (sizes > SMALL) & (sizes < LARGE)
    if np.all(is_usual | (sizes == 0)):
        return rows
    if not sparse:
        return None

    # a sparse table has no summaries: codes for "no data" are refused here
    refuse_far(X, sizes, 0, least_size(X.data))
    return rows


def _has_only_numbers(X: Table) -> bool:
    """Return whether an array, or a lazy frame, has numerical types only."""
    if not is_frame(X):
        return getattr(X.dtype, "kind", "f") != "O"
    if not is_lazy(X):
        return False
    kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
    return all(kind in "fiu" for kind in kinds)


def _schema_of_numbers(X: Table, rows: AnyRows, options: FitOptions) -> Schema:
    """Return the schema of a lazy frame of numbers, or the medians of an array."""
    named = is_frame(X)
    if not named and options.missing != "fill":
        return Schema((), rows.n_features)

    # rows whose medians are those of all; of rows elsewhere those that a scan has kept
    sample: Selection
    if rows.in_memory:
        sample = slice(None, None, sample_step(rows.n, SAMPLE_ROWS))
    else:
        sample = spaced_indices(rows.n, MEDIAN_ROWS)
    table = rows.take(sample)

    # an array, whose columns have no names
    if is_sparse(table):
        return Schema((), rows.n_features, medians=_sparse_medians(table))
    if not named:
        columns = floats_on_host(table).T
        medians = np.array([median(column) for column in columns])
        return Schema((), rows.n_features, medians=medians)

    # a lazy frame: the sample has lost the names of its columns
    pairs = zip(summarise_columns(table), list_column_names(X), strict=True)
    summaries = [replace(summary, name=name) for summary, name in pairs]
    return Schema.from_summaries([summaries], options.missing, named=True, ids=options.ids)


def _sparse_medians(table: Table) -> Floats:
    """Return the medians of the columns of a sparse table, ignoring missing values, shape (d,)."""
    columns = table.tocsc()
    medians = np.asarray(csc_median_axis_0(columns), dtype=np.float64)

    # columns with gaps, which scikit-learn's medians do not leave out
    n_stored = np.diff(columns.indptr)
    column_of = np.repeat(np.arange(columns.shape[1]), n_stored)
    gaps = np.isnan(columns.data)
    for j in np.unique(column_of[gaps]):
        values = columns[:, [j]].toarray()[:, 0]
        medians[j] = median(values[~np.isnan(values)])
    return medians


def _fill_sparse(rows: AnyRows, schema: Schema, missing: str) -> AnyRows:
    """Fill missing values of a sparse table with the medians of its columns."""
    if rows.sizes is not None:  # of a scan, which found no gaps
        return rows
    encode = Codes.of(schema)
    return scan_rows(encode(rows.data, missing=missing))


# Later tables


def new_rows(estimator: BaseEstimator, X: Table, missing: str) -> AnyRows:
    """Encode the rows of another table as in the fit of an estimator."""
    encode = TableEncoder(estimator, missing)
    if isinstance(X, Iterator):
        return make_stream(_encode_blocks(X, encode))

    # tables in memory are coded at once
    if is_frame(X):
        return make_rows(encode(X))
    if not is_external(X):
        table = _check_table(estimator, X, reset=False)
        return make_rows(encode(table))

    # rows elsewhere are coded as they are read, unless their numbers are used as they are
    rows: AnyRows = make_stream(X)
    on_device = rows.in_memory and not estimator.schema_.columns
    if rows.lazy or on_device:
        return make_rows(encode(rows.data))
    return EncodedRows(rows, encode)


@dataclass(frozen=True)
class TableEncoder:
    """Encodes rows of frames, arrays and CSR matrices as numbers; lazy tables stay lazy."""

    estimator: BaseEstimator
    missing: str

    def __call__(self, X: Table, start: int = 0) -> Table:
        """Encode the rows; `start` is the number of the first row in messages."""
        # a transformer that was fitted to an array has no codes
        estimator = self.estimator
        codes = estimator._table or Codes.of(estimator.schema_)

        named = is_frame(X)
        if not named or not codes.schema.named:
            refuse_width(estimator, _count_columns(X))

        if is_lazy(X):
            return codes.code_lazily(X, self.missing)
        if not named:
            return codes(X, start, self.missing)

        # a frame, for a fit to a frame or to an array
        frame = _frame_with_rows(X, type(estimator).__name__)
        if not codes.schema.columns:
            _check_feature_names(estimator, X, reset=False)
        return _as_narrow(codes(frame, start, self.missing), frame)


def _encode_blocks(
    blocks: Iterator[Table], encode: Callable[[Table, int], Array]
) -> Iterator[Array]:
    """Encode tables one by one; rows in messages are counted from the first table."""
    start = 0
    for block in filter(has_rows, blocks):
        is_table = hasattr(block, "shape") or is_frame(block)
        if not is_table:
            block = np.asarray(block)
        found = encode(block, start)
        start += found.shape[0]
        yield found


def _frame_with_rows(X: Table, who: str) -> nw.DataFrame[Table]:
    """Return a data frame wrapped by narwhals; raise if it has no rows."""
    frame = to_narwhals(X)
    if len(frame) == 0:  # scikit-learn's checks look for these words
        raise ValueError(
            f"X is a data frame with 0 sample(s) (shape={tuple(frame.shape)}), while a minimum of "
            f"1 is required by {who}."
        )
    return frame


def _as_narrow(numbers: Array, frame: nw.DataFrame[Table]) -> Array:
    """Return numbers in float32 if the columns were in float32."""
    import narwhals as nw

    kinds = frame.schema.values()
    if all(kind == nw.Float32 for kind in kinds):
        return numbers.astype(np.float32)
    return numbers


# Checks


def _check_table(estimator: BaseEstimator, X: Table, *, reset: bool) -> Table:
    """Check an array or a CSR matrix with scikit-learn; arrays with text have dtype object."""
    text = _text_of(X)
    if text is not None:
        return text
    return validate_data(estimator, to_table(X), reset=reset, **CHECKS)


def _text_of(X: Table) -> Table:
    """Return a table of objects if some of them are text that is not a number, else None."""
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if is_sparse(X) or kind not in "OUT":
        return None

    try:
        cells = np.asarray(X).astype(object)
    except ValueError:  # rows that differ in length
        return None

    # text, unless all of it is numbers
    try:
        cells.astype(np.float64)
    except ValueError:
        if cells.ndim == 2 and len(cells) > 0:
            return cells
    except (TypeError, OverflowError):
        pass
    return None


def note_columns(estimator: BaseEstimator, names: Sequence[str] | None, width: int) -> None:
    """Set the number of columns of an estimator, and their names, if any."""
    estimator.n_features_in_ = width
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    if names is not None:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def _count_columns(X: Table) -> int:
    if is_frame(X):
        return len(list_column_names(X))
    return int(X.shape[1])


def refuse_width(estimator: BaseEstimator, width: int) -> None:
    """Raise unless a table has as many columns as the table of the fit."""
    if width != estimator.n_features_in_:
        raise ValueError(
            f"X has {width} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
