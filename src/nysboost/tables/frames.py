"""Data frames and targets of any library: names, and columns and labels as plain arrays."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite, column_or_1d

from nysboost.numerics.arrays import Floats, dense, is_sparse, to_host
from nysboost.tables import values
from nysboost.tables.values import Factor, first_of
from nysboost.user_error import TableError

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True, eq=False)
class Cells:
    """A column as it came: numbers or seconds of shape (n,) with NaN in gaps, or a Factor."""

    name: str
    kind: str
    data: Floats | Factor


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: columns with names and types of their own."""
    if isinstance(X, np.ndarray | list | tuple) or is_sparse(X):
        return False
    return any(hasattr(X, part) for part in ("collect_schema", "column_names", "columns"))


def frame_of(X: Any) -> nw.DataFrame[Any]:
    """Return a data frame as narwhals sees it, or say why it is none."""
    import narwhals as nw

    refuse_unnamed(X)
    try:
        frame: Any = nw.from_native(_plain(X))
    except TypeError as error:
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, which is no data frame that "
            "narwhals knows: pass pandas, polars or pyarrow."
        ) from error
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def names_of(X: Any) -> list[str]:
    """Return the names of the columns, without reading rows of a lazy frame."""
    if hasattr(X, "collect_schema"):
        return [str(column) for column in X.collect_schema().names()]
    return [str(column) for column in getattr(X, "column_names", getattr(X, "columns", ()))]


def refuse_unnamed(X: Any) -> None:
    """Refuse a frame without columns, or with two of one name."""
    names = names_of(X)
    if not names:
        raise ValueError("X is a data frame without columns, 0 feature(s): nothing can be learned.")
    refuse_repeated(names, "X")


