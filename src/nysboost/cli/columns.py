"""CSV and Parquet: tables whose columns have names and types of their own."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.dataset as arrow_dataset
from numpy.typing import NDArray

from nysboost.cli.errors import DataError, NoFileError
from nysboost.experiments.user_error import need

READ_BYTES = 2**24
BATCH_ROWS = 2**16
INDEX = ("", "__index_level_0__", "Unnamed: 0")
"""Names that an index gets when a data frame is written: it is no feature."""


@dataclass(frozen=True)
class ColumnTable:
    """A table of named columns, read in batches of rows.

    Parameters
    ----------
    path : Path
        Where it is.
    schema : pyarrow.Schema
        Names and types.
    source : CSV file or Parquet data set
        Gives the batches.
    """

    path: Path
    schema: Any
    source: Any

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(self.schema.names)

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.schema)

    @property
    def n(self) -> int | None:
        """Number of rows; None if only the end will tell."""
        return self.source.count()  # type: ignore[no-any-return]

    @property
    def text(self) -> tuple[str, ...]:
        """The columns that are no numbers."""
        return tuple(field.name for field in self.schema if not _is_number(field.type))

    def blocks(self, columns: Sequence[int]) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order: blocks of these columns, as numbers; missing is NaN."""
        kinds = {_float_type(self.schema.field(i).type) for i in columns}
        dtype = np.float32 if kinds == {np.float32} else np.float64
        for batch in self.batches(columns):
            block = np.empty((batch.num_rows, len(columns)), dtype=dtype)
            for j in range(len(columns)):
                block[:, j] = _numbers(batch.column(j))
            yield block

    def batches(self, columns: Sequence[int]) -> Iterator[Any]:
        """Read all rows once, in order, as batches of these columns."""
        names = [self.names[i] for i in columns]
        try:
            yield from self.source.batches(names)
        except pa.ArrowInvalid as error:
            msg = f"{self.path} cannot be read as a table: {error}"
            raise DataError(msg) from error

    def frames(self, columns: Sequence[int]) -> Iterator[Any]:
        """Read all rows once, in order, as data frames, text and gaps as they are."""
        need("pandas", "files")
        for batch in self.batches(columns):
            yield batch.to_pandas()

    def labels(self, column: int) -> NDArray[Any]:
        """Return one column as it is: numbers, truth values or text."""
        field, parts = self.schema.field(column), [b.column(0) for b in self.batches([column])]
        if pa.types.is_temporal(field.type):
            msg = (
                f"The target {field.name!r} of {self.path} holds dates or times: turn it into "
                "numbers to be regressed, or into text to be classified."
            )
            raise DataError(msg)
        if pa.types.is_boolean(field.type) or not _is_number(field.type):
            return np.concatenate([part.to_numpy(zero_copy_only=False) for part in parts])
        return np.concatenate([_numbers(part) for part in parts])


@dataclass(frozen=True)
class _CsvSource:
    path: Path
    types: dict[str, Any]
    names: list[str] | None
    delimiter: str

    def batches(self, names: list[str] | None) -> Iterator[Any]:
        reader = arrow_csv.open_csv(
            self.path,
            read_options=arrow_csv.ReadOptions(block_size=READ_BYTES, column_names=self.names),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=self.types, include_columns=names, strings_can_be_null=True
            ),
        )
        yield from (batch for batch in reader if batch.num_rows)

    def count(self) -> int | None:
        return None


@dataclass(frozen=True)
class _ParquetSource:
    data: Any

    def batches(self, names: list[str]) -> Iterator[Any]:
        found = self.data.to_batches(columns=names, batch_size=BATCH_ROWS)
        yield from (batch for batch in found if batch.num_rows)

    def count(self) -> int:
        return int(self.data.count_rows())


def open_csv(path: Path) -> ColumnTable:
    """Open a CSV file: types come from its first block, and whole numbers may have fractions."""
    delimiter, names = _layout(path)
    source = _CsvSource(path, {}, names, delimiter)
    try:
        first = next(source.batches(None), None)
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        msg = f"{path} cannot be read as a table: {error}"
        raise DataError(msg) from error
    if first is None:
        msg = f"{path} has no rows."
        raise DataError(msg)
    wide = {f.name: pa.float64() for f in first.schema if pa.types.is_integer(f.type)}
    wide |= {f.name: pa.float64() for f in first.schema if pa.types.is_null(f.type)}
    fields = [pa.field(f.name, wide.get(f.name, f.type)) for f in first.schema]
    kept = [f for f in fields if f.name not in INDEX]
    types = {f.name: f.type for f in fields}
    return ColumnTable(path, pa.schema(kept), _CsvSource(path, types, names, delimiter))


def open_parquet(path: Path) -> ColumnTable:
    """Open a Parquet file, or a folder of them, as one table."""
    if path.is_dir() and not any(path.rglob("*.parquet")):
        msg = f"The folder {path} holds no .parquet files."
        raise NoFileError(msg)
    try:
        data = arrow_dataset.dataset(path, format="parquet", exclude_invalid_files=False)
        schema = pa.schema([f for f in data.schema if f.name not in INDEX])
    except pa.ArrowInvalid as error:
        msg = f"{path} is no Parquet file, or it is cut off: {error}"
        raise NoFileError(msg) from error
    return ColumnTable(path, schema, _ParquetSource(data))


def _layout(path: Path) -> tuple[str, list[str] | None]:
    """Return the delimiter, and names for the columns where the first line has none.

    0, 1, 2, … in the first line are names: pandas writes them for columns without any.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except UnicodeDecodeError as error:
        msg = f"{path} is not text in UTF-8: save it as such."
        raise DataError(msg) from error
    delimiter = max(",;\t", key=first.count)
    return delimiter, _names_if_no_header(next(csv.reader([first], delimiter=delimiter), []))


def _names_if_no_header(head: list[str]) -> list[str] | None:
    """Return names for the columns of a file that begins with numbers, not with names."""
    try:
        numbers = [float(field) for field in head if field]
    except ValueError:
        return None
    if numbers == list(range(len(numbers))) and len(numbers) > 1:
        return None
    return [f"column {i}" for i in range(len(head))]


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_boolean(kind)
        or types.is_decimal(kind)
        or types.is_null(kind)
    )


def _float_type(kind: Any) -> Any:
    return np.float32 if pa.types.is_float32(kind) else np.float64


def _numbers(column: Any) -> NDArray[Any]:
    """Return a column of numbers or truth values in floating point, with NaN where it is null."""
    target = pa.float32() if pa.types.is_float32(column.type) else pa.float64()
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    found: NDArray[Any] = column.cast(target, safe=False).to_numpy(zero_copy_only=False)
    return found
