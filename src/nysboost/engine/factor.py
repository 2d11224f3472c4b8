"""F = k(X, Z) N on all rows of a Gram: kept where it fits, else computed when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from nysboost.data.rows import ArrayRows, spread_indices
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.arrays import Array, Floats, Indices, empty, take
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.tolerances import ROUNDING, cutoff

BLOCK_BYTES = 2**25
"""A block of features of this size is factorised at full speed."""


class Factor:
    """The n×K matrix of features that an approximation K̂ = F S Fᵀ is made of.

    Parameters
    ----------
    transform : FeatureMap
        x ↦ k(x, Z) N.
    """

    def __init__(self, transform: FeatureMap) -> None:
        self.transform = transform

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        return self.transform.gram.n, self.transform.n_features_out

    def at(self, rows: Indices) -> Array:
        """Return F[rows], shape (len(rows), K)."""
        kept = self.__dict__.get("_kept")  # a few rows are no reason to compute all
        return self.transform.at(rows) if kept is None else take(kept, rows)

    def all(self) -> Array:
        """Return F, shape (n, K)."""
        kept = self._kept
        return self.transform.write(self.transform.gram.rows) if kept is None else kept

    def fits(self, n: int) -> bool:
        """Whether the features of n rows may be kept: in half of the working memory."""
        gram = self.transform.gram
        return bool(n * self.shape[1] * gram.dtype.itemsize <= gram.budget.bytes // 2)

    @cached_property
    def _kept(self) -> Array | None:
        fits = self.fits(self.shape[0])
        return self.transform.write(self.transform.gram.rows) if fits else None

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield F in blocks of rows, in order: a pass over the data unless F is kept."""
        gram, kept, stop = self.transform.gram, self._kept, 0
        # an eighth, because a factorisation holds several copies of a block
        held = min(BLOCK_BYTES, gram.budget.bytes // 8)
        size = max(1, held // (8 * (self.shape[1] + gram.rows.n_features)))
        pieces = gram.rows.pieces(size) if kept is None else ArrayRows(kept).pieces(size)
        for piece in pieces:
            start, stop = stop, stop + piece.shape[0]
            yield slice(start, stop), (self.transform(piece) if kept is None else piece)

    def map(self, function: Callable[[slice, Array], Array]) -> Array:
        """Return function(rows, F[rows]) for all rows, in blocks of them."""
        result: Array | None = None
        for block, F in self.blocks():
            part = function(block, F)
            if result is None:
                result = empty((self.shape[0], *part.shape[1:]), part)
            result[block, ...] = part
        return result

    def inner(self, V: Array) -> Array:
        """Return Fᵀ V, shape (K, q)."""
        return sum(F.T @ V[block, :] for block, F in self.blocks())

    def triangular(self) -> Floats:
        """Return R of F = Q R, shape (K, K)."""
        return triangular_factor(F for _, F in self.blocks())

    def positive_part(self, weights: Floats, row_cap: int | None) -> tuple[Floats, float]:
        """Return a rotation T with F T (F T)ᵀ the positive semidefinite part of F S Fᵀ.

        Parameters
        ----------
        weights : array of shape (K,)
            The diagonal of S, of either sign.
        row_cap : int or None
            Rows that take part, spread evenly; None is all.

        Returns
        -------
        rotation : array of shape (K, r)
        discarded_mass : float
            The negative eigenvalues' share of the sum of all absolute eigenvalues.
        """
        (n, K), eps = self.shape, self.transform.gram.eps
        if row_cap is None or n <= max(row_cap, 2 * K):
            R = self.triangular()
        else:
            R = triangular_factor(iter([self.at(spread_indices(n, max(row_cap, 2 * K)))]))
        eigenvalues, basis = spectrum(R, weights, eps)
        floor = cutoff(ROUNDING, eps) * float(np.abs(eigenvalues).max())
        positive = np.flatnonzero(eigenvalues > floor)
        rotation = basis[:, positive] * np.sqrt(eigenvalues[positive])
        mass = float(-eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum())
        return rotation, mass

    def __getstate__(self) -> dict[str, Any]:
        return {"transform": self.transform}
