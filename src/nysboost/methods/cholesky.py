"""Columns by partial Cholesky factorisation: greedy pivots, random ones, the best of a few.

All of them keep the factor F (n×c) and the diagonal of the residual G − F Fᵀ, and
evaluate n·c entries of G, or those of all candidates.
"""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Floats, Indices, to_host
from nysboost.numerics.tolerances import cutoff

PROPOSALS = 64
"""Columns proposed in one round of accelerated RPCholesky, at most."""

CANDIDATES = 59
"""The best of 59 is, with a probability of 95 %, among the best 5 % (Smola and Schölkopf)."""


class _Factor:
    """The partial Cholesky factor of G on the pivots chosen so far."""

    def __init__(self, gram: Gram, c: int) -> None:
        self.gram = gram
        self.F = np.zeros((gram.n, c))
        self.pivots: list[int] = []
        self.diag = to_host(gram.diag()).astype(np.float64)
        self.floor = 16 * cutoff(c, gram.eps) * float(self.diag.max())

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def exhausted(self) -> bool:
        """Whether the residual is zero to rounding."""
        return bool(self.diag.max() <= self.floor)

    def residual(self, rows: Indices | None, cols: Indices) -> Floats:
        """Return (G − F Fᵀ)[rows, cols]."""
        where = slice(None) if rows is None else rows
        block = to_host(self.gram.cross(where, self.gram.landmarks(cols))).astype(np.float64)
        r = self.rank
        left = self.F[:, :r] if rows is None else self.F[rows, :r]
        residual: Floats = block - left @ self.F[cols, :r].T
        return residual

    def eliminate(self, pivots: Indices) -> None:
        """Extend the factor by these columns, which must be independent."""
        columns = self.residual(None, pivots)
        lower = np.linalg.cholesky(_symmetric(columns[pivots]))
        new = np.linalg.solve(lower, columns.T).T
        self.F[:, self.rank : self.rank + len(pivots)] = new
        self.pivots += pivots.tolist()
        self.diag = np.maximum(self.diag - (new * new).sum(axis=1), 0)
        self.diag[self.pivots] = 0

    def landmarks(self) -> Landmarks:
        return self.gram.landmarks(np.array(self.pivots, dtype=np.intp))


def greedy(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:  # noqa: ARG001
    """Choose the largest residual diagonal, c times: pivoted Cholesky.

    Fewer than c landmarks come back if the residual vanishes before.
    """
    factor = _Factor(gram, c)
    while factor.rank < c and not factor.exhausted:
        factor.eliminate(np.array([np.argmax(factor.diag)]))
    return factor.landmarks()


def sparse_greedy(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose the best of 59 random columns, c times: the one that takes most off the trace.

    Smola and Schölkopf (2000), "Sparse greedy matrix approximation for machine learning". With e_j
    the residual of column j, as one more column it takes ‖e_j‖² / e_jj off tr(G − K̂).
    """
    factor = _Factor(gram, c)
    while factor.rank < c and not factor.exhausted:
        eligible = np.flatnonzero(factor.diag > factor.floor)
        size = min(CANDIDATES, len(eligible))
        candidates = np.sort(rng.choice(eligible, size=size, replace=False))
        residual = factor.residual(None, candidates)
        scale = float(np.abs(residual).max())
        gains = ((residual / scale) ** 2).sum(axis=0) / factor.diag[candidates]
        factor.eliminate(candidates[[np.argmax(gains)]])
    return factor.landmarks()


def rpcholesky(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose pivots at random in proportion to the residual diagonal, in blocks.

    Accelerated randomly pivoted Cholesky (Epperly, Tropp and Webber 2024): a block of
    columns is proposed at once and thinned by rejection, so that the pivots follow the
    distribution of the plain method while the work is in matrix products.
    """
    factor = _Factor(gram, c)
    while factor.rank < c and not factor.exhausted:
        probabilities = factor.diag / factor.diag.sum()
        proposed = rng.choice(gram.n, size=_block_size(c), p=probabilities)
        accepted = _thin(factor.residual(proposed, proposed), factor.floor, rng)
        factor.eliminate(proposed[accepted][: c - factor.rank])
    return factor.landmarks()


def _block_size(c: int) -> int:
    return min(PROPOSALS, max(1, c // 4))


def _thin(block: Floats, floor: float, rng: np.random.Generator) -> Indices:
    """Accept proposal i with probability (its residual now) / (its residual when proposed)."""
    block, proposed_diag = block.copy(), np.diag(block).copy()
    accepted = []
    for i in range(len(block)):
        if block[i, i] > max(floor, rng.uniform() * proposed_diag[i]):
            accepted.append(i)
            column = block[:, i] / np.sqrt(block[i, i])
            block -= np.outer(column, column)
    return np.array(accepted, dtype=np.intp)


def _symmetric(block: Floats) -> Floats:
    half: Floats = (block + block.T) / 2
    return half
