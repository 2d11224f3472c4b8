"""Text files of tables, read by Arrow; what is wrong in them is told by its line."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.tables import text_format, values
from nysboost.tables.frames import check_names, refuse_unknown
from nysboost.tables.schema import Schema
from nysboost.tables.text_format import Row, TextFormat
from nysboost.tables.values import MISSING_MARKERS, find_unit, in_usual_form
from nysboost.user_error import TableError

READ_BYTES = 2**24
"""What is read at a time; the first part shows which columns are numbers."""

LOOKED_AT = 4096
"""Different values of a column that show whether it is numbers, but for some."""


@dataclass
class CsvFile:
    """A text file of a table, read in batches, after a `header` of so many lines.

    `numbers` are the columns of floats, with the unit that is written with them, or "".
    """

    path: Path
    writing: TextFormat
    names: tuple[str, ...]
    header: int
    numbers: dict[str, str] = field(default_factory=dict)
    categories: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)
    n: int | None = None

    def batches(
        self, columns: Sequence[str] | None = None, block: bytes | None = None
    ) -> Iterator[Any]:
        """Read all rows, or those of a block of lines, as Arrow tables of these columns."""
        import pyarrow as pa

        for batch in self._text(columns, block):
            cells = zip(batch.schema.names, batch.columns, strict=True)
            yield pa.table({name: self.convert(name, column) for name, column in cells})

    def convert(self, name: str, text: Any) -> Any:
        """Return an Arrow column of text as what it is: floats, text, a category."""
        if name not in self.numbers:
            return text.dictionary_encode() if name in self.categories else text
        numbers = self.writing.numbers(text, self.numbers[name])
        if numbers is None:
            raise TableError(self._wrong_cell(name))
        return numbers

    def _text(
        self, columns: Sequence[str] | None = None, block: bytes | None = None
    ) -> Iterator[Any]:
        """Read rows as batches of text."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.csv as arrow

        read = arrow.ReadOptions(
            block_size=READ_BYTES,
            column_names=list(self.names),
            skip_rows=self.header,
            encoding=self.writing.encoding,
        )
        parse = arrow.ParseOptions(delimiter=self.writing.separator, newlines_in_values=True)
        convert = arrow.ConvertOptions(
            column_types={name: pa.string() for name in self.names},
            include_columns=None if columns is None else list(columns),
        )
        try:
            with io.BytesIO(block) if block else text_format.open_unpacked(self.path) as stream:
                for batch in arrow.open_csv(stream, read, parse, convert):
                    if any(pc.any(pc.match_substring(cells, "\n")).as_py() for cells in batch):
                        self.refuse_open_quote()
                    if batch.num_rows:
                        yield batch
        except pa.ArrowInvalid as error:
            raise TableError(self._sentence(str(error))) from error

    def infer(self, units: Mapping[str, str]) -> None:
        """Decide from the first part of the file which columns are numbers, with these units."""
        import pyarrow.compute as pc

        first, how = next(self._text()), self.writing
        other = replace(how, decimal="," if how.decimal == "." else ".", thousands="")
        for name in (name for name in self.names if name not in self.categories):
            cells, unit = first.column(name), units[name]
            numbers = how.numbers(cells, unit)
            if numbers is None:  # where they should be, what is wrong is told when it is read
                found = pc.value_counts(how.in_usual_form(cells, unit).drop_null())[:LOOKED_AT]
                some, counts = found.field("values").to_pylist(), np.array(found.field("counts"))
                almost = values.kind_of(some, counts)[0] == "numbers, but"
                if almost or other.numbers(cells) is not None:
                    self.numbers[name] = unit
            elif numbers.null_count < len(numbers):
                self.numbers[name] = unit
                if unit:
                    self.notes.append(f"Column {name!r} has numbers written with {unit!r}.")

    # Sentences

    def refuse_open_quote(self) -> None:
        """Refuse a cell of several lines whose quotation mark is not closed at its end."""
        for begin, end, row in self._rows(strict=True):
            if row is None and end > begin:
                raise TableError(
                    f"{self.path} has a quotation mark in line {begin} that is not closed at the "
                    "end of a cell: close it, or take it out."
                )

    def _sentence(self, said: str) -> str:
        """Return what Arrow says as a sentence that names the line."""
        ragged = re.search(r"Expected (\d+) columns, got (\d+)", said)
        if ragged:
            lines = (end for _, end, row in self._rows() if row and len(row) != int(ragged[1]))
            return (
                f"{self.path} is ragged: line {next(lines, '?')} has {ragged[2]} cells, where "
                f"{ragged[1]} were expected. Quote cells that hold a separator, or name it with "
                "--separator."
            )
        if "UTF8" in said or "encoding" in said.lower():
            return f"{self.path} is not text in UTF-8: say what it is, --encoding latin-1 say."
        return f"{self.path} cannot be read as a table: {said}"

    def _wrong_cell(self, name: str) -> str:
        at, how = self.names.index(name), re.compile(self.writing.pattern, re.ASCII)

        def is_wrong(cell: str) -> bool:
            text = in_usual_form(cell, self.numbers[name])
            return not how.fullmatch(text) and text.lower() not in MISSING_MARKERS

        cells = ((line, row[at]) for _, line, row in self._rows() if row and at < len(row))
        line, cell = next((c for c in cells if is_wrong(c[1])), ("?", "a value"))
        return (
            f"Column {name!r} of {self.path} has {cell!r:.60} in line {line}, which is not a "
            "number: correct it or leave it empty. In a fit, --category makes the column a "
            "category, and --drop-column leaves it out."
        )

    def _rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Read the file again by Python, which knows the lines."""
        stream, how = text_format.open_unpacked(self.path), self.writing
        with io.TextIOWrapper(stream, how.encoding, errors="replace", newline="") as text:
            rows = text_format.read_rows(text, how.separator, strict=strict)
            yield from (row for row in rows if row[1] > self.header)


def open_csv(
    path: Path, writing: TextFormat, schema: Schema | None = None, categories: Sequence[str] = ()
) -> CsvFile:
    """Open a text file of a table; what is empty in `writing` is recognised."""
    text, encoding = text_format.decode_beginning(path, writing.encoding)
    if not text.strip():
        raise TableError(f"{path} is empty.")
    told = re.match(r'"?sep=(.)"?\r?\n', text)  # which Excel writes
    separator = writing.separator or (told[1] if told else text_format.find_separator(text))
    lines = text_format.read_rows(io.StringIO(text, newline=""), separator)
    rows = [(end, row) for _, end, row in lines if row][bool(told) :]
    if len(rows) > 2 and len(text) >= text_format.HEAD_BYTES:
        rows = rows[:-1]  # which may be cut
    (line, first), *rest = rows
    columns = [[row[j] for _, row in rest if j < len(row)] for j in range(len(first))]
    units = [find_unit(column) for column in columns]
    writing = replace(writing, separator=separator, encoding=encoding)
    writing = text_format.find_decimal(columns, units, writing, schema)
    known = {c.name for c in schema.columns} if schema is not None and schema.named else set()
    cells = [cell if cell in known else cell.strip() for cell in first]
    texts = [c for c in cells if c and values.as_number(c.replace(writing.decimal, ".")) is None]
    filled = [cell for cell in cells if cell]
    numbered = len(filled) > 1 and filled == [str(i) for i in range(len(filled))]  # by pandas
    named = bool(texts) or numbered or (bool(known) and known <= set(cells))
    names = tuple(
        cell if named and (cell or i == cells.index("")) else f"column {i}"
        for i, cell in enumerate(cells)
    )
    file = CsvFile(path, writing, names, line if named else line - 1, categories=categories)
    if any("\n" in cell for _, row in rows for cell in row):
        file.refuse_open_quote()
    check_names(names, path)
    refuse_unknown(categories, names, path)
    if named and not rest:
        raise TableError(f"{path} needs a line of column names and at least one row.")
    if named and not texts:
        file.notes.append(f"The first line of {path} is taken as names of columns.")
    if not named:
        file.notes.append(f"{path} begins with numbers: its columns have no names.")
    if writing.describe() not in ("separated by commas", "separated by tabs"):
        file.notes.append(f"{path} is {writing.describe()}.")
    if schema is None:
        file.infer(dict(zip(names, units, strict=True)))
    else:
        numbers = {c.name: c.form for c in schema.columns if c.kind == "number"}
        file.numbers = numbers if schema.named else dict.fromkeys(names, "")  # all others are text
    for name, column in zip(names, columns, strict=True):
        marks = {c.strip() for c in filter(values.is_missing_marker, column)}
        marks = {mark for mark in marks if not values.is_missing(mark)}
        if marks and name in file.numbers:
            said = ", ".join(map(repr, sorted(marks)))
            file.notes.append(f"Column {name!r} has numbers and {said}, taken as missing values.")
    return file
