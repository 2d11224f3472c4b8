"""Data frames of any library: names, and columns as plain arrays."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.arrays import Floats, Indices, dense, to_host
from nysboost.numerics.messages import format_cell, list_names
from nysboost.rows.recognise import is_frame
from nysboost.tables.dates import ZONED
from nysboost.tables.gaps import is_gap
from nysboost.tables.values import EXACT, as_number
from nysboost.user_error import TableError

if TYPE_CHECKING:
    import narwhals as nw

Table: TypeAlias = Any
"""A table that users pass: a data frame, an array, a CSR matrix, a store, or a Dask collection."""

Cells: TypeAlias = NDArray[Any]
"""A column of numbers, or of positions of values, shape (n,)."""

INDEX = ("", "Unnamed: 0")
"""Names of the index of a data frame in a file, and after pandas has read the file."""


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column before it is interpreted: numbers or seconds (n,), NaN if missing.

    If it has other `values`, `data` holds positions among them, −1 if missing.
    """

    name: str
    kind: str
    data: Cells
    values: Sequence[object] | None = None

    @classmethod
    def of(cls, name: str, kind: str, cells: Sequence[Hashable]) -> RawColumn:
        """Return a column of positions of values; 1, 1.0 and Decimal(1) are the same value."""
        seen: dict[Hashable, int] = {}
        try:
            found = [seen.setdefault(cell, len(seen)) for cell in cells]
        except TypeError as error:
            raise ValueError(_say_unhashable(name, cells)) from error
        if any(isinstance(value, complex | np.complexfloating) for value in seen):
            raise ValueError(f"Complex data not supported: column {name!r}. Pass real numbers.")

        # gaps lose their position, and later values move up
        is_value = np.array([not is_gap(value) for value in seen], dtype=bool)
        positions = np.where(is_value, np.cumsum(is_value) - 1, -1)
        data = positions[np.array(found, dtype=np.intp)]
        values = list(compress(seen, is_value))
        return cls(name, kind, data, values)

    @property
    def gaps(self) -> NDArray[np.bool]:
        """Which rows have no value, shape (n,)."""
        if self.values is None:
            return np.isnan(self.data)
        return np.asarray(self.data < 0)

    def counts(self) -> Indices:
        """Return the number of rows with each value."""
        there = self.data[self.data >= 0]
        return np.bincount(there, minlength=len(self.values or ()))

    def replace_values(self, numbers: Floats) -> Floats:
        """Replace the value of each row by a number, NaN if missing."""
        with_gap = np.append(numbers, np.nan)
        return np.asarray(with_gap[self.data])


def _say_unhashable(name: str, cells: Sequence[object]) -> str:
    unhashable = (cell for cell in cells if getattr(cell, "__hash__", None) is None)
    example = next(unhashable, cells[0])
    return (
        f"Column {name!r} holds {type(example).__name__} objects such as {format_cell(example)}: "
        "convert it to columns of numbers or text, or leave it out."
    )


# Frames


def has_numbered_columns(X: Table) -> bool:
    """Whether X is a data frame of pandas some of whose columns have names that are no text."""
    if not hasattr(X, "iloc"):
        return False
    return not all(isinstance(name, str) for name in X.columns)


def to_narwhals(X: Table) -> nw.DataFrame[Table]:
    """Return a data frame wrapped by narwhals; raise if it is not supported."""
    import narwhals as nw

    # one batch of an Arrow table, and names that are no text, which narwhals does not take
    names = list_column_names(X)
    if hasattr(X, "__arrow_c_array__"):
        import pyarrow as pa

        X = pa.table(X)
    elif has_numbered_columns(X):
        X = X.set_axis(names, axis=1)

    try:
        frame: nw.DataFrame[Table] | nw.LazyFrame[Table] = nw.from_native(X)
    except TypeError as error:
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, a data frame that narwhals does not "
            "support: pass pandas, polars or pyarrow."
        ) from error

    if isinstance(frame, nw.LazyFrame):
        return frame.collect()
    return frame


def list_column_names(X: Table) -> list[str]:
    """Return the names of the columns, without reading rows of a lazy frame.

    Raise for a frame without columns, or with duplicate names.
    """
    if hasattr(X, "collect_schema"):
        columns = X.collect_schema().names()
    elif hasattr(X, "column_names"):
        columns = X.column_names
    else:
        columns = getattr(X, "columns", ())

    names = [str(column) for column in columns]
    check_names(names)
    return names


