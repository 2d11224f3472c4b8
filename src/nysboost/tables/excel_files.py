"""The first sheet of an Excel file as an Arrow table."""

from __future__ import annotations

from itertools import chain, compress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from zipfile import BadZipFile

from nysboost.tables.frames import check_names
from nysboost.tables.gaps import is_program_mark
from nysboost.tables.json_files import one_type
from nysboost.user_error import NoTableError, TableError, import_optional

if TYPE_CHECKING:
    import pyarrow as pa

Sheet: TypeAlias = list[list[object]]


def read_excel(path: Path) -> tuple[pa.Table, list[str]]:
    """Return the first sheet as an Arrow table, and notes about it."""
    import pyarrow as pa

    cells, n_sheets = _read_cells(path)
    is_filled = [row.count(None) < len(row) for row in cells]
    rows = list(compress(cells, is_filled))
    if len(rows) < 2:
        msg = f"The first sheet of {path} needs a line of column names and at least one row."
        raise TableError(msg)

    # columns with a name
    header = ["" if cell is None else cell for cell in rows[0]]
    names = [str(cell).strip() for cell in header]
    check_names([name for name in names if name], path)
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(names):
        if name:
            columns[name] = one_type([_without_mark(row[i]) for row in rows[1:]])
    data = pa.table(columns)

    notes = []
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
