"""A Gram matrix that the user computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nysboost.data.rows import ArrayRows, Rows, StoredRows
from nysboost.gram.gram import Gram
from nysboost.gram.landmarks import Landmarks
from nysboost.numerics.arrays import Array, Indices, as_float, epsilon, namespace, row_blocks
from nysboost.numerics.tolerances import cutoff


class PrecomputedGram(Gram):
    """A Gram matrix that the user computed, in memory or memory-mapped.

    New rows X are rows of kernel values: against all n training points, or against
    the landmarks alone.
    """

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""
        return Landmarks(indices, None)

    def cross(self, rows: Indices | slice, landmarks: Landmarks) -> Array:
        """Return G[rows, J], without reading the other columns where that can be helped."""
        G = self.rows.data if isinstance(self.rows, ArrayRows) else None
        if not isinstance(G, np.ndarray) or landmarks.indices is None:
            return super().cross(rows, landmarks)
        values = as_float(G[np.ix_(np.arange(self.n)[rows], landmarks.indices)])
        self.entries_evaluated += values.size
        return values

    def against(self, landmarks: Landmarks, form: Array) -> Callable[[Array], Array]:
        """Return the function that takes the landmarks' columns of X."""
        if form.shape[1] != self.n and form.shape[1] == len(landmarks):
            return lambda X: X
        if isinstance(form, np.ndarray):
            return lambda X: X[:, landmarks.indices]
        xp = namespace(form)
        columns = xp.asarray(landmarks.indices, device=form.device)
        return lambda X: xp.take(X, columns, axis=1)

    def within(self, landmarks: Landmarks) -> Array:
        """Return W = G[J, J], shape (m, m)."""
        assert landmarks.indices is not None
        return self.block(landmarks.indices, landmarks.indices)

    def diag(self, rows: Indices | slice | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""
        chosen = np.arange(self.n)[slice(None) if rows is None else rows]
        assert isinstance(self.rows, ArrayRows)
        return as_float(self.rows.data[chosen, chosen])


def check_precomputed(rows: Rows) -> None:
    """Refuse what cannot be a Gram matrix: not square, not symmetric, clearly indefinite."""
    if not isinstance(rows, ArrayRows) or hasattr(rows.data, "tocsr"):
        msg = "A precomputed kernel matrix must be dense; pass matrix.toarray()."
        raise ValueError(msg)
    if isinstance(rows, StoredRows):
        msg = (
            "A precomputed kernel matrix is asked for columns, which an HDF5 or Zarr array reads "
            "slowly: pass it as an array or as a numpy.memmap."
        )
        raise TypeError(msg)
    G = rows.data
    if rows.n != rows.n_features:
        msg = (
            f"A precomputed kernel matrix is square, but shape {tuple(G.shape)} was given. "
            "To approximate the kernel of data points, pass the points and name the kernel."
        )
        raise ValueError(msg)
    xp, largest = namespace(G), 0.0
    for block in row_blocks(rows.n, 16 * rows.n, 2**26):
        upper = rows.take(block)
        gap = xp.max(xp.abs(upper - G[:, block].T))
        largest = max(largest, float(xp.max(xp.abs(upper))))
        if float(gap) > 1e3 * cutoff(1, epsilon(upper)) * largest:
            msg = (
                "A precomputed kernel matrix is symmetric, but G[i, j] and G[j, i] differ by up to "
                f"{float(gap):.3g}. Pass (G + G.T) / 2 if that is what you mean."
            )
            raise ValueError(msg)
