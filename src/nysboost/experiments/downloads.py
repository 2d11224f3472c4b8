"""Downloads of the five data sets from their original sources, with checksums.

Each is turned into the ``.npz`` form of a local folder and kept in the cache. The checksum
of the parsed array is checked as well, since some sources publish none for their files.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.data.whole import whole_npz
from nysboost.experiments.user_error import UserError, need

Parser = Callable[[Sequence[Path]], NDArray[Any]]


@dataclass(frozen=True)
class Source:
    """Where a data set is published.

    Attributes
    ----------
    files : tuple of (address, checksum or None)
        The files and what pooch checks them against.
    parse : callable
        Turns the files into X.
    digest : str or None
        The SHA-256 of the bytes of X.
    """

    files: tuple[tuple[str, str | None], ...]
    parse: Parser
    digest: str | None


def parse_mnist(paths: Sequence[Path]) -> NDArray[Any]:
    """Read image files of the IDX format, one after the other."""
    parts = []
    for path in paths:
        with gzip.open(path) as file:
            content = file.read()
        magic, count, height, width = np.frombuffer(content, dtype=">i4", count=4)
        if magic != 2051:
            raise UserError(f"{path} is not a file of images in the IDX format.")
        pixels = np.frombuffer(content, dtype=np.uint8, offset=16)
        parts.append(pixels.reshape(int(count), int(height) * int(width)))
    return np.concatenate(parts)


def parse_glove(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the 300-dimensional vectors out of the archive."""
    with zipfile.ZipFile(paths[0]) as archive, archive.open("glove.6B.300d.txt") as file:
        lines = io.TextIOWrapper(file, encoding="utf-8")
        # A word can hold spaces, so the numbers are counted from the right.
        return np.stack([np.array(line.rsplit(" ", 300)[1:], dtype=np.float32) for line in lines])


def parse_covertype(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the comma-separated integers; the last column is the label."""
    with gzip.open(paths[0], "rt") as file:
        return np.loadtxt(file, delimiter=",", dtype=np.int16)[:, :-1].copy()


def parse_pendigits(paths: Sequence[Path]) -> NDArray[Any]:
    """Read training then test rows; the last column is the label."""
    parts = [np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)[:, :-1] for path in paths]
    return np.concatenate(parts)


def parse_ijcnn(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the LIBSVM file of the 49,990 training points."""
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(str(paths[0]), n_features=22)
    return np.ascontiguousarray(X.toarray(), dtype=np.float32)


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

SOURCES = {
    "mnist": Source(
        (
            (_MNIST + "train-images-idx3-ubyte.gz", "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            (_MNIST + "t10k-images-idx3-ubyte.gz", "md5:9fb629c4189551a2d022fa330f9573f3"),
        ),
        parse_mnist,
        "5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96",
    ),
    "glove": Source(
        (
            (
                "https://nlp.stanford.edu/data/glove.6B.zip",
                "sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
            ),
        ),
        parse_glove,
        None,
    ),
    "covertype": Source(
        (
            (
                _UCI + "covtype/covtype.data.gz",
                "sha256:614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
        parse_covertype,
        "1d8ed656c88560e0f10ec542ecfd4b4b2f1dbd17ec145c29918aebb63a8c0e6f",
    ),
    "ijcnn": Source(
        ((_LIBSVM + "ijcnn1.bz2", None),),
        parse_ijcnn,
        "8a41fcf85a22603daa93da07027ca75e9d2fae17f98e4a6eea300af332313b4c",
    ),
    "pendigits": Source(
        ((_UCI + "pendigits/pendigits.tra", None), (_UCI + "pendigits/pendigits.tes", None)),
        parse_pendigits,
        "8d5e28475754ff4a2c9992542f08a82bdd7a713aa7e37397a07fd7cd635f5cf7",
    ),
}


def fetch(name: str, file: str, cache: Path | None, say: Callable[[str], None]) -> Path:
    """Download a data set into the cache and return its ``.npz`` file.

    Parameters
    ----------
    name, file : str
        The data set and the name of the file to make.
    cache : Path or None
        The cache folder; None when the package that knows it is missing.
    say : callable
        Told when the download begins.
    """
    pooch = need("pooch", "experiments")
    if cache is None:
        need("platformdirs", "experiments")
    assert cache is not None
    source = SOURCES[name]
    has_bar = importlib.util.find_spec("tqdm") is not None
    say(f"Downloading {name} into {cache}.")
    raw = []
    for address, checksum in source.files:
        try:
            got = pooch.retrieve(address, checksum, path=cache / "raw", progressbar=has_bar)
        except Exception as error:  # pooch lets through whatever its HTTP library raises
            raise UserError(f"{address} gave {type(error).__name__}.") from error
        raw.append(Path(got))
    values = source.parse(raw)
    _check(values, source, raw)
    whole_npz(cache / file, compressed=True, X=values)
    return cache / file


def _check(values: NDArray[Any], source: Source, raw: Sequence[Path]) -> None:
    if source.digest is None:
        return
    found = hashlib.sha256(np.ascontiguousarray(values).data).hexdigest()
    if found != source.digest:
        for path in raw:
            path.unlink(missing_ok=True)
        message = f"{source.files[0][0]} holds other data than expected (checksum {found})."
        raise UserError(message)
