"""Tables in files of any form: what their columns are called, and their rows, batch by batch."""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, compress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from nysboost.tables.array_files import ARRAYS, ArrayFile, open_array
from nysboost.tables.csv_files import CsvFile, open_csv
from nysboost.tables.frames import check_names, refuse_unknown
from nysboost.tables.schema import Schema
from nysboost.tables.text_format import TextFormat
from nysboost.user_error import NoTableError, TableError, import_optional

BATCH_ROWS = 2**16
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab")
PACKINGS = (".gz", ".bz2", ".xz", ".zst", ".zstd")
FEATHER = (".feather", ".arrow", ".ipc")
INDEX = ("", "__index_level_0__", "Unnamed: 0")
"""Names that an index gets when a data frame is written: it is no feature."""

BEGINNINGS = {
    b"PAR1": ".parquet", b"ARROW1": ".feather", b"\x93NUMPY": ".npy", b"\x89HDF": ".h5",
    b"PK\x03\x04": ".xlsx", b"{": ".jsonl", b"[": ".json",
}  # fmt: skip
"""How files of these forms begin, where no name says what they are."""

FORMS = (
    ".csv, .tsv, .txt (also packed), .parquet (a file or a folder), .feather, .jsonl, .xlsx, .npy, "
    ".npz, .h5, .hdf5, .zarr and .libsvm"
)

IN_FOLDERS = (".csv", ".tsv", ".feather", ".jsonl", ".ndjson", ".xlsx", ".gz", ".parquet")
"""Files of a folder that are read as one table; those of Parquet alone, where there are some."""


@dataclass
class ColumnFile:
    """A dataset of Arrow: Parquet, Feather, JSON or Excel; or the files of a mixed folder."""

    path: Path
    data: Any
    names: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    n: int | None = None
    categories: Sequence[str] = ()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Read all rows once, in order, as Arrow tables of these columns."""
        import pyarrow as pa

        wanted = list(self.names if columns is None else columns)
        try:
            if isinstance(self.data, list):
                for file in self.data:
                    yield from file.batches(wanted)
                return
            for batch in self.data.to_batches(columns=wanted, batch_size=BATCH_ROWS):
                cells = dict(zip(wanted, batch.columns, strict=True))
                encoded = {n: cells[n].dictionary_encode() for n in wanted if n in self.categories}
                if batch.num_rows:
                    yield pa.table(cells | encoded)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.path} cannot be read as a table: {error}.") from error


def open_table(
    path: Path | str,
    *,
    dataset: str | None = None,
    writing: TextFormat | None = None,
    schema: Schema | None = None,
    categories: Sequence[str] = (),
) -> CsvFile | ColumnFile | ArrayFile:
    """Open a table: a file, a folder of files or a Zarr array, or "-" (standard input).

    `dataset` names an array of several; what is None in `writing` is recognised; a `schema` is
    that of a model; the values of `categories` are names.
    """
    path = _from_standard_input() if str(path) == "-" else Path(path)
    if not path.exists():
        raise NoTableError(f"There is no file {path}.")
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")
    suffixes = ["", *(part.lower() for part in path.suffixes)]
    packed = suffixes[-1] in PACKINGS
    form = suffixes[-2] if packed else suffixes[-1]
    if form in ARRAYS:
        if categories:
            raise TableError(f"--category names columns, but those of {path} have no names.")
        return open_array(form, path, dataset)
    if dataset is not None:
        msg = f"--dataset {dataset} names an array of a file with several, but {path} is a table."
        raise NoTableError(msg)
    import_optional("pyarrow")
    if path.is_dir() and not any(path.rglob("*.parquet")):
        seen = (p for p in path.iterdir() if p.name[0] not in "._")  # the others are of programs
        paths = sorted(p for p in seen if p.suffix.lower() in IN_FOLDERS)
        how: Any = {"writing": writing, "schema": schema, "categories": categories}
        return _join_files(path, [open_table(part, **how) for part in paths])
    if not path.is_dir() and (form in TEXT or (packed and not form)):
        return open_csv(path, writing or TextFormat(), schema, categories)
    opener = _open_columns if path.is_dir() else OPENERS.get(form)
    if opener is None:
        raise NoTableError(f"{path} has a form that is not known: {FORMS} are read.")
    file = opener(path)
    refuse_unknown(categories, file.names, path)
    file.categories = categories
    return file


def join_tables(parts: Sequence[Any]) -> Any:
    """Return Arrow tables as one; a column that is text in one of them is text in all."""
    import pyarrow as pa

    kinds = [{field.name: field.type for field in part.schema} for part in parts]
    for name, kind in kinds[0].items():
        types = {kind, *(other.get(name, kind) for other in kinds)}
        if len(types) > 1 and pa.string() in types:
            at = parts[0].schema.get_field_index(name)
            parts = [t.set_column(at, name, t.column(name).cast(pa.string())) for t in parts]
    try:
        return pa.concat_tables(parts, promote_options="permissive").combine_chunks()
    except pa.ArrowTypeError as error:
        raise TableError(f"The files of a folder do not go together: {error}.") from error


def without_index(
    names: Sequence[str], path: Path, notes: list[str], index: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names of the columns that are none of a data frame's index, and say so."""
    left_out = [name for name in names if name in INDEX or name in index]
    if not 0 < len(left_out) < len(names):
        return tuple(names)
    notes.append(f"The index of {path} ({', '.join(left_out) or 'without a name'}) is left out.")
    return tuple(name for name in names if name not in left_out)


