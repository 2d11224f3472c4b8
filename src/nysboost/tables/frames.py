"""Data frames of any library: names, and columns as plain arrays."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from nysboost.numerics.arrays import Floats, Indices, dense, to_host
from nysboost.rows.lazy import is_lazy
from nysboost.tables.values import is_missing
from nysboost.user_error import TableError

if TYPE_CHECKING:
    import narwhals as nw


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column as it came: numbers or seconds of shape (n,), NaN in gaps.

    If it has other `values`, `data` are positions among these, −1 in gaps.
    """

    name: str
    kind: str
    data: Any
    values: Sequence[Any] | None = None

    @classmethod
    def of(cls, name: str, kind: str, cells: Sequence[Hashable]) -> RawColumn:
        """Give each value a position; 1, 1.0 and Decimal(1) are one value."""
        seen: dict[Any, int] = {}
        try:
            codes = np.array([seen.setdefault(cell, len(seen)) for cell in cells], dtype=np.intp)
        except TypeError as error:
            unhashable = (cell for cell in cells if getattr(cell, "__hash__", None) is None)
            example = next(unhashable, cells[0])
            raise ValueError(
                f"Column {name!r} holds {type(example).__name__} objects such as {example!r:.60}: "
                "make columns of numbers or text of what is in them, or leave it out."
            ) from error
        if any(isinstance(value, complex | np.complexfloating) for value in seen):
            raise ValueError(f"Complex data not supported: column {name!r}. Pass real numbers.")
        there = np.array([not is_missing(value) for value in seen], dtype=bool)
        places = np.where(there, np.cumsum(there) - 1, -1)
        return cls(name, kind, places[codes], list(compress(seen, there)))

    @property
    def gaps(self) -> Any:
        """Which rows have no value, shape (n,)."""
        return np.isnan(self.data) if self.values is None else self.data < 0

    def counts(self) -> Indices:
        """Return how many rows have each of the values."""
        return np.bincount(self.data[self.data >= 0], minlength=len(self.values or ()))

    def replace_values(self, numbers: Floats) -> Floats:
        """Return for each row the number that stands for its value, NaN in gaps."""
        return np.asarray(np.append(numbers, np.nan)[self.data])


def is_frame(X: Any) -> bool:
    """Whether X is a data frame: columns with names and types of their own."""
    known = not is_lazy(X) or hasattr(X, "_meta")  # else a value of Dask that may be anything
    return known and any(hasattr(X, name) for name in ("collect_schema", "column_names", "columns"))


def to_narwhals(X: Any) -> nw.DataFrame[Any]:
    """Return a data frame as narwhals sees it, or say why it is none."""
    import narwhals as nw

    list_column_names(X)  # or it says what is wrong with them
    if hasattr(X, "__arrow_c_array__"):  # one batch of an Arrow table
        import pyarrow as pa

        X = pa.table(X)
    elif hasattr(X, "iloc") and not all(isinstance(c, str) for c in X.columns):
        X = X.set_axis([str(c) for c in X.columns], axis=1)
    try:
        frame: Any = nw.from_native(X)
    except TypeError as error:
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, which is no data frame that "
            "narwhals knows: pass pandas, polars or pyarrow."
        ) from error
    return frame.collect() if isinstance(frame, nw.LazyFrame) else frame


def list_column_names(X: Any) -> list[str]:
    """Return the names of the columns, without reading rows of a lazy frame.

    Refuse a frame without columns, or with two of one name.
    """
    if hasattr(X, "collect_schema"):
        columns = X.collect_schema().names()
    else:
        columns = getattr(X, "column_names", getattr(X, "columns", ()))
    check_names(names := [str(column) for column in columns])
    return names


def check_names(names: Sequence[str], table: Any = "X") -> None:
    """Refuse a table without columns, or with two of one name."""
    if not names:
        raise TableError(f"{table} has no columns, 0 feature(s): nothing can be learned from it.")
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise TableError(f"{table} has two columns called {twice!r}: give each a name of its own.")


def refuse_unknown(wanted: Sequence[str], names: Sequence[str], table: Any, why: str = "") -> None:
    """Refuse names that no column has."""
    known = set(names)
    if lacking := [repr(name) for name in wanted if name not in known]:
        said = f"{table} has no column {', '.join(lacking)}{why}."
        raise TableError(f"{said} It has {', '.join(names)}.")


def read_columns(
    X: Any, wanted: Sequence[str] = (), categories: Container[str] = ()
) -> Iterator[RawColumn]:
    """Yield the columns of a frame, or of `wanted` names, empty if not there, or of an array.

    Whole numbers that are `categories` keep all their digits.
    """
    if not is_frame(X):
        for j, column in enumerate(to_host(dense(X)).T):
            kind = "boolean" if column.dtype == bool else "number"
            if column.dtype.kind in "fiub":
                yield RawColumn(str(j), kind, column.astype(np.float64))
            else:
                yield RawColumn.of(str(j), "object", column.tolist())
        return
    frame = to_narwhals(X)
    there = set(frame.columns)
    for name in wanted or frame.columns:
        if name not in there:
            yield RawColumn(name, "number", np.empty(0))
        elif name in categories and frame.schema[name].is_integer():
            yield RawColumn.of(name, "category", frame[name].to_list())
        else:
            yield read_column(frame[name], name)


def read_column(column: nw.Series[Any], name: str) -> RawColumn:
    """Return one column of narwhals as it came."""
    import narwhals as nw

    kind = column.dtype
    if kind.is_numeric() or kind == nw.Boolean:
        try:
            numbers = column.cast(nw.Float64).to_numpy()
        except ValueError:  # of Arrow, for whole numbers beyond the digits of a float
            numbers = column.fill_null(0).to_numpy().astype(np.float64)
            numbers = np.where(column.is_null().to_numpy(), np.nan, numbers)
        return RawColumn(name, "number" if kind.is_numeric() else "boolean", numbers)
    if kind == nw.Date:
        column, kind = column.cast(nw.Datetime("us")), nw.Datetime("us")
    if isinstance(kind, nw.Datetime):
        # microseconds of far years are beyond the digits of a float
        whole = column.dt.timestamp("ms").cast(nw.Float64).to_numpy()
        rest = column.dt.microsecond().cast(nw.Float64).to_numpy() % 1000
        return RawColumn(name, "date", whole / 1e3 + rest / 1e6)
    if isinstance(kind, nw.Duration):
        spans = column.dt.total_microseconds().cast(nw.Float64).to_numpy()
        return RawColumn(name, "duration", spans / 1e6)
    categories = (nw.Categorical, nw.Enum)
    named = kind in categories or isinstance(kind, categories)
    return RawColumn.of(name, "category" if named else "object", column.to_list())
