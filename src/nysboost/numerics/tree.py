"""A tree of rows: a node is cut at the median along the leading principal direction of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    like,
    row_blocks,
    take,
    to_host,
)

DIRECTION_ROWS = 2048  # rows, spread evenly, that give a node its direction


@dataclass(frozen=True, eq=False)
class Cut:
    """A cut of the rows of a node: those with uᵀd > s are above it."""

    direction: Floats
    threshold: float
    above: NDArray[np.bool_]


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
        """Cut rows U (s, q) until no leaf has more than `most` rows.

        Equal rows stay together. If U is a sample of n rows, leaves are made so small that few
        leaves of all rows exceed `most`.
        """
        s, q = U.shape
        growing = _Growing(U, _rows_in_leaf(s, most, n or s))
        growing.add(np.arange(s))

        # two-dimensional also where there is no node
        directions = np.array(growing.directions).reshape(-1, q)
        thresholds = np.array(growing.thresholds)
        children = np.array(growing.children, dtype=np.intp)
        return cls(directions, thresholds, children.reshape(-1, 2))

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self.thresholds) + 1

    def __call__(self, U: Array) -> Indices:
        """Return the leaf of each row, shape (n,), on the host."""
        n = U.shape[0]
        at = np.zeros(n, dtype=np.intp)
        n_nodes = len(self.thresholds)
        if n_nodes == 0:
            return at

        directions = like(self.directions.T, U)
        row_bytes = 8 * n_nodes
        held = block_bytes(U) // 8
        for block in row_blocks(n, row_bytes, held):
            # the sides of all cuts, in one product
            along = to_host(U[block, :] @ directions)
            at[block] = self._descend(along > self.thresholds)
        return -1 - at

    def _descend(self, above: NDArray[np.bool_]) -> Indices:
        """Return the negative child that each row reaches, from its side of each cut (n, nodes)."""
        n = len(above)
        at = np.zeros(n, dtype=np.intp)
        rows = np.arange(n)

        # those that are in no leaf go on
        while len(rows):
            side = above[rows, at[rows]].astype(np.intp)
            at[rows] = self.children[at[rows], side]
            rows = rows[at[rows] >= 0]
        return at


def _rows_in_leaf(s: int, most: int, n: int) -> int:
    """Return the largest number of sampled rows in a leaf, for at most `most` of all n rows.

    It is four standard deviations below the expected number, so a leaf seldom exceeds `most`.
    """
    expected = most * s / n
    if expected >= most:
        return most
    deviation = expected**0.5
    return max(1, int(expected - 4 * deviation))


class _Growing:
    """A tree under construction: direction, threshold and two children of each cut."""

    def __init__(self, U: Array, most: int) -> None:
        self.U = U
        self.most = most
        self.directions: list[Floats] = []
        self.thresholds: list[float] = []
        self.children: list[list[int]] = []
        self.n_leaves = 0

    def add(self, rows: Indices) -> int:
        """Add a node, or a leaf, for some rows, and return its number."""
        cut = None
        if len(rows) > self.most:
            cut = _find_cut(take(self.U, rows))
        if cut is None:
            self.n_leaves += 1
            return -self.n_leaves

        # a node comes before its children
        node = len(self.thresholds)
        self.directions.append(cut.direction)
        self.thresholds.append(cut.threshold)
        self.children.append([])

        below = self.add(rows[~cut.above])
        above = self.add(rows[cut.above])
        self.children[node] = [below, above]
        return node


def _find_cut(U: Array) -> Cut | None:
    """Return the cut of rows along their leading direction; None if all rows are equal."""
    # the leading principal direction, of evenly spread rows
    step = max(1, U.shape[0] // DIRECTION_ROWS)
    some = to_host(U[::step, :])
    covariance = np.atleast_2d(np.cov(some, rowvar=False))
    _, V = np.linalg.eigh(covariance)
    direction = V[:, -1]
    along = to_host(U @ like(direction, U))

    # at the median, unless nothing is above it
    middles = (np.median(along), along.mean(), along.min())
    for middle in middles:
        above = along > middle
        if above.any() and not above.all():
            # equal values stay together, and rounding moves no row across the middle of a gap
            upper = float(along[above].min())
            lower = float(along[~above].max())
            return Cut(direction, (lower + upper) / 2, above)
    return None
