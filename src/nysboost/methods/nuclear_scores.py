"""Columns by nuclear scores: each one reduces the trace of the residual as much as possible.

Fornace and Lindsey (2024, arXiv:2407.01698). Let R be the residual, the Schur complement of the
columns chosen so far. Column j lowers tr R, which is the nuclear norm of R, by its *nuclear score*

    ‖r_j‖² / R_jj.

"sparse-greedy" looks at 59 random columns in each step; here all columns are candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.gram import Gram, Landmarks, take_sample
from nysboost.kernels.distances import squared_norms
from nysboost.methods.method_constants import BLOCK_BYTES, FALLEN, OVERRATED, SCORED_ROWS
from nysboost.numerics.arrays import Floats, floats_on_host, row_blocks
from nysboost.numerics.tolerances import EXHAUSTED


def nuclear_scores(gram: Gram, c: int, rng: Generator, row_cap: int) -> Landmarks:
    """Choose the column of the largest nuclear score up to c times, until the residual vanishes.

    The scores need all of G. With more than `row_cap` rows, or four per column if that is more, a
    uniform sample of this size is used instead: its columns are the candidates, and norms are over
    its rows. So the cost does not grow with n: s sampled rows take s² kernel values.
    """
    size = max(row_cap, SCORED_ROWS * c)
    sample = take_sample(gram, size, rng)
    G = floats_on_host(sample.matrix)
    residual = ScoredResidual(G, c, gram.eps)
    while not residual.is_exhausted:
        residual.eliminate_best()

    pivots = np.array(residual.pivots)
    landmarks = sample.gram.landmarks(pivots)
    return sample.lift_to_rows(landmarks)


class ScoredResidual:
    """R = G − F Fᵀ of the pivots so far, of at most c, with the squared norms of its columns.

    `diag` is the diagonal of R, and `squares` holds ‖r_j‖², shape (s,). Both are kept up to date,
    and R itself is not formed. `most` is the largest number of pivots.
    """

    def __init__(self, G: Floats, c: int, eps: float) -> None:
        self.G = G
        self.most = min(c, len(G))
        self.pivots: list[int] = []
        shape = (len(G), self.most)
        self._columns: Floats = np.zeros(shape, order="F")

        self.diag = G.diagonal().copy()
        largest = float(self.diag.max())
        self.floor = EXHAUSTED * c * eps * largest
        self._compute_squares()

    @property
    def F(self) -> Floats:  # noqa: N802
        """F of the pivots so far."""
        rank = len(self.pivots)
        return self._columns[:, :rank]

    @property
    def is_exhausted(self) -> bool:
        """Whether there are c pivots, or the residual is zero to rounding."""
        if len(self.pivots) == self.most:
            return True
        return bool(self.diag.max() <= self.floor)

    def scores(self) -> Floats:
        """Return the nuclear score of each column, 0 at the rounding level."""
        eligible = self.diag > self.floor
        divisors = np.where(eligible, self.diag, 1.0)
        return np.where(eligible, self.squares / divisors, 0.0)

    def eliminate_best(self) -> None:
        """Make the column with the largest nuclear score the next pivot."""
        scores = self.scores()
        while True:
            j = int(np.argmax(scores))
            f = self.column(j)
            score = f @ f
            most = OVERRATED * score
            if scores[j] <= max(most, 0.0):
                break
            scores[j] = score  # what had been added to it was rounding
        self._eliminate(j, f)

    def column(self, j: int) -> Floats:
        """Return f = r_j / √R_jj, the column that would be added to F: its score is ‖f‖²."""
        explained = self.F @ self.F[j]
        r = self.G[:, j] - explained
        root = np.sqrt(self.diag[j])
        return np.asarray(r / root)

    def _eliminate(self, j: int, f: Floats) -> None:
        """Replace R by R − f fᵀ, and ‖r_i‖² by ‖r_i‖² + f_i (f_i ‖f‖² − 2 (R f)_i)."""
        # R f = G f − F Fᵀ f, with the columns of F so far
        products = self.F.T @ f
        explained = self.F @ products
        Rf = self.G @ f - explained
        squared_norm = f @ f
        change = f * squared_norm - 2 * Rf
        self.squares += f * change

        # f is the next column of F
        rank = len(self.pivots)
        self._columns[:, rank] = f
        self.pivots.append(j)
        left = self.diag - f**2
        self.diag = np.maximum(left, 0)
        self.diag[self.pivots] = 0

        # the subtractions have left too few digits
        total = self.squares.sum()
        if total < FALLEN * self.sum_when_computed:
            self._compute_squares()

    def _compute_squares(self) -> None:
        """Compute ‖r_j‖² from R itself, a block of it at a time."""
        s = len(self.G)
        self.squares = np.empty(s)
        for block in row_blocks(s, 8 * s, BLOCK_BYTES):
            # R is symmetric: its rows are its columns
            explained = self.F[block] @ self.F.T
            rows = self.G[block] - explained
            self.squares[block] = squared_norms(rows)
        self.sum_when_computed = float(self.squares.sum())
