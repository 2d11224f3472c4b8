"""Downloads of the five data sets, kept in the cache as ``.npz``, with checksums of both."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.data.files import whole_npz
from nysboost.user_error import UserError, need


@dataclass(frozen=True)
class Source:
    """Addresses of a data set with their checksums, what makes X of them, and X's SHA-256."""

    files: Mapping[str, str | None]
    parse: Callable[[Sequence[Path]], NDArray[Any]]
    digest: str | None = None


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


def parse_integers(paths: Sequence[Path], dtype: type[np.integer[Any]]) -> NDArray[Any]:
    """Read files of comma-separated integers, one after the other; the last column is the label."""
    parts = [np.loadtxt(path, delimiter=",", dtype=dtype, ndmin=2)[:, :-1] for path in paths]
    return np.concatenate(parts)


def parse_ijcnn(paths: Sequence[Path]) -> NDArray[Any]:
    """Read the LIBSVM file of the 49,990 training points."""
    from sklearn.datasets import load_svmlight_file

    X, _ = load_svmlight_file(str(paths[0]), n_features=22)
    return np.ascontiguousarray(X.toarray(), dtype=np.float32)


_MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
_GLOVE = "https://nlp.stanford.edu/data/glove.6B.zip"
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"
_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

SOURCES = {
    "mnist": Source(
        {
            f"{_MNIST}train-images-idx3-ubyte.gz": "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873",
            f"{_MNIST}t10k-images-idx3-ubyte.gz": "md5:9fb629c4189551a2d022fa330f9573f3",
        },
        parse_mnist,
        "5b92582eb909c82a9bfefcd44acbe9233be3eb5b419a44cf211022ad2bf4bf96",
    ),
    "glove": Source(
        {_GLOVE: "sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb"},
        parse_glove,
    ),
    "covertype": Source(
        {
            f"{_UCI}covtype/covtype.data.gz":
            "sha256:614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
        },
        partial(parse_integers, dtype=np.int16),
        "1d8ed656c88560e0f10ec542ecfd4b4b2f1dbd17ec145c29918aebb63a8c0e6f",
    ),
    "ijcnn": Source(
        {f"{_LIBSVM}ijcnn1.bz2": None},
        parse_ijcnn,
        "8a41fcf85a22603daa93da07027ca75e9d2fae17f98e4a6eea300af332313b4c",
    ),
    "pendigits": Source(
        {f"{_UCI}pendigits/pendigits.tra": None, f"{_UCI}pendigits/pendigits.tes": None},
        partial(parse_integers, dtype=np.uint8),
        "8d5e28475754ff4a2c9992542f08a82bdd7a713aa7e37397a07fd7cd635f5cf7",
    ),
}  # fmt: skip


def fetch(source: Source, path: Path) -> Path:
    """Download a data set and return the ``.npz`` file that it becomes."""
    pooch = need("pooch", "experiments")
    has_bar = importlib.util.find_spec("tqdm") is not None
    raw = []
    for address, checksum in source.files.items():
        try:
            got = pooch.retrieve(address, checksum, path=path.parent / "raw", progressbar=has_bar)
        except Exception as error:  # pooch lets through whatever its HTTP library raises
            raise UserError(f"{address} gave {type(error).__name__}.") from error
        raw.append(Path(got))
    values = np.ascontiguousarray(source.parse(raw))
    found = hashlib.sha256(values.data).hexdigest()
    if source.digest not in (None, found):
        for file in raw:
            file.unlink(missing_ok=True)
        raise UserError(f"{raw[0].name} holds other data than expected (checksum {found}).")
    whole_npz(path, compressed=True, X=values)
    return path
