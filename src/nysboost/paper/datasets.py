"""The paper's five data sets, the simulation, and scikit-learn's digits, as ``.npz`` files.

They are looked for in ``--data-dir``, else ``NYSBOOST_DATA``; in the cache; then downloaded, and
kept in the cache, with checksums of what was downloaded and of what was made of it.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.messages import unknown
from nysboost.paper import read_toml
from nysboost.rows.files import write_npz
from nysboost.user_error import UserError, import_optional


@dataclass(frozen=True)
class Dataset:
    """A data set's size in the paper, what is done to its features, and where it comes from.

    `file` holds it as an array X, made by `parse` from downloads: addresses with checksums, or
    "". `digest` is the SHA-256 of X, or "".
    """

    title: str
    points: int
    dimension: int
    parse: Callable[[Sequence[Path]], Any]
    preparation: str = "as distributed"
    file: str = ""
    downloads: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class Points:
    """A data set in memory, and where it came from.

    `values` are as stored, (n, d), None for the simulation; features are (values − shift) / scale.
    """

    name: str
    values: NDArray[Any] | None
    shift: Any
    scale: Any
    source: str

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n points drawn without replacement, as float64 features."""
        if self.values is None:
            return rng.standard_normal((n, 2))
        if n > len(self.values):
            raise UserError(f"{n} points are asked for, but {self.source} has {len(self.values)}.")
        chosen = np.sort(rng.choice(len(self.values), size=n, replace=False))
        features: NDArray[np.float64]
        features = (self.values[chosen].astype(np.float64) - self.shift) / self.scale
        return features

    @property
    def shape(self) -> tuple[int, ...]:
        """Points and dimension."""
        return (1000, 2) if self.values is None else self.values.shape

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
    return Path(import_optional("platformdirs").user_cache_dir("nysboost"))


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
    if name == "simulation":
        return Points(name, None, 0.0, 1.0, "drawn anew")
    if name == "digits":
        from sklearn.datasets import load_digits

        return Points(name, load_digits().data.astype(np.uint8), 0.0, 1.0, "scikit-learn")
    if data_dir is not None and not data_dir.is_dir():
        raise UserError(f"The data folder {data_dir} does not exist.")
    path = find(name, data_dir) or _download(name, data_dir, say)
    values, preparation = _read(path), DATASETS[name].preparation
    shift: Any = 0.0
    scale: Any = 255.0 if preparation == "divided by 255" else 1.0
    if preparation == "columns standardised":
        shift, scale = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
        scale[scale == 0] = 1.0
    return Points(name, values, shift, scale, str(path))


def draw(name: str, most: int, seed: int, data_dir: Path | None) -> tuple[NDArray[np.float64], int]:
    """Return at most so many points of a data set, drawn at random, and how many it has."""
    stored = load(name, data_dir)
    n = stored.shape[0]
    return stored.draw(min(n, most), np.random.default_rng(seed)), n


def list_all(data_dir: Path | None = None) -> list[dict[str, str]]:
    """Return a row for each data set: its size in the paper, and where its file was found."""
    missing = "not found; downloaded when needed"
    return [
        {
            "name": name, "data set": d.title,
            "points × dimension": f"{d.points:,} × {d.dimension}", "features": d.preparation,
            "found": str(find(name, data_dir) or missing) if d.file else "built in",
        }
        for name, d in DATASETS.items()
    ]  # fmt: skip


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


def _download(name: str, data_dir: Path | None, say: Callable[[str], None]) -> Path:
    dataset = DATASETS[name]
    try:
        say(f"Downloading {name} into {_cache()}.")
        return fetch(dataset, _cache() / dataset.file)
    except UserError as error:
        looked = ", ".join(map(str, list_folders(data_dir))) or "no folder"
        raise UserError(
            f"{dataset.title} was not found (looked in {looked}) and could not be downloaded: "
            f"{error} Put {dataset.file} into a folder and name that folder with --data-dir or "
            "NYSBOOST_DATA; it holds an array X with one row for each point."
        ) from error


def fetch(dataset: Dataset, path: Path) -> Path:
    """Download a data set and return the ``.npz`` file that it becomes."""
    pooch = import_optional("pooch")
    raw, how = [], {"path": path.parent / "raw", "progressbar": find_spec("tqdm") is not None}
    for address, checksum in dataset.downloads.items():
        try:
            raw.append(Path(pooch.retrieve(address, checksum or None, **how)))
        except Exception as error:  # pooch lets through whatever its HTTP library raises
            raise UserError(f"{address} gave {type(error).__name__}.") from error
    values = np.ascontiguousarray(dataset.parse(raw))
    found = hashlib.sha256(values.data).hexdigest()
    if dataset.digest not in ("", found):
        for file in raw:
            file.unlink(missing_ok=True)
        raise UserError(f"{raw[0].name} holds other data than expected (checksum {found}).")
    write_npz(path, compressed=True, X=values)
    return path


def parse_mnist(paths: Sequence[Path]) -> NDArray[Any]:
    """Read image files of the IDX format: after 16 bytes, 28 × 28 pixels of each image."""
    parts = [gzip.decompress(path.read_bytes())[16:] for path in paths]
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, 28 * 28)


def parse_glove(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the 300-dimensional vectors out of the archive."""
    with zipfile.ZipFile(paths[0]) as archive, archive.open("glove.6B.300d.txt") as file:
        lines = io.TextIOWrapper(file, encoding="utf-8")
        # A word can hold spaces, so the numbers are counted from the right.
        return np.stack([np.array(line.rsplit(" ", 300)[1:], dtype=np.float32) for line in lines])


def parse_integers(paths: Sequence[Path], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Read files of comma-separated integers, one after the other; the last column is the label."""
    parts = [np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2)[:, :-1] for path in paths]
    return np.concatenate(parts)


def parse_ijcnn(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the LIBSVM file of the 49,990 training points."""
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(str(paths[0]), n_features=22)
    return np.ascontiguousarray(X.toarray(), dtype=np.float32)


_PARSE: dict[str, Callable[[Sequence[Path]], Any]] = {
    "mnist": parse_mnist,
    "glove": parse_glove,
    "covertype": partial(parse_integers, dtype=np.int16),
    "ijcnn": parse_ijcnn,
    "pendigits": partial(parse_integers, dtype=np.uint8),
}
DATASETS = {
    name: Dataset(parse=_PARSE.get(name, list), **table)
    for name, table in read_toml("datasets.toml").items()
}
