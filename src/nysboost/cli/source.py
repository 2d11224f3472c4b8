"""A table in a file: the columns that are used, and its rows in parts."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import numpy as np

from nysboost.compare.learners import Targets
from nysboost.learn.input import number_groups
from nysboost.numerics.arrays import Indices
from nysboost.numerics.checks import MAX_MEMORY
from nysboost.numerics.messages import printable, unknown
from nysboost.rows.files import name_copies
from nysboost.tables.array_files import LABEL, ArrayFile
from nysboost.tables.files import TableFile, join_tables, open_table, without_index
from nysboost.tables.frames import read_columns
from nysboost.tables.schema import Schema
from nysboost.tables.targets import read_target
from nysboost.tables.text_format import TextFormat
from nysboost.tables.values import Booleans
from nysboost.user_error import ModelError, NoFileError, TableError, UserError, raise_as

if TYPE_CHECKING:
    import pyarrow as pa

TablePart: TypeAlias = Any
"""Some rows of a file: an Arrow table, or a NumPy array if columns have no names."""

Model: TypeAlias = Any
"""An estimator or approximation, as `nysboost.load` returns it."""


@dataclass(frozen=True, eq=False)
class FitRows:
    """Rows X with targets y and the numbers of their groups, each of shape (n,) or None."""

    X: TablePart
    y: Targets | None
    groups: Indices | None = None


@dataclass
class Source:
    """The columns of a table, its target, and how to treat rows with missing values.

    The target is a column, or a separate array `y` in the same file. `groups` is a column that is
    not used as a feature. Rows with any missing value, or only those with a missing target, may be
    left out. `kept` records which rows of each part were kept, and `start` is the first row of the
    part that was read last.
    """

    file: TableFile
    columns: Sequence[str]
    drop_missing: bool = False
    target: str | None = None
    y: Targets | None = None
    drop_missing_target: bool = False
    groups: str | None = None
    kept: list[Booleans] = field(default_factory=list, init=False)
    start: int = field(default=0, init=False)

    @property
    def dropped_rows(self) -> int:
        """Number of rows that were read and left out."""
        return sum(int((~kept).sum()) for kept in self.kept)

    @property
    def drops(self) -> bool:
        """Whether rows with missing values are left out."""
        return self.drop_missing or self.drop_missing_target

    @property
    def named(self) -> bool:
        """Whether the columns have names."""
        return not isinstance(self.file, ArrayFile)

    @property
    def whole(self) -> bool:
        """Whether this is a complete array."""
        has_all_columns = len(self.columns) == len(self.file.names)
        return has_all_columns and not self.named and not self.drops

    @property
    def beside(self) -> list[str]:
        """The columns that are not features: target and groups, if any."""
        return [name for name in (self.target, self.groups) if name is not None]

    def parts(self, kept: Sequence[str] = ()) -> Iterator[TablePart]:
        """Read all rows once, in order, as Arrow tables, or as arrays if columns have no names.

        After the columns come target and groups, and then the columns to be kept as they are.
        """
        self.kept = []
        stop = 0
        n_left = 0
        names = list(dict.fromkeys([*self.columns, *self.beside]))
        for block in self.file.batches(names, kept):
            self.start = stop
            stop += block.shape[0]
            if not self.drops:
                n_left += block.shape[0]
                yield block
                continue

            # keep the rows without gaps; there may be none
            whole = self._find_whole_rows(block, names, slice(self.start, stop))
            self.kept.append(whole)
            n_left += int(whole.sum())
            if whole.all():
                yield block
            elif whole.any():
                yield _take_rows(block, whole)

        if n_left == 0:
            rows_needed = "rows"
            if self.drop_missing:
                rows_needed = "rows without gaps"
            elif self.drop_missing_target:
                rows_needed = f"rows with a value of {self.target!r}"
            raise TableError(f"{self.file.path} has no {rows_needed}.")

    def _find_whole_rows(self, block: TablePart, names: list[str], rows: slice) -> Booleans:
        """Return which rows of a block are kept."""
        # the columns that need a value
        required: list[str] = []
        if self.drop_missing:
            required = [*self.columns, *self.beside]
        elif self.target is not None:
            required = [self.target]

        # look for gaps in an array or in a table
        whole = np.ones(block.shape[0], dtype=bool)
        if isinstance(block, np.ndarray):
            positions = [names.index(name) for name in required]
            is_number = np.isfinite(block[:, positions])
            whole &= is_number.all(axis=1)
        elif required:
            used = block.select(range(len(names)))
            for cells in read_columns(used, required):
                whole &= ~cells.gaps

        # a target that lies beside the columns
        if self.y is not None and self.y.dtype.kind == "f":
            y = self.y[rows]
            is_number = np.isfinite(y.reshape(len(y), -1))
            whole &= is_number.all(axis=1)
        return whole

    def read(self) -> FitRows:
        """Return all rows: an Arrow table or an array, with its target and groups."""
        if isinstance(self.file, ArrayFile) and self.whole:
            return FitRows(self.file.data, self.y)
        return self.join(list(self.parts()))

    def join(self, parts: Sequence[TablePart]) -> FitRows:
        """Concatenate the parts of a table."""
        if self.named:
            table = join_tables(parts)
            X = table.select(list(self.columns))
            return FitRows(X, self.target_in(table), self.groups_in(table))

        # the caller splits an array into columns and target
        block = np.concatenate(parts)
        return FitRows(block[:, : len(self.columns)], None)

    def target_in(self, table: pa.Table) -> Targets | None:
        """Return the values of the target in an Arrow table, shape (n,), or None."""
        if self.target is None:
            return None
        return read_target(table.column(self.target), self.target, str(self.file.path))

    def groups_in(self, table: pa.Table) -> Indices | None:
        """Return the number of each row's group in an Arrow table, of shape (n,)."""
        if self.groups is None:
            return None
        with raise_as(TableError):
            return number_groups(table.column(self.groups).to_pylist())


