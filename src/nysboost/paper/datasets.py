"""The paper's five data sets, the simulation, and scikit-learn's digits, as ``.npz`` files.

They are read from ``--data-dir``, or ``NYSBOOST_DATA``, or the cache. Otherwise they are downloaded
to the cache. Checksums protect the downloads and the converted files.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.arrays import Floats
from nysboost.numerics.messages import unknown
from nysboost.paper import read_toml
from nysboost.rows.files import write_npz
from nysboost.user_error import UserError, import_optional

Stored: TypeAlias = NDArray[np.number]
"""Points as stored in a file, (n, d), of any number type."""

Parse: TypeAlias = Callable[[Sequence[Path]], Stored]
"""Downloaded files ↦ the points in them."""


@dataclass(frozen=True)
class Dataset:
    """A data set: its size in the paper, the scaling of its features, and its source.

    `file` holds it as an array X, which `parse` makes from `downloads`, addresses with checksums or
    "". `digest` is the SHA-256 of X, or "".
    """

    title: str
    points: int
    dimension: int
    parse: Parse
    preparation: str = "as distributed"
    file: str = ""
    downloads: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class Points:
    """A data set in memory, and where it came from.

    `values` (n, d) are the stored values, None for the simulation. Features are (values − shift) /
    scale.
    """

    name: str
    values: Stored | None
    source: str
    shift: float | Floats = 0.0
    scale: float | Floats = 1.0

    def draw(self, n: int, rng: np.random.Generator) -> Floats:
        """Return n points drawn without replacement, as float64 features."""
        if self.values is None:
            return rng.standard_normal((n, 2))
        available = len(self.values)
        if n > available:
            raise UserError(f"{n} points were asked for, but {self.source} has only {available}.")

        # keep the order of the file
        chosen = rng.choice(available, size=n, replace=False)
        drawn = self.values[np.sort(chosen)].astype(np.float64)
        features: Floats = (drawn - self.shift) / self.scale
        return features

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of points, and dimension."""
        if self.values is None:
            return (1000, 2)
        return self.values.shape

    def fingerprint(self) -> str:
        """Return a digest of the values, which distinguishes different data."""
        if self.values is None:
            return self.name
        return f"{self.name} {self.values.shape} {_digest(self.values)[:16]}"


def _digest(values: Stored) -> str:
    """Return the SHA-256 of the content of an array."""
    content = np.ascontiguousarray(values).data
    return hashlib.sha256(content).hexdigest()


def list_folders(data_dir: Path | None) -> list[Path]:
    """Return the folders that are searched for data sets, in order."""
    folders = []
    given = data_dir or os.environ.get("NYSBOOST_DATA")
    if given:
        folders.append(Path(given))

    # the cache needs an optional package
    if find_spec("platformdirs"):
        folders.append(_cache())
    return folders


def _cache() -> Path:
    return Path(import_optional("platformdirs").user_cache_dir("nysboost"))


def find(name: str, data_dir: Path | None) -> Path | None:
    """Return the file of a data set, or None if it is in no folder."""
    paths = [folder / DATASETS[name].file for folder in list_folders(data_dir)]
    return next(filter(Path.is_file, paths), None)


def load(
    name: str,
    data_dir: Path | None = None,
    say: Callable[[str], object] = print,
) -> Points:
    """Read a data set; if no folder has it, download it with a message."""
    if name not in DATASETS:
        raise UserError(unknown("data set", name, DATASETS))

    # points that need no file
    if name == "simulation":
        return Points(name, None, "drawn anew")
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits().data
        return Points(name, digits.astype(np.uint8), "scikit-learn")

    # find the file, or download it
    if data_dir is not None and not data_dir.is_dir():
        raise UserError(f"The data folder {data_dir} does not exist.")
    path = find(name, data_dir) or _download(name, data_dir, say)
    values = _read(path)

    # prepare the features as the paper does
    stored = Points(name, values, str(path))
    match DATASETS[name].preparation:
        case "divided by 255":
            return replace(stored, scale=255.0)
        case "columns standardised":
            mean = values.mean(axis=0, dtype=np.float64)
            deviation = values.std(axis=0, dtype=np.float64)
            deviation[deviation == 0] = 1.0  # constant columns become 0
            return replace(stored, shift=mean, scale=deviation)
    return stored


def draw(name: str, most: int, seed: int, data_dir: Path | None) -> tuple[Floats, int]:
    """Return a random sample of a data set, and its total number of points."""
    stored = load(name, data_dir)
    n = stored.shape[0]
    rng = np.random.default_rng(seed)
    return stored.draw(min(n, most), rng), n


