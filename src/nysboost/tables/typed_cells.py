"""Files with typed cells, JSON and the first sheet of Excel, as Arrow tables."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from nysboost.numerics.messages import format_cell
from nysboost.tables.frames import check_names, fill_names, find_index, note_unnamed
from nysboost.tables.gaps import is_program_mark
from nysboost.tables.text_format import open_unpacked
from nysboost.user_error import NoTableError, TableError, import_optional

if TYPE_CHECKING:
    import pyarrow as pa

Sheet: TypeAlias = list[list[object]]

DEEPEST = 100
"""Largest depth of nested brackets: Arrow's reader crashes the process at about 20,000."""

_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')

_NULL_OBJECT = re.compile(rb"(?:\A|[^\s:,\[])\s*+null")
"""A null that is neither the value of an object nor in a list."""

_LARGE_INTEGER = re.compile(rb"(?<![\d.])\d{19,}+(?![.eE])")
"""A whole number that may not fit in 64 bits."""


def read_json(path: Path) -> pa.Table:
    """Return JSON objects as an Arrow table with a column for each name."""
    import pyarrow as pa

    with open_unpacked(path) as file:
        text = file.read().removeprefix(codecs.BOM_UTF8)
    marks = _STRING.sub(b"", text)
    _refuse_deep(path, marks)

    # a JSON list, or an object in each line
    is_list = text[:100].lstrip().startswith(b"[")
    try:
        if is_list:
            data = _join_objects(json.loads(text))
        else:
            data = _read_lines(text, marks)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        msg = f"{path} is not a file of JSON objects, one in each line or in a list: {error}."
        raise NoTableError(msg) from error

    if not data.num_rows or not data.column_names:
        raise TableError(f"{path} has no rows.")
    return data


def _read_lines(text: bytes, marks: bytes) -> pa.Table:
    """Return the objects of a text of lines; `marks` is the text without strings."""
    import pyarrow as pa
    import pyarrow.json as arrow

    # Arrow's reader ends the process at a null before all objects
    if _NULL_OBJECT.search(marks):
        raise ValueError("one is null")

    # Arrow's reader would round large whole numbers
    if _LARGE_INTEGER.search(marks):
        return _read_objects(text)
    try:
        data = arrow.read_json(pa.BufferReader(text))

        # read dates as text: Arrow would drop their time zone, and add a time of day
        dates = [each.name for each in data.schema if pa.types.is_timestamp(each.type)]
        if not dates:
            return data
        texts = pa.schema([(name, pa.string()) for name in dates])
        parsing = arrow.ParseOptions(explicit_schema=texts)
        return arrow.read_json(pa.BufferReader(text), None, parsing).select(data.column_names)
    except pa.ArrowInvalid as error:
        # Arrow reads neither columns of several types nor lines longer than its blocks
        if not any(words in str(error) for words in ("changed from", "straddling object")):
            raise
    return _read_objects(text)


def _read_objects(text: bytes) -> pa.Table:
    """Return the objects of a text of lines as Python reads them."""
    objects = [json.loads(line) for line in text.splitlines() if line.strip()]
    return _join_objects(objects)


def _refuse_deep(path: Path, text_without_strings: bytes) -> None:
    """Raise for deeply nested brackets, which would crash the process or exceed Python's stack."""
    marks = np.frombuffer(text_without_strings, dtype=np.uint8)
    if len(marks) == 0:
        return
    opens = np.isin(marks, [ord("["), ord("{")])
    closes = np.isin(marks, [ord("]"), ord("}")])
    steps = opens.astype(np.int64) - closes
    depth = np.cumsum(steps)

    # above the least depth so far: brackets that close nothing hide no others
    least_so_far = np.minimum.accumulate(np.minimum(depth, 0))
    deepest = int((depth - least_so_far).max())
    if deepest > DEEPEST:
        raise TableError(
            f"{path} has brackets {deepest:,} deep: a table needs objects whose values are "
            "numbers or text."
        )


def _join_objects(found: Sequence[dict[str, object]]) -> pa.Table:
    """Join objects with values of several types."""
    import pyarrow as pa

    other = [each for each in found if not isinstance(each, dict)]
    if other:
        raise ValueError(f"{format_cell(other[0])} is none")

    # columns have the names of all objects
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(chain.from_iterable(found)):
        columns[name] = one_type([each.get(name) for each in found])
    return pa.table(columns)


