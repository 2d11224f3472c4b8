"""Model files: a zip of .npy arrays and one JSON description, written completely or not at all.

Nothing in a file is ever run: only numbers, text and the names of known types are read. Members are
stored uncompressed, so that no file takes more memory than it has bytes. ``numpy.load`` shows the
arrays, and any zip tool shows the description.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost._version import __version__
from nysboost.rows.files import atomic_file

HostArray: TypeAlias = NDArray[np.generic]
"""An array of NumPy, of any dtype."""

Json: TypeAlias = Any
"""A JSON value: None, a number, text, a list or a dictionary."""

FORMAT = "nysboost model"
FORMAT_VERSION = 2
DESCRIPTION = "model.json"
SAVED_KINDS = "fiubUmM"  # of arrays: numbers, truth values, text, and dates as labels may be
EPOCH = (1980, 1, 1, 0, 0, 0)  # the date of every member: the same model gives the same bytes
NPY_VERSION = (1, 0)

DAMAGED = "The model file {!r} is cut off or damaged: fetch it again, or save the model once more."
FOREIGN = "{!r} is not a model file of NysBoost: give a file that nysboost.save wrote."


class ModelFileError(ValueError):
    """A model file that cannot be read; the message says why and what to do.

    Examples
    --------
    >>> import pathlib, tempfile, nysboost as nb
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "letter.nysboost"
    ...     _ = path.write_text("Dear reader")
    ...     try:
    ...         nb.load(path)
    ...     except nb.ModelFileError:
    ...         print("no model")
    no model
    """


# Writing


@dataclass(frozen=True, eq=False)
class Archive:
    """The contents of a model file: arrays, and JSON that describes them."""

    model: Json
    arrays: Mapping[str, HostArray]
    library_version: str = __version__


def write_archive(path: Path, content: Archive) -> None:
    """Write a model file; an old one stays until the new one is complete."""
    with (
        atomic_file(path, "The model") as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        # arrays first: the description has their checksums
        checksums = {}
        for name, array in content.arrays.items():
            checksums[name] = _write_array(archive, name, array)

        body = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "library_version": content.library_version,
            "arrays": checksums,
            "model": content.model,
        }

        # add the checksum last, because it covers all the rest
        body["checksum"] = _checksum(body)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        whole = text.encode("utf-8", "surrogatepass")  # which text of unknown encoding may have
        info = zipfile.ZipInfo(DESCRIPTION, EPOCH)
        archive.writestr(info, whole)


class _Summed:
    """A file that computes a checksum of what is written to it."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.sum = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self.sum.update(data)
        self.file.write(data)


def _write_array(archive: zipfile.ZipFile, name: str, array: HostArray) -> str:
    """Write an array as a member of the archive, and return its checksum."""
    info = zipfile.ZipInfo(name, EPOCH)
    with archive.open(info, "w", force_zip64=True) as member:
        summed = _Summed(member)
        np.lib.format.write_array(summed, array, NPY_VERSION, allow_pickle=False)
    return summed.sum.hexdigest()


# Reading


def read_archive(path: Path) -> Archive:
    """Return the contents of a model file.

    Raises an OSError if there is no file, and a ModelFileError if it is damaged, not a model file,
    or from another version.
    """
    if not path.is_file():
        raise FileNotFoundError(f"There is no model file {str(path)!r}.")

    with path.open("rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return _read(archive, path)
        except ModelFileError:
            raise
        except Exception as error:  # zipfile, json, ast and NumPy each have their own
            file.seek(0)
            says = FOREIGN
            if file.read(4) == b"PK\x03\x04":  # as every zip begins
                says = DAMAGED
            raise ModelFileError(says.format(str(path))) from error


def _read(archive: zipfile.ZipFile, path: Path) -> Archive:
    if DESCRIPTION not in archive.namelist():
        raise ModelFileError(FOREIGN.format(str(path)))

    # members are stored, not packed: a small file does not unfold into much memory
    members = archive.infolist()
    packings = {info.compress_type for info in members}
    _require(packings == {zipfile.ZIP_STORED})
    n_bytes = sum(info.file_size for info in members)
    _require(n_bytes <= path.stat().st_size)

    # check which program and version wrote it
    description = archive.read(DESCRIPTION)
    text = description.decode("utf-8", "surrogatepass")
    body = json.loads(text)
    if body["format"] != FORMAT:
        raise ModelFileError(FOREIGN.format(str(path)))

    if body["format_version"] != FORMAT_VERSION:
        cure = "fit again and save"
        if body["format_version"] > FORMAT_VERSION:
            cure = "upgrade with pip install --upgrade nysboost"
        raise ModelFileError(
            f"{str(path)!r} was written by NysBoost {body['library_version']} in version "
            f"{body['format_version']} of the format, but NysBoost {__version__} reads version "
            f"{FORMAT_VERSION} only: {cure}."
        )

    # check that the content is what was written
    expected = body.pop("checksum")
    _require(expected == _checksum(body))
    arrays = {}
    for name, checksum in body["arrays"].items():
        data = archive.read(name)
        arrays[name] = _array(data, checksum)
    library_version = str(body["library_version"])
    return Archive(body["model"], arrays, library_version)


def _array(data: bytes, expected: str) -> HostArray:
    """Return the array of a .npy member, without running any code."""
    checksum = hashlib.sha256(data).hexdigest()
    _require(checksum == expected)

    # read the header
    file = BytesIO(data)
    version = np.lib.format.read_magic(file)
    _require(version == NPY_VERSION)
    shape, in_fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
    _require(dtype.kind in SAVED_KINDS)
    _require(min(shape, default=0) >= 0)

    # read the numbers
    begin = file.tell()
    n_bytes = prod(shape) * dtype.itemsize
    _require(n_bytes == len(data) - begin)
    order: Literal["C", "F"] = "C"
    if in_fortran_order:
        order = "F"
    stored: HostArray = np.ndarray(shape, dtype, data, begin, order=order)
    return stored.copy(order=order)


def _require(intact: bool) -> None:
    if not intact:
        raise ValueError("the file is not what was written")


def _checksum(body: Mapping[str, Json]) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
