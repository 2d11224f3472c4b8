"""Working memory and cores that a computation may use, and the blocks of rows that fit them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_MEMORY = 2**30  # working memory of a pass, beyond what goes in and what comes out


UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40,
}  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """Working memory of a pass over the rows, and cores; None is what matrix products use."""

    bytes: int = MAX_MEMORY
    threads: int | None = None

    @classmethod
    def of(cls, max_memory: int | str = MAX_MEMORY, n_jobs: int | None = None) -> Budget:
        """Return the budget that a user's `max_memory` and `n_jobs` stand for."""
        is_count = isinstance(n_jobs, int) and not isinstance(n_jobs, bool)
        if n_jobs is not None and not is_count:
            raise ValueError(f"n_jobs is a whole number or None, but n_jobs={n_jobs!r} was given.")

        if n_jobs is not None and n_jobs <= 0:
            n_jobs = None
        return cls(as_bytes(max_memory), n_jobs)


def as_bytes(max_memory: int | str) -> int:
    """Turn 500_000_000, "500MB" or "0.5GiB" into a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Z]*)\s*", str(max_memory).upper())
    if isinstance(max_memory, bool) or match is None or match[2] not in UNITS:
        raise ValueError(
            'max_memory is a number of bytes or a text such as "500MB" or "2GiB", but '
            f"max_memory={max_memory!r} was given."
        )

    number, unit = match.groups()
    return int(float(number) * UNITS[unit])


def keep_freed_memory() -> None:
    """Have GNU's C library keep some 64 MB of freed memory: fits of 1,500 rows take 0.8 the time.

    It learns from the largest piece below 32 MB that is freed.
    """
    np.empty(2**25 - 2**16, dtype=np.uint8)


# Blocks of rows

CACHE_BYTES = 8 * 2**20  # kernel values that stay in a core's cache between passes over them


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Cut range(start, stop) into slices of `size`."""
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def row_blocks(n: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut range(n) into slices of which each takes about `budget` bytes."""
    size = max(1, budget // max(1, row_bytes))

    # whole multiples of 64 rows keep matrix products on their fast path
    whole = size // 64 * 64
    return slices(0, n, whole or size)


def spaced_indices(n: int, at_most: int) -> NDArray[np.intp]:
    """Return evenly spread positions in range(n): a sample that needs no random numbers."""
    count = min(n, at_most)
    return np.linspace(0, n - 1, count).astype(np.intp)
