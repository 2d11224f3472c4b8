"""A table in a file, the columns of it that are used, and its rows, a part at a time."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nysboost.numerics.budget import MAX_MEMORY
from nysboost.numerics.messages import printable, unknown
from nysboost.tables.array_files import ArrayFile
from nysboost.tables.csv_files import CsvFile
from nysboost.tables.files import join_tables, open_table, without_index
from nysboost.tables.frames import read_columns
from nysboost.tables.schema import Schema
from nysboost.tables.targets import read_target
from nysboost.tables.text_format import TextFormat
from nysboost.user_error import NO_FILE, WRONG_DATA, WRONG_MODEL, UserError, with_exit_code


@dataclass
class Source:
    """Columns of a table, its target, and what is done about rows with gaps.

    The target is a column, or an array `y` beside the others in the same file. Rows with any gap
    are left out, or those whose target is one. `kept` says of each part that was read which of
    its rows were not.
    """

    file: Any
    columns: Sequence[str]
    drop_missing: bool = False
    target: str | None = None
    y: Any = None
    drop_missing_target: bool = False
    kept: list[Any] = field(default_factory=list, init=False)

    @property
    def dropped_rows(self) -> int:
        """How many of the rows that were read were left out."""
        return sum(int((~there).sum()) for there in self.kept)

    @property
    def drops(self) -> bool:
        """Whether rows with some gaps are left out."""
        return self.drop_missing or self.drop_missing_target

    @property
    def named(self) -> bool:
        """Whether the columns have names."""
        return not isinstance(self.file, ArrayFile)

    @property
    def whole(self) -> bool:
        """Whether these are all rows and columns of an array."""
        return not (self.named or self.drops) and len(self.columns) == len(self.file.names)

    def parts(self, more: Sequence[str] = ()) -> Iterator[Any]:
        """Read all rows once, in order: Arrow tables, or arrays where columns have no names.

        The target comes after the columns, and then `more` columns.
        """
        self.kept = []
        start = 0
        n_left = 0
        used = list(self.columns)
        if self.target is not None:
            used.append(self.target)
        for block in self.file.batches(list(dict.fromkeys([*used, *more]))):
            rows = slice(start, start + block.shape[0])
            start = rows.stop
            if not self.drops:
                n_left += block.shape[0]
                yield block
                continue

            whole = self._find_whole_rows(block, used, rows)
            self.kept.append(whole)
            n_left += int(whole.sum())
            if whole.all():
                yield block
            elif whole.any():
                yield block.filter(whole) if self.named else block[whole]

        if n_left == 0:
            gaps = " without gaps" if self.drops else ""
            raise UserError(f"{self.file.path} has no rows{gaps}.", WRONG_DATA)

    def _find_whole_rows(self, block: Any, used: Sequence[str], rows: slice) -> Any:
        """Return which rows of a block have no gap where gaps are left out."""
        first = 0 if self.drop_missing else len(self.columns)
        whole = _find_whole_rows(block, used, first)
        if self.y is not None and self.y.dtype.kind == "f":
            y = self.y[rows]
            whole &= np.isfinite(y.reshape(len(y), -1)).all(axis=1)
        return whole

    def read(self) -> tuple[Any, Any]:
        """Return the columns of all rows, an Arrow table and its target, or an array."""
        if self.whole:
            return self.file.data, self.y
        return self.join(list(self.parts()))

    def join(self, parts: Sequence[Any]) -> tuple[Any, Any]:
        """Return parts that were read as one, and its target."""
        if not self.named:
            return np.concatenate(parts)[:, : len(self.columns)], None
        table = join_tables(parts)
        return table.select(list(self.columns)), self.target_in(table)

    def target_in(self, table: Any) -> Any:
        """Return the values of the target in an Arrow table, of shape (n,); None without one."""
        if self.target is None:
            return None
        return read_target(table.column(self.target), self.target, str(self.file.path))


def _find_whole_rows(block: Any, used: Sequence[str], first: int) -> Any:
    """Return which rows of a table or an array have no gap in the columns from `first` on."""
    if isinstance(block, np.ndarray):
        return np.isfinite(block[:, first : len(used)]).all(axis=1)
    looked_at = used[first:]
    if not looked_at:
        return np.ones(block.shape[0], dtype=bool)
    return ~np.logical_or.reduce([cells.gaps for cells in read_columns(block, looked_at)])


def open_source(options: Namespace) -> Source:
    """Open the table of a command that fits or compares, and print what was noticed."""
    file = _open_file(options)

    # The target is a column, or an array beside the others in the same file
    target = getattr(options, "target", None)
    y = None
    if target is not None and isinstance(file, ArrayFile):
        y = file.beside(target)
    if y is not None:
        target = None
    if target is not None:
        target = _find_column(file, target)

    left_out = {target, *_find_columns(file, options.drop_column)}
    names = without_index(file.names, file.path, file.notes)
    columns = [name for name in names if name not in left_out]
    if not columns:
        raise UserError(
            f"{file.path} has no column beside the target and those that --drop-column leaves out."
        )
    _print_notes(file)
    on_cluster = getattr(options, "scheduler", None) is not None
    if isinstance(file, CsvFile) and target is not None and not on_cluster:
        file.exact = (target,)  # labels may have more digits than a float
    only_target = getattr(options, "drop_missing_target", False)
    return Source(file, columns, options.drop_missing, target, y, only_target)


def open_fitted(options: Namespace, model: Any, more: Sequence[str]) -> tuple[Source, list[str]]:
    """Open a table with the columns that a model was fitted on, by name where both have names.

    Also return the names of `more` columns.
    """
    schema = schema_of(model)
    file = _open_file(options, schema)
    others = _find_columns(file, more)
    if others and isinstance(file, ArrayFile):
        raise UserError(f"--id and --keep name columns, but those of {file.path} have no names.")

    if schema.named and not isinstance(file, ArrayFile):
        with with_exit_code(WRONG_MODEL):
            schema.match_names(file.names, str(file.path))
        names = [column.name for column in schema.columns if column.used]
    else:
        features = without_index(file.names, file.path, file.notes)
        names = [name for name in features if name not in others]
        if len(names) != schema.width:
            raise UserError(
                f"The model was fitted on {schema.width} columns, but {file.path} has "
                f"{len(names)}.",
                WRONG_MODEL,
            )
    if str(options.out) != "-":
        _print_notes(file)
    return Source(file, names, options.drop_missing), others


def _print_notes(file: Any) -> None:
    """Print what was noticed when a file was opened."""
    for note in file.notes:
        print(printable(note))


def _open_file(options: Namespace, schema: Schema | None = None) -> Any:
    """Open the table of a command, written as its options say."""
    if str(options.data) == "-" and sys.stdin is None:
        raise UserError("Standard input is closed: give the name of a file.", NO_FILE)
    separator = options.separator
    if separator in ("tab", "\\t"):
        separator = "\t"
    writing = TextFormat(separator or "", options.decimal or "", "", options.encoding or "")
    return open_table(
        options.data,
        dataset=options.dataset,
        writing=writing,
        schema=schema,
        categories=getattr(options, "category", ()),
        max_memory=getattr(options, "max_memory", MAX_MEMORY),
    )


def _find_columns(file: Any, given: Sequence[str]) -> list[str]:
    """Return columns given by name or number, each for itself or several with commas between."""
    names: list[str] = []
    for text in given:
        names += [text] if text in file.names else text.split(",")
    found = [_find_column(file, name.strip()) for name in names if name]
    return list(dict.fromkeys(found))


def _find_column(file: Any, name: str) -> str:
    """Return the name of a column that was given by its name or its number."""
    names = file.names
    if name in names:
        return name
    is_number = name.removeprefix("-").isdigit() and len(name) < 10
    if is_number and -len(names) <= int(name) < len(names):
        return str(names[int(name)])
    raise UserError(f"{file.path}: {unknown('column', name, names)}")


def schema_of(model: Any) -> Schema:
    """Return what a model knows of its columns."""
    schema = getattr(getattr(model, "features_", model), "schema_", None)
    encoder = getattr(model, "encoder", None)
    if encoder is not None:
        schema = encoder.codes.schema
    if isinstance(schema, Schema):
        return schema
    width = getattr(model, "n_features_in_", None)
    if width is None:
        width = model.gram.rows.n_features
    return Schema((), int(width))
