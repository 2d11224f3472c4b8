"""How a text file of a table is written: encoding, separator, decimals, thousands, packing."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from nysboost.tables.schema import Schema
from nysboost.tables.values import MARKS, MINUS, as_number, tidy, without_unit
from nysboost.user_error import NoTableError, TableError

HEAD_BYTES = 2**18
"""What is looked at to recognise how a file is written."""

LONGEST_CELL = 2**24
Row = tuple[int, list[str]]
"""Cells, and the number of the line that they end in."""

SEPARATORS = "\t;|,"
PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
ZSTD = b"\x28\xb5\x2f\xfd"

DECIMALS = {m: re.compile(rf"[+-]?\d*[{m}]\d+([eE][+-]?\d+)?", re.ASCII) for m in ".,"}
OTHER = {".": ",", ",": "."}
GROUPS = {
    mark: re.compile(rf"[+-]?\d{{1,3}}({re.escape(mark)}\d{{3}})+([{decimals}]\d+)?", re.ASCII)
    for mark, decimals in {".": ",", ",": "."}.items() | dict.fromkeys(" \xa0\u202f'", ".,").items()
}
"""Numbers whose thousands are apart, by what stands between them."""


@dataclass(frozen=True)
class Writing:
    """How a text file is written; None is to be recognised."""

    separator: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None

    def describe(self) -> str:
        """Return what is not as usual, as a note."""
        names = {"\t": "tabs", ";": "semicolons", "|": "bars", ",": "commas", " ": "spaces"}
        said = [f"separated by {names.get(self.separator or ',', repr(self.separator))}"]
        said += ["decimal comma"] if self.decimal == "," else []
        said += [f"thousands written with {self.thousands!r}"] if self.thousands else []
        said += [str(self.encoding)] if self.encoding != "utf-8" else []
        return ", ".join(said)

    def plain(self, cell: str, unit: str = "") -> str:
        """Return a cell as others write it, if it is a number."""
        text = without_unit(cell) if unit else tidy(cell)
        if self.thousands and self.thousands in text:
            if not GROUPS[self.thousands].fullmatch(text):
                return cell
            text = text.replace(self.thousands, "")
        dotted = text.replace(self.decimal or ".", ".")
        return cell if as_number(dotted) is None else dotted

    def numbers(self, cells: Any, unit: str = "") -> Any:
        """Return an Arrow column of text as floats, null in gaps; None if a cell is no number."""
        import pyarrow as pa
        import pyarrow.compute as pc

        text = pc.replace_substring(pc.utf8_trim_whitespace(cells), MINUS, "-")
        if unit:
            sign = re.escape(unit)
            text = pc.replace_substring_regex(text, rf"^([+-]?){sign}\s*|\s*{sign}$", r"\1")
        if self.thousands:
            form = f"^(?:{GROUPS[self.thousands].pattern})$"
            grouped = pc.match_substring(text, self.thousands)
            if pc.any(pc.and_not(grouped, pc.match_substring_regex(text, form))).as_py():
                return None
            text = pc.replace_substring(text, self.thousands, "")
        if self.decimal not in (None, "."):
            text = pc.replace_substring(text, self.decimal, ".")
        marks = pc.is_in(pc.utf8_lower(text), value_set=pa.array(MARKS))
        try:
            return pc.cast(pc.if_else(marks, pa.scalar(None, pa.string()), text), pa.float64())
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


def decode_beginning(path: Path, writing: Writing) -> tuple[str, Writing]:
    """Return the beginning of a file as text, and how it is encoded."""
    try:
        with open_unpacked(path) as file:
            head = bytes(file.read(HEAD_BYTES))
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise NoTableError(f"{path} is packed, and cut off or damaged.") from error
    encoding = writing.encoding or _encoding(head)
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
    return text, replace(writing, encoding=encoding)


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8"
    nulls = head[:2000].count(0)
    if nulls > len(head[:2000]) / 4:
        return "utf-16-le" if head[1:2000:2].count(0) > nulls / 2 else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")(errors="strict").decode(head)
    except UnicodeDecodeError:
        return "latin-1"
    return "utf-8"


def rows_of_text(text: str, separator: str, most: int | None = None) -> list[Row]:
    """Return the rows of a text that are not empty, `most` of them, however long cells are."""
    with long_cells():
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        return list(islice(((rows.line_num, row) for row in rows if row), most))


@contextmanager
def long_cells() -> Iterator[None]:
    """Let Python read cells of any usual length."""
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def find_separator(text: str) -> str:
    """Return what stands between cells: what each row has as often, and more than never."""
    for separator in SEPARATORS + " ":
        rows = rows_of_text(text, separator, 200)
        widths = {len(row) for _, row in (rows[:-1] if len(rows) > 2 else rows)}
        if len(widths) == 1 and widths != {1}:
            return separator
    first = text.lstrip().partition("\n")[0]
    most = max(SEPARATORS, key=lambda mark: first.count(mark))
    return most if most in first else ","


def find_decimal(
    rows: Sequence[Sequence[str]], separator: str, writing: Writing, schema: Schema | None
) -> tuple[str, str]:
    """Return what stands before decimals and between thousands, here or in the model's file."""
    cells = [without_unit(cell) for row in rows for cell in row]
    cells = [cell for cell in cells if cell[:1] in "+-0123456789." and cell]
    groups = {mark: [c for c in cells if form.fullmatch(c)] for mark, form in GROUPS.items()}

    def count_decimals(mark: str) -> int:
        """Count cells in which the mark is before decimals and not between thousands."""
        alone = [c for c in cells if DECIMALS[mark].fullmatch(c) and not GROUPS[mark].fullmatch(c)]
        beside = [c for other in groups if other != mark for c in groups[other] if mark in c]
        return len(alone) + len(beside) + sum(c.count(OTHER[mark]) > 1 for c in groups[OTHER[mark]])

    dots, commas = count_decimals("."), count_decimals(",")
    if writing.decimal is not None:
        decimal = writing.decimal
    elif dots or commas:
        decimal = "," if commas > dots else "."
    elif schema is not None and (schema.decimal, schema.thousands) != (".", ""):
        decimal = schema.decimal
    else:
        decimal = "," if groups[","] and separator != "," and not groups["."] else "."
    known = schema.thousands if schema is not None and not (dots or commas) else ""
    found = next((mark for mark in (OTHER[decimal], *" \xa0\u202f'") if groups[mark]), known)
    return decimal, writing.thousands or found
