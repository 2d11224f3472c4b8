"""How a text file of a table is written: packing, encoding, separator, decimal mark."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from nysboost.tables import values
from nysboost.tables.schema import Schema
from nysboost.tables.values import MISSING_MARKERS, in_usual_form
from nysboost.user_error import NoTableError, TableError

HEAD_BYTES = 2**18
"""What is looked at to recognise how a file is written."""

LONGEST_CELL = 2**24
Row = tuple[int, int, list[str] | None]
"""The lines that a row begins and ends in, and its cells; None if it is not written well."""

SEPARATORS = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
ZSTD = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class TextFormat:
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

    def count_numbers(self, cells: Sequence[str]) -> int:
        """Return how many cells are numbers."""
        return sum(map(bool, map(re.compile(self.pattern, re.ASCII).fullmatch, cells)))

    def in_usual_form(self, cells: Any, unit: str) -> Any:
        """Return an Arrow column of text with numbers as others write them, null in gaps."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.replace_substring(pc.utf8_trim_whitespace(cells), values.MINUS, "-")
        if unit:
            text = pc.replace_substring_regex(
                text, values.unit_pattern(unit), r"\1", max_replacements=1
            )
        marks = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MISSING_MARKERS))
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


def open_unpacked(path: Path) -> Any:
    """Open a file, packed or not, whatever its name says, to read its bytes."""
    with path.open("rb") as file:
        head = file.read(6)
    if head.startswith(ZSTD):
        import pyarrow as pa

        return pa.input_stream(str(path), compression="zstd")
    opener = next((o for magic, o in PACKED.items() if head.startswith(magic)), Path.open)
    return opener(path, "rb")


def decode_beginning(path: Path, encoding: str) -> tuple[str, str]:
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


def read_rows(text: Any, separator: str, *, strict: bool = False) -> Iterator[Row]:
    """Yield rows that are not empty, with cells of any usual length."""
    usual = csv.field_size_limit(LONGEST_CELL)
    rows = csv.reader(text, delimiter=separator, strict=strict)
    try:
        while True:
            begin, row = rows.line_num + 1, None
            with suppress(csv.Error):
                row = next(rows)
            if row != []:
                yield begin, rows.line_num, row
    except StopIteration:
        return
    finally:
        csv.field_size_limit(usual)


def find_separator(text: str) -> str:
    """Return what stands between cells: what each row has as often, and more than never."""
    for separator in SEPARATORS:
        rows = list(islice(read_rows(io.StringIO(text, newline=""), separator), 200))
        widths = {len(row or ()) for *_, row in (rows[:-1] if len(rows) > 2 else rows)}
        if len(widths) == 1 and widths != {1}:
            return separator
    first = text.lstrip().partition("\n")[0]
    most = max("\t;|,", key=lambda mark: first.count(mark))
    return most if most in first else ","


def find_decimal(
    columns: Sequence[Sequence[str]],
    units: Sequence[str],
    writing: TextFormat,
    schema: Schema | None,
) -> TextFormat:
    """Return the format in which most cells are numbers: first that of a model's file, then dots.

    Where cells such as 1,234 say no more, the comma is before decimals, unless it separates cells.
    """
    with_units = zip(columns, units, strict=True)
    cells = [in_usual_form(cell, unit) for column, unit in with_units for cell in column]
    cells = [cell for cell in cells if cell[:1] in "+-0123456789.," and not cell.isdecimal()]
    there = {"", *(mark for mark in ".,' \xa0\u202f" if any(mark in cell for cell in cells))}
    tried = [(".", ""), (",", ""), (".", ","), (",", ".")]
    tried = [tried[i] for i in (0, 2, 1, 3)] if writing.separator == "," else tried
    tried += [(decimal, mark) for mark in " \xa0\u202f'" for decimal in ".,"]
    known = [] if schema is None else [(schema.decimal, schema.thousands)]
    pairs = known + [pair for pair in tried if pair[1] in there]
    formats = [
        replace(writing, decimal=decimal, thousands=thousands)
        for decimal, thousands in pairs
        if writing.decimal in ("", decimal)
    ]
    return max(formats, key=lambda one: one.count_numbers(cells))  # the first of several
