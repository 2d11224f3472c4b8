"""Files: maps whose pages are given back, and files that are whole or not there at all."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.numerics.messages import format_bytes

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def reserve(file: int, size: int, path: Path) -> None:
    """Claim disk space for the first `size` bytes of an open file, or raise if it is full."""
    try:
        os.posix_fallocate(file, 0, size)
    except AttributeError:
        return  # this system cannot, or
    except OSError as error:
        if error.errno in NO_ROOM:
            raise disk_full_error(path, size) from error
        return  # this file system


def disk_full_error(path: Path, size: int | None) -> OSError:
    """Return the error that says what a result needs, where that is known, and what is free."""
    free = format_bytes(shutil.disk_usage(path.parent).free)
    needs = f"The disk has {free} free, which is too little"
    if size is not None:
        needs = f"The features need {format_bytes(size)}, but the disk has {free} free"
    advice = "Make room or write to another disk; nothing that was there has been removed"
    return OSError(errno.ENOSPC, f"{needs}. {advice}", str(path))


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give the name of a file or folder that takes the place of `path` if all goes well."""
    place = real_place(path)
    beside = place.with_name(f".{place.stem}.{uuid4().hex}.partial{path.suffix}")
    try:
        yield beside
        if place.is_dir():
            shutil.rmtree(place)
        elif beside.is_dir():
            place.unlink(missing_ok=True)
        if place.is_file():  # which leaves the new one its permissions
            beside.chmod(place.stat().st_mode & 0o7777)
        beside.replace(place)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


@contextmanager
def atomic_file(path: Path, what: str = "The file") -> Iterator[BinaryIO]:
    """Open a file beside `path` that takes its place if all goes well, and else disappears."""
    refuse_no_place(path)
    try:
        with atomic_path(path) as beside, beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in NO_ROOM:
            raise disk_full_error(path, None) from error
        raise write_error(path, what, error) from error


def write_npz(path: Path, *, compressed: bool = False, **arrays: NDArray[Any]) -> None:
    """Write arrays as an .npz file, of which the comment says which version made it."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with atomic_file(path, "The array") as file, zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = SOFTWARE.encode()
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_error(path: Path, what: str, error: OSError) -> OSError:
    """Return the same kind of error as a sentence that names the file, not the one beside it."""
    msg = f"{what} could not be written to {str(path)!r}: {error.strerror or error}."
    return type(error)(error.errno, msg)


def as_path(path: Any) -> Path:
    """Return the path of a model file, or say that it is none."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    msg = f"The path of a model file is a text or a pathlib.Path, but {path!r} was given."
    raise TypeError(msg)


def real_place(path: Path) -> Path:
    """Return where a file goes: what a symbolic link points to, not the link."""
    return path.resolve() if path.is_symlink() else path


def refuse_no_place(path: Path) -> None:
    """Refuse a folder, a device, and a file in a folder that is not there."""
    folder = real_place(path).parent
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: give the name of a file in it.")
    if path.exists() and not path.is_file():
        msg = f"{str(path)!r} is a device or a pipe, and no file: give the name of a file."
        raise ValueError(msg)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r} to write {path.name!r} to.")
