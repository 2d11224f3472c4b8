"""Arrays in files (.npy, .npz, HDF5, Zarr and LIBSVM), whose columns have no names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nysboost.numerics.arrays import Floats, is_sparse
from nysboost.numerics.checks import MAX_MEMORY, as_bytes
from nysboost.rows.recognise import make_stream
from nysboost.tables.frames import Cells
from nysboost.user_error import NoTableError, TableError, UserError, import_optional

StoredArray: TypeAlias = Any
"""A NumPy, HDF5 or Zarr array, or a CSR matrix."""

BLOCK_BYTES = 2**22
"""Size of the blocks in which arrays are read: 16 MB took 1.5 times the processor time."""

DENSE_SHARE = 8
"""A sparse table is made dense if that takes at most this fraction, one in `DENSE_SHARE`, of the
allowed memory."""

MOST_COLUMNS = 2**22
"""Largest number of columns of an array: each has a name, and is in every landmark."""

READ_BYTES = 2**20
VALUE_BYTES = 16
"""Bytes of memory for each number of a LIBSVM file while it is read (15 were measured)."""

LABEL = "label"
"""The name of the labels of a LIBSVM file."""

TARGET_KINDS = "fiubUOT"
"""Kinds of NumPy's dtypes that a target may have."""

LIBSVM = (".libsvm", ".svm", ".svmlight")
PARTS_OF_SPARSE = {"indices", "indptr", "data", "shape", "format"}
"""Arrays of a file that holds a sparse matrix of SciPy."""

ARRAYS = (".npy", ".npz", ".h5", ".hdf5", ".zarr", *LIBSVM)


