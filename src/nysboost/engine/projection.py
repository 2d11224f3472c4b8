"""N of the features k(X, Z) N: dense, triangular, or a block for each learner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg import block_diag

from nysboost.numerics.arrays import Array, empty, like, product_into, to_host

Multiply: TypeAlias = Callable[[Array, Array | None], Array]
"""(values, out) ↦ values · N, in `out` if it is given."""

PANEL = 128
"""Columns of a triangular N multiplied at a time, without the zeros: two thirds of the time."""


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


def product_with(N: Any, form: Array) -> Multiply | None:
    """Return (values, out) ↦ values · N, with N where the rows are; None if N is the identity."""
    if N is None:
        return None
    blocks = N.blocks if isinstance(N, BlockDiagonal) else (N,)
    parts, width = [_panels(like(P, form)) for P in blocks], int(N.shape[1])

    def multiply(values: Array, out: Array | None) -> Array:
        """Take p products of m×k, not one of pm×pk."""
        if out is None and len(parts) == 1 and len(parts[0]) == 1:
            return values @ parts[0][0]
        out = empty((values.shape[0], width), values) if out is None else out
        row = column = 0
        for panels in parts:
            for P in panels:
                m, k = P.shape
                product_into(values[:, row : row + m], P, out[:, column : column + k])
                column += k
            row += panels[-1].shape[0]
        return out

    return multiply


def _panels(P: Array) -> list[Array]:
    """Return a projection as panels of columns where it is upper triangular, else in one piece."""
    height, width = P.shape
    if height != width or width <= PANEL:
        return [P]
    host = to_host(P)
    if host[1:, 0].any() or np.tril(host, -1).any():
        return [P]
    stops = [*range(PANEL, width, PANEL), width]
    return [P[:stop, start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
