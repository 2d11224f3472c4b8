"""Text files of tables, read by Arrow; errors name the line."""

from __future__ import annotations

import io
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from nysboost.numerics.messages import format_bytes, format_cell
from nysboost.tables import text_format
from nysboost.tables.frames import (
    check_names,
    fill_names,
    find_index,
    note_index,
    note_unnamed,
    refuse_unknown,
)
from nysboost.tables.gaps import NUMBER_MARKS, is_number_mark, is_program_mark
from nysboost.tables.schema import Schema
from nysboost.tables.text_format import Row, TextFormat
from nysboost.tables.values import EXACT, as_number, find_unit, in_usual_form, kind_of
from nysboost.user_error import TableError, UserError, raise_as

if TYPE_CHECKING:
    import pyarrow as pa

READ_BYTES = 2**24
"""Bytes that are read at a time; the first part shows which columns are numbers."""

LOOKED_AT = 4096
"""Number of different values that show whether a column is meant to hold numbers."""

USUAL = ("separated by commas", "separated by tabs")


@dataclass
class CsvFile:
    """A text file of a table, read in batches after a `header` of some lines.

    `numbers` are the columns of numbers with their unit, or "". If they are `exact`, whole numbers
    keep all digits. Columns without values are `blank`. Marks of missing values in text are null,
    unless the fitted model decides this (`keeps_marks`). The first column may be the `index` of a
    data frame, which is not a feature.
    """

    path: Path
    writing: TextFormat
    names: tuple[str, ...]
    header: int
    numbers: dict[str, str] = field(default_factory=dict)
    categories: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)
    n: int | None = None
    keeps_marks: bool = False
    exact: bool = True
    blank: set[str] = field(default_factory=set)
    index: Sequence[str] = ()

    def batches(
        self,
        columns: Sequence[str] | None = None,
        kept: Sequence[str] = (),
        block: bytes | None = None,
    ) -> Iterator[pa.Table]:
        """Read all rows, or those of a block of lines, as Arrow tables of these columns.

        After them come the `kept` columns, as text, as they are written.
        """
        import pyarrow as pa

        if columns is None:
            columns = self.names
        names = [*columns, *kept]
        for batch in self._text(list(dict.fromkeys(names)), block):
            cells = [self.convert(name, batch.column(name)) for name in columns]
            cells += [batch.column(name) for name in kept]
            yield pa.table(cells, names)

    def convert(self, name: str, text: pa.Array) -> pa.Array:
        """Convert an Arrow column of text to its kind: numbers, text, a category."""
        if name in self.numbers:
            return self._convert_numbers(name, text)
        if not self.keeps_marks:
            text = text_format.text_without_marks(text)
        if name in self.categories:
            return text.dictionary_encode()
        return text

    def _convert_numbers(self, name: str, text: pa.Array) -> pa.Array:
        """Return text as floats, or as whole numbers if they have more digits than a float."""
        import pyarrow.compute as pc

        unit = self.numbers[name]
        numbers = self.writing.numbers(text, unit)
        if numbers is None:
            raise TableError(self._say_wrong_cell(name))

        largest = pc.max(pc.abs(numbers)).as_py() or 0.0
        if self.exact and largest > EXACT:
            whole = self.writing.numbers(text, unit, "int64")
            if whole is not None:
                return whole
        return numbers

    # Reading

    def _text(
        self, columns: Sequence[str] | None = None, block: bytes | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows as batches of text."""
        import pyarrow as pa
        import pyarrow.compute as pc

        batches = self._arrow_batches(columns, block)
        if len(self.names) == 1:
            batches = _without_last_blanks(batches)

        try:
            for batch in batches:
                # an open quotation mark makes one cell of several lines
                breaks = (pc.match_substring(cells, "\n") for cells in batch)
                if any(pc.any(is_break).as_py() for is_break in breaks):
                    self.refuse_open_quote()
                if batch.num_rows:
                    yield batch
        except pa.ArrowInvalid as error:
            raise TableError(self._say_what_arrow_says(str(error))) from error

    def _arrow_batches(
        self, columns: Sequence[str] | None, block: bytes | None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows by Arrow, all cells as text."""
        import pyarrow as pa
        import pyarrow.csv as arrow

        # an empty line of one column is a row, whose cell is null where no "" stands in it
        one_column = len(self.names) == 1
        reading = arrow.ReadOptions(
            block_size=READ_BYTES,
            column_names=list(self.names),
            skip_rows=self.header,
            encoding=self.writing.encoding,
        )

        parsing = arrow.ParseOptions(
            delimiter=self.writing.separator,
            newlines_in_values=True,
            ignore_empty_lines=not one_column,
        )

        # all as text, which `convert` turns into what it is
        if columns is None:
            columns = self.names
        conversion = arrow.ConvertOptions(
            column_types=dict.fromkeys(self.names, pa.string()),
            include_columns=list(columns),
            null_values=[""],
            strings_can_be_null=one_column,
            quoted_strings_can_be_null=False,
        )

        opened: AbstractContextManager[BinaryIO]
        if block:
            opened = io.BytesIO(block)
        else:
            opened = text_format.open_unpacked(self.path)
        with opened as stream:
            yield from arrow.open_csv(stream, reading, parsing, conversion)

    def _rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Read the file again with Python, to know the line numbers."""
        writing = self.writing
        with text_format.open_unpacked(self.path) as stream:
            text = io.TextIOWrapper(stream, writing.encoding, errors="replace", newline="")
            for row in text_format.read_rows(text, writing.separator, strict=strict):
                _, end, _ = row
                if end > self.header:
                    yield row

    # Recognising

    def infer(self, units: Mapping[str, str]) -> None:
        """Decide from the first part of the file which columns are numbers, and their units."""
        first = next(self._text())
        for name in self.names:
            if name in self.categories:
                continue

            cells = first.column(name)
            unit = units[name]
            numbers = self.writing.numbers(cells, unit)

            # what is wrong in a column of numbers is told when it is read
            if numbers is None:
                if self._should_be_numbers(cells, unit):
                    self.numbers[name] = unit
                continue

            # numbers, unless all are gaps
            if numbers.null_count == len(numbers):
                self.blank.add(name)
                continue
            self.numbers[name] = unit
            if unit:
                self.notes.append(f"Column {name!r} has numbers written with {unit!r}.")

    def _should_be_numbers(self, cells: pa.Array, unit: str) -> bool:
        """Return whether a column with a non-numeric cell was meant to hold numbers."""
        import pyarrow.compute as pc

        # most of its different values are numbers
        there = self.writing.in_usual_form(cells, unit).drop_null()
        found = pc.value_counts(there)[:LOOKED_AT]
        values = found.field("values").to_pylist()
        counts = np.array(found.field("counts"))
        kind, _, _ = kind_of(values, counts)
        if kind == "numbers, but":
            return True

        # numbers with the other decimal mark are numbers, too
        other_mark = ","
        if self.writing.decimal == ",":
            other_mark = "."
        other = replace(self.writing, decimal=other_mark, thousands="")
        return other.numbers(cells) is not None

    def note_marks(self, columns: Sequence[Sequence[str]]) -> None:
        """Note which marks in columns of numbers are read as missing values."""
        for name, column in zip(self.names, columns, strict=True):
            if name not in self.numbers:
                continue

            found = {cell.strip() for cell in column if is_number_mark(cell)}
            marks = sorted(mark for mark in found if not is_program_mark(mark))
            if marks:
                said = ", ".join(map(repr, marks))
                note = f"Column {name!r} has numbers and {said}, which are read as missing values."
                self.notes.append(note)

    # Sentences

    def refuse_open_quote(self) -> None:
        """Raise for a cell of several lines whose quotation mark is not closed."""
        for begin, end, row in self._rows(strict=True):
            if row is None and end > begin:
                raise TableError(
                    f"{self.path} has a quotation mark in line {begin} that is not closed at the "
                    "end of a cell: close it, or take it out."
                )

    def _say_what_arrow_says(self, said: str) -> str:
        """Return Arrow's error as a sentence that names the line."""
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", said)
        if ragged:
            width = int(ragged[1])
            line = self._find_ragged_line(width)
            return (
                f"{self.path} is ragged: line {line} has {ragged[2]} cells, where "
                f"{width} were expected. Quote cells that hold a separator, or name it with "
                "--separator."
            )

        if "straddling object" in said:
            return (
                f"{self.path} has a row of more than {format_bytes(READ_BYTES)}: is its separator, "
                "or a quotation mark, missing?"
            )
        if "UTF8" in said or "encoding" in said.lower():
            return (
                f"{self.path} is not valid UTF-8: pass its encoding, for example --encoding "
                "latin-1."
            )
        return f"{self.path} cannot be read as a table: {said}"

    def _find_ragged_line(self, width: int) -> int | str:
        for _, line, row in self._rows():
            if row and len(row) != width:
                return line
        return "?"

    def _say_wrong_cell(self, name: str) -> str:
        line, cell = self._find_wrong_cell(name)
        return (
            f"Column {name!r} of {self.path} has {format_cell(cell)} in line {line}, which is not "
            "a number: correct it or leave it empty. In a fit, --category makes the column a "
            "category, and --drop-column leaves it out."
        )

    def _find_wrong_cell(self, name: str) -> tuple[int | str, str]:
        """Return the first non-numeric cell of a column, and its line."""
        j = self.names.index(name)
        pattern = re.compile(self.writing.pattern, re.ASCII)
        for _, line, row in self._rows():
            if not row or j >= len(row):
                continue

            text = in_usual_form(row[j], self.numbers[name])
            is_mark = text.lower() in NUMBER_MARKS
            if not is_mark and not pattern.fullmatch(text):
                return line, row[j]
        return "?", "a value"


def _without_last_blanks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches of one column without the empty lines at the end of the file."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        blank = np.asarray(batch.column(0).is_null())
        there = np.flatnonzero(~blank)

        # rows up to the last with a value
        end = 0
        if len(there):
            end = int(there[-1]) + 1

        # blank rows are held until another value comes
        if end:
            yield from held
            yield batch.slice(0, end)
            held = []
        if end < batch.num_rows:
            held.append(batch.slice(end))


# Opening


@dataclass(frozen=True)
class Beginning:
    """The first row of a text file, its last line, and the columns of the next rows."""

    first: list[str]
    line: int
    columns: list[list[str]]
    n_rows: int

    def has_lines_in_cells(self) -> bool:
        """Return whether a cell has several lines."""
        cells = chain(self.first, *self.columns)
        return any("\n" in cell for cell in cells)


def open_csv(
    path: Path,
    writing: TextFormat,
    schema: Schema | None = None,
    categories: Sequence[str] = (),
) -> CsvFile:
    """Open a text file of a table; empty fields of `writing` are detected."""
    text, encoding = text_format.decode_beginning(path, writing.encoding)
    if not text.strip():
        raise TableError(f"{path} is empty.")

    # how it is written; Excel says which separator it takes
    told = re.match(r'"?sep=(.)"?\r?\n', text)
    separator = writing.separator
    if not separator and told:
        separator = told[1]
    elif not separator:
        separator = text_format.find_separator(text)
    beginning = _read_beginning(text, separator, skip_first=told is not None)
    units = [find_unit(column) for column in beginning.columns]
    known = set()
    if schema is not None and schema.named:
        known = {column.name for column in schema.columns}
    cells = _strip_names(beginning.first, known)
    telling = _columns_for_decimal(cells, schema)
    writing = text_format.find_decimal(
        [beginning.columns[j] for j in telling],
        [units[j] for j in telling],
        replace(writing, separator=separator, encoding=encoding),
        schema,
    )

    # whether the first row has names: text, 0, 1, … or all that a model knows
    has_text = any(cell and _is_text(cell, writing) for cell in cells)
    has_known = bool(known) and known <= set(cells)
    named = has_text or has_known or _are_counted(cells)

    # without names it is a row like any other
    header = beginning.line - 1
    titles = [""] * len(cells)
    index: list[str] = []
    if named:
        header = beginning.line
        titles = cells
        index = find_index(cells, beginning.columns[0], known)
    file = CsvFile(
        path,
        writing,
        fill_names(titles, index),
        header,
        categories=categories,
        keeps_marks=schema is not None,
        index=index,
    )

    # what is wrong with it
    if beginning.has_lines_in_cells():
        file.refuse_open_quote()
    check_names(file.names, path)
    with raise_as(UserError):
        refuse_unknown(categories, file.names, path)
    if named and beginning.n_rows == 0:
        raise TableError(f"{path} needs a line of column names and at least one row.")

    # what a user may not expect
    may_be_row = _may_be_row(cells, beginning.columns, writing) and not has_known
    if named and may_be_row:
        file.notes.append(
            f"The first line of {path} is taken as names of columns. If it is a row, write a line "
            "of names before it."
        )
    if not named:
        file.notes.append(f"{path} begins with numbers: its columns have no names.")
    else:
        file.notes += note_unnamed(path, file.names, cells, beginning.columns)
    file.notes += note_index(path, index)
    if writing.describe() not in USUAL:
        file.notes.append(f"{path} is {writing.describe()}.")

    # which columns are numbers; all others are text
    if schema is None:
        unit_of = dict(zip(file.names, units, strict=True))
        file.infer(unit_of)
    elif schema.named:
        file.numbers = _numeric_columns(schema)
    else:
        file.numbers = dict.fromkeys(file.names, "")
    file.note_marks(beginning.columns)
    return file


def _read_beginning(text: str, separator: str, *, skip_first: bool) -> Beginning:
    """Return the rows at the beginning of a file, but for what Excel says of its separator."""
    lines = io.StringIO(text, newline="")
    rows = text_format.read_rows(lines, separator)
    found = [(end, row) for _, end, row in rows if row]
    if skip_first:
        found = found[1:]

    # the last row may be cut
    if len(found) > 2 and len(text) >= text_format.HEAD_BYTES:
        found = found[:-1]

    # cells by columns
    (line, first), *rest = found
    columns: list[list[str]] = [[] for _ in first]
    for _, row in rest:
        for column, cell in zip(columns, row, strict=False):  # rows may differ in length
            column.append(cell)
    return Beginning(first, line, columns, len(rest))


def _strip_names(cells: Sequence[str], known: Container[str]) -> list[str]:
    """Return names of columns without blanks around them, but those that a model knows so."""
    names = []
    for cell in cells:
        if cell in known:
            names.append(cell)
        else:
            names.append(cell.strip())
    return names


def _columns_for_decimal(cells: Sequence[str], schema: Schema | None) -> list[int]:
    """Return the columns whose cells show the decimal mark: those that a model reads as numbers.

    Without a model, or without a line of names, they are all columns.
    """
    numeric: dict[str, str] = {}
    if schema is not None:
        numeric = _numeric_columns(schema)
    names = fill_names(cells, [])
    found = [j for j, name in enumerate(names) if name in numeric]
    return found or list(range(len(cells)))


def _numeric_columns(schema: Schema) -> dict[str, str]:
    """Return the unit of each column that a model reads as numbers, or ""."""
    numeric = [column for column in schema.columns if column.kind in ("number", "id")]
    return {column.name: column.form for column in numeric}


def _is_text(cell: str, writing: TextFormat) -> bool:
    return as_number(cell.replace(writing.decimal, ".")) is None


def _may_be_row(
    cells: Sequence[str], columns: Sequence[Sequence[str]], writing: TextFormat
) -> bool:
    """Return whether a line of names could be a row: it has numbers, or values that come again."""
    has_number = any(cell and not _is_text(cell, writing) for cell in cells)
    pairs = zip(cells, columns, strict=False)
    return has_number or all(cell in column for cell, column in pairs)


def _are_counted(cells: Sequence[str]) -> bool:
    """Return whether the names of columns are 0, 1, …, as pandas writes them."""
    filled = [cell for cell in cells if cell]
    counted = [str(i) for i in range(len(filled))]
    return len(filled) > 1 and filled == counted
