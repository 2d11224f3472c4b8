"""Tables whose rows belong to groups: cut by groups, and gathered group by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from nysboost.numerics.arrays import Array, Indices, stack_tables, take

Item = TypeVar("Item")
T = TypeVar("T")

GroupedBlock: TypeAlias = tuple[Indices, Array]
"""The number of each row's group, in rising order, and a table of as many rows."""


def sort_by_group(numbers: Indices, table: Array) -> GroupedBlock:
    """Return the rows of a table sorted by their groups; equal ones keep their order."""
    order = np.argsort(numbers, kind="stable")
    return numbers[order], take(table, order)


def cut_blocks(blocks: Sequence[GroupedBlock], bounds: Indices) -> list[list[GroupedBlock]]:
    """Return the rows of the groups between one bound and the next, without empty blocks."""
    parts: list[list[GroupedBlock]] = [[] for _ in range(len(bounds) - 1)]

    for numbers, table in blocks:
        cuts = np.searchsorted(numbers, bounds).tolist()
        for part, (start, stop) in zip(parts, pairwise(cuts), strict=True):
            if start < stop:
                part.append((numbers[start:stop], table[start:stop, :]))

    return parts


def apply_to_groups(
    function: Callable[[Item, Array], T], items: Sequence[Item], blocks: Sequence[GroupedBlock]
) -> list[T | None]:
    """Return function(item, rows of its group) for each item; None for a group without rows."""
    results: list[T | None] = []
    each_group = np.arange(len(items) + 1)

    for item, parts in zip(items, cut_blocks(blocks, each_group), strict=True):
        if parts:
            table = stack_tables([rows for _, rows in parts])
            results.append(function(item, table))
        else:
            results.append(None)

    return results
