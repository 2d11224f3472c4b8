"""The user's own table, from CSV, Parquet, NumPy or LIBSVM files, checked cell by cell."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from nysboost.experiments.user_error import UserError, need
from nysboost.numerics.checks import unknown

Matrix: TypeAlias = NDArray[np.float64] | csr_matrix
LIBSVM = (".libsvm", ".svm", ".svmlight", ".txt")
_PACKED = (".gz", ".bz2")
_WIDEST_DENSE = 20_000


@dataclass(frozen=True)
class Table:
    """Numbers in rows and columns.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        The features, without the label column.
    columns : tuple of str
        Their names; numbers if the file has no names.
    """

    X: Matrix
    columns: tuple[str, ...]


def read(path: Path, label: str | None = None) -> Table:
    """Read a table of numbers and check it.

    Parameters
    ----------
    path : Path
        A .csv, .tsv, .parquet, .npy, .npz or LIBSVM file (.libsvm, .svm, .svmlight, .txt).
    label : str, optional
        The column to leave out: its name, or its number counted from 0.
    """
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise UserError(f"The file {path} is empty.")
    reader = _reader(path)
    table = reader(path, label)
    _check(table, path)
    return table


def _reader(path: Path) -> Callable[[Path, str | None], Table]:
    suffixes = [s.lower() for s in path.suffixes]
    kind = next((s for s in reversed(suffixes) if s not in _PACKED), "")
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}
    readers |= {".npy": _read_npy, ".npz": _read_npz} | dict.fromkeys(LIBSVM, _read_libsvm)
    if kind not in readers:
        raise UserError(
            f"{path} has an ending that is not known. {unknown('ending', kind, readers)}"
        )
    if suffixes[-1] in _PACKED and kind not in LIBSVM:
        raise UserError(f"{path} is packed; only LIBSVM files are read so. Unpack it first.")
    return readers[kind]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_csv(path: Path, label: str | None) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8: save it as such.") from error
    delimiter = max(",;\t", key=first.count)
    cells = next(csv.reader([first], delimiter=delimiter), [])
    # A name is something that is neither a number nor nothing.
    has_names = any(c.strip() and not _is_number(c) for c in cells)
    names = tuple(c.strip() for c in cells) if has_names else _numbered(len(cells))
    kept = _kept(names, label, path)
    try:
        with warnings.catch_warnings():
            # A file without rows gets a sentence of its own.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            X = np.loadtxt(
                path,
                delimiter=delimiter,
                comments=None,
                skiprows=int(has_names),
                usecols=None if label is None else kept,
                ndmin=2,
                quotechar='"',
                encoding="utf-8-sig",
            )
    except ValueError as error:
        raise UserError(_what_is_wrong(path, delimiter, names, kept, has_names)) from error
    if label is not None:
        _refuse_ragged(path, delimiter, names, has_names)
    if len(X) and X.shape[1] != len(kept):
        raise UserError(_ragged(path, 1 + has_names, X.shape[1], len(kept)))
    return Table(X, tuple(names[i] for i in kept))


def _lines(path: Path, delimiter: str, has_names: bool) -> list[tuple[int, list[str]]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        numbered = enumerate(csv.reader(file, delimiter=delimiter), start=1)
        return [(i, row) for i, row in numbered if row and i > int(has_names)]


def _refuse_ragged(path: Path, delimiter: str, names: Sequence[str], has_names: bool) -> None:
    """Refuse rows that are longer than the others, which a choice of columns would hide."""
    for line, row in _lines(path, delimiter, has_names):
        if len(row) != len(names):
            raise UserError(_ragged(path, line, len(row), len(names)))


def _ragged(path: Path, line: int, found: int, expected: int) -> str:
    return f"{path} is ragged: line {line} has {found} cells, where {expected} were expected."


def _what_is_wrong(
    path: Path, delimiter: str, names: Sequence[str], kept: Sequence[int], has_names: bool
) -> str:
    """Return a sentence that points at the first cell that is no number."""
    for line, row in _lines(path, delimiter, has_names):
        if len(row) != len(names):
            return _ragged(path, line, len(row), len(names))
        for i in kept:
            if not row[i].strip():
                return _missing(path, names[i], f"line {line}")
            if not _is_number(row[i]):
                return _text(path, names[i], f"{row[i]!r} in line {line}")
    return f"{path} cannot be read as a table of numbers."


def _missing(path: Path, column: str, where: str) -> str:
    return (
        f"The column {column} of {path} has no value in {where}: fill such cells or drop their "
        "rows first."
    )


def _text(path: Path, column: str, example: str) -> str:
    return (
        f"The column {column} of {path} is text ({example}): drop it, turn it into numbers, or "
        f"leave it out with --label {column}."
    )


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _kept(names: Sequence[str], label: str | None, path: Path) -> list[int]:
    if label is None:
        return list(range(len(names)))
    if label in names:
        return [i for i, name in enumerate(names) if name != label]
    if label.isdigit() and int(label) < len(names):
        return [i for i in range(len(names)) if i != int(label)]
    raise UserError(f"{path} has no such label. {unknown('column', label, names)}")


def _read_parquet(path: Path, label: str | None) -> Table:
    parquet = need("pyarrow.parquet", "experiments")
    try:
        frame = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as Parquet ({error}).") from error
    names = tuple(frame.column_names)
    kept = _kept(names, label, path)
    columns = [_parquet_column(path, names[i], frame.column(i)) for i in kept]
    X = np.stack(columns, axis=1) if columns else np.empty((frame.num_rows, 0))
    return Table(X, tuple(names[i] for i in kept))


def _parquet_column(path: Path, name: str, column: Any) -> NDArray[np.float64]:
    values = column.to_numpy()
    if values.dtype.kind not in "fiub":
        raise UserError(_text(path, name, f"of type {column.type}"))
    return np.asarray(values, dtype=np.float64)


def _read_npy(path: Path, label: str | None) -> Table:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read as a .npy file ({error}).") from error
    return _from_array(values, path, label)


def _read_npz(path: Path, label: str | None) -> Table:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            matrices = [k for k in arrays.files if arrays[k].ndim == 2]
            key = "X" if "X" in arrays.files else matrices[0] if len(matrices) == 1 else None
            if key is None:
                message = f"{path} needs an array X, or exactly one matrix; it has {arrays.files}."
                raise UserError(message)
            values = arrays[key]
    except UserError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy each have their own
        raise UserError(f"{path} cannot be read as a .npz file ({error}).") from error
    return _from_array(values, path, label)


def _from_array(values: NDArray[Any], path: Path, label: str | None) -> Table:
    if values.ndim != 2:
        raise UserError(f"{path} must hold a matrix; it holds an array of shape {values.shape}.")
    if values.dtype.kind not in "fiub":
        raise UserError(f"{path} must hold numbers; it holds {values.dtype}.")
    names = _numbered(values.shape[1])
    kept = _kept(names, label, path)
    return Table(np.asarray(values[:, kept], dtype=np.float64), tuple(names[i] for i in kept))


def _read_libsvm(path: Path, label: str | None) -> Table:
    from sklearn.datasets import load_svmlight_file

    if label is not None:
        raise UserError("A LIBSVM file keeps its labels apart already: leave --label out.")
    try:
        X, _ = load_svmlight_file(str(path))
    except (OSError, ValueError, IndexError) as error:
        raise UserError(f"{path} cannot be read as a LIBSVM file ({error}).") from error
    X = csr_matrix(X, dtype=np.float64)
    dense = X.toarray() if X.shape[1] <= _WIDEST_DENSE else X
    return Table(dense, _numbered(X.shape[1]))


def _check(table: Table, path: Path) -> None:
    n, d = table.X.shape
    if n == 0:
        raise UserError(f"{path} has no rows.")
    if d == 0:
        raise UserError(f"{path} has no columns beside the label.")
    values = table.X.data if issparse(table.X) else table.X
    if np.isfinite(values).all():
        return
    if issparse(table.X):
        raise UserError(f"{path} has values that are NaN or infinite.")
    row, column = np.argwhere(~np.isfinite(table.X))[0]
    bad = table.X[row, column]
    what = "NaN" if np.isnan(bad) else "infinite"
    raise UserError(
        f"The column {table.columns[column]} of {path} is {what} in row {row + 1}: fill such "
        "cells or drop their rows first."
    )
