"""The paper's five data sets, the simulation, and scikit-learn's digits.

A data set is looked for in a folder of the user's (``--data-dir``, else ``NYSBOOST_DATA``),
then in the cache, then downloaded. In each place it is a ``.npz`` file with ``X``.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nysboost.experiments.user_error import UserError
from nysboost.numerics.checks import unknown

Preparation = Literal["as distributed", "divided by 255", "columns standardised"]
_BLOCK = 50_000
"""Rows whose moments are summed at a time: the largest table is never held in float64."""


@dataclass(frozen=True)
class Dataset:
    """What is known of a data set before it is read.

    Attributes
    ----------
    file : str
        The name of its ``.npz`` file; empty if it needs none.
    points, dimension : int
        Its size in the paper's table.
    preparation : str
        What is done to the features.
    """

    name: str
    title: str
    file: str
    points: int
    dimension: int
    preparation: Preparation


DATASETS = {
    d.name: d
    for d in (
        Dataset("simulation", "Standard normal points", "", 1_000, 2, "as distributed"),
        Dataset("digits", "scikit-learn's digits", "", 1_797, 64, "as distributed"),
        Dataset("mnist", "MNIST", "mnist.npz", 70_000, 784, "divided by 255"),
        Dataset("glove", "GloVe 6B", "glove.npz", 400_000, 300, "as distributed"),
        Dataset("covertype", "Covertype", "covtype.npz", 581_012, 54, "columns standardised"),
        Dataset("ijcnn", "IJCNN", "ijcnn1.npz", 49_990, 22, "as distributed"),
        Dataset("pendigits", "Pendigits", "pendigits.npz", 10_992, 16, "columns standardised"),
    )
}
_UNREADABLE = (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError)
_HEADERS: dict[tuple[int, int], Callable[[Any], tuple[Any, ...]]] = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
PAPER = ("mnist", "glove", "covertype", "ijcnn", "pendigits")


@dataclass(frozen=True)
class Points:
    """A data set in memory: the stored values, and what turns a row into features.

    Attributes
    ----------
    values : ndarray of shape (n, d) or None
        The stored values, in the dtype of their file; None for the simulation.
    shift, scale : ndarray of shape (d,)
        Features are (values − shift) / scale.
    source : str
        Where it came from.
    """

    name: str
    values: NDArray[Any] | None
    shift: NDArray[np.float64]
    scale: NDArray[np.float64]
    source: str

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n points drawn without replacement, as float64 features."""
        if self.values is None:
            return rng.standard_normal((n, 2))
        if n > len(self.values):
            message = f"{n} points are asked for, but {self.source} has {len(self.values)}."
            raise UserError(message)
        chosen = np.sort(rng.choice(len(self.values), size=n, replace=False))
        return (self.values[chosen].astype(np.float64) - self.shift) / self.scale

    def fingerprint(self) -> str:
        """Return a digest of the values, so that other data never count as the same."""
        if self.values is None:
            return self.name
        content = hashlib.sha256(np.ascontiguousarray(self.values).data).hexdigest()[:16]
        return f"{self.name} {self.values.shape} {content}"


def get(name: str) -> Dataset:
    """Return the description of a data set by name."""
    if name not in DATASETS:
        raise UserError(unknown("data set", name, DATASETS))
    return DATASETS[name]


def folders(data_dir: Path | None) -> list[Path]:
    """Return the folders in which data sets are looked for, in order."""
    given = data_dir or (Path(e) if (e := os.environ.get("NYSBOOST_DATA")) else None)
    return [f for f in (given, cache_folder()) if f is not None]


def cache_folder() -> Path | None:
    """Return where downloads are kept, or None without platformdirs."""
    try:
        import platformdirs
    except ImportError:
        return None
    return Path(platformdirs.user_cache_dir("nysboost"))


def find(name: str, data_dir: Path | None) -> Path | None:
    """Return the file of a data set, or None if it is in no folder."""
    file = get(name).file
    return next((f / file for f in folders(data_dir) if (f / file).is_file()), None)


