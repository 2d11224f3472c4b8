"""Tables whose rows belong to groups, cut and collected by group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeAlias, TypeVar

import numpy as np

from nysboost.numerics.arrays import Array, Indices, stack_tables, take

Item = TypeVar("Item")
T = TypeVar("T")

GroupedBlock: TypeAlias = tuple[Indices, Array]
"""The number of each row's group, in increasing order, and a table with as many rows."""

GroupFunction: TypeAlias = Callable[[Item, Array], T]
"""(item, rows of its group) ↦ result."""


def sort_by_group(numbers: Indices, table: Array) -> GroupedBlock:
    """Return the rows of a table sorted by their groups; equal ones keep their order."""
    order = np.argsort(numbers, kind="stable")
    return numbers[order], take(table, order)


def cut_blocks(blocks: Sequence[GroupedBlock], bounds: Indices) -> list[list[GroupedBlock]]:
    """Return the rows of the groups between one bound and the next, without empty blocks."""
    parts: list[list[GroupedBlock]] = [[] for _ in bounds[1:]]

    for numbers, table in blocks:
        # where the groups of each part begin and end in this block
        cuts = np.searchsorted(numbers, bounds).tolist()
        ends = pairwise(cuts)
        for part, (start, stop) in zip(parts, ends, strict=True):
            if start < stop:
                rows = table[start:stop, :]
                part.append((numbers[start:stop], rows))
    return parts


def apply_to_groups(
    function: GroupFunction[Item, T],
    items: Sequence[Item],
    blocks: Sequence[GroupedBlock],
) -> list[T | None]:
    """Return function(item, rows of its group) for each item; None for a group without rows."""
    # a part for each group
    bounds = np.arange(len(items) + 1)
    groups = cut_blocks(blocks, bounds)

    results: list[T | None] = []
    for item, parts in zip(items, groups, strict=True):
        if not parts:
            results.append(None)
            continue
        table = stack_tables([rows for _, rows in parts])
        results.append(function(item, table))
    return results
