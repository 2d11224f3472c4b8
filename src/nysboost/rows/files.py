"""Files that are written completely or not at all, and errors for a full disk."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from nysboost._version import SOFTWARE
from nysboost.numerics.messages import format_bytes

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
MAKE_ROOM = "Make room or write to another disk"
KEPT = "Nothing that was there has been removed"  # the end of every message of `no_room_error`
SHOWN = 20  # letters of a file's name in that of its temporary file
MARGIN = 2**20  # bytes that a store writes beside its rows


# No room


def reserve(file: int, size: int, path: Path) -> None:
    """Claim disk space for the first `size` bytes of an open file, or raise if it is full."""
    try:
        os.posix_fallocate(file, 0, size)
    except AttributeError:
        return  # this system cannot do it
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room_error(path, size, error) from error
        return  # this file system cannot do it


def refuse_full(path: Path, size: int) -> None:
    """Raise if `size` more bytes do not fit on the disk of a file, or in the file.

    It is called before HDF5 writes, which can crash the process if the disk is full.
    """
    needed = size + MARGIN
    if shutil.disk_usage(path.parent).free < needed:
        raise no_room_error(path, needed, OSError(errno.ENOSPC, "No space left"))

    limit = _size_limit()
    if limit is not None and path.stat().st_size + size > limit:
        raise no_room_error(path, size, OSError(errno.EFBIG, "File too large"))


def no_room_error(path: Path, size: int | None, error: OSError) -> OSError:
    """Return the error for a result that does not fit on the disk, or in the largest file size.

    `size` is the size of the result in bytes, if known.
    """
    folder = real_place(path).parent
    free = shutil.disk_usage(folder).free

    # what is full: the file, by its limit, or the disk
    if error.errno == errno.EFBIG:
        limit = _size_limit()
        most = ""
        if limit is not None:
            most = f" of {format_bytes(limit)}"
        says = f"A limit on the size of a file{most} stopped it: raise the limit (ulimit -f)"
    elif size is None:
        says = f"The disk is full: it has {format_bytes(free)} free. {MAKE_ROOM}"
    else:
        needs = f"The features need {format_bytes(size)}"
        says = f"{needs}, but the disk has {format_bytes(free)} free. {MAKE_ROOM}"

    return OSError(error.errno, f"{says}. {KEPT}", str(path))


def _size_limit() -> int | None:
    """Return the largest size that a file may have, in bytes, if the system has such a limit."""
    try:
        import resource
    except ImportError:  # on Windows
        return None

    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit == resource.RLIM_INFINITY:
        return None
    return limit


# Files that are complete or not there


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield the name of a temporary file or folder, which replaces `path` if all goes well."""
    place = real_place(path)
    beginning = place.stem[:SHOWN]  # a longer name might be too long for the file system
    beside = place.with_name(f".{beginning}.{uuid4().hex}.partial{path.suffix}")
    try:
        yield beside

        # a folder and a file do not replace each other
        if place.is_dir():
            shutil.rmtree(place)
        elif beside.is_dir():
            place.unlink(missing_ok=True)

        if place.is_file():  # keep the permissions of the old file
            beside.chmod(place.stat().st_mode & 0o7777)
        beside.replace(place)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)


@contextmanager
def atomic_file(path: Path, what: str = "The file") -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` if all goes well, and is removed otherwise."""
    refuse_no_place(path)
    try:
        with atomic_path(path) as beside, beside.open("xb") as file:
            yield file

            # on the disk before it gets its name
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room_error(path, None, error) from error
        raise write_error(path, what, error) from error


def write_npz(path: Path, *, compressed: bool = False, **arrays: NDArray[np.generic]) -> None:
    """Write arrays as an .npz file, with the version of NysBoost as comment."""
    method = zipfile.ZIP_STORED
    if compressed:
        method = zipfile.ZIP_DEFLATED

    with atomic_file(path, "The array") as file, zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = SOFTWARE.encode()
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def write_error(path: Path, what: str, error: OSError) -> OSError:
    """Return the same kind of error with a sentence that names the file, not the temporary one."""
    msg = f"{what} could not be written to {str(path)!r}: {error.strerror or error}."
    return type(error)(error.errno, msg)


# Paths


def as_path(path: object) -> Path:
    """Return the path of a model file, or raise if it is not a path."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    msg = f"The path of a model file is a text or a pathlib.Path, but {path!r} was given."
    raise TypeError(msg)


COPIES: dict[str, str] = {}
"""What messages call temporary copies of streams, by path."""


def name_copies(text: str) -> str:
    """Return a message that names streams, and not their temporary copies."""
    for path, name in COPIES.items():
        text = text.replace(path, name)
    return text


def real_place(path: Path) -> Path:
    """Return the real path of a file, with symbolic links resolved."""
    if "\0" in str(path):
        raise ValueError(
            f"The path {str(path)!r} has a null character, which no file name may have: remove it."
        )

    if not path.is_symlink():
        return path
    place = Path(os.path.realpath(path))
    if place.is_symlink():  # only of a loop there is no end
        raise OSError(f"{str(path)!r} is a loop of symbolic links: give the name of a file.")
    return place


def refuse_no_place(path: Path) -> None:
    """Refuse a folder, a device, and a file in a folder that is not there or takes none."""
    folder = real_place(path).parent
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: give the name of a file in it.")
    if path.exists() and not path.is_file():
        msg = f"{str(path)!r} is a device or a pipe, not a file: give the name of a file."
        raise ValueError(msg)
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {str(folder)!r} to write {path.name!r} to.")
    if not os.access(folder, os.W_OK | os.X_OK):
        msg = f"Nothing may be written to the folder {str(folder)!r}: write to another."
        raise PermissionError(msg)


# HDF5 on a disk that may be full: HDF5 itself can crash the process then


Dataset: TypeAlias = Any
"""A dataset of h5py, which is not imported here."""


def is_hdf5(store: object) -> bool:
    """Whether a store is a dataset of h5py."""
    return type(store).__module__.startswith("h5py")


def refuse_full_disk(dataset: Dataset, count: int) -> None:
    """Raise an OSError if the next `count` rows of a dataset may not fit on the disk.

    The estimate includes the chunks that they touch, those that HDF5 may hold in its cache, and
    space that it has allocated but not yet written.
    """
    path = Path(dataset.file.filename)
    if not path.is_file():  # a file in memory
        return

    row_bytes = dataset.dtype.itemsize * dataset.shape[1]
    if dataset.chunks is None:
        # HDF5 allocates all rows with the first write
        needed = dataset.nbytes - dataset.id.get_storage_size()
    else:
        _, cache_bytes, *_ = dataset.id.get_access_plist().get_chunk_cache()
        cached = min(cache_bytes, dataset.nbytes)
        needed = (count + 2 * dataset.chunks[0]) * row_bytes + cached

    not_written = dataset.file.id.get_filesize() - path.stat().st_size
    refuse_full(path, max(0, needed) + max(0, not_written))
