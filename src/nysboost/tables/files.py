"""Tables in files of any format: the names of their columns, and their rows in batches."""

from __future__ import annotations

import atexit
import codecs
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias
from zipfile import BadZipFile, ZipFile

from nysboost.numerics.checks import MAX_MEMORY
from nysboost.rows.files import COPIES
from nysboost.tables.array_files import ARRAYS, ArrayFile, open_array
from nysboost.tables.csv_files import CsvFile, open_csv
from nysboost.tables.frames import INDEX, find_index, note_index, refuse_unknown
from nysboost.tables.schema import Schema
from nysboost.tables.text_format import TextFormat
from nysboost.tables.typed_cells import is_text, read_excel, read_json
from nysboost.user_error import NoTableError, TableError, UserError, import_optional, raise_as

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as arrow

BATCH_ROWS = 2**16
TEXT = (".csv", ".tsv", ".txt", ".dat", ".data", ".tab")
PACKINGS = (".gz", ".bz2", ".xz", ".zst", ".zstd")
FEATHER = (".feather", ".arrow", ".ipc")
BEGINNINGS = {
    rb"PAR1": ".parquet", rb"ARROW1": ".feather", rb"\x93NUMPY": ".npy", rb"\x89HDF": ".h5",
    rb"PK\x03\x04": ".xlsx", rb"\{\s*([\"}]|\Z)": ".jsonl", rb"\[\s*([\[{\]]|\Z)": ".json",
}  # fmt: skip
"""Patterns of the first bytes of files of these formats, for inputs without a name."""

FORMS = (
    ".csv, .tsv, .txt (also packed), .parquet (a file or a folder), .feather, .jsonl, .xlsx, .npy, "
    ".npz, .h5, .hdf5, .zarr and .libsvm"
)

IN_FOLDERS = (".csv", ".tsv", ".feather", ".jsonl", ".ndjson", ".xlsx", ".gz", ".parquet")
"""Extensions of files in a folder that are read as one table, if there are no Parquet files."""


MOST_FILES = 100_000
"""Parquet files are looked for among so many files below a folder, which takes a second."""


