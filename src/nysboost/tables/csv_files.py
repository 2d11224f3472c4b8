"""Text files of tables: recognised how they are written, by the first rows, and read."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from nysboost.tables import values
from nysboost.tables.frames import refuse_repeated, refuse_unknown
from nysboost.tables.schema import Schema
from nysboost.tables.values import MARKS, find_unit, in_usual_form
from nysboost.user_error import NoTableError, TableError

HEAD_BYTES = 2**18
"""What is looked at to recognise how a file is written."""

READ_BYTES = 2**24
"""What is read at a time; the first part shows which columns are numbers."""

LOOKED_AT = 4096
"""Different values of a column that show whether it is numbers, but for some."""

LONGEST_CELL = 2**24
Row = tuple[int, int, list[str] | None]
"""The lines that a row begins and ends in, and its cells; None if it is not written well."""

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Writing:
    """How a text file is written; what is empty is to be recognised."""

    separator: str = ""
    decimal: str = ""
    thousands: str = ""
    encoding: str = ""

    def describe(self) -> str:
        """Return what is not as usual, as a note."""
        said = [f"separated by {SEPARATORS.get(self.separator, repr(self.separator))}"]
        said += ["decimal comma"] if self.decimal == "," else []
        said += [f"thousands written with {self.thousands!r}"] if self.thousands else []
        said += [self.encoding] if self.encoding != "utf-8" else []
        return ", ".join(said)

    @property
    def pattern(self) -> str:
        """What numbers look like."""
        mark, between = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"\d+|[1-9]\d{{0,2}}(?:{between}\d{{3}})+" if between else r"\d+"
        return rf"[+-]?(?:(?:{whole})(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"

    def in_usual_form(self, cells: Any, unit: str) -> Any:
        """Return an Arrow column of text with numbers as others write them, null in gaps."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.replace_substring(pc.utf8_trim_whitespace(cells), values.MINUS, "-")
        if unit:
            text = pc.replace_substring_regex(
                text, values.unit_pattern(unit), r"\1", max_replacements=1
            )
        marks = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MARKS))
        text = pc.if_else(marks, pa.scalar(None, pa.string()), text)
        if self.decimal == "." and not self.thousands:
            return text
        fits = pc.match_substring_regex(text, f"^(?:{self.pattern})$")
        for mark, usual in ((self.thousands, ""), (self.decimal, ".")):
            text = pc.replace_substring(text, mark, usual) if mark not in ("", usual) else text
        return pc.if_else(fits, text, "no number")

    def numbers(self, cells: Any, unit: str = "") -> Any:
        """Return an Arrow column of text as floats, null in gaps; None if a cell is no number."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return pc.cast(self.in_usual_form(cells, unit), pa.float64())
        except pa.ArrowInvalid:
            return None


@dataclass
class CsvFile:
    """A text file of a table, read in batches, after a `header` of so many lines.

    `numbers` are the columns of floats, with the unit that is written with them, or "".
    """

    path: Path
    writing: Writing
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
            with open_unpacked(self.path) if block is None else io.BytesIO(block) as stream:
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
        cells = ((line, row[at]) for _, line, row in self._rows() if row and at < len(row))
        texts = ((*cell, in_usual_form(cell[1], self.numbers[name])) for cell in cells)
        wrong = (c for c in texts if not how.fullmatch(c[2]) and c[2].lower() not in MARKS)
        line, cell, _ = next(wrong, ("?", "a value", ""))
        return (
            f"Column {name!r} of {self.path} has {cell!r:.60} in line {line}, which is not a "
            "number: correct it or leave it empty. In a fit, --category makes the column a "
            "category, and --drop-column leaves it out."
        )

    def _rows(self, *, strict: bool = False) -> Iterator[Row]:
        """Read the file again by Python, which knows the lines."""
        stream, how = open_unpacked(self.path), self.writing
        with io.TextIOWrapper(stream, how.encoding, errors="replace", newline="") as text:
            rows = _read_rows(text, how.separator, strict=strict)
            yield from (row for row in rows if row[1] > self.header)


def open_csv(
    path: Path, writing: Writing, schema: Schema | None = None, categories: Sequence[str] = ()
) -> CsvFile:
    """Open a text file of a table; what is empty in `writing` is recognised."""
    text, encoding = _decode_beginning(path, writing.encoding)
    if not text.strip():
        raise TableError(f"{path} is empty.")
    told = re.match(r'"?sep=(.)"?\r?\n', text)  # which Excel writes
    separator = writing.separator or (told[1] if told else _find_separator(text))
    rows = [
        (end, row) for _, end, row in _read_rows(io.StringIO(text, newline=""), separator) if row
    ]
    rows = rows[bool(told) :]
    if len(rows) > 2 and len(text) >= HEAD_BYTES:
        rows = rows[:-1]  # which may be cut
    (line, first), *rest = rows
    columns = [[row[j] for _, row in rest if j < len(row)] for j in range(len(first))]
    units = [find_unit(column) for column in columns]
    writing = replace(writing, separator=separator, encoding=encoding)
    writing = _find_decimal(columns, units, writing, schema)
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
    if schema is None:
        file.infer(dict(zip(names, units, strict=True)))
    else:
        numbers = {c.name: c.form for c in schema.columns if c.kind == "number"}
        file.numbers = numbers if schema.named else dict.fromkeys(names, "")  # all others are text
    for name, column in zip(names, columns, strict=True):
        others = {
            cell.strip() for cell in column if values.is_mark(cell) and not values.is_gap(cell)
        }
        if others and name in file.numbers:
            said = ", ".join(map(repr, sorted(others)))
            file.notes.append(f"Column {name!r} has numbers and {said}, taken as missing values.")
    return file


# How a file is written


def open_unpacked(path: Path) -> Any:
    """Open a file, packed or not, whatever its name says, to read its bytes."""
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(ZSTD):
        import pyarrow as pa

        return pa.input_stream(str(path), compression="zstd")
    opener = next((o for magic, o in PACKED.items() if head.startswith(magic)), Path.open)
    return opener(path, "rb")


def _decode_beginning(path: Path, encoding: str) -> tuple[str, str]:
    """Return the beginning of a file as text, and how it is encoded."""
    try:
        with open_unpacked(path) as file:
            head = bytes(file.read(HEAD_BYTES))
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise NoTableError(f"{path} is packed, and cut off or damaged.") from error
    encoding = encoding or _find_encoding(head)
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
        text = decoder.decode(head).removeprefix("\ufeff")
    except LookupError as error:
        msg = f"There is no encoding {encoding!r}: utf-8, utf-16 and latin-1 are usual."
        raise TableError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{path} is not text in {encoding}: say what it is, --encoding latin-1 say."
        raise TableError(msg) from error
    if "\x00" in text:
        raise NoTableError(f"{path} is not a text file.")
    return text, encoding


def _find_encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    nulls = head[:2000].count(0)
    if nulls > len(head[:2000]) / 4:
        return "utf-16-le" if head[1:2000:2].count(0) > nulls / 2 else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")(errors="strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def _read_rows(text: Any, separator: str, *, strict: bool = False) -> Iterator[Row]:
    """Yield rows that are not empty, with cells of any usual length."""
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        rows, row = csv.reader(text, delimiter=separator, strict=strict), None
        while True:
            begin = rows.line_num + 1
            try:
                row = next(rows)
            except csv.Error:
                row = None
            if row != []:
                yield begin, rows.line_num, row
    except StopIteration:
        return
    finally:
        csv.field_size_limit(usual)


def _find_separator(text: str) -> str:
    """Return what stands between cells: what each row has as often, and more than never."""
    for separator in SEPARATORS:
        rows = list(islice(_read_rows(io.StringIO(text, newline=""), separator), 200))
        widths = {len(row or ()) for *_, row in (rows[:-1] if len(rows) > 2 else rows)}
        if len(widths) == 1 and widths != {1}:
            return separator
    first = text.lstrip().partition("\n")[0]
    most = max("\t;|,", key=lambda mark: first.count(mark))
    return most if most in first else ","


def _find_decimal(
    columns: Sequence[Sequence[str]], units: Sequence[str], writing: Writing, schema: Schema | None
) -> Writing:
    """Return the writing in which most cells are numbers: first that of a model's file, then dots.

    Where cells such as 1,234 say no more, the comma is before decimals, unless it separates cells.
    """
    pairs = zip(columns, units, strict=True)
    cells = [
        in_usual_form(c, unit) if unit else values.tidy(c) for column, unit in pairs for c in column
    ]
    cells = [cell for cell in cells if cell[:1] in "+-0123456789.," and not cell.isdecimal()]
    there = {"", *(mark for mark in ".,' \xa0\u202f" if any(mark in cell for cell in cells))}
    tried = [(".", ""), (",", ""), (".", ","), (",", ".")]
    tried = [tried[i] for i in (0, 2, 1, 3)] if writing.separator == "," else tried
    tried += [(decimal, mark) for mark in " \xa0\u202f'" for decimal in ".,"]
    known = [] if schema is None else [(schema.decimal, schema.thousands)]
    found, most = writing, -1
    for decimal, thousands in known + [pair for pair in tried if pair[1] in there]:
        one = replace(writing, decimal=decimal, thousands=thousands)
        numbers = sum(map(bool, map(re.compile(one.pattern, re.ASCII).fullmatch, cells)))
        if numbers > most and writing.decimal in ("", decimal):
            found, most = one, numbers
    return found
