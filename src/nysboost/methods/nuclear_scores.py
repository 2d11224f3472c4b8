"""Columns by nuclear scores: each one takes as much as possible off the trace of the residual.

Fornace and Lindsey (2024, arXiv:2407.01698). Let R be the residual, the Schur complement of the
columns chosen so far. Column j lowers tr R, which is the nuclear norm of R, by its *nuclear score*

    ‖r_j‖² / R_jj.

"sparse-greedy" looks at 59 random columns in each step; here all columns are candidates.
"""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram, Landmarks, take_sample
from nysboost.methods.method_constants import BLOCK_BYTES, FALLEN, OVERRATED, SCORED_ROWS
from nysboost.numerics.arrays import Floats, floats_on_host
from nysboost.numerics.budget import row_blocks
from nysboost.numerics.tolerances import EXHAUSTED


def nuclear_scores(gram: Gram, c: int, rng: np.random.Generator, row_cap: int) -> Landmarks:
    """Choose the column of the largest nuclear score up to c times, until the residual vanishes.

    All scores need all of G. Beyond `row_cap` rows, or four for each column, a uniform sample of so
    many takes their place: its columns are the candidates, and norms are over its rows, so that the
    cost does not grow with n. With s such rows s² kernel values are evaluated.
    """
    sample = take_sample(gram, max(row_cap, SCORED_ROWS * c), rng)
    residual = ScoredResidual(floats_on_host(sample.matrix), c, gram.eps)
    while not residual.is_exhausted:
        residual.eliminate_best()
    return sample.lift_to_rows(sample.gram.landmarks(np.array(residual.pivots)))


class ScoredResidual:
    """R = G − F Fᵀ of the pivots so far, of at most c, with the squared norms of its columns.

    `diag` is R's diagonal and `squares` are ‖r_j‖², shape (s,), both kept up to date; R itself is
    not formed.
    """

    def __init__(self, G: Floats, c: int, eps: float) -> None:
        self.G = G
        rank = min(c, len(G))
        self.F: Floats = np.zeros((len(G), rank), order="F")
        self.pivots: list[int] = []
        self.diag = np.diag(G).astype(np.float64)
        self.floor = EXHAUSTED * c * eps * float(self.diag.max())
        self._compute_squares()

    @property
    def is_exhausted(self) -> bool:
        """Whether there are c pivots, or the residual is zero to rounding."""
        if len(self.pivots) == self.F.shape[1]:
            return True
        return bool(self.diag.max() <= self.floor)

    def scores(self) -> Floats:
        """Return the nuclear score of each column, 0 of those that are rounding."""
        eligible = self.diag > self.floor
        scores = self.squares / np.where(eligible, self.diag, 1.0)
        return np.where(eligible, scores, 0.0)

    def eliminate_best(self) -> None:
        """Make the column of the largest nuclear score the next pivot."""
        scores = self.scores()
        while True:
            j = int(np.argmax(scores))
            column = self.column(j)
            score = float(column @ column)
            if scores[j] <= OVERRATED * score or scores[j] == 0:
                break
            scores[j] = score  # what had been added to it was rounding
        self._eliminate(j, column)

    def column(self, j: int) -> Floats:
        """Return r_j / √R_jj, what the column would be in F."""
        known = self.F[:, : len(self.pivots)]
        r = self.G[:, j] - known @ known[j]
        column: Floats = r / np.sqrt(self.diag[j])
        return column

    def _eliminate(self, j: int, column: Floats) -> None:
        """Replace R by R − f fᵀ, and ‖r_i‖² by ‖r_i‖² − 2 f_i (R f)_i + f_i² ‖f‖²."""
        known = self.F[:, : len(self.pivots)]
        R_times_column = self.G @ column - known @ (known.T @ column)
        self.squares += column * (column * (column @ column) - 2 * R_times_column)

        self.F[:, len(self.pivots)] = column
        self.pivots.append(j)
        self.diag = np.maximum(self.diag - column**2, 0)
        self.diag[self.pivots] = 0

        # the subtractions have left too few digits
        if self.squares.sum() < FALLEN * self.sum_when_computed:
            self._compute_squares()

    def _compute_squares(self) -> None:
        """Compute ‖r_j‖² from R itself, a block of it at a time."""
        known = self.F[:, : len(self.pivots)]
        self.squares = np.empty(len(self.G))
        for block in row_blocks(len(self.G), 8 * len(self.G), BLOCK_BYTES):
            rows = self.G[block] - known[block] @ known.T  # R is symmetric
            self.squares[block] = np.einsum("ij,ij->i", rows, rows)
        self.sum_when_computed = float(self.squares.sum())