def check_names(names: Sequence[str], table: object = "X") -> None:
    """Raise for a table without columns, or with duplicate names."""
    if not names:
        raise TableError(f"{table} has no columns, 0 feature(s): nothing can be learned from it.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"{table} has two columns called {twice!r}: give each a name of its own.")


def refuse_unknown(
    wanted: Sequence[str], names: Sequence[str], table: object, why: str = ""
) -> None:
    """Raise for names that are not columns."""
    known = set(names)
    lacking = [repr(name) for name in wanted if name not in known]
    if lacking:
        said = f"{table} has no column {', '.join(lacking)}{why}."
        raise TableError(f"{said} It has {list_names(names)}.")


# The index of a data frame in a file, and columns without a name


def find_index(
    names: Sequence[str], first: Sequence[object], known: Container[str] = ()
) -> list[str]:
    """Return the name of the first column if it is an index: unnamed, and counting the rows.

    Parameters
    ----------
    names : sequence of str
        Names of all columns of a file.
    first : sequence
        The first values of the first column.
    known : container of str
        Columns of a fitted model, which are never an index.
    """
    # only a first column without a name can be an index, unless the model was fitted on it
    if len(names) < 2 or names[0] not in INDEX:
        return []
    if names[0] in known or "column 0" in known:
        return []

    # it counts from 0 or from 1
    numbers = [as_number(value) for value in first]
    n = len(numbers)
    if numbers in (list(range(n)), list(range(1, n + 1))):
        return [names[0]]
    return []


def note_index(table: object, index: Sequence[str]) -> list[str]:
    """Return a note if a column is an index."""
    if not index:
        return []
    return [f"The index of {table} ({', '.join(index) or 'without a name'}) is left out."]


def fill_names(titles: Sequence[str], index: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns; unnamed ones, except an index, are named by their number."""
    names = [title or f"column {i}" for i, title in enumerate(titles)]
    if index:
        names[0] = index[0]
    return tuple(names)


def note_unnamed(
    table: object, names: Sequence[str], titles: Sequence[str], columns: Sequence[Sequence[object]]
) -> list[str]:
    """Return a note if columns with values have no names in the file."""
    made = []
    for name, title, cells in zip(names, titles, columns, strict=True):
        has_values = any(cell not in ("", None) for cell in cells)
        if name != title and has_values:
            made.append(repr(name))
    if not made:
        return []
    return [f"Columns of {table} without a name are called {', '.join(made)}."]


# Columns


def read_columns(
    X: Table, wanted: Sequence[str] = (), categories: Container[str] = ()
) -> Iterator[RawColumn]:
    """Yield the columns of an array or a frame, or those with `wanted` names, empty if missing.

    Whole numbers that are `categories` keep all their digits.
    """
    if not is_frame(X):
        yield from _read_array(X)
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


def _read_array(X: Table) -> Iterator[RawColumn]:
    """Yield the columns of an array, which are called by their number."""
    kinds = {"b": "boolean", "f": "number", "i": "number", "u": "number"}
    for j, column in enumerate(to_host(dense(X)).T):
        kind = kinds.get(column.dtype.kind)
        if kind is not None:
            yield RawColumn(str(j), kind, column.astype(np.float64))
        else:
            yield RawColumn.of(str(j), "object", column.tolist())


def read_column(column: nw.Series[Table], name: str) -> RawColumn:
    """Read a narwhals column without interpretation."""
    import narwhals as nw

    kind = column.dtype
    if kind == nw.Boolean:
        return RawColumn(name, "boolean", _read_numbers(column))
    if has_large_whole_numbers(column):
        return RawColumn.of(name, "object", column.to_list())
    if kind.is_numeric():
        return RawColumn(name, "number", _read_numbers(column))

    # dates and durations in seconds
    if kind == nw.Date:
        column = column.cast(nw.Datetime("us"))
        return RawColumn(name, "date", _read_dates(column))
    if isinstance(kind, nw.Datetime):
        seconds = _read_dates(column)
        if kind.time_zone:
            return RawColumn(name, ZONED, seconds)
        return RawColumn(name, "date", seconds)
    if isinstance(kind, nw.Duration):
        microseconds = _read_numbers(column.dt.total_microseconds())
        return RawColumn(name, "duration", microseconds / 1e6)

    # any other column is read by its values
    categories = (nw.Categorical, nw.Enum)
    values = column.to_list()
    if kind in categories or isinstance(kind, categories):
        return RawColumn.of(name, "category", values)
    return RawColumn.of(name, "object", values)


def has_large_whole_numbers(column: nw.Series[Table]) -> bool:
    """Return whether a column has whole numbers with more digits than a float."""
    if not column.dtype.is_integer() or column.is_null().all():
        return False
    return max(-int(column.min()), int(column.max())) > EXACT


def _read_numbers(column: nw.Series[Table]) -> Floats:
    """Return numbers or Booleans as floats, NaN if missing."""
    import narwhals as nw

    return np.asarray(column.cast(nw.Float64).to_numpy())


def _read_dates(column: nw.Series[Table]) -> Floats:
    """Return dates as seconds since 1970, in UTC if they have a time zone; NaN if missing."""
    # milliseconds and the rest apart: microseconds of far years are beyond the digits of a float
    milliseconds = _read_numbers(column.dt.timestamp("ms"))
    rest = _read_numbers(column.dt.microsecond()) % 1000
    return np.asarray(milliseconds / 1e3 + rest / 1e6)
