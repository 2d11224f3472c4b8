"""The user's own table, from CSV, Parquet, NumPy or LIBSVM files, checked cell by cell."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from nysboost.experiments.csv_file import CsvFile, is_number, ragged, text
from nysboost.experiments.user_error import UserError, need
from nysboost.numerics.arrays import entries, is_sparse
from nysboost.numerics.checks import unknown

Matrix: TypeAlias = NDArray[np.float64] | csr_matrix
LIBSVM = (".libsvm", ".svm", ".svmlight", ".txt")
_PACKED = (".gz", ".bz2")
Labels: TypeAlias = tuple[str, ...]
INDEX = ("", "__index_level_0__", "Unnamed: 0")
"""Names that an index gets when a data frame is written: it is no feature."""

_WIDEST_DENSE = 20_000
"""Columns up to which a sparse table is made dense: 20,000 rows of it then take 3.2 GB."""


@dataclass(frozen=True)
class Table:
    """Numbers in rows and columns.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
        The features, without the label column.
    columns : tuple of str
        Their names; numbers if the file has no names.
    notes : tuple of str
        Sentences on what was left out without being asked.
    """

    X: Matrix
    columns: tuple[str, ...]
    notes: tuple[str, ...] = ()


def read(path: Path, label: str | Sequence[str] | None = None) -> Table:
    """Read a table of numbers and check it.

    Parameters
    ----------
    path : Path
        A .csv, .tsv, .parquet, .npy, .npz or LIBSVM file (.libsvm, .svm, .svmlight, .txt).
    label : str or sequence of str, optional
        The columns to leave out: their names, or their numbers counted from 0.
    """
    if path.is_dir():
        raise UserError(f"{path} is a folder: give the name of a file in it.")
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    if path.stat().st_size == 0:
        raise UserError(f"The file {path} is empty.")
    labels = () if label is None else (label,) if isinstance(label, str) else tuple(label)
    reader = _reader(path)
    try:
        table = reader(path, labels)
    except PermissionError as error:
        raise UserError(f"The file {path} may not be read by you: change its mode.") from error
    _check(table, path)
    return table


def _reader(path: Path) -> Callable[[Path, Labels], Table]:
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


def _read_csv(path: Path, labels: Labels) -> Table:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not text in UTF-8: save it as such.") from error
    delimiter = max(",;\t", key=first.count)
    cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter), [])]
    has_names = _are_names(cells)
    names = tuple(cells) if has_names else _numbered(len(cells))
    kept, notes = _without_index(names, _kept(names, labels, path), path)
    if has_names and _counted(cells):
        notes = (f"The first line of {path}, 0, 1, 2, …, is taken as names of columns.", *notes)
    table = CsvFile(path, delimiter, names, kept, has_names)
    if len(kept) < len(names):
        table.refuse_ragged()
    X = table.numbers()
    if len(X) and X.shape[1] != len(kept):
        raise UserError(ragged(path, 1 + has_names, X.shape[1], len(kept)))
    return Table(X, tuple(names[i] for i in kept), notes)


def _counted(cells: Sequence[str]) -> bool:
    """Whether the cells are 0, 1, 2, …, as pandas numbers columns without names."""
    filled = [cell for cell in cells if cell]
    return len(filled) > 1 and filled == list(_numbered(len(filled)))


def _are_names(cells: Sequence[str]) -> bool:
    """Whether a first line is one of names and not of numbers."""
    return _counted(cells) or any(cell and not is_number(cell) for cell in cells)


def _without_index(
    names: Sequence[str], kept: list[int], path: Path
) -> tuple[list[int], tuple[str, ...]]:
    """Leave out a first column that is the index of a data frame, and say so."""
    if not (kept and kept[0] == 0 and names[0] in INDEX and len(kept) > 1):
        return kept, ()
    return kept[1:], (f"The first column of {path} has no name: it is an index, and left out.",)


def _numbered(n: int) -> tuple[str, ...]:
    return tuple(map(str, range(n)))


def _kept(names: Sequence[str], labels: Labels, path: Path) -> list[int]:
    left_out: set[int] = set()
    for label in labels:
        if label in names:
            left_out |= {i for i, name in enumerate(names) if name == label}
        elif label.isdigit() and int(label) < len(names):
            left_out.add(int(label))
        else:
            raise UserError(f"{path} has no such label. {unknown('column', label, names)}")
    return [i for i in range(len(names)) if i not in left_out]


def _read_parquet(path: Path, labels: Labels) -> Table:
    parquet = need("pyarrow.parquet", "experiments")
    try:
        frame = parquet.read_table(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as Parquet ({error}).") from error
    names = tuple(frame.column_names)
    kept, notes = _without_index(names, _kept(names, labels, path), path)
    index = _parquet_index(frame)
    if index and not notes:
        kept = [i for i in kept if names[i] not in index]
        notes = (f"The index of {path} ({', '.join(index)}) is no feature, and left out.",)
    columns = [_parquet_column(path, names[i], frame.column(i)) for i in kept]
    X = np.stack(columns, axis=1) if columns else np.empty((frame.num_rows, 0))
    return Table(X, tuple(names[i] for i in kept), notes)


def _parquet_index(frame: Any) -> list[str]:
    """Return the columns that pandas wrote as the index."""
    described = json.loads((frame.schema.metadata or {}).get(b"pandas", b"{}"))
    return [name for name in described.get("index_columns", ()) if isinstance(name, str)]


def _parquet_column(path: Path, name: str, column: Any) -> NDArray[np.float64]:
    values = column.to_numpy()
    if values.dtype.kind not in "fiub":
        raise UserError(text(path, name, f"of type {column.type}"))
    return np.asarray(values, dtype=np.float64)


def _read_npy(path: Path, labels: Labels) -> Table:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} cannot be read as a .npy file ({error}).") from error
    return _from_array(values, path, labels)


def _read_npz(path: Path, labels: Labels) -> Table:
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
    return _from_array(values, path, labels)


def _from_array(values: NDArray[Any], path: Path, labels: Labels) -> Table:
    if values.ndim != 2:
        raise UserError(f"{path} must hold a matrix; it holds an array of shape {values.shape}.")
    if values.dtype.kind not in "fiub":
        raise UserError(f"{path} must hold numbers; it holds {values.dtype}.")
    names = _numbered(values.shape[1])
    kept = _kept(names, labels, path)
    return Table(np.asarray(values[:, kept], dtype=np.float64), tuple(names[i] for i in kept))


def _read_libsvm(path: Path, labels: Labels) -> Table:
    from sklearn.datasets import load_svmlight_file

    if labels:
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
    if np.isfinite(entries(table.X)).all():
        return
    if is_sparse(table.X):
        raise UserError(f"{path} has values that are NaN or infinite.")
    row, column = np.argwhere(~np.isfinite(table.X))[0]
    bad = table.X[row, column]
    what = "NaN" if np.isnan(bad) else "infinite"
    raise UserError(
        f"The column {table.columns[column]} of {path} is {what} in row {row + 1}: fill such "
        "cells or drop their rows first."
    )
