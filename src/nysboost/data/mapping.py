"""Files mapped into memory: pages that are done with go back to the system."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.memory import readable

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def mapped(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map that the array is, or is a view of; None if it is no file's."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner.base, mmap.mmap):
            return owner if isinstance(owner, np.memmap) else None
        owner = owner.base
    return None


def give_back(array: NDArray[Any]) -> None:
    """Let the system drop the array's pages; what was written to them stays in the file.

    Without this, every page once touched would count as memory of the process until
    the system is short of it. A private map keeps its pages: they are nowhere else.
    """
    owner = mapped(array)
    if owner is None or owner.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file: Any = owner.base
    begin = _address(array) - _address(np.frombuffer(file, dtype=np.uint8))
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    end = begin + (np.abs(array.strides) * (np.array(array.shape) - 1)).sum() + array.itemsize
    if array.size and min(array.strides) >= 0:
        file.madvise(mmap.MADV_DONTNEED, first, int(end) - first)


def reserve(file: int, size: int, path: Path) -> None:
    """Claim disk space for the first `size` bytes of an open file, changing none of them.

    Writing to a map of a file whose disk is full would end the process; this raises.
    """
    try:
        os.posix_fallocate(file, 0, size)
    except AttributeError:
        return  # this system cannot, or
    except OSError as error:
        if error.errno in NO_ROOM:
            raise disk_full(path, size) from error
        return  # this file system


def disk_full(path: Path, size: int | None) -> OSError:
    """Return the error that says what a result needs, where that is known, and what is free."""
    free = readable(shutil.disk_usage(path.parent).free)
    needs = f"The disk has {free} free, which is too little"
    if size is not None:
        needs = f"The features need {readable(size)}, but the disk has {free} free"
    advice = "Make room or write to another disk; nothing that was there has been removed"
    return OSError(errno.ENOSPC, f"{needs}. {advice}", str(path))


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])