def load(
    name: str, data_dir: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Points:
    """Read a data set, downloading it if no folder has it.

    Parameters
    ----------
    name : str
        A key of ``DATASETS``.
    data_dir : Path, optional
        The folder to look in first.
    say : callable
        Told, in a sentence, when a download begins.
    """
    dataset = get(name)
    if name == "simulation":
        return Points(name, None, np.zeros(2), np.ones(2), "drawn anew")
    if name == "digits":
        from sklearn.datasets import load_digits

        values = load_digits().data.astype(np.uint8)
        return _prepared(dataset, values, "scikit-learn")
    if data_dir is not None and not data_dir.is_dir():
        raise UserError(f"The data folder {data_dir} does not exist.")
    path = find(name, data_dir) or _download(dataset, data_dir, say)
    return _prepared(dataset, _read(path), str(path))


def _download(dataset: Dataset, data_dir: Path | None, say: Callable[[str], None]) -> Path:
    from nysboost.experiments import downloads

    looked = ", ".join(map(str, folders(data_dir))) or "no folder"
    try:
        return downloads.fetch(dataset.name, dataset.file, cache_folder(), say)
    except UserError as error:
        message = (
            f"{dataset.title} was not found (looked in {looked}) and could not be downloaded: "
            f"{error} Put {dataset.file} into a folder and name that folder with --data-dir or "
            "NYSBOOST_DATA; it holds an array X with one row for each point."
        )
        raise UserError(message) from error


def _read(path: Path) -> NDArray[Any]:
    """Read X of a ``.npz`` file; its first ``n_train`` rows if the paper uses only those."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            values: NDArray[Any] = arrays["X"]
            rows = _rows_used(path, arrays, len(values))
    except _UNREADABLE as error:
        raise UserError(_unreadable(path, error)) from error
    _refuse_other_than_a_matrix(path, values.dtype, values.shape)
    return np.ascontiguousarray(values[:rows])


def _size(path: Path) -> tuple[int, int]:
    """Return the shape that ``_read`` would give, from the head of the file alone."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            with arrays.zip.open("X.npy") as file:
                version = np.lib.format.read_magic(file)
                shape, _, dtype = _HEADERS[version](file)
            _refuse_other_than_a_matrix(path, dtype, shape)
            return _rows_used(path, arrays, shape[0]), shape[1]
    except UserError:
        raise
    except _UNREADABLE as error:
        raise UserError(_unreadable(path, error)) from error


def _refuse_other_than_a_matrix(path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or dtype.kind not in "fiub":
        raise UserError(f"X in {path} must be a matrix of numbers; it is {dtype} of shape {shape}.")


def _rows_used(path: Path, arrays: Any, rows: int) -> int:
    train_only = path.name == DATASETS["ijcnn"].file and "n_train" in arrays
    return int(arrays["n_train"]) if train_only else rows


def _unreadable(path: Path, error: Exception) -> str:
    return f"{path} cannot be read as a .npz file with an array X ({error})."


def _prepared(dataset: Dataset, values: NDArray[Any], source: str) -> Points:
    d = values.shape[1]
    shift, scale = np.zeros(d), np.ones(d)
    if dataset.preparation == "divided by 255":
        scale *= 255.0
    elif dataset.preparation == "columns standardised":
        shift, scale = _moments(values)
    return Points(dataset.name, values, shift, scale, source)


def _moments(values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each column's mean and standard deviation, 1 for a constant column."""
    blocks = range(0, len(values), _BLOCK)
    shift = sum(values[i : i + _BLOCK].sum(axis=0, dtype=np.float64) for i in blocks) / len(values)
    squares = sum(((values[i : i + _BLOCK] - shift) ** 2).sum(axis=0) for i in blocks)
    scale = np.sqrt(squares / len(values))
    return shift, np.where(scale > 0, scale, 1.0)


def table(data_dir: Path | None = None) -> list[dict[str, str]]:
    """Return the paper's data table as read from the files found, one row for each data set."""
    return [_row(DATASETS[name], data_dir) for name in DATASETS]


def _row(dataset: Dataset, data_dir: Path | None) -> dict[str, str]:
    path = find(dataset.name, data_dir) if dataset.file else None
    size: tuple[int, int] | None = None
    if path is not None:
        size = _size(path)
    elif not dataset.file:
        size = (dataset.points, dataset.dimension)
    place = str(path or ("not found; downloaded when needed" if dataset.file else "built in"))
    in_paper = f"{dataset.points:,} × {dataset.dimension}" if dataset.name in PAPER else "–"
    return {
        "name": dataset.name,
        "data set": dataset.title,
        "points": f"{size[0]:,}" if size else "?",
        "dimension": str(size[1]) if size else "?",
        "in the paper": in_paper,
        "features": dataset.preparation,
        "found": place,
    }
