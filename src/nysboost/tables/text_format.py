"""The format of a text file: compression, encoding, separator, decimal mark."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from nysboost.tables.gaps import NUMBER_MARKS, PROGRAM_MARKS
from nysboost.tables.schema import Schema
from nysboost.tables.values import MINUS, in_usual_form, unit_pattern
from nysboost.user_error import NoTableError, TableError

if TYPE_CHECKING:
    import pyarrow as pa

HEAD_BYTES = 2**18
"""Bytes that are examined to detect the format of a file."""

SEPARATOR_ROWS = 200
"""Number of rows that determine the separator."""

LONGEST_CELL = 2**24
Row = tuple[int, int, list[str] | None]
"""The first and the last line of a row, and its cells, or None if it is malformed."""

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}
PACKED: dict[bytes, ModuleType] = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zXZ": lzma}
ZSTD = b"\x28\xb5\x2f\xfd"
COMMA_BETWEEN_CELLS = ((".", ""), (".", ","), (",", ""), (",", "."))
COMMA_IN_CELLS = ((".", ""), (",", ""), (".", ","), (",", "."))
SPACED = tuple((decimal, mark) for mark, decimal in product(" \xa0\u202f'", ".,"))
"""Pairs of decimal mark and thousands separator, the most likely first."""

NUMBER_BEGINNINGS = "+-0123456789.,"


@dataclass(frozen=True)
class TextFormat:
    """The format of a text file; empty fields are detected."""

    separator: str = ""
    decimal: str = ""
    thousands: str = ""
    encoding: str = ""

    def describe(self) -> str:
        """Describe unusual properties in a note."""
        name = SEPARATORS.get(self.separator, repr(self.separator))
        said = [f"separated by {name}"]

        if self.decimal == ",":
            said.append("decimal comma")
        if self.thousands:
            said.append(f"thousands written with {self.thousands!r}")
        if self.encoding != "utf-8":
            said.append(self.encoding)
        return ", ".join(said)

    @property
    def pattern(self) -> str:
        """The pattern of numbers."""
        mark = re.escape(self.decimal)
        whole = r"\d+"
        if self.thousands:
            whole += rf"|[1-9]\d{{0,2}}(?:{re.escape(self.thousands)}\d{{3}})+"
        return rf"[+-]?(?:(?:{whole})(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"

    def count_numbers(self, cells: Iterable[str]) -> int:
        """Return the number of numeric cells."""
        pattern = re.compile(self.pattern, re.ASCII)
        return sum(pattern.fullmatch(cell) is not None for cell in cells)

    # Columns of Arrow

    def numbers(self, cells: pa.Array, unit: str = "", kind: str = "float64") -> pa.Array | None:
        """Return an Arrow column of text as numbers of a kind, null in gaps.

        It is None if a cell is no such number, or one that is too large.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            return pc.cast(self.in_usual_form(cells, unit), kind)
        except pa.ArrowInvalid:
            return None

    def in_usual_form(self, cells: pa.Array, unit: str) -> pa.Array:
        """Return an Arrow column of text with numbers in the usual form, null if missing."""
        import pyarrow as pa
        import pyarrow.compute as pc

        # remove blanks, the unit and marks of gaps
        trimmed = pc.utf8_trim_whitespace(cells)
        text = pc.replace_substring(trimmed, MINUS, "-")
        if unit:
            pattern = unit_pattern(unit)
            text = pc.replace_substring_regex(text, pattern, r"\1", max_replacements=1)
        text = _nulls_where(_is_mark(text, NUMBER_MARKS), text)
        if self.decimal == "." and not self.thousands:
            return text

        # write a dot before decimals, and nothing between thousands
        is_number = pc.match_substring_regex(text, f"^(?:{self.pattern})$")
        if self.thousands:
            text = pc.replace_substring(text, self.thousands, "")
        if self.decimal not in ("", "."):
            text = pc.replace_substring(text, self.decimal, ".")
        return pc.if_else(is_number, text, pa.scalar("no number"))


def text_without_marks(cells: pa.Array) -> pa.Array:
    """Return an Arrow column of text, with null for marks of missing values."""
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    is_mark = _is_mark(trimmed, PROGRAM_MARKS)
    if not pc.any(is_mark).as_py():
        return cells
    return _nulls_where(is_mark, cells)


def _is_mark(text: pa.Array, marks: Sequence[str]) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    lower = pc.utf8_lower(text)
    return pc.is_in(lower, value_set=pa.array(marks))


def _nulls_where(where: pa.Array, text: pa.Array) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    null = pa.scalar(None, pa.string())
    return pc.if_else(where, null, text)


# Packing and encoding


