"""Tables in files: what their columns are called, and their rows, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from nysboost.cli.errors import CommandError, DataError, NoFileError
from nysboost.data.recognise import stream_of
from nysboost.experiments.user_error import need

BLOCK_BYTES = 2**22
"""Rows are read in blocks of this size, and the features of a block are memory that is used again:
with 16 columns and 100 landmarks 4 MB took 0.64 of the processor time of ``transform(out=…)``,
16 MB took 0.95 of it and 64 MB 1.05."""

FORMS = ".csv, .tsv, .parquet (a file or a folder), .npy, .npz, .h5, .hdf5 and .zarr"


class Table(Protocol):
    """A table in a file, which may be larger than memory."""

    @property
    def path(self) -> Path:
        """Where it is."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """What the columns are called; None if they have numbers only."""

    @property
    def width(self) -> int:
        """Number of columns."""

    @property
    def n(self) -> int | None:
        """Number of rows; None if only the end will tell."""

    @property
    def text(self) -> tuple[str, ...]:
        """The columns that are no numbers."""

    def blocks(self, columns: Sequence[int]) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order: blocks of these columns, as numbers."""

    def frames(self, columns: Sequence[int]) -> Iterator[Any]:
        """Read all rows once, in order, as data frames, text and gaps as they are."""

    def labels(self, column: int) -> NDArray[Any]:
        """Return one column as it is: numbers or text."""


@dataclass(frozen=True)
class ArrayTable:
    """An array on disk or in memory: anything that is sliced by rows."""

    path: Path
    data: Any
    names = None
    text: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.data.shape[1])

    def blocks(self, columns: Sequence[int]) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order: blocks of these columns, as numbers."""
        size = max(1, BLOCK_BYTES // (self.width * np.dtype(self.data.dtype).itemsize))
        everything = list(columns) == list(range(self.width))
        for block in stream_of(self.data).pieces(size):
            yield block if everything else block[:, list(columns)]

    def frames(self, columns: Sequence[int]) -> Iterator[NDArray[Any]]:
        """Read all rows once, in order; columns without names make no data frame."""
        return self.blocks(columns)

    def labels(self, column: int) -> NDArray[Any]:
        """Return one column as it is."""
        blocks = [block[:, 0] for block in self.blocks([column])]
        return np.concatenate(blocks)

    def beside(self, name: str) -> NDArray[Any] | None:
        """Return another array of the same file, with as many rows; None if there is none."""
        try:
            found = np.asarray(_opened(self.path.suffix.lower(), self.path, name))
        except NoFileError:
            return None
        one = self.path.suffix == ".npy" or len(found) != self.n or found.ndim > 2
        return None if one else found


def open_table(path: Path, dataset: str | None = None) -> Table:
    """Open a table, whatever its form.

    Parameters
    ----------
    path : Path
        The file, or the folder of a Zarr array or of Parquet files.
    dataset : str or None
        Which array of an .npz, HDF5 or Zarr file; needed if there are several tables in it.
    """
    if not path.exists():
        msg = f"There is no file {path}."
        raise NoFileError(msg)
    suffixes = [part.lower() for part in path.suffixes]
    kind = suffixes[-1] if suffixes else ""
    if kind == ".gz" and len(suffixes) > 1:
        kind = suffixes[-2]
    if kind in (".csv", ".tsv", ".txt", ".parquet", ".pq") or (path.is_dir() and kind != ".zarr"):
        if dataset is not None:
            msg = (
                f"--dataset {dataset} names an array of a file with several, but {path} is a table."
            )
            raise NoFileError(msg)
        need("pyarrow", "experiments")
        from nysboost.cli.columns import open_csv, open_parquet

        return open_csv(path) if kind in (".csv", ".tsv", ".txt") else open_parquet(path)
    if kind not in OPENERS:
        msg = f"{path} has a form that is not known: {FORMS} are read."
        raise NoFileError(msg)
    return ArrayTable(path, _table(_opened(kind, path, dataset), path))


def _opened(kind: str, path: Path, dataset: str | None) -> Any:
    """Open an array, or say that the file is not what its ending says."""
    try:
        return OPENERS[kind](path, dataset)
    except (CommandError, PermissionError):
        raise
    except (OSError, ValueError, EOFError, KeyError, BadZipFile) as error:
        msg = f"{path} is no {kind} file of numbers, or it is cut off."
        raise NoFileError(msg) from error


def _table(array: Any, path: Path) -> Any:
    """Return an array that is a table of numbers, or say what it is instead."""
    if len(array.shape) == 1:
        array = np.asarray(array)[:, None]
    if len(array.shape) != 2 or array.dtype.kind not in "fiub" or 0 in array.shape:
        msg = (
            f"{path} holds an array of shape {tuple(array.shape)} and dtype {array.dtype}; "
            "a table of numbers is needed."
        )
        raise DataError(msg)
    return array


def _npy(path: Path, _: str | None) -> Any:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _npz(path: Path, dataset: str | None) -> Any:
    with np.load(path, allow_pickle=False) as archive:
        return archive[_which(list(archive), dataset, path)]


def _hdf5(path: Path, dataset: str | None) -> Any:
    h5py = need("h5py", "files")
    file, found = h5py.File(path, "r"), []
    file.visititems(lambda name, item: found.append(name) if hasattr(item, "dtype") else None)
    return file[_which(found, dataset, path)]


def _zarr(path: Path, dataset: str | None) -> Any:
    zarr = need("zarr", "files")
    opened = zarr.open(str(path), mode="r")
    if hasattr(opened, "dtype"):
        return opened
    return opened[_which([name for name, _ in opened.arrays()], dataset, path)]


def _which(found: list[str], dataset: str | None, path: Path) -> str:
    """Return the array that is meant: the one named, the only one, or X."""
    if dataset is None and "X" in found:
        return "X"
    if dataset is None and len(found) == 1:
        return found[0]
    if dataset not in found:
        given = f"none is called {dataset!r}" if dataset else "there are several"
        msg = f"{path} holds {', '.join(found) or 'no arrays'}; {given}. Name one with --dataset."
        raise NoFileError(msg)
    return dataset


OPENERS = {".npy": _npy, ".npz": _npz, ".h5": _hdf5, ".hdf5": _hdf5, ".zarr": _zarr}
