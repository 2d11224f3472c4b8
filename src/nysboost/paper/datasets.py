"""The paper's five data sets, the simulation, and scikit-learn's digits, as ``.npz`` files.

They are looked for in ``--data-dir``, else ``NYSBOOST_DATA``; in the cache; then downloaded.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.checks import unknown
from nysboost.paper import downloads
from nysboost.user_error import UserError, need

Preparation = Literal["as distributed", "divided by 255", "columns standardised"]


@dataclass(frozen=True)
class Dataset:
    """A data set's ``.npz`` file, its size in the paper, and what is done to its features."""

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


@dataclass(frozen=True)
class Points:
    """A data set in memory, and where it came from.

    `values` are as stored, (n, d), None for the simulation; features are (values − shift) / scale.
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

    @property
    def size(self) -> str:
        """Points and dimension, as read."""
        shape = (1000, 2) if self.values is None else self.values.shape
        return f"{shape[0]:,} × {shape[1]}"

    def fingerprint(self) -> str:
        """Return a digest of the values, so that other data never count as the same."""
        if self.values is None:
            return self.name
        content = hashlib.sha256(np.ascontiguousarray(self.values).data).hexdigest()[:16]
        return f"{self.name} {self.values.shape} {content}"


def list_folders(data_dir: Path | None) -> list[Path]:
    """Return the folders in which data sets are looked for, in order."""
    given = data_dir or os.environ.get("NYSBOOST_DATA")
    return [*([Path(given)] if given else []), *([_cache()] if find_spec("platformdirs") else [])]


def _cache() -> Path:
    return Path(need("platformdirs", "experiments").user_cache_dir("nysboost"))


def find(name: str, data_dir: Path | None) -> Path | None:
    """Return the file of a data set, or None if it is in no folder."""
    file = DATASETS[name].file
    return next((f / file for f in list_folders(data_dir) if (f / file).is_file()), None)


def load(
    name: str, data_dir: Path | None = None, say: Callable[[str], None] = lambda _: None
) -> Points:
    """Read a data set, downloading it, and saying so, if no folder has it."""
    if name not in DATASETS:
        raise UserError(unknown("data set", name, DATASETS))
    dataset = DATASETS[name]
    if name == "simulation":
        return Points(name, None, np.zeros(2), np.ones(2), "drawn anew")
    if name == "digits":
        from sklearn.datasets import load_digits

        values = load_digits().data.astype(np.uint8)
        return _prepare(dataset, values, "scikit-learn")
    if data_dir is not None and not data_dir.is_dir():
        raise UserError(f"The data folder {data_dir} does not exist.")
    path = find(name, data_dir) or _download(dataset, data_dir, say)
    return _prepare(dataset, _read(path), str(path))


def draw(name: str, most: int, seed: int, data_dir: Path | None) -> tuple[NDArray[np.float64], int]:
    """Return at most so many points of a data set, drawn at random, and how many it has."""
    stored = load(name, data_dir)
    n = DATASETS[name].points if stored.values is None else len(stored.values)
    return stored.draw(min(n, most), np.random.default_rng(seed)), n


def _download(dataset: Dataset, data_dir: Path | None, say: Callable[[str], None]) -> Path:
    try:
        say(f"Downloading {dataset.name} into {_cache()}.")
        return downloads.fetch(downloads.SOURCES[dataset.name], _cache() / dataset.file)
    except UserError as error:
        looked = ", ".join(map(str, list_folders(data_dir))) or "no folder"
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
            train_only = path.name == DATASETS["ijcnn"].file and "n_train" in arrays
            rows = int(arrays["n_train"]) if train_only else len(values)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        message = f"{path} cannot be read as a .npz file with an array X ({error})."
        raise UserError(message) from error
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        message = f"X in {path} must be a matrix of numbers; it is {values.dtype} of shape "
        raise UserError(f"{message}{values.shape}.")
    return np.ascontiguousarray(values[:rows])


def _prepare(dataset: Dataset, values: NDArray[Any], source: str) -> Points:
    shift, scale = np.zeros(values.shape[1]), np.ones(values.shape[1])
    if dataset.preparation == "divided by 255":
        scale *= 255.0
    elif dataset.preparation == "columns standardised":
        shift, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        scale[scale == 0] = 1.0
    return Points(dataset.name, values, shift, scale, source)


def list_all(data_dir: Path | None = None) -> list[dict[str, str]]:
    """Return a row for each data set: its size in the paper, and where its file was found."""
    rows = []
    for name, dataset in DATASETS.items():
        path = find(name, data_dir) if dataset.file else "built in"
        size = f"{dataset.points:,} × {dataset.dimension}"
        row = {"name": name, "data set": dataset.title, "points × dimension": size}
        row |= {"features": dataset.preparation}
        rows.append(row | {"found": str(path or "not found; downloaded when needed")})
    return rows
