"""Memory maps, whose pages are given back."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray


def find_map(array: Any) -> np.memmap[Any, Any] | None:
    """Return the memory map that the array is, or is a view of; None if it is no file's."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner.base, mmap.mmap):
            return owner if isinstance(owner, np.memmap) else None
        owner = owner.base
    return None


def release_pages(array: NDArray[Any]) -> None:
    """Let the system drop the array's pages; what was written to them stays in the file."""
    owner = find_map(array)
    if owner is None or owner.mode == "c" or not array.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    file: Any = owner.base
    start = byte_bounds(np.frombuffer(file, dtype=np.uint8))[0]
    begin, end = (bound - start for bound in byte_bounds(array))
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, first, end - first)