def _from_standard_input() -> Path:
    """Copy standard input to a file, whose ending says what its beginning shows."""
    folder = Path(tempfile.mkdtemp(prefix="nysboost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / "standard input"  # which is what messages call it
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with path.open("rb") as file:
        head = file.read(6)
    ending = next((e for start, e in BEGINNINGS.items() if head.lstrip().startswith(start)), ".csv")
    return path.rename(path.with_suffix(ending))


def _join_files(path: Path, files: list[Any]) -> ColumnFile:
    """Return the files of a folder, in the order of their names, as one table."""
    if not files:
        raise NoTableError(f"The folder {path} holds no tables: {FORMS} are read.")
    units: dict[str, tuple[str, Path]] = {}
    for file in files:
        if lacking := set(files[0].names) - set(file.names):
            said = f"{file.path} lacks columns that {files[0].path} has"
            raise NoTableError(f"{said}: {', '.join(sorted(lacking))}.")
        for name, unit in getattr(file, "numbers", {}).items():
            other, where = units.setdefault(name, (unit, file.path))
            if other != unit:
                said = f"{name!r} is written with {other!r} in {where}, but with {unit!r} in "
                raise TableError(f"{said}{file.path}: write it in one unit.")
    return ColumnFile(path, files, files[0].names, [note for file in files for note in file.notes])


def _open_columns(path: Path) -> ColumnFile:
    import pyarrow as pa
    import pyarrow.dataset as arrow

    form = "Feather" if path.suffix.lower() in FEATHER else "Parquet"
    try:
        how = {"format": form.lower(), "exclude_invalid_files": False}
        how |= {"partitioning": "hive"} if path.is_dir() else {}
        # other files of a folder are notes and logs; those of programs begin with . or _
        inside = [(str(p), p.relative_to(path).parts) for p in sorted(path.rglob("*.parquet"))]
        source = [name for name, parts in inside if not any(part[0] in "._" for part in parts)]
        data = arrow.dataset(source or path, **how)
        if path.is_dir():  # files may lack columns, have others, or numbers of another type
            schemas = [data.schema, *(part.physical_schema for part in data.get_fragments())]
            unified = pa.unify_schemas(schemas, promote_options="permissive")
            data = arrow.dataset(source, schema=unified, **how)
        described = json.loads((data.schema.metadata or {}).get(b"pandas", b"{}"))
        rows = int(data.count_rows())
    except (pa.ArrowException, OSError) as error:
        if "duplicate field" in str(error):
            msg = f"{path} has two columns of one name: give each a name of its own."
            raise TableError(msg) from error
        if isinstance(error, pa.ArrowTypeError):
            raise TableError(f"The files of {path} do not go together: {error}.") from error
        said = str(error).rstrip(".")
        raise NoTableError(f"{path} is no {form} file, or it is cut off: {said}.") from error
    notes: list[str] = []
    names = without_index(data.schema.names, path, notes, described.get("index_columns", ()))
    return ColumnFile(path, data, names, notes, rows)


def _open_lines(path: Path) -> ColumnFile:
    """Open JSON objects, one in each line or in a list, with columns for the names of all."""
    import pyarrow as pa
    import pyarrow.json as arrow

    data = None
    try:
        with path.open("rb") as file:
            listed = file.read(100).lstrip().startswith(b"[")
        try:
            data = None if listed else arrow.read_json(str(path))
        except pa.ArrowInvalid as error:
            if "changed from" not in str(error):  # the type of a column's values
                raise
        if data is None:
            text = path.read_bytes()
            found = json.loads(text) if listed else [json.loads(t) for t in text.splitlines() if t]
            if other := [each for each in found if not isinstance(each, dict)]:
                raise ValueError(f"{other[0]!r:.60} is none")
            names = dict.fromkeys(name for each in found for name in each)
            data = pa.table({name: _one_type([each.get(name) for each in found]) for name in names})
    except (pa.ArrowException, ValueError, OverflowError) as error:
        msg = f"{path} is not a file of JSON objects, one in each line or in a list: {error}."
        raise NoTableError(msg) from error
    if not data.num_rows or not data.column_names:
        raise TableError(f"{path} has no rows.")
    return _in_memory(path, data, [])


def _open_excel(path: Path) -> ColumnFile:
    import pyarrow as pa

    openpyxl = import_optional("openpyxl")
    with path.open("rb") as file:
        try:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            cells = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
        except (BadZipFile, KeyError, OSError, ValueError, AttributeError, SyntaxError) as error:
            msg = f"{path} is no Excel file that openpyxl can read, or it is damaged: {error}."
            raise NoTableError(msg) from error
        notes = [f"The first sheet of {path} is read."] if len(book.worksheets) > 1 else []
    filled = [any(cell is not None for cell in row) for row in cells]
    rows = list(compress(cells, filled))
    if len(rows) < 2:
        msg = f"The first sheet of {path} needs a line of column names and at least one row."
        raise TableError(msg)
    names = [str("" if cell is None else cell).strip() for cell in rows[0]]
    kept = [i for i, name in enumerate(names) if name]
    check_names([names[i] for i in kept], path)
    data = pa.table({names[i]: _one_type([row[i] for row in rows[1:]]) for i in kept})
    between = filled[filled.index(True) : len(filled) - filled[::-1].index(True)]
    if empty := between.count(False):
        notes.append(f"{empty} empty rows of {path} are left out.")
    if any(column.null_count for column in data.columns):
        notes += _formulas_without_values(path, cells)
    return _in_memory(path, data, notes)


def _in_memory(path: Path, table: Any, notes: list[str]) -> ColumnFile:
    import pyarrow.dataset as arrow

    return ColumnFile(path, arrow.dataset(table), tuple(table.column_names), notes, len(table))


def _formulas_without_values(path: Path, cells: list[list[Any]]) -> list[str]:
    """Return a note if cells hold a formula, but not what it gives."""
    with path.open("rb") as file:
        book = import_optional("openpyxl").load_workbook(file, read_only=True)
        formulas = chain.from_iterable(book.worksheets[0].iter_rows())
        pairs = zip(chain.from_iterable(cells), formulas, strict=True)
        found = [cell.coordinate for x, cell in pairs if x is None and cell.data_type == "f"]
    if not found:
        return []
    more = f", as have {len(found) - 1} more cells" if len(found) > 1 else ""
    return [
        f"Cell {found[0]} of {path} has a formula without the value that it gives{more}: these are "
        "taken as missing. A program for spreadsheets that opens and saves the file adds them."
    ]


def _one_type(cells: Sequence[Any]) -> Any:
    """Return cells as an Arrow array: of their own type, or as text where they have several."""
    import pyarrow as pa

    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2 and kinds != {int}:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            return pa.array(cells)
    one: Any = float if kinds <= {int, float} else str
    return pa.array([None if cell is None else one(cell) for cell in cells])


OPENERS = {
    **dict.fromkeys((".parquet", ".pq", *FEATHER), _open_columns),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _open_lines),
    **dict.fromkeys((".xlsx", ".xlsm"), _open_excel),
}
