"""Memory in words and numbers, and the budget of a pass over the rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil

import numpy as np

MAX_MEMORY = 2**30
"""Working memory of a pass over the rows, beyond what goes in and what comes out."""

LARGEST_KEPT = 2**25 - 2**16
"""Bytes of the largest piece that GNU's C library can be taught to keep: just below 32 MB."""

UNITS = {"": 1, **{f"{p}B": 1000**i for i, p in enumerate(["", "K", "M", "G", "T"])}}
UNITS |= {f"{p}IB": 1024**i for i, p in enumerate(["K", "M", "G", "T"], start=1)}


@dataclass(frozen=True)
class Budget:
    """What a pass over the rows may use.

    Parameters
    ----------
    bytes : int
        Working memory, beyond what goes in and what comes out.
    threads : int or None
        Cores at most; None is as many as matrix products use.
    """

    bytes: int = MAX_MEMORY
    threads: int | None = None

    @classmethod
    def of(cls, max_memory: int | str = MAX_MEMORY, n_jobs: int | None = None) -> Budget:
        """Return the budget that a user's `max_memory` and `n_jobs` stand for.

        Examples
        --------
        >>> Budget.of("2MB", n_jobs=-1)
        Budget(bytes=2000000, threads=None)
        """
        if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
            msg = f"n_jobs is a whole number or None, but n_jobs={n_jobs!r} was given."
            raise ValueError(msg)
        return cls(as_bytes(max_memory), n_jobs if n_jobs is not None and n_jobs > 0 else None)


def as_bytes(max_memory: int | str) -> int:
    """Turn 500_000_000, "500MB" or "0.5GiB" into a number of bytes."""
    match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([A-Z]*)\s*", str(max_memory).upper())
    if isinstance(max_memory, bool) or match is None or match[2] not in UNITS:
        msg = (
            'max_memory is a number of bytes or a text such as "500MB" or "2GiB", but '
            f"max_memory={max_memory!r} was given."
        )
        raise ValueError(msg)
    return int(float(match[1]) * UNITS[match[2]])


def readable(size: float) -> str:
    """Return a number of bytes as a person would write it, rounded up to a tenth."""
    for unit in ("kB", "MB", "GB"):
        size = ceil(size / 100) / 10
        if size < 1000 or unit == "GB":
            break
    return f"{size:.1f} {unit}"


def keep_freed_memory() -> None:
    """Have the C library keep memory that is freed, some 64 MB, for whoever asks next.

    Else small searches, whose arrays come and go with each step, give the same pages back to the
    system and fetch them again: a third of their time (256 landmarks, 1082 rows: 26 ms a step, and
    16 ms without). GNU's library goes by the largest piece freed so far; to others this is nothing.
    """
    np.empty(LARGEST_KEPT, dtype=np.uint8)
