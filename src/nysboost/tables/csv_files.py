"""Text files of tables: their columns, recognised from the first rows, and rows in batches."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.tables import writing as written
from nysboost.tables.frames import refuse_repeated, refuse_unknown
from nysboost.tables.schema import Schema
from nysboost.tables.values import MARKS, MISSING, as_number, find_form, kind_of
from nysboost.tables.writing import OTHER, Writing, long_cells, open_unpacked
from nysboost.user_error import TableError

LOOKED_AT = 4096
"""Different values of a column that show whether it is numbers, but for some."""

READ_BYTES = 2**24
"""What is read at a time; the first part shows which columns are numbers."""


@dataclass
class CsvFile:
    """A text file of a table, read in batches, after a `header` of so many lines.

    `numbers` are the columns of floats, with the unit that is written with them, or ""; `wrong`
    says what is wrong in those that are almost so.
    """

    path: Path
    writing: Writing
    names: tuple[str, ...]
    header: int
    numbers: dict[str, str] = field(default_factory=dict)
    categories: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)
    wrong: dict[str, str] = field(default_factory=dict)
    n: int | None = None

    def batches(
        self, columns: Sequence[str] | None = None, block: bytes | None = None
    ) -> Iterator[Any]:
        """Read all rows, or those of a block of lines, as Arrow tables of these columns."""
        import pyarrow as pa

        for name in self.names if columns is None else columns:
            if name in self.wrong:
                raise TableError(self.wrong[name])
        for batch in self._text(columns, block):
            cells = zip(batch.schema.names, batch.columns, strict=True)
            yield pa.table({name: self.convert(name, column) for name, column in cells})

    def _text(
        self, columns: Sequence[str] | None = None, block: bytes | None = None
    ) -> Iterator[Any]:
        """Read the same as batches of text."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.csv as arrow

        read = arrow.ReadOptions(
            block_size=READ_BYTES,
            column_names=list(self.names),
            skip_rows=self.header,
            encoding=self.writing.encoding or "utf-8",
        )
        parse = arrow.ParseOptions(delimiter=self.writing.separator or ",", newlines_in_values=True)
        convert = arrow.ConvertOptions(
            column_types={name: pa.string() for name in self.names},
            include_columns=None if columns is None else list(columns),
        )
        try:
            with open_unpacked(self.path) if block is None else io.BytesIO(block) as stream:
                for batch in arrow.open_csv(stream, read, parse, convert):
                    if any(pc.any(pc.match_substring(cells, "\n")).as_py() for cells in batch):
                        self.refuse_open_quote()
                    if batch.num_rows:
                        yield batch
        except pa.ArrowInvalid as error:
            raise TableError(self._sentence(str(error))) from error

    def convert(self, name: str, text: Any) -> Any:
        """Return an Arrow column of text as what it is: floats, text, a category."""
        if name in self.numbers:
            numbers = self.writing.numbers(text, self.numbers[name])
            if numbers is None:
                raise TableError(self._wrong_cell(name))
            return numbers
        return text.dictionary_encode() if name in self.categories else text

    def infer(self, units: Mapping[str, str]) -> None:
        """Decide from the first part of the file which columns are numbers, with these units."""
        import pyarrow.compute as pc

        first = next(self._text(), None)
        if first is None:
            raise TableError(f"{self.path} needs a line of column names and at least one row.")
        for name, cells in zip(first.schema.names, first.columns, strict=True):
            unit = units[name]
            numbers = None if name in self.categories else self.writing.numbers(cells, unit)
            if numbers is not None and numbers.null_count < len(numbers):
                self.numbers[name] = unit
                if unit:
                    self.notes.append(f"Column {name!r} has numbers written with {unit!r}.")
            elif numbers is None and name not in self.categories:
                found = pc.value_counts(cells)
                some = found[:LOOKED_AT]
                values = [self.writing.plain(v) for v in some.field("values").to_pylist()]
                counts = np.array(some.field("counts"))
                other = replace(
                    self.writing, decimal=OTHER[self.writing.decimal or "."], thousands=None
                )
                almost = kind_of(values, counts)[0] == "numbers, but"
                if almost or other.numbers(cells) is not None:
                    self.wrong[name] = self._wrong_cell(name)

    # Sentences

    def refuse_open_quote(self) -> None:
        """Refuse a cell of several lines whose quotation mark is not closed at its end."""
        with self._reader(strict=True) as rows:
            while True:
                begin = rows.line_num + 1
                try:
                    next(rows)
                except StopIteration:
                    return
                except csv.Error as error:
                    if rows.line_num > begin:
                        raise TableError(
                            f"{self.path} has a quotation mark in line {begin} that is not closed "
                            "at the end of a cell: close it, or take it out."
                        ) from error

    def _sentence(self, said: str) -> str:
        """Return what Arrow says as a sentence that names the line."""
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", said)
        if ragged:
            lines = (at for at, row in self.lines() if row and len(row) != int(ragged[1]))
            line = next(lines, None)
            return (
                f"{self.path} is ragged: {f'line {line}' if line else 'a line'} has {ragged[2]} "
                f"cells, where {ragged[1]} were expected. Quote cells that hold a separator, or "
                "name it with --separator."
            )
        if "UTF8" in said or "encoding" in said.lower():
            return f"{self.path} is not text in UTF-8: say what it is, --encoding latin-1 say."
        return f"{self.path} cannot be read as a table: {said}"

    def _wrong_cell(self, name: str) -> str:
        at = self.names.index(name)
        cells = ((line, row[at]) for line, row in self.lines() if at < len(row))
        unit = self.numbers.get(name, "")
        wrong = (pair for pair in cells if as_number(self.writing.plain(pair[1], unit)) is None)
        line, cell = next(wrong, ("?", "a value"))
        return (
            f"Column {name!r} of {self.path} has {cell!r:.60} in line {line}, which is not a "
            "number: correct it or leave it empty. In a fit, --category makes the column a "
            "category, and --drop-column leaves it out."
        )

    def lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield each line that has a row, with its number in the file."""
        with self._reader() as rows:
            yield from ((rows.line_num, r) for r in rows if r and rows.line_num > self.header)

    @contextmanager
    def _reader(self, *, strict: bool = False) -> Iterator[Any]:
        encoding, separator = self.writing.encoding or "utf-8", self.writing.separator or ","
        with (
            long_cells(),
            io.TextIOWrapper(
                open_unpacked(self.path), encoding=encoding, errors="replace", newline=""
            ) as text,
        ):
            yield csv.reader(text, delimiter=separator, strict=strict)


def open_csv(
    path: Path, writing: Writing, schema: Schema | None = None, categories: Sequence[str] = ()
) -> CsvFile:
    """Open a text file of a table; what is None in `writing` is recognised."""
    text, writing = written.decode_beginning(path, writing)
    if not text.strip():
        raise TableError(f"{path} is empty.")
    told = re.match(r'"?sep=(.)"?\r?\n', text)  # which Excel writes
    separator = writing.separator or (told[1] if told else written.find_separator(text))
    rows = written.rows_of_text(text, separator)[bool(told) :]
    if len(rows) > 2 and len(text) >= written.HEAD_BYTES:
        rows = rows[:-1]  # which may be cut
    (line, first), *rest = rows
    decimal, thousands = written.find_decimal([row for _, row in rest], separator, writing, schema)
    writing = replace(writing, separator=separator, decimal=decimal, thousands=thousands)
    known = {c.name for c in schema.columns} if schema is not None and schema.named else set()
    cells = [cell if cell in known else cell.strip() for cell in first]
    texts = [c for c in cells if c and as_number(c.replace(decimal, ".")) is None]
    named = bool(texts) or _is_numbering(cells) or (bool(known) and known <= set(cells))
    names = tuple(
        cell if named and (cell or i == cells.index("")) else f"column {i}"
        for i, cell in enumerate(cells)
    )
    file = CsvFile(path, writing, names, line if named else line - 1, categories=categories)
    if any("\n" in cell for _, row in rows for cell in row):
        file.refuse_open_quote()
    refuse_repeated(names, path)
    refuse_unknown(categories, names, path)
    if named and not rest:
        raise TableError(f"{path} needs a line of column names and at least one row.")
    if named and not texts:
        file.notes.append(f"The first line of {path} is taken as names of columns.")
    if not named:
        file.notes.append(f"{path} begins with numbers: its columns have no names.")
    if writing.describe() not in ("separated by commas", "separated by tabs"):
        file.notes.append(f"{path} is {writing.describe()}.")
    body = [row for at, row in rows if at > file.header]
    columns = {name: [r[j] for r in body if j < len(r)] for j, name in enumerate(names)}
    units = {name: find_form(cells) for name, cells in columns.items()}
    if schema is None:
        file.infer(units)
    else:
        numbers = [c.name for c in schema.columns if c.kind == "number"] if schema.named else names
        file.numbers = {name: units.get(name, "") for name in numbers}  # all others are text
    file.notes += _marks(file, columns)
    return file


def _marks(file: CsvFile, columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a note for each column of numbers in whose first rows something marks gaps."""
    notes = []
    for name in filter(file.numbers.__contains__, file.names):
        cells = {cell.strip() for cell in columns[name]}
        marks = sorted(c for c in cells if c.lower() in MARKS and c.lower() not in MISSING)
        if marks:
            said = ", ".join(map(repr, marks))
            notes.append(f"Column {name!r} has numbers and {said}, taken as missing values.")
    return notes


def _is_numbering(cells: Sequence[str]) -> bool:
    """Whether the cells are 0, 1, 2, …, as pandas numbers columns without names."""
    filled = [cell for cell in cells if cell]
    return len(filled) > 1 and filled == [str(i) for i in range(len(filled))]
