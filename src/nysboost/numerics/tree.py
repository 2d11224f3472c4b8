"""A tree of rows: a node is cut at the median along the leading principal direction of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.blocks import row_blocks
from nysboost.numerics.devices import block_bytes

DIRECTION_ROWS = 2048  # rows, spread evenly, that give a node its direction


@dataclass(frozen=True, eq=False)
class Tree:
    """Cuts uᵀd ≤ s of rows; a negative child is leaf −1 − child.

    The arrays have shapes (nodes, q), (nodes,) and (nodes, 2).
    """

    directions: Floats
    thresholds: Floats
    children: Indices

    @classmethod
    def of(cls, U: Array, most: int, n: int | None = None) -> Tree:
        """Cut rows U of shape (s, q) until no leaf has more than `most` rows.

        Where U are a sample of n rows, a leaf of these with more than `most` would be four standard
        deviations away. Rows that are all alike stay together, however many they are.
        """
        expected = most * U.shape[0] / (n or U.shape[0])
        if expected < most:
            most = max(1, int(expected - 4 * expected**0.5))
        nodes: list[tuple[Floats, float, list[int]]] = []
        leaves = count(1)

        def grow(rows: Indices) -> int:
            cut = None if len(rows) <= most else _cut(arrays.take(U, rows))
            if cut is None:
                return -next(leaves)
            direction, threshold, above = cut
            node, children = len(nodes), [0, 0]
            nodes.append((direction, threshold, children))
            children[:] = grow(rows[~above]), grow(rows[above])
            return node

        grow(np.arange(U.shape[0]))
        directions = np.array([direction for direction, _, _ in nodes]).reshape(-1, U.shape[1])
        children = np.array([pair for _, _, pair in nodes], dtype=np.intp).reshape(-1, 2)
        return cls(directions, np.array([threshold for _, threshold, _ in nodes]), children)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.thresholds) + 1

    def __call__(self, U: Array) -> Indices:
        """Return the leaf of each row, shape (n,), on the host."""
        leaf = np.zeros(U.shape[0], dtype=np.intp)
        if len(self.thresholds) == 0:
            return leaf
        directions = arrays.like(self.directions.T, U)
        size = block_bytes(U) // 8
        for block in row_blocks(len(leaf), 8 * len(self.thresholds), size):
            side = arrays.to_host(U[block, :] @ directions) > self.thresholds
            at, rows = leaf[block], np.arange(len(side))
            while len(rows):
                at[rows] = self.children[at[rows], side[rows, at[rows]].astype(np.intp)]
                rows = rows[at[rows] >= 0]
        return -1 - leaf


def _cut(U: Array) -> tuple[Floats, float, Any] | None:
    """Return direction, threshold and which rows are above it; None where all rows are alike."""
    some = arrays.to_host(U[:: max(1, U.shape[0] // DIRECTION_ROWS), :])
    _, V = np.linalg.eigh(np.cov(some, rowvar=False).reshape(U.shape[1], -1))
    direction = V[:, -1]
    along = arrays.to_host(U @ arrays.like(direction, U))
    # equal values stay together, and rounding moves no row across the middle of a gap
    for middle in (np.median(along), along.mean(), along.min()):
        above = along > middle
        if above.any() and not above.all():
            return direction, float(along[above].min() + along[~above].max()) / 2, above
    return None
