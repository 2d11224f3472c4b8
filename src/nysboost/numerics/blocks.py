"""Cutting a range of rows into blocks."""

from __future__ import annotations

from collections.abc import Iterator

CACHE_BYTES = 8 * 2**20  # kernel values that stay in a core's cache between passes over them


def slices(start: int, stop: int, size: int) -> Iterator[slice]:
    """Cut range(start, stop) into slices of `size`."""
    return (slice(i, min(i + size, stop)) for i in range(start, stop, size))


def row_blocks(n: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut range(n) into slices of which each takes about `budget` bytes."""
    size = max(1, budget // max(1, row_bytes))
    # whole multiples of 64 rows keep matrix products on their fast path
    return slices(0, n, size // 64 * 64 or size)
