"""N of the features k(X, Z) N: dense, triangular, or a block for each learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import block_diag, rq

from nysboost.numerics.arrays import Array, empty, floats_on_host, like, to_host
from nysboost.numerics.in_place import product_into

Multiply: TypeAlias = Callable[[Array, Array | None], Array]
"""(values, out) ↦ values · N, in `out` if it is given."""

PANEL = 128  # columns of a triangular N multiplied at a time, without zeros: 2/3 of the time


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """N = blockdiag(P_1, …, P_p), with P_i of shape (m_i, k_i)."""

    blocks: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(Σm_i, Σk_i)."""
        return sum(P.shape[0] for P in self.blocks), sum(P.shape[1] for P in self.blocks)

    def dense(self) -> Array:
        """Return N as one array of shape (Σm_i, Σk_i)."""
        return like(block_diag(*map(to_host, self.blocks)), self.blocks[0])


def diagonal_blocks(N: Any) -> tuple[Array, ...]:
    """Return the blocks on the diagonal of N: none of the identity, which is None."""
    return () if N is None else N.blocks if isinstance(N, BlockDiagonal) else (N,)


def product_with(N: Any, template: Array) -> Multiply | None:
    """Return (values, out) ↦ values · N, with N where the rows are; None if N is the identity."""
    pieces, row, column = [], 0, 0  # of N that are not zero, with their rows and columns
    for block in diagonal_blocks(N):
        for P in _panels(like(block, template)):
            height, width = P.shape
            pieces.append((slice(row, row + height), slice(column, column + width), P))
            column += width
        row += block.shape[0]

    def multiply(values: Array, out: Array | None) -> Array:
        if out is None and len(pieces) == 1:
            return values @ pieces[0][2]
        out = empty((values.shape[0], column), values) if out is None else out
        for rows, columns, P in pieces:
            product_into(values[:, rows], P, out[:, columns])
        return out

    return multiply if pieces else None


def make_triangular(N: Array) -> Array:
    """Return R of N = R Q, upper triangular, with R Rᵀ = N Nᵀ: features of the same K̂, for less."""
    if N.shape[1] <= PANEL:
        return N
    R: Array = like(rq(floats_on_host(N), mode="r", check_finite=False), N)
    return R


def _panels(P: Array) -> list[Array]:
    """Return a projection as panels of columns where it is upper triangular, else in one piece.

    Of an (m, k) matrix the last k rows are a triangle.
    """
    height, width = P.shape
    above = height - width
    if above < 0 or width <= PANEL or np.tril(to_host(P), -above - 1).any():
        return [P]
    stops = [*range(PANEL, width, PANEL), width]
    return [P[: above + stop, start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
