"""Columns by partial Cholesky factorisation: greedy pivots, random ones, the best of a few.

All of them keep the factor F (n×c) and the diagonal of the residual G − F Fᵀ, and
evaluate n·c entries of G, or those of all candidates.
"""

from __future__ import annotations

import operator

import numpy as np

from nysboost.data.dask_graph import here
from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, to_host
from nysboost.numerics.tolerances import EXHAUSTED, cutoff

PROPOSALS = 64
"""Columns proposed in one round of accelerated RPCholesky, at most."""

CANDIDATES = 59
"""The best of 59 is, with a probability of 95 %, among the best 5 % (Smola and Schölkopf)."""


class _Factor:
    """The partial Cholesky factor F of G on the pivots chosen so far, F Lᵀ = k(X, pivots).

    F is kept where it fits in half of the working memory. Where it does not, and for rows that
    stay on a cluster's workers, it is found again from kernel values, in the one pass over the data
    that each block of pivots takes; of a row one number comes back, what is taken off its diagonal.
    """

    def __init__(self, gram: Gram, c: int) -> None:
        self.gram = gram
        fits = 8 * gram.n * c <= gram.budget.bytes // 2 and not gram.rows.lazy
        self.F = np.zeros((gram.n, c)) if fits else None
        self.lower: Floats = np.zeros((0, 0))
        self.pivots: list[int] = []
        self.diag = to_host(gram.diag()).astype(np.float64)
        self.floor = cutoff(EXHAUSTED * c, gram.eps) * float(self.diag.max())

    @property
    def rank(self) -> int:
        return len(self.pivots)

    @property
    def exhausted(self) -> bool:
        """Whether the residual is zero to rounding."""
        return bool(self.diag.max() <= self.floor)

    def residual(self, rows: Indices, cols: Indices) -> Floats:
        """Return (G − F Fᵀ)[rows, cols]."""
        block = to_host(self.gram.block(rows, cols)).astype(np.float64)
        return block - self._at(rows) @ self._at(cols).T

    def squared_norms(self, cols: Indices) -> Floats:
        """Return ‖e_j‖² of the columns of the residual, relative to its largest diagonal's."""
        shared = self.lower, self._at(cols), float(self.diag.max())
        columns = self._columns(cols)
        return columns.fold(_squares, operator.add, shared, *self._kept, task="residual-columns")

    def eliminate(self, pivots: Indices) -> None:
        """Extend the factor by these columns, which must be independent."""
        right, old, more = self._at(pivots), self.rank, len(pivots)
        lower = np.linalg.cholesky(_symmetric(self.residual(pivots, pivots)))
        shared, columns = (self.lower, right, lower), self._columns(pivots)
        if self.F is None:
            taken = here(columns.map(_taken_off, shared, 1, task="pivots"))[:, 0]
        else:
            new = columns.map(_new_columns, shared, more, *self._kept, task="pivots")
            self.F[:, old : old + more] = new
            taken = (new * new).sum(axis=1)
        self.diag = np.maximum(self.diag - taken, 0)
        self.pivots += pivots.tolist()
        self.lower = np.block([[self.lower, np.zeros((old, more))], [right, lower]])
        self.diag[self.pivots] = 0

    def _at(self, rows: Indices) -> Floats:
        """Return F[rows]."""
        if self.F is not None:
            return self.F[rows, : self.rank]
        if self.rank == 0:
            return np.zeros((len(rows), 0))
        values = self.gram.block(rows, np.array(self.pivots, dtype=np.intp))
        return _rows_of_factor(self.lower, floats_on_host(values))

    @property
    def _kept(self) -> tuple[Floats, ...]:
        """F, where it is kept: a table that passes take beside the kernel values."""
        return () if self.F is None else (self.F[:, : self.rank],)

    def _columns(self, cols: Indices) -> Factor:
        """Return G[:, cols], after the columns that F is found again from where it is not kept."""
        before = self.pivots if self.F is None else []
        wanted = np.concatenate([np.array(before, dtype=np.intp), cols])
        return Factor(FeatureMap(self.gram, self.gram.landmarks(wanted)))

    def landmarks(self) -> Landmarks:
        return self.gram.landmarks(np.array(self.pivots, dtype=np.intp))


def greedy(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:  # noqa: ARG001
    """Choose the largest residual diagonal, c times: pivoted Cholesky.

    Fewer than c landmarks come back if the residual vanishes before.
    """
    factor = _Factor(gram, c)
    while factor.rank < c and not factor.exhausted:
        factor.eliminate(_greedy_block(factor)[: c - factor.rank])
    return factor.landmarks()


def _greedy_block(factor: _Factor) -> Indices:
    """Return the next pivots as far as a few rows alone can tell them, with one pass for all.

    A residual diagonal only ever falls. So the largest among a few rows is the largest of all
    as long as it is not below what the others had before.
    """
    order = np.argsort(-factor.diag, kind="stable")
    few, others = order[:PROPOSALS], factor.diag[order[PROPOSALS : PROPOSALS + 1]]
    bound = max(factor.floor, float(others.max(initial=0.0)))
    block = factor.residual(few, few)
    pivots: list[int] = []
    while True:
        best = int(np.argmax(np.diag(block)))
        if pivots and not block[best, best] > bound:
            chosen: Indices = few[np.array(pivots)]
            return chosen
        pivots.append(best)
        column = block[:, best] / np.sqrt(block[best, best])
        block = block - np.outer(column, column)
        block[best, best] = 0


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
        gains = factor.squared_norms(candidates) / factor.diag[candidates]
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
        if len(accepted):
            factor.eliminate(proposed[accepted][: c - factor.rank])
        else:
            factor.diag[proposed] = 0  # nothing is left of them but rounding
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


# What passes do to a block of kernel values: plain functions, which can be sent to where rows are


def _rows_of_factor(lower: Floats, values: Floats) -> Floats:
    """Return rows of F from the kernel values between them and the pivots: F = K L⁻ᵀ."""
    return np.asarray(np.linalg.solve(lower, values.T).T, dtype=np.float64)


def _rows_of_residual(lower: Floats, right: Floats, values: Array, *kept: Floats) -> Floats:
    """Return rows of G[:, cols] − F F[cols]ᵀ."""
    known, new = np.split(floats_on_host(values), [values.shape[1] - len(right)], axis=1)
    left = kept[0] if kept else _rows_of_factor(lower, known)
    return new - left @ right.T


def _squares(shared: tuple[Floats, Floats, float], values: Array, *kept: Floats) -> Floats:
    lower, right, scale = shared
    residual = _rows_of_residual(lower, right, values, *kept) / scale
    squares: Floats = (residual**2).sum(axis=0)
    return squares


def _new_columns(shared: tuple[Floats, Floats, Floats], values: Array, *kept: Floats) -> Floats:
    lower, right, corner = shared
    return _rows_of_factor(corner, _rows_of_residual(lower, right, values, *kept))


def _taken_off(shared: tuple[Floats, Floats, Floats], values: Array) -> Floats:
    taken: Floats = (_new_columns(shared, values) ** 2).sum(axis=1, keepdims=True)
    return taken