def list_all(data_dir: Path | None = None) -> list[dict[str, str]]:
    """Return a row for each data set: its size in the paper, and the place of its file."""
    rows = []
    for name, dataset in DATASETS.items():
        found = "built in"
        if dataset.file:
            path = find(name, data_dir)
            found = str(path or "not found; downloaded when needed")

        row = {
            "name": name,
            "data set": dataset.title,
            "points × dimension": f"{dataset.points:,} × {dataset.dimension}",
            "features": dataset.preparation,
            "found": found,
        }
        rows.append(row)
    return rows


def _read(path: Path) -> Stored:
    """Read X of a ``.npz`` file; its first ``n_train`` rows if the paper uses only those."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            values: Stored = arrays["X"]
            rows = len(values)
            # the paper has the training rows of IJCNN
            if path.name == DATASETS["ijcnn"].file and "n_train" in arrays:
                rows = int(arrays["n_train"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        message = f"{path} cannot be read as a .npz file with an array X, or it is damaged."
        raise UserError(message) from error

    # refuse what is no table of numbers
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise UserError(
            f"X in {path} must be a matrix of numbers; it is {values.dtype} of shape "
            f"{values.shape}."
        )
    return np.ascontiguousarray(values[:rows])


def _download(name: str, data_dir: Path | None, say: Callable[[str], object]) -> Path:
    """Return the file of a data set in the cache, or say where it was looked for."""
    dataset = DATASETS[name]
    folder = _cache()
    try:
        say(f"Downloading {name} into {folder}.")
        return fetch(dataset, folder / dataset.file)

    # say what to do without a network
    except UserError as error:
        looked = ", ".join(map(str, list_folders(data_dir))) or "no folder"
        raise UserError(
            f"{dataset.title} was not found (looked in {looked}) and could not be downloaded: "
            f"{error} Put {dataset.file} into a folder and name that folder with --data-dir or "
            "NYSBOOST_DATA; it holds an array X with one row for each point."
        ) from error


def fetch(dataset: Dataset, path: Path) -> Path:
    """Download a data set and return the ``.npz`` file that it becomes."""
    # download and parse the points
    folder = path.parent / "raw"
    raw = [_retrieve(*download, folder) for download in dataset.downloads.items()]
    values = np.ascontiguousarray(dataset.parse(raw))

    # do not keep unexpected data
    found = _digest(values)
    if dataset.digest not in ("", found):
        for file in raw:
            file.unlink(missing_ok=True)
        raise UserError(f"{raw[0].name} does not hold the expected data (checksum {found}).")

    write_npz(path, compressed=True, X=values)
    return path


def _retrieve(address: str, checksum: str, folder: Path) -> Path:
    """Download a file, unless it exists."""
    pooch = import_optional("pooch")
    shows_progress = find_spec("tqdm") is not None
    try:
        file = pooch.retrieve(address, checksum or None, path=folder, progressbar=shows_progress)
    except Exception as error:  # pooch lets through whatever its HTTP library raises
        raise UserError(f"{address} gave {type(error).__name__}.") from error
    return Path(file)


def parse_mnist(paths: Sequence[Path]) -> Stored:
    """Read image files of the IDX format: after 16 bytes, 28 × 28 pixels of each image."""
    files = [gzip.decompress(path.read_bytes()) for path in paths]
    pixels = b"".join(file[16:] for file in files)
    flat = np.frombuffer(pixels, dtype=np.uint8)
    return flat.reshape(-1, 28 * 28)


def parse_glove(paths: Sequence[Path]) -> Stored:
    """Read the 300-dimensional vectors out of the archive."""
    with zipfile.ZipFile(paths[0]) as archive, archive.open("glove.6B.300d.txt") as file:
        vectors = []
        for line in io.TextIOWrapper(file, encoding="utf-8"):
            # a word can hold spaces, so the numbers are counted from the right
            numbers = line.rsplit(" ", 300)[1:]
            vectors.append(np.array(numbers, dtype=np.float32))
    return np.stack(vectors)


def parse_integers(paths: Sequence[Path], dtype: type[np.int16 | np.uint8]) -> Stored:
    """Read and concatenate files of comma-separated integers; the last column is the label."""
    parts = [np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2) for path in paths]
    table = np.concatenate(parts)
    return table[:, :-1]


def parse_ijcnn(paths: Sequence[Path]) -> Stored:
    """Read the LIBSVM file of the 49,990 training points."""
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(str(paths[0]), n_features=22)
    return np.ascontiguousarray(X.toarray(), dtype=np.float32)


def _nothing(_: Sequence[Path]) -> Stored:
    return np.empty((0, 0))


_PARSE: dict[str, Parse] = {
    "mnist": parse_mnist,
    "glove": parse_glove,
    "covertype": partial(parse_integers, dtype=np.int16),
    "ijcnn": parse_ijcnn,
    "pendigits": partial(parse_integers, dtype=np.uint8),
}
DATASETS = {
    name: Dataset(parse=_PARSE.get(name, _nothing), **table)
    for name, table in read_toml("datasets.toml").items()
}
