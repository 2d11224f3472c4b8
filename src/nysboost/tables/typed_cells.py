"""Files whose cells have a type each, JSON and the first sheet of Excel, as Arrow tables."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zipfile import BadZipFile

import numpy as np

from nysboost.tables.frames import check_names, find_index, name_columns, note_unnamed
from nysboost.tables.gaps import is_program_mark
from nysboost.user_error import NoTableError, TableError, import_optional

if TYPE_CHECKING:
    import pyarrow as pa

Sheet: TypeAlias = list[list[object]]

DEEPEST = 100
"""Brackets within brackets that are read: Arrow's reader ends the process at some 20,000."""

_STRING = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')

_NULL_OBJECT = re.compile(rb"(?:\A|[^\s:,\[])\s*+null")
"""A null that is neither a value of an object nor in a list."""


def read_json(path: Path) -> pa.Table:
    """Return JSON objects as an Arrow table with columns for the names of all."""
    import pyarrow as pa
    import pyarrow.json as arrow

    text = path.read_bytes()
    marks = _STRING.sub(b"", text)
    _refuse_deep(path, marks)

    # Arrow reads lines; lists and columns of several types are read here
    is_list = text[:100].lstrip().startswith(b"[")
    data = None
    try:
        if not is_list:
            # Arrow's reader ends the process at a null before all objects
            if _NULL_OBJECT.search(marks):
                raise ValueError("one is null")
            try:
                data = arrow.read_json(str(path))
            except pa.ArrowInvalid as error:
                if "changed from" not in str(error):  # the type of a column's values
                    raise
        if data is None:
            data = _read_objects(text, is_list=is_list)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        msg = f"{path} is not a file of JSON objects, one in each line or in a list: {error}."
        raise NoTableError(msg) from error

    if not data.num_rows or not data.column_names:
        raise TableError(f"{path} has no rows.")
    return data


def _refuse_deep(path: Path, text_without_strings: bytes) -> None:
    """Refuse brackets within many brackets, which end the process or Python's stack."""
    marks = np.frombuffer(text_without_strings, dtype=np.uint8)
    if len(marks) == 0:
        return
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
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


def _read_objects(text: bytes, *, is_list: bool) -> pa.Table:
    """Return objects whose values may be of several types."""
    import pyarrow as pa

    if is_list:
        found = json.loads(text)
    else:
        found = [json.loads(line) for line in text.splitlines() if line]

    other = [each for each in found if not isinstance(each, dict)]
    if other:
        raise ValueError(f"{other[0]!r:.60} is none")

    # columns have the names of all objects
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(chain.from_iterable(found)):
        columns[name] = one_type([each.get(name) for each in found])
    return pa.table(columns)


def one_type(cells: Sequence[Any]) -> pa.Array:
    """Return cells as an Arrow array: of their own type, or as text where they have several."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2 and kinds != {int}:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(cells)
    to_type = float if kinds <= {int, float} else str
    return pa.array([None if cell is None else to_type(cell) for cell in cells])


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

    # the first row has names; of the columns without one those with values are kept
    titles = ["" if title is None else str(title).strip() for title in rows[0]]
    cells_of = [[_without_mark(row[i]) for row in rows[1:]] for i in range(len(titles))]
    names = name_columns(titles, find_index(titles, cells_of[0]))
    kept = [i for i, title in enumerate(titles) if title or any(map(_is_there, cells_of[i]))]
    check_names([names[i] for i in kept], path)
    data = pa.table({names[i]: one_type(cells_of[i]) for i in kept})

    notes = note_unnamed(path, names, titles, cells_of)
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
            cells = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
        except (BadZipFile, KeyError, OSError, ValueError, AttributeError, SyntaxError) as error:
            msg = f"{path} is no Excel file that openpyxl can read, or it is damaged: {error}."
            raise NoTableError(msg) from error
        return cells, len(book.worksheets)


def _is_there(cell: object) -> bool:
    return cell is not None


def _without_mark(cell: object) -> object:
    """Return None for what programs write in a cell without a value."""
    return None if is_program_mark(cell) else cell


def _count_empty_between(is_filled: list[bool]) -> int:
    first = is_filled.index(True)
    end = len(is_filled) - is_filled[::-1].index(True)
    return is_filled[first:end].count(False)


def _note_formulas_without_values(path: Path, cells: Sheet) -> list[str]:
    """Return a note if cells hold a formula, but not what it gives."""
    with path.open("rb") as file:
        book = import_optional("openpyxl").load_workbook(file, read_only=True)
        formulas = chain.from_iterable(book.worksheets[0].iter_rows())

        # cells without a value beside what stands in them
        pairs = zip(chain.from_iterable(cells), formulas, strict=True)
        found = [
            cell.coordinate for value, cell in pairs if value is None and cell.data_type == "f"
        ]

    if not found:
        return []
    more = f", as have {len(found) - 1} more cells" if len(found) > 1 else ""
    return [
        f"Cell {found[0]} of {path} has a formula without the value that it gives{more}: these are "
        "taken as missing. A program for spreadsheets that opens and saves the file adds them."
    ]