def refuse_repeated(names: Sequence[str], table: Any) -> None:
    """Refuse two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise TableError(f"{table} has two columns called {twice!r}: give each a name of its own.")


def refuse_unknown(wanted: Sequence[str], names: Sequence[str], table: Any) -> None:
    """Refuse a name that no column has."""
    for name in wanted:
        if name not in names:
            raise TableError(f"{table} has no column {name!r}. It has {', '.join(names)}.")


def _plain(X: Any) -> Any:
    """Return an Arrow table with text of the usual kind; pandas with names that are text."""
    if hasattr(X, "column_names") and hasattr(X, "schema"):  # pyarrow
        import pyarrow as pa

        X = pa.Table.from_batches([X]) if isinstance(X, pa.RecordBatch) else X
        views = {f.name for f in X.schema if str(f.type) == "string_view"}
        fields = [pa.field(f.name, pa.string()) if f.name in views else f for f in X.schema]
        return X.cast(pa.schema(fields)) if views else X
    if hasattr(X, "iloc") and not all(isinstance(c, str) for c in X.columns):
        return X.set_axis([str(c) for c in X.columns], axis=1)
    return X


def columns_of(
    X: Any, wanted: Sequence[str] = (), categories: Container[str] = ()
) -> Iterator[Cells]:
    """Yield the columns of a frame, or of `wanted` names, empty if not there, or of an array.

    Whole numbers that are `categories` keep all their digits.
    """
    if not is_frame(X):
        X = to_host(dense(X))
        yield from (_array_cells(X[:, j], str(j)) for j in range(X.shape[1]))
        return
    frame = frame_of(X)
    there, none = set(frame.columns), np.empty(0)
    for name in wanted or frame.columns:
        if name not in there:
            yield Cells(name, "number", none)
        elif name in categories and frame.schema[name].is_integer():
            yield Cells(name, "category", _factor(frame[name].to_list(), name))
        else:
            yield cells_of(frame[name], name)


def cells_of(column: nw.Series[Any], name: str) -> Cells:
    """Return one column of narwhals as it came."""
    import narwhals as nw

    kind = column.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        try:
            numbers = column.cast(nw.Float64).to_numpy()
        except ValueError:  # of Arrow, for whole numbers beyond the digits of a float
            numbers = column.fill_null(0).to_numpy().astype(np.float64)
            numbers = np.where(column.is_null().to_numpy(), np.nan, numbers)
        return Cells(name, "number" if kind.is_numeric() else "boolean", numbers)
    if kind == nw.Date:
        column, kind = column.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(kind, nw.Datetime):
        # microseconds of far years are beyond the digits of a float
        whole = column.dt.timestamp("ms").cast(nw.Float64).to_numpy()
        rest = column.dt.microsecond().cast(nw.Float64).to_numpy() % 1000
        return Cells(name, "date", whole / 1e3 + rest / 1e6)
    if isinstance(kind, nw.Duration):
        spans = column.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return Cells(name, "duration", spans / 1e6)
    categories = (nw.Categorical, nw.Enum)
    named = kind in categories or isinstance(kind, categories)
    return Cells(name, "category" if named else "object", _factor(column.to_list(), name))


def _array_cells(column: Any, name: str) -> Cells:
    kind = column.dtype.kind
    if kind in "fiub":
        return Cells(name, "boolean" if kind == "b" else "number", column.astype(np.float64))
    if kind in "mM":
        unit = np.where(np.isnat(column), np.nan, column.astype(f"{kind}8[us]").astype(np.int64))
        return Cells(name, "date" if kind == "M" else "duration", unit / 1e6)
    return Cells(name, "object", _factor(column.tolist(), name))


def _factor(cells: Sequence[Any], name: str) -> Factor:
    try:
        found = Factor.of(cells)
    except TypeError as error:
        unhashable = (cell for cell in cells if getattr(cell, "__hash__", None) is None)
        example = next(unhashable, cells[0])
        raise ValueError(
            f"Column {name!r} holds {type(example).__name__} objects such as {example!r:.60}: make "
            "columns of numbers or text of what is in them, or leave it out."
        ) from error
    if any(isinstance(value, complex | np.complexfloating) for value in found.values):
        raise ValueError(f"Complex data not supported: column {name!r}. Pass real numbers.")
    return found


# Targets


def classifiable(y: Any) -> NDArray[Any]:
    """Return labels of one type that can be told apart, shape (n,), or say why they cannot."""
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        msg = "y is a masked array, and its masked labels would count: leave such rows out."
        raise ValueError(msg)
    array = np.asarray(y)
    if array.dtype.kind == "c":
        msg = "Complex data not supported: labels are text, whole numbers or truth values."
        raise ValueError(msg)
    # NumPy's text of any length is none that scikit-learn knows
    labels = column_or_1d(array.astype(object) if array.dtype.kind == "T" else array, warn=True)
    labels = _of_one_type(labels) if labels.dtype.kind == "O" else labels
    if labels.dtype.kind == "f":
        _assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    return labels


def _of_one_type(labels: NDArray[Any]) -> NDArray[Any]:
    """Return objects as numbers or truth values where they are, else as text or what they are."""
    row = first_of(np.array([values.is_gap(label) for label in labels], dtype=bool))
    if row is not None:
        msg = f"Input y contains NaN: no label in row {row} ({labels[row]!r}). Leave such rows out."
        raise ValueError(msg)
    if len({isinstance(label, str) for label in labels}) > 1:
        msg = "y mixes text with other labels: make all of them text, with y.astype(str) say."
        raise TypeError(msg)
    kinds = {type(label) for label in labels}
    if kinds <= {bool, np.bool}:
        return labels.astype(np.bool)
    whole = all(issubclass(kind, int | np.integer | np.bool) for kind in kinds)
    if any(isinstance(label, str) or values.as_number(label) is None for label in labels):
        return labels
    try:
        return labels.astype(np.int64 if whole else np.float64)
    except OverflowError as error:
        msg = f"y has labels of more than 64 bits, such as {max(labels)}: turn them into text."
        raise ValueError(msg) from error


def target_of(column: Any, name: str, path: str) -> NDArray[Any]:
    """Return the target of a file: floats, truth values, or text."""
    import narwhals as nw

    cells = cells_of(nw.from_native(column, series_only=True), name)
    kind, form, data = cells.kind, "", cells.data
    if isinstance(data, Factor) and kind == "object":
        kind, form = values.kind_of(data.values, data.counts())
    if kind in ("date", "duration"):
        raise TableError(
            f"The target {name!r} of {path} holds dates or times: turn it into numbers to be "
            "regressed, or into text to be classified."
        )
    if isinstance(data, Factor) and kind in values.READINGS:
        data = data.at(values.numbers_as(kind, data.values, form)[0])
    gaps = data.codes < 0 if isinstance(data, Factor) else np.isnan(data)
    if (row := first_of(gaps)) is not None:
        raise TableError(
            f"The target {name!r} of {path} has no value in {int(gaps.sum())} rows, first in row "
            f"{row}: leave such rows out (--drop-missing)."
        )
    if isinstance(data, Factor):
        return np.array([str(values.plain(v)) for v in data.values], dtype=object)[data.codes]
    return data.astype(np.bool) if kind == "boolean" else data