@contextmanager
def open_unpacked(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if necessary, whatever its name."""
    try:
        with _open_decompressed(path) as stream:
            yield stream
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        # only errors of the operating system have a number
        if getattr(error, "errno", None) is not None:
            raise
        raise NoTableError(f"{path} is compressed, and truncated or damaged.") from error


def _open_decompressed(path: Path) -> BinaryIO:
    """Open a file for reading bytes; if it is damaged, reading it raises."""
    with path.open("rb") as file:
        head = file.read(6)

    # Python 3.13 and older have no zstd
    if head.startswith(ZSTD):
        import pyarrow as pa

        stream: BinaryIO = pa.input_stream(str(path), compression="zstd")
        return stream

    for beginning, packer in PACKED.items():
        if head.startswith(beginning):
            unpacked: BinaryIO = packer.open(path, "rb")
            return unpacked
    return path.open("rb")


def decode_beginning(path: Path, encoding: str) -> tuple[str, str]:
    """Return the beginning of a file as text, and its encoding."""
    with open_unpacked(path) as file:
        head = bytes(file.read(HEAD_BYTES))

        # the names and the first row may be longer
        while _count_line_ends(head) < 2 and len(head) < LONGEST_CELL:
            more = bytes(file.read(len(head)))
            if not more:
                break
            head += more

    if encoding:
        _refuse_unknown_encoding(encoding)
    else:
        encoding = _find_encoding(head)

    # the last character may be cut
    try:
        decoder = codecs.getincrementaldecoder(encoding)(errors="strict")
        text = decoder.decode(head).removeprefix("\ufeff")
    except UnicodeError as error:
        raise TableError(
            f"{path} is not text in {encoding}: pass its encoding, for example --encoding latin-1."
        ) from error

    before, null, _ = text.partition("\x00")
    if null:
        line = before.count("\n") + 1
        raise NoTableError(
            f"{path} has a NUL character in line {line}, as no text file has: take it out, or pass "
            "the encoding, for example --encoding utf-16."
        )
    return text, encoding


def _count_line_ends(head: bytes) -> int:
    """Return the number of line ends, of any system, in the beginning of a file."""
    return max(head.count(b"\n"), head.count(b"\r"))


def _refuse_unknown_encoding(encoding: str) -> None:
    """Raise for an encoding that is not for text, such as rot13 and zlib."""
    try:
        "a".encode(encoding)
    except (LookupError, ValueError) as error:
        raise TableError(
            f"There is no encoding {encoding!r} of text: utf-8, utf-16 and latin-1 are usual."
        ) from error


def _find_encoding(head: bytes) -> str:
    """Return the encoding of text that begins so: UTF-32, UTF-16, UTF-8 or else Latin-1."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"  # whose mark begins with that of UTF-16
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"

    # Latin text in UTF-16 has a null in every second byte
    beginning = head[:2000]
    nulls = beginning.count(0)
    if nulls > len(beginning) / 4:
        in_second_bytes = beginning[1::2].count(0)
        if in_second_bytes > nulls / 2:
            return "utf-16-le"
        return "utf-16-be"

    try:
        codecs.getincrementaldecoder("utf-8")(errors="strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


# Rows, separator and decimal mark


def read_rows(text: Iterable[str], separator: str, *, strict: bool = False) -> Iterator[Row]:
    """Yield the non-empty rows, with cells of any usual length."""
    usual = csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader(text, delimiter=separator, strict=strict)

    try:
        while True:
            begin = rows.line_num + 1
            row = None
            with suppress(csv.Error):
                row = next(rows)
            if row != []:
                yield begin, rows.line_num, row
    except StopIteration:
        return
    finally:
        csv.field_size_limit(usual)


def find_separator(text: str) -> str:
    """Return the separator: a character that occurs equally often in every row."""
    for separator in SEPARATORS:
        lines = io.StringIO(text, newline="")
        rows = list(islice(read_rows(lines, separator), SEPARATOR_ROWS))
        if len(rows) > 2:
            rows = rows[:-1]  # which may be cut

        # the same number of cells in each row, and more than one
        widths = {len(row or ()) for _, _, row in rows}
        if len(widths) == 1 and widths != {1}:
            return separator

    # else what the first line has most of; the comma where it has none
    first_line = text.lstrip().partition("\n")[0]
    most = max("\t;|,", key=first_line.count)
    if most not in first_line:
        return ","
    return most


def find_decimal(
    columns: Sequence[Sequence[str]],
    units: Sequence[str],
    writing: TextFormat,
    schema: Schema | None,
) -> TextFormat:
    """Return the format in which most cells are numbers; ties go to a model's file, then to dots.

    If cells such as 1,234 are ambiguous, the comma is a decimal mark, unless it separates cells.
    """
    cells: list[str] = []
    for column, unit in zip(columns, units, strict=True):
        cells += [in_usual_form(cell, unit) for cell in column]
    # a whole number without marks is one in every format
    numbers = [cell for cell in cells if cell[:1] in NUMBER_BEGINNINGS]
    telling = [cell for cell in numbers if not cell.isdecimal()]

    # choose the first format in which most cells are numbers
    formats = []
    for decimal, thousands in _list_marks(telling, writing, schema):
        if writing.decimal in ("", decimal):
            formats.append(replace(writing, decimal=decimal, thousands=thousands))
    return max(formats, key=lambda form: form.count_numbers(telling))


def _list_marks(
    cells: Sequence[str], writing: TextFormat, schema: Schema | None
) -> list[tuple[str, str]]:
    """Return pairs of decimal mark and thousands separator, the most likely first."""
    usual = COMMA_IN_CELLS
    if writing.separator == ",":
        usual = COMMA_BETWEEN_CELLS

    # marks between thousands that no cell has are not tried
    used = {"", *chain.from_iterable(cells)}
    found = [pair for pair in (*usual, *SPACED) if pair[1] in used]
    if schema is None:
        return found
    return [(schema.decimal, schema.thousands), *found]