@dataclass
class ArrayFile:
    """An array on disk or in memory, of n rows: `names` are the numbers of its columns.

    A LIBSVM file has `labels` beside it, shape (n,).
    """

    path: Path
    data: StoredArray
    names: tuple[str, ...]
    n: int
    notes: list[str] = field(default_factory=list)
    labels: Floats | None = None

    def batches(self, columns: Sequence[str], _kept: Sequence[str] = ()) -> Iterator[Cells]:
        """Read all rows once, in order: dense blocks of these columns; none has a name to keep."""
        # all columns in their order, or some
        positions = None
        if tuple(columns) != self.names:
            positions = [int(name) for name in columns]

        row_bytes = len(columns) * np.dtype(self.data.dtype).itemsize
        block_rows = max(1, BLOCK_BYTES // row_bytes)
        for block in make_stream(self.data).pieces(block_rows):
            part: StoredArray = block
            if positions is not None:
                part = block[:, positions]
            if is_sparse(part):
                part = part.toarray()
            yield part

    def beside(self, name: str) -> Cells | None:
        """Return another array of the same file with the same number of rows, or None."""
        # LIBSVM files hold a single array
        form = self.path.suffix.lower()
        if form in LIBSVM and name == LABEL:
            return self.labels
        if form in LIBSVM:
            return None

        try:
            stored = _open(form, self.path, name)
        except NoTableError:
            return None
        with _refuse_damaged(self.path, form):
            found: Cells = np.asarray(stored)

        # HDF5 stores text as bytes
        if found.dtype.kind in "SO":
            found = np.vectorize(_as_text, otypes=[object])(found)

        # a target has one or several values for each row
        if found.ndim not in (1, 2) or len(found) != self.n:
            raise TableError(
                f"The array {name!r} of {self.path} has shape {found.shape}, but a target needs "
                f"a value for each of the {self.n} rows."
            )
        if found.dtype.kind not in TARGET_KINDS:
            raise TableError(
                f"The array {name!r} of {self.path} has dtype {found.dtype}: a target needs "
                "numbers, truth values or text."
            )

        # a single column is as good as no column
        if found.shape == (self.n, 1):
            return found[:, 0]
        return found


def open_array(
    form: str,
    path: Path,
    dataset: str | None,
    max_memory: int | str = MAX_MEMORY,
    width: int = 0,
) -> ArrayFile:
    """Open an array that is a table of numbers; raise if it is something else.

    A LIBSVM file, which leaves out zeros, has at least `width` columns.
    """
    labels = None
    if form in LIBSVM:
        array, labels = _open_libsvm(path, as_bytes(max_memory))
        n, found = array.shape
        array.resize((n, max(found, width)))
    else:
        array = _open(form, path, dataset)
    if len(array.shape) == 1:
        with _refuse_damaged(path, form):
            array = np.asarray(array)[:, None]

    # refuse what is no table of numbers
    is_table = len(array.shape) == 2 and 0 not in array.shape
    if not is_table or array.dtype.kind not in "fiub":
        raise TableError(
            f"{path} holds an array of shape {tuple(array.shape)} and dtype {array.dtype}; "
            "a table of numbers is needed."
        )
    n, width = map(int, array.shape)
    if width > MOST_COLUMNS:
        raise TableError(
            f"{path} has {width:,} columns, but at most {MOST_COLUMNS:,} can be used: the largest "
            "index says how many there are. Number the columns that occur from 1 on."
        )

    # a sparse table is read faster when it is dense
    notes = []
    if is_sparse(array):
        dense_bytes = n * width * array.dtype.itemsize
        if dense_bytes <= as_bytes(max_memory) // DENSE_SHARE:
            array = array.toarray()
        else:
            size = f"{dense_bytes / 1e9:.1f} GB"
            notes.append(f"{path} stays sparse: as a dense table it would take {size}.")
    if labels is not None and np.ptp(labels) > 0:
        notes.append(f"{path} has labels: to predict them, use --target {LABEL}.")

    names = tuple(str(j) for j in range(width))
    return ArrayFile(path, array, names, n, notes, labels)


# Forms


def _open(form: str, path: Path, dataset: str | None) -> StoredArray:
    """Return an array of a file."""
    with _refuse_damaged(path, form):
        return OPENERS[form](path, dataset)


@contextmanager
def _refuse_damaged(path: Path, form: str) -> Iterator[None]:
    """Raise a clear error if a file cannot be read in the format of its extension."""
    try:
        yield
    except (UserError, PermissionError, MemoryError):
        raise
    except Exception as error:  # each format, and each of its codecs, has errors of its own
        if "Object arrays" in str(error):
            raise TableError(
                f"{path} has an array of Python objects, which is not read: save it as numbers, or "
                "as text with y.astype(str)."
            ) from error
        raise NoTableError(f"{path} is not a {form} file of numbers, or is truncated.") from error


def _as_text(label: object) -> object:
    """Return bytes as text, and other labels unchanged."""
    if isinstance(label, bytes):
        return label.decode("utf-8", "backslashreplace")
    return label


def _open_libsvm(path: Path, allowed: int) -> tuple[StoredArray, Floats]:
    """Return the CSR matrix and the labels of a LIBSVM file; raise if they need more memory."""
    from sklearn.datasets import load_svmlight_file

    # each number stands behind a colon
    n_values = 0
    with path.open("rb") as file:
        while part := file.read(READ_BYTES):
            n_values += part.count(b":")
    needed = VALUE_BYTES * n_values
    if needed > allowed:
        raise TableError(
            f"{path} has {n_values:,} numbers, which take {needed / 1e6:,.0f} MB in memory, but "
            f"{allowed / 1e6:,.0f} MB are allowed: raise --max-memory, or use HDF5 or Zarr, which "
            "are read in parts."
        )
    with _refuse_damaged(path, "LIBSVM"):
        X, labels = load_svmlight_file(str(path))
    return X, labels


def _open_npy(path: Path, dataset: str | None) -> StoredArray:
    _refuse_name(dataset, path)
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _open_npz(path: Path, dataset: str | None) -> StoredArray:
    with np.load(path, allow_pickle=False) as archive:
        found = list(archive)
        if dataset is not None or not set(found) >= PARTS_OF_SPARSE:
            return archive[_which(found, dataset, path)]

    # what scipy.sparse.save_npz writes
    from scipy.sparse import load_npz

    return load_npz(path).tocsr()


def _open_zarr(path: Path, dataset: str | None) -> StoredArray:
    group = import_optional("zarr").open(str(path), mode="r")
    if hasattr(group, "dtype"):
        _refuse_name(dataset, path)
        return group
    names = [name for name, _ in group.arrays()]
    return group[_which(names, dataset, path)]


def _open_hdf5(path: Path, dataset: str | None) -> StoredArray:
    file = import_optional("h5py").File(path, "r")
    names: list[str] = []

    def note_array(name: str, item: object) -> None:
        if hasattr(item, "dtype"):
            names.append(name)

    file.visititems(note_array)
    return file[_which(names, dataset, path)]


OPENERS: dict[str, Callable[[Path, str | None], StoredArray]] = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".zarr": _open_zarr,
    ".h5": _open_hdf5,
    ".hdf5": _open_hdf5,
}


def _refuse_name(dataset: str | None, path: Path) -> None:
    """Raise if an array is given by a name, but is all that a file holds."""
    if dataset is not None:
        raise NoTableError(
            f"{path} holds one array, which has no name: leave --dataset {dataset} out."
        )


def _which(found: list[str], dataset: str | None, path: Path) -> str:
    """Return the array to read: the named one, the only one, or X."""
    if not found:
        raise NoTableError(f"{path} holds no arrays.")

    # the one named, or else X, or else the only one
    if dataset is None and "X" in found:
        return "X"
    if dataset is None and len(found) == 1:
        return found[0]
    if dataset in found:
        return dataset

    wrong = "there are several"
    if dataset:
        wrong = f"none is called {dataset!r}"
    raise NoTableError(f"{path} holds {', '.join(found)}; {wrong}. Name one with --dataset.")
