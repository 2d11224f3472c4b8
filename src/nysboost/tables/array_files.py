"""Arrays in files: .npy, .npz, HDF5, Zarr and LIBSVM; their columns have no names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from nysboost.rows.recognise import make_stream
from nysboost.user_error import NoTableError, TableError, import_optional

BLOCK_BYTES = 2**22
"""Arrays are read in blocks of this size: 16 MB took 1.5 times the processor time."""

WIDEST_DENSE = 20_000
"""Columns up to which a sparse table is made dense: 20,000 rows of it then take 3.2 GB."""

LIBSVM = (".libsvm", ".svm", ".svmlight")
ARRAYS = (".npy", ".npz", ".h5", ".hdf5", ".zarr", *LIBSVM)


@dataclass
class ArrayFile:
    """An array on disk or in memory, of n rows: `names` are the numbers of its columns."""

    path: Path
    data: Any
    names: tuple[str, ...]
    n: int
    notes: list[str] = field(default_factory=list)

    def batches(self, columns: Sequence[str]) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order: blocks of these columns."""
        places = None if tuple(columns) == self.names else [int(name) for name in columns]
        size = max(1, BLOCK_BYTES // (len(self.names) * np.dtype(self.data.dtype).itemsize))
        for block in make_stream(self.data).pieces(size):
            yield block if places is None else block[:, places]

    def beside(self, name: str) -> NDArray[Any] | None:
        """Return another array of the same file, which has as many rows; None if there is none."""
        form = self.path.suffix.lower()
        if form == ".npy" or form in LIBSVM:
            return None
        try:
            found = np.asarray(_open(form, self.path, name))
        except NoTableError:
            return None
        if found.ndim not in (1, 2) or len(found) != self.n:
            raise TableError(
                f"The array {name!r} of {self.path} has shape {found.shape}, but a target needs "
                f"a value for each of the {self.n} rows."
            )
        return found


def open_array(form: str, path: Path, dataset: str | None) -> ArrayFile:
    """Open an array that is a table of numbers, or say what it is instead."""
    array = _open(form, path, dataset)
    if len(array.shape) == 1:
        array = np.asarray(array)[:, None]
    if len(array.shape) != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        raise TableError(
            f"{path} holds an array of shape {tuple(array.shape)} and dtype {array.dtype}; "
            "a table of numbers is needed."
        )
    n, width = map(int, array.shape)
    return ArrayFile(path, array, tuple(map(str, range(width))), n)


def _open(form: str, path: Path, dataset: str | None) -> Any:
    """Return the array of a file, or say that the file is not what its ending says."""
    try:
        if form in LIBSVM:
            from sklearn.datasets import load_svmlight_file

            X, _ = load_svmlight_file(str(path))
            return X.toarray() if X.shape[1] <= WIDEST_DENSE else X
        if form == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if form == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                return archive[_which(list(archive), dataset, path)]
        if form == ".zarr":
            group = import_optional("zarr").open(str(path), mode="r")
            if hasattr(group, "dtype"):
                return group
            return group[_which([name for name, _ in group.arrays()], dataset, path)]
        file, found = import_optional("h5py").File(path, "r"), list[str]()
        file.visititems(lambda name, item: found.append(name) if hasattr(item, "dtype") else None)
        return file[_which(found, dataset, path)]
    except (NoTableError, PermissionError):
        raise
    except (OSError, ValueError, IndexError, EOFError, KeyError, BadZipFile) as error:
        kind = "LIBSVM" if form in LIBSVM else form
        raise NoTableError(f"{path} is no {kind} file of numbers, or it is cut off.") from error


def _which(found: list[str], dataset: str | None, path: Path) -> str:
    """Return the array that is meant: the one named, the only one, or X."""
    if dataset is None and "X" in found:
        return "X"
    if dataset is None and len(found) == 1:
        return found[0]
    if dataset not in found:
        given = f"none is called {dataset!r}" if dataset else "there are several"
        msg = f"{path} holds {', '.join(found) or 'no arrays'}; {given}. Name one with --dataset."
        raise NoTableError(msg)
    return dataset