def one_type(cells: Sequence[object]) -> pa.Array:
    """Return cells as an Arrow array: of their type, or as text if they have several types."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return as_days(pa.array(cells))

    # numbers as floats, in which NaN stands for None; all else as text, with all digits
    if kinds == {int, float}:
        numbers = np.array(cells, dtype=np.float64)
        return pa.array(numbers, from_pandas=True)
    texts = [cell if cell is None else str(cell) for cell in cells]
    return pa.array(texts)


def as_days(column: pa.Array) -> pa.Array:
    """Return timestamps that are all midnight as days, and other columns unchanged.

    The reader of Excel does not tell 2020-01-31 from 2020-01-31 00:00.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_timestamp(column.type):
        return column
    days = column.cast(pa.date32(), safe=False)
    is_midnight = pc.equal(days.cast(column.type), column)
    if pc.all(is_midnight).as_py():
        return days
    return column


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type is text, also in a dictionary or as bytes."""
    import pyarrow as pa

    types = pa.types
    checks = (
        types.is_string,
        types.is_large_string,
        types.is_string_view,
        types.is_binary,
        types.is_large_binary,
        types.is_binary_view,
        types.is_fixed_size_binary,
        types.is_dictionary,
    )
    return any(check(kind) for check in checks)


# Excel


def read_excel(path: Path) -> tuple[pa.Table, list[str]]:
    """Return the first sheet as an Arrow table, and notes about it."""
    import pyarrow as pa

    cells, n_sheets = _read_cells(path)
    is_filled = [row.count(None) < len(row) for row in cells]
    rows = list(compress(cells, is_filled))
    if len(rows) < 2:
        msg = f"The first sheet of {path} needs a line of column names and at least one row."
        raise TableError(msg)

    # the first row has names
    head, *body = rows
    titles = []
    columns = []
    for j, title in enumerate(head):
        titles.append("" if title is None else str(title).strip())
        columns.append(_without_marks([row[j] for row in body]))
    index = find_index(titles, columns[0])
    names = fill_names(titles, index)

    # of the columns without one those with values are kept
    kept: list[str] = []
    arrays: list[pa.Array] = []
    for name, title, column in zip(names, titles, columns, strict=True):
        is_empty = column.count(None) == len(column)
        if title or not is_empty:
            kept.append(name)
            arrays.append(one_type(column))
    check_names(kept, path)
    data = pa.table(arrays, kept)

    # what a user may not expect
    notes = note_unnamed(path, names, titles, columns)
    if n_sheets > 1:
        notes.append(f"The first sheet of {path} is read.")
    n_empty = _count_empty_between(is_filled)
    if n_empty:
        notes.append(f"{n_empty} empty rows of {path} are left out.")
    if any(column.null_count for column in data.columns):
        notes += _note_formulas_without_values(path, cells)
    return data, notes


def _read_cells(path: Path) -> tuple[Sheet, int]:
    """Return the cells of the first sheet, and how many sheets there are."""
    openpyxl = import_optional("openpyxl")
    with path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            cells = [list(row) for row in sheet.iter_rows(values_only=True)]
        except MemoryError:
            raise
        except Exception as error:  # archives, their codecs and sheets have errors of their own
            msg = f"{path} is no Excel file that openpyxl can read, or it is damaged: {error}."
            raise NoTableError(msg) from error
        return cells, len(book.worksheets)


def _without_marks(cells: list[object]) -> list[object]:
    """Return cells with None for marks of missing values."""
    return [None if is_program_mark(cell) else cell for cell in cells]


def _count_empty_between(is_filled: list[bool]) -> int:
    """Return the number of empty rows between the first and the last non-empty one."""
    first = is_filled.index(True)
    end = len(is_filled) - is_filled[::-1].index(True)
    return is_filled[first:end].count(False)


def _note_formulas_without_values(path: Path, cells: Sheet) -> list[str]:
    """Return a note if cells hold a formula without its result."""
    openpyxl = import_optional("openpyxl")
    with path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True)
        formulas = chain.from_iterable(book.worksheets[0].iter_rows())

        # cells without a value in which a formula stands
        found = []
        for value, cell in zip(chain.from_iterable(cells), formulas, strict=True):
            if value is None and cell.data_type == "f":
                found.append(cell.coordinate)

    if not found:
        return []
    more = ""
    if len(found) > 1:
        more = f", as have {len(found) - 1} more cells"
    return [
        f"Cell {found[0]} of {path} has a formula without its result{more}: these are read as "
        "missing values. To add the results, open and save the file in a spreadsheet program."
    ]
