"""Memory in words and numbers: what a pass over the rows may hold."""

from __future__ import annotations

import re
from math import ceil

MAX_MEMORY = 2**30
"""Working memory of a pass over the rows, beyond what goes in and what comes out."""


UNITS = {"": 1, **{f"{p}B": 1000**i for i, p in enumerate(["", "K", "M", "G", "T"])}}
UNITS |= {f"{p}IB": 1024**i for i, p in enumerate(["K", "M", "G", "T"], start=1)}


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