@dataclass
class ColumnFile:
    """A table with typed columns: Parquet, Feather, JSON, Excel, or a mixed folder."""

    path: Path
    data: arrow.Dataset | list[TableFile]
    names: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    n: int | None = None
    categories: Sequence[str] = ()

    def batches(
        self, columns: Sequence[str] | None = None, kept: Sequence[str] = ()
    ) -> Iterator[pa.Table]:
        """Read all rows once, in order, as Arrow tables of these columns, then the `kept` ones."""
        import pyarrow as pa

        if columns is None:
            columns = self.names
        names = [*columns, *kept]
        try:
            # read the files of a mixed folder one after the other
            if isinstance(self.data, list):
                for file in self.data:
                    yield from file.batches(columns, kept)
                return

            # read an Arrow dataset in batches, each column once
            wanted = list(dict.fromkeys(names))
            for batch in self.data.to_batches(columns=wanted, batch_size=BATCH_ROWS):
                if batch.num_rows:
                    yield self._as_table(batch, names)
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.path} cannot be read as a table: {error}.") from error

    def _as_table(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.Table:
        """Return columns of rows as a table, with categories as what they are."""
        import pyarrow as pa

        cells = []
        for name in names:
            column = batch.column(name)
            if name in self.categories:
                column = column.dictionary_encode()
            cells.append(column)
        return pa.table(cells, list(names))


TableFile: TypeAlias = CsvFile | ColumnFile | ArrayFile


def open_table(
    path: Path | str,
    *,
    dataset: str | None = None,
    writing: TextFormat | None = None,
    schema: Schema | None = None,
    categories: Sequence[str] = (),
    max_memory: int | str = MAX_MEMORY,
) -> TableFile:
    """Open a table: a file, a folder of files or a Zarr array, or "-" (standard input).

    Parameters
    ----------
    path : path or str
    dataset : str or None
        Name of the array, if there are several.
    writing : TextFormat or None
        Format of a text file; fields that are None are detected.
    schema : Schema or None
        Schema of the model that will read the table.
    categories : sequence of str
        Columns that are categories.
    max_memory : int or str
        Sparse tables are made dense if that takes a small part of this memory.
    """
    path = _find_file(Path(path))
    if path.is_file() and path.stat().st_size == 0:
        raise TableError(f"{path} is empty.")

    # arrays
    form, is_packed = _find_form(path)
    if form in ARRAYS:
        if categories:
            raise TableError(f"--category names columns, but those of {path} have no names.")
        width = 0
        if schema is not None:
            width = schema.width
        return open_array(form, path, dataset, max_memory, width)
    if dataset is not None:
        msg = f"--dataset {dataset} names an array of a file with several, but {path} is a table."
        raise NoTableError(msg)

    # columns with names
    import_optional("pyarrow")
    if path.is_dir():
        return _open_folder(path, writing, schema, categories)
    if form in TEXT or (is_packed and not form):
        return open_csv(path, writing or TextFormat(), schema, categories)

    file = _open_columns(path, form)
    _name_categories(file, categories)
    return file


def _name_categories(file: ColumnFile, categories: Sequence[str]) -> None:
    """Make columns categories, whatever their values are, or say which are not there."""
    with raise_as(UserError):
        refuse_unknown(categories, file.names, file.path)
    file.categories = categories


def _find_form(path: Path) -> tuple[str, bool]:
    """Return the extension that tells the format of a file, and whether it is compressed."""
    form = path.suffix.lower()
    if form not in PACKINGS:
        return form, False
    return path.with_suffix("").suffix.lower(), True


def _find_file(path: Path) -> Path:
    """Return a file or folder that can be read twice; standard input and pipes are copied."""
    if str(path) == "-":
        return _copy(sys.stdin.buffer, path, "standard input")

    if not path.exists():
        raise NoTableError(f"There is no file {path}.")
    if path.is_fifo():
        with path.open("rb") as pipe:
            return _copy(pipe, path, str(path))

    if not (path.is_file() or path.is_dir()):
        raise NoTableError(f"{path} is a device, not a file, folder or pipe: copy it to a file.")
    return path


def _copy(stream: BinaryIO, path: Path, name: str) -> Path:
    """Copy a stream to a file, with the extension of its format; messages call it `name`."""
    folder = Path(tempfile.mkdtemp(prefix="nysboost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copied = folder / path.name
    with copied.open("wb") as file:
        shutil.copyfileobj(stream, file)

    if not copied.suffix:
        form = _recognise(copied)
        copied = copied.rename(copied.with_suffix(form))
    COPIES[str(copied)] = name
    return copied


def _recognise(path: Path) -> str:
    """Return the extension of the format of a file without a name."""
    with path.open("rb") as file:
        head = file.read(64).removeprefix(codecs.BOM_UTF8).lstrip()
    for beginning, ending in BEGINNINGS.items():
        if re.match(beginning, head):
            if ending == ".xlsx" and _holds_arrays(path):
                return ".npz"
            return ending
    return ".csv"


def _holds_arrays(path: Path) -> bool:
    """Return whether a zip archive holds arrays of NumPy, and no Excel sheet."""
    try:
        with ZipFile(path) as archive:
            return any(name.endswith(".npy") for name in archive.namelist())
    except BadZipFile:
        return False


# Parts of one table


def join_tables(parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenate Arrow tables; a column that is text in one of them becomes text in all."""
    import pyarrow as pa

    joined = list(parts)
    for name in joined[0].column_names:
        with_column = [part for part in joined if name in part.column_names]
        kinds = {part.schema.field(name).type for part in with_column}
        if len(kinds) > 1 and pa.string() in kinds:
            joined = _cast(joined, name, pa.string())
        elif kinds == {pa.int64(), pa.float64()}:
            joined = _as_whole_numbers(joined, name)

    # other types that differ become the wider one
    try:
        return pa.concat_tables(joined, promote_options="permissive").combine_chunks()
    except pa.ArrowTypeError as error:
        raise TableError(f"The files of a folder do not go together: {error}.") from error


def _cast(parts: Sequence[pa.Table], name: str, kind: pa.DataType) -> list[pa.Table]:
    """Return tables with a column in another type, where they have it."""
    tables = []
    for table in parts:
        at = table.schema.get_field_index(name)
        if at >= 0:
            column = table.column(at).cast(kind)
            table = table.set_column(at, name, column)
        tables.append(table)
    return tables


def _as_whole_numbers(parts: Sequence[pa.Table], name: str) -> list[pa.Table]:
    """Convert a column of tables to whole numbers if possible, so that all digits are kept."""
    import pyarrow as pa

    try:
        return _cast(parts, name, pa.int64())
    except pa.ArrowInvalid:
        return _cast(parts, name, pa.float64())


def without_index(file: TableFile) -> tuple[str, ...]:
    """Return the names of all columns except the index of a data frame."""
    if not isinstance(file, CsvFile):
        return file.names
    return tuple(name for name in file.names if name not in file.index)


def text_files(file: TableFile) -> list[CsvFile]:
    """Return the text files of a table: itself, or those of a folder."""
    if isinstance(file, CsvFile):
        return [file]
    if isinstance(file, ColumnFile) and isinstance(file.data, list):
        return [part for part in file.data if isinstance(part, CsvFile)]
    return []


# Folders


def _open_folder(
    path: Path,
    writing: TextFormat | None,
    schema: Schema | None,
    categories: Sequence[str],
) -> ColumnFile:
    """Open the files of a folder, in the order of their names, as one table."""
    # other files are notes and logs, or those of programs
    tables = [part for part in sorted(path.iterdir()) if _is_table(part, path)]
    inside = list(islice(path.rglob("*"), MOST_FILES))
    if any(part.suffix == ".parquet" for part in inside):
        file = _open_dataset(path, "Parquet")
        _name_categories(file, categories)
        unread = [part.name for part in tables if part.suffix.lower() != ".parquet"]
        if unread:
            said = f"Only the Parquet files of {path} are read, not {', '.join(unread)}."
            file.notes.append(said)
        return file

    if not tables:
        raise NoTableError(
            f"The folder {path} holds no tables: of a folder all Parquet files are read, or else "
            f"the files {', '.join(IN_FOLDERS)} directly in it. Give any other file by its name."
        )
    files = _open_parts(tables, writing or TextFormat(), schema, categories)

    # a decimal comma in one of them is one in all
    decimals = {file.writing.decimal for file in files if isinstance(file, CsvFile)}
    if len(decimals) > 1:
        with_comma = replace(writing or TextFormat(), decimal=",")
        files = _open_parts(tables, with_comma, schema, categories)

    # check that they make one table
    _refuse_different_columns(files)
    _refuse_different_units(files)
    if schema is None:
        _keep_text(files)
    notes = list(chain.from_iterable(file.notes for file in files))

    # only Parquet files are read from folders inside
    deeper = [part for part in inside if part.parent != path and _is_table(part, path)]
    if deeper:
        notes.append(
            f"Tables in folders inside {path} are not read, such as {deeper[0].relative_to(path)}: "
            "move them up to be read."
        )
    return ColumnFile(path, files, without_index(files[0]), notes)


def _open_parts(
    paths: Sequence[Path],
    writing: TextFormat,
    schema: Schema | None,
    categories: Sequence[str],
) -> list[TableFile]:
    """Open each file of a folder."""
    files = []
    for path in paths:
        opened = open_table(path, writing=writing, schema=schema, categories=categories)
        files.append(opened)
    return files


def _refuse_different_columns(files: Sequence[TableFile]) -> None:
    """Refuse files that lack a column of the first."""
    first = files[0]
    for file in files:
        lacking = set(without_index(first)) - set(file.names)
        if lacking:
            said = f"{file.path} lacks columns that {first.path} has"
            raise NoTableError(f"{said}: {', '.join(sorted(lacking))}.")


def _refuse_different_units(files: Sequence[TableFile]) -> None:
    """Refuse text files that write a column of numbers in several units."""
    units: dict[str, tuple[str, Path]] = {}
    for file in files:
        if not isinstance(file, CsvFile):
            continue
        for name, unit in file.numbers.items():
            other, where = units.setdefault(name, (unit, file.path))
            if other != unit:
                raise TableError(
                    f"{name!r} is written with {other!r} in {where}, but with {unit!r} in "
                    f"{file.path}: write it in one unit."
                )


def _keep_text(files: Sequence[TableFile]) -> None:
    """Read a column of text files as text if it is text in any file: 01 is not 1 then."""
    texts: set[str] = set()
    for file in files:
        if isinstance(file, CsvFile):
            texts |= set(file.names) - set(file.numbers) - file.blank
        elif isinstance(file, ColumnFile) and not isinstance(file.data, list):
            texts |= {column.name for column in file.data.schema if is_text(column.type)}

    for file in files:
        if isinstance(file, CsvFile):
            kept = {name: unit for name, unit in file.numbers.items() if name not in texts}
            file.numbers = kept


# Forms that Arrow reads


def _open_columns(path: Path, form: str) -> ColumnFile:
    """Open a file with typed columns."""
    if form in (".parquet", ".pq"):
        return _open_dataset(path, "Parquet")
    if form in FEATHER:
        return _open_dataset(path, "Feather")
    if form in (".jsonl", ".ndjson", ".json"):
        return _in_memory(path, read_json(path), [])
    if form in (".xlsx", ".xlsm"):
        return _in_memory(path, *read_excel(path))
    raise NoTableError(f"The format of {path} is unknown: give one of {FORMS}.")


def _in_memory(path: Path, table: pa.Table, notes: list[str]) -> ColumnFile:
    """Return an Arrow table, without an index that it may have."""
    import pyarrow.dataset as arrow

    first = table.column(0).to_pylist()
    index = find_index(table.column_names, first)
    names = tuple(name for name in table.column_names if name not in index)
    all_notes = notes + note_index(path, index)
    return ColumnFile(path, arrow.dataset(table), names, all_notes, len(table))


def _open_dataset(path: Path, form: str) -> ColumnFile:
    """Open a Parquet or Feather file, or a folder of Parquet files."""
    import pyarrow as pa

    try:
        data = _make_dataset(path, form)
        n_rows = int(data.count_rows())
    except (pa.ArrowException, OSError) as error:
        if "duplicate field" in str(error):
            msg = f"{path} has two columns with the same name: give each its own name."
            raise TableError(msg) from error
        if isinstance(error, pa.ArrowTypeError):
            raise TableError(f"The files of {path} do not go together: {error}.") from error
        said = str(error).rstrip(".")
        raise NoTableError(f"{path} is not a {form} file, or is truncated: {said}.") from error

    # an index that pandas describes, or that has come from a text file
    written = data.schema.names
    metadata = data.schema.metadata or {}
    described = json.loads(metadata.get(b"pandas", b"{}"))
    of_pandas = ("__index_level_0__", *described.get("index_columns", ()))
    index = [name for name in written if name in of_pandas]
    if not index and written and written[0] in INDEX:
        first = data.to_table(columns=written[:1]).column(0)
        index = find_index(written, first.to_pylist())

    names = tuple(name for name in written if name not in index)
    if not names:  # an index is all there is
        return ColumnFile(path, data, tuple(written), n=n_rows)
    return ColumnFile(path, data, names, note_index(path, index), n_rows)


def _make_dataset(path: Path, form: str) -> arrow.Dataset:
    """Return a file of Arrow, or all Parquet files below a folder, with the columns of all."""
    import pyarrow as pa
    import pyarrow.dataset as arrow

    how: dict[str, object] = {"format": form.lower(), "exclude_invalid_files": False}
    if not path.is_dir():
        return arrow.dataset(path, **how)

    # other files of a folder are notes and logs; those of programs begin with . or _
    files = sorted(path.rglob("*.parquet"))
    sources = [str(file) for file in files if not _is_of_program(file.relative_to(path))]
    fragments = arrow.dataset(sources, **how).get_fragments()

    # files may lack columns, have others, or numbers of another type
    schemas = [fragment.physical_schema for fragment in fragments]
    unified = pa.unify_schemas(schemas, promote_options="permissive")

    # names of folders, such as year=2020, are columns that the files lack
    of_folders = _columns_of_folders(path, sources)
    lacking = pa.schema([column for column in of_folders if column.name not in unified.names])
    how["partitioning"] = arrow.partitioning(lacking, flavor="hive")
    how["partition_base_dir"] = str(path)
    whole = pa.unify_schemas([unified, lacking])
    return arrow.dataset(sources, schema=whole, **how)


def _columns_of_folders(path: Path, sources: Sequence[str]) -> pa.Schema:
    """Return the columns that names of folders below `path` give to Parquet files."""
    import pyarrow.dataset as arrow
    from pyarrow.fs import LocalFileSystem

    options = arrow.FileSystemFactoryOptions(partition_base_dir=str(path))
    options.partitioning_factory = arrow.HivePartitioning.discover()
    factory = arrow.FileSystemDatasetFactory(
        LocalFileSystem(), list(sources), arrow.ParquetFileFormat(), options
    )
    return factory.inspect_schemas()[-1]


def _is_table(path: Path, folder: Path) -> bool:
    """Return whether a file below a folder is a table, and not one of a program."""
    is_readable = path.suffix.lower() in IN_FOLDERS
    return is_readable and not _is_of_program(path.relative_to(folder))


def _is_of_program(path: Path) -> bool:
    """Return whether a file or one of its folders has a name as programs give it."""
    return any(part[0] in "._" for part in path.parts)