def _take_rows(part: TablePart, whole: Booleans) -> TablePart:
    if isinstance(part, np.ndarray):
        return part[whole]
    return part.filter(whole)


def open_source(options: Namespace) -> Source:
    """Open the table of a command that fits or compares, and print notes on how it was read."""
    file = _open_file(options)

    # the target is an array beside the others in the same file, or a column
    target = getattr(options, "target", None)
    y = None
    if target is not None and isinstance(file, ArrayFile):
        y = file.beside(target)
    if y is not None:
        target = None
    if target is not None:
        target = _find_column(file, target)

    # groups are a column that is no feature
    groups = getattr(options, "groups", None)
    if groups is not None:
        groups = _find_column(file, groups)
    if groups is not None and groups == target:
        raise UserError(f"--groups and --target both name the column {target!r}: give two columns.")

    # all remaining columns are features
    left_out = {target, groups, *_find_columns(file, options.drop_column)}
    names = without_index(file)
    columns = [name for name in names if name not in left_out]
    if not columns:
        raise UserError(
            f"{file.path} has no columns left besides the target and those of --drop-column."
        )
    _print_notes(file)
    return Source(
        file,
        columns,
        options.drop_missing,
        target,
        y,
        drop_missing_target=getattr(options, "drop_missing_target", False),
        groups=groups,
    )


def open_fitted(options: Namespace, model: Model, more: Sequence[str]) -> tuple[Source, list[str]]:
    """Open a table with the columns of a fitted model, matched by name if both have names.

    Also return the names of `more` columns.
    """
    schema = schema_of(model)
    file = _open_file(options, schema)
    others = _find_columns(file, more)
    if others and isinstance(file, ArrayFile):
        raise UserError(f"--id and --keep need names, but the columns of {file.path} have none.")

    # match columns by name, or by their order
    if schema.named and not isinstance(file, ArrayFile):
        with raise_as(ModelError):
            schema.match_names(file.names, str(file.path))
        names = [column.name for column in schema.columns if column.used]
    else:
        features = without_index(file)
        names = [name for name in features if name not in others]
        if len(names) != schema.width:
            raise ModelError(
                f"The model was fitted on {schema.width} columns, but {file.path} has {len(names)}."
            )
    on_standard_output = str(options.out) == "-"
    _print_notes(file, to=sys.stderr if on_standard_output else sys.stdout)
    return Source(file, names, options.drop_missing), others


def _print_notes(file: TableFile, to: TextIO | None = None) -> None:
    """Print what was noticed when a file was opened: where no table is written to."""
    for note in file.notes:
        print(printable(name_copies(note)), file=to)


def _open_file(options: Namespace, schema: Schema | None = None) -> TableFile:
    """Open the table of a command, in the format of its options."""
    if str(options.data) == "-" and sys.stdin is None:
        raise NoFileError("Standard input is closed: give the name of a file.")
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


def _find_columns(file: TableFile, given: Sequence[str]) -> list[str]:
    """Return columns given by name or number, one by one or separated by commas."""
    names: list[str] = []
    for text in given:
        # a name may have commas and blanks itself
        if text in file.names or not text:
            names.append(text)
        else:
            parts = [part for part in text.split(",") if part]
            names += [part if part in file.names else part.strip() for part in parts]
    found = [_find_column(file, name) for name in names]
    return list(dict.fromkeys(found))


def _find_column(file: TableFile, name: str) -> str:
    """Return the name of a column given by its name or number."""
    if name in file.names:
        return name

    # a number counts the columns from 0, without an index, or from the end if it is negative
    names = without_index(file)
    is_number = name.removeprefix("-").isdecimal() and len(name) < 10
    if is_number and -len(names) <= int(name) < len(names):
        return str(names[int(name)])
    known = list(names)
    if isinstance(file, ArrayFile) and file.labels is not None:
        known.append(LABEL)
    raise UserError(f"{file.path}: {unknown('column', name, known)}")


def schema_of(model: Model) -> Schema:
    """Return the schema of a model."""
    # an estimator has a schema, or its transformer has; an approximation has an encoder
    holder = getattr(model, "features_", model)
    schema = getattr(holder, "schema_", None)
    encoder = getattr(model, "encoder", None)
    if encoder is not None:
        schema = encoder.codes.schema
    if isinstance(schema, Schema):
        return schema

    # of an array only the number of columns is known
    width = getattr(model, "n_features_in_", None)
    if width is None:
        width = model.gram.rows.n_features
    return Schema((), int(width))
