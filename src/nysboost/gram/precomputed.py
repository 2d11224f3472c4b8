"""A Gram matrix that the user computed."""

from __future__ import annotations

import numpy as np

from nysboost.data.rows import ArrayRows, Rows, StoredRows
from nysboost.gram.gram import Gram
from nysboost.gram.landmarks import Landmarks
from nysboost.kernels import Evaluator
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Indices
from nysboost.numerics.tolerances import ASYMMETRIC, INDEFINITE, cutoff


class PrecomputedGram(Gram):
    """A Gram matrix that the user computed, in memory or memory-mapped.

    New rows are kernel values against all n training points, or against the landmarks alone.
    """

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""
        return Landmarks(indices, None)

    def take(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return G[rows, J], read without the other columns, or whole rows if J is as many."""
        whole = len(landmarks) == self.n
        columns = np.arange(self.n) if whole else _columns(landmarks)
        return self._entries(np.arange(self.n)[rows], columns)

    @property
    def _matrix(self) -> Array:
        if isinstance(self.rows, ArrayRows):
            return self.rows.data
        return self.rows.take(slice(None))  # rows that are gone say so

    def _entries(self, rows: Indices, columns: Indices) -> Array:
        G = self._matrix
        if isinstance(G, np.ndarray):
            return arrays.as_float(G[np.ix_(rows, columns)])
        return arrays.as_float(arrays.take(arrays.take(G, rows), columns, axis=1))

    def _against(self, landmarks: Landmarks, form: Array) -> Evaluator:
        if form.shape[1] != self.n and form.shape[1] == len(landmarks):
            return lambda X, _=None: X
        columns = _columns(landmarks)
        return lambda X, _=None: arrays.take(X, columns, axis=1)

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""
        chosen = np.arange(self.n)[slice(None) if rows is None else rows]
        G = self._matrix
        if isinstance(G, np.ndarray):
            return arrays.as_float(G[chosen, chosen])
        return arrays.as_float(arrays.take(arrays.namespace(G).linalg.diagonal(G), chosen))

    def restrict(self, indices: Indices) -> PrecomputedGram:
        """Return G[S, S], copied into memory: s² values, however large n is."""
        entries = ArrayRows(self._entries(indices, indices))
        return PrecomputedGram(entries, self.budget, self.tally)

    def __repr__(self) -> str:
        return (
            f"PrecomputedGram(n={self.n}, dtype={self.dtype}, "
            f"entries_evaluated={self.entries_evaluated})"
        )


def _columns(landmarks: Landmarks) -> Indices:
    assert landmarks.indices is not None
    return landmarks.indices


def check_precomputed(rows: Rows, *, corrupted: bool = False) -> None:
    """Refuse what is not square, not symmetric or, unless corrupted, clearly indefinite."""
    if rows.lazy or not isinstance(rows, ArrayRows) or arrays.is_sparse(rows.data):
        raise ValueError("A precomputed kernel matrix must be dense; pass matrix.toarray().")
    if isinstance(rows, StoredRows):
        raise TypeError(
            "A precomputed kernel matrix is asked for columns, which an HDF5 or Zarr array reads "
            "slowly: pass it as an array or as a numpy.memmap."
        )
    G = rows.data
    if rows.n != rows.n_features:
        raise ValueError(
            f"A precomputed kernel matrix is square, but shape {tuple(G.shape)} was given. "
            "To approximate the kernel of data points, pass the points and name the kernel."
        )
    xp, largest = arrays.namespace(G), 0.0
    for block in arrays.row_blocks(rows.n, 16 * rows.n, 2**26):
        upper = rows.take(block)
        gap, largest = arrays.max_abs(upper - G[:, block].T), max(largest, arrays.max_abs(upper))
        if gap > cutoff(ASYMMETRIC, arrays.epsilon(upper)) * largest:
            raise ValueError(
                "A precomputed kernel matrix is symmetric, but G[i, j] and G[j, i] differ by up to "
                f"{gap:.3g}. Pass (G + G.T) / 2 if that is what you mean."
            )
    if not corrupted:
        _refuse_small_diagonal(xp.linalg.diagonal(G), largest)


def _refuse_small_diagonal(diagonal: Array, largest: float) -> None:
    """Raise if an entry is larger than any on the diagonal, or one of these is negative."""
    xp = arrays.namespace(diagonal)
    row = int(xp.argmin(diagonal))
    smallest, most = float(diagonal[row]), float(xp.max(diagonal))
    if smallest < -INDEFINITE * largest:
        raise ValueError(
            f"The kernel is not positive semidefinite: G[{row}, {row}] = {smallest:.3g} is "
            "negative. Kernel values of a point with itself are not."
        )
    if largest > (1 + INDEFINITE) * most:
        raise ValueError(
            f"The kernel is not positive semidefinite: an entry of size {largest:.3g} is larger "
            f"than the largest on the diagonal, {most:.3g}."
        )
