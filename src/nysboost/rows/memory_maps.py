"""Memory maps, whose pages are released after use."""

from __future__ import annotations

import mmap
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

MemoryMap: TypeAlias = np.memmap[Any, Any]


def find_map(array: object) -> MemoryMap | None:
    """Return the memory map that the array is, or is a view of; None if it is not in a file."""
    owner = array
    while isinstance(owner, np.ndarray):
        if isinstance(owner.base, mmap.mmap):
            return owner if isinstance(owner, np.memmap) else None
        owner = owner.base
    return None


def release_pages(array: NDArray[np.generic]) -> None:
    """Let the system drop the array's pages; what was written to them stays in the file."""
    owner = find_map(array)
    if owner is None or owner.mode == "c" or array.size == 0:
        return
    file = owner.base
    if not isinstance(file, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return

    # the array's bytes, counted from the start of the map, and from the start of a page
    origin, _ = byte_bounds(np.frombuffer(file, dtype=np.uint8))
    low, high = byte_bounds(array)
    first = (low - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    file.madvise(mmap.MADV_DONTNEED, first, high - origin - first)
