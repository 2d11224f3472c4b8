"""N of the features k(X, Z) N: dense, triangular, or a block for each learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import block_diag, rq

from nysboost.numerics.arrays import Array, empty, floats_on_host, like, to_host
from nysboost.numerics.in_place import product_into

PANEL = 128  # columns of a triangular N multiplied at a time, without zeros: 2/3 of the time


@dataclass(frozen=True, eq=False)
class BlockDiagonal:
    """N = blockdiag(P_1, …, P_p), with P_i of shape (m_i, k_i)."""

    blocks: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """(Σm_i, Σk_i)."""
        height = sum(int(P.shape[0]) for P in self.blocks)
        width = sum(int(P.shape[1]) for P in self.blocks)
        return height, width

    def dense(self) -> Array:
        """Return N as one array of shape (Σm_i, Σk_i)."""
        on_host = [to_host(P) for P in self.blocks]
        return like(block_diag(*on_host), self.blocks[0])


Projection: TypeAlias = Array | BlockDiagonal | None
"""N of shape (m, r), a block for each learner, or None for the identity."""


@dataclass(frozen=True, eq=False)
class Piece:
    """A part P of N that is not zero, and where it stands: N[rows, columns] = P."""

    rows: slice
    columns: slice
    P: Array


@dataclass(frozen=True, eq=False)
class Product:
    """C ↦ C N, for an N with zeros outside its pieces."""

    pieces: tuple[Piece, ...]
    width: int

    def __call__(self, C: Array, out: Array | None = None) -> Array:
        """Return C N, shape (n, r), in `out` if it is given."""
        if out is None:
            if len(self.pieces) == 1:
                return C @ self.pieces[0].P
            out = empty((C.shape[0], self.width), C)
        for piece in self.pieces:
            product_into(C[:, piece.rows], piece.P, out[:, piece.columns])
        return out


def diagonal_blocks(N: Projection) -> tuple[Array, ...]:
    """Return the blocks on the diagonal of N: none of the identity, which is None."""
    if N is None:
        return ()
    if isinstance(N, BlockDiagonal):
        return N.blocks
    return (N,)


def product_with(N: Projection, template: Array) -> Product | None:
    """Return C ↦ C N, with N where the rows are; None if N is the identity."""
    if N is None:
        return None
    pieces = []
    row = column = 0
    for block in diagonal_blocks(N):
        for P in _panels(like(block, template)):
            height, width = P.shape
            rows = slice(row, row + height)
            columns = slice(column, column + width)
            pieces.append(Piece(rows, columns, P))
            column += width
        row += block.shape[0]
    return Product(tuple(pieces), column)


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
    if above < 0 or width <= PANEL:
        return [P]
    is_triangular = not np.tril(to_host(P), -above - 1).any()
    if not is_triangular:
        return [P]

    panels = []
    for start in range(0, width, PANEL):
        stop = min(start + PANEL, width)
        panels.append(P[: above + stop, start:stop])
    return panels
