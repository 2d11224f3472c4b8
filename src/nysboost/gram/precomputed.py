"""A precomputed G: a matrix in memory or memory-mapped, checked once."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nysboost.gram.gram import EntryCounter, Gram, Landmarks, probe
from nysboost.kernels import Columns
from nysboost.numerics.arrays import (
    Array,
    Indices,
    Selection,
    as_float,
    dense,
    diagonal,
    epsilon,
    namespace,
    row_blocks,
    take,
)
from nysboost.numerics.checks import DEFAULT_BUDGET, Budget, Given
from nysboost.numerics.linalg import max_abs
from nysboost.numerics.tolerances import ASYMMETRIC, INDEFINITE
from nysboost.rows.recognise import scan_rows
from nysboost.rows.rows import ArrayRows, Rows
from nysboost.rows.stored_rows import StoredRows


class PrecomputedGram(Gram):
    """A precomputed Gram matrix, in memory or memory-mapped.

    Its kernel picks columns from rows of G. A new row holds kernel values with all n training
    points, or with the landmarks alone.
    """

    def __init__(
        self,
        rows: Rows,
        budget: Budget = DEFAULT_BUDGET,
        counter: EntryCounter | None = None,
    ) -> None:
        kernel = Columns(rows.n)
        super().__init__(rows, kernel, budget, counter)

    def with_rows(self, rows: Rows) -> PrecomputedGram:
        """Return another matrix of kernel values, counted together with this one."""
        return PrecomputedGram(rows, self.budget, self.counter)

    def landmarks(self, indices: Indices) -> Landmarks:
        """Return the columns at `indices` as landmarks."""
        return Landmarks(indices, None)

    def take(self, rows: Selection, landmarks: Landmarks) -> Array:
        """Return G[rows, J] without reading other columns, or whole rows if J has n columns."""
        everything = np.arange(self.n)
        columns = everything if len(landmarks) == self.n else landmarks.columns
        return self._entries(everything[rows], columns)

    def diag(self, rows: Selection | None = None) -> Array:
        """Return the diagonal, or its entries at `rows`."""
        entries = as_float(diagonal(self._matrix))
        if rows is None:
            return entries
        return take(entries, np.arange(self.n)[rows])

    def restrict(self, indices: Indices) -> PrecomputedGram:
        """Return G[S, S], copied into memory: s² values for any n."""
        return self.with_rows(ArrayRows(self._entries(indices, indices)))

    @property
    def _matrix(self) -> Array:
        """G itself."""
        if isinstance(self.rows, ArrayRows):
            return self.rows.data
        return self.rows.take(slice(None))  # dropped rows raise an error

    def _entries(self, rows: Indices, columns: Indices) -> Array:
        """Return G[rows, columns]."""
        G = self._matrix
        if isinstance(G, np.ndarray):
            return as_float(G[np.ix_(rows, columns)])
        entries = take(take(G, rows), columns, axis=1)
        return as_float(dense(entries))


# From the user's matrix to G, checked


def make_precomputed(
    G: Given,
    budget: Budget,
    params: Mapping[str, object],
    *,
    corrupted: bool,
) -> Gram:
    """Return a matrix of kernel values as a Gram matrix; it is checked unless it is corrupted."""
    given = [name for name, value in params.items() if value is not None]
    if given:
        msg = f"A precomputed kernel has no parameter {', '.join(given)}: leave it out."
        raise ValueError(msg)

    # a corrupted matrix may be indefinite, which the probe would refuse
    rows = scan_rows(G, name="The precomputed kernel matrix")
    check_precomputed(rows, corrupted=corrupted)
    gram = PrecomputedGram(rows, budget)
    if corrupted:
        return gram
    return probe(gram)


def check_precomputed(rows: Rows, *, corrupted: bool = False) -> None:
    """Raise unless G is square, symmetric and, unless corrupted, not clearly indefinite."""
    if rows.lazy or not isinstance(rows, ArrayRows):
        raise ValueError("A precomputed kernel matrix must be in memory or memory-mapped.")
    if isinstance(rows, StoredRows):
        raise TypeError(
            "A precomputed kernel matrix is read by columns, which is slow in HDF5 and Zarr "
            "arrays: pass it as an array or as a numpy.memmap."
        )

    G = rows.data
    if rows.n != rows.n_features:
        raise ValueError(
            f"A precomputed kernel matrix must be square, but shape {tuple(G.shape)} was given. "
            "To approximate a kernel of data points, pass the points and name the kernel."
        )

    # one pass over G, whose largest entry is then known
    largest = _check_symmetry(rows)
    if not corrupted:
        _check_diagonal(G, largest)


def _check_symmetry(rows: ArrayRows) -> float:
    """Raise unless a matrix is symmetric, and return its largest absolute entry."""
    largest = 0.0
    row_bytes = 16 * rows.n
    for block in row_blocks(rows.n, row_bytes, 2**26):
        upper = rows.take(block)
        largest = max(largest, max_abs(upper))

        # G[i, j] − G[j, i] beyond rounding
        lower = rows.data[:, block]
        gap = max_abs(upper - lower.T)
        if gap > ASYMMETRIC * epsilon(upper) * largest:
            raise ValueError(
                "A precomputed kernel matrix must be symmetric, but G[i, j] and G[j, i] differ by "
                f"up to {gap:.3g}. To make it symmetric, pass (G + G.T) / 2."
            )
    return largest


def _check_diagonal(G: Array, largest: float) -> None:
    """Raise for a negative diagonal entry, or for a larger entry outside the diagonal.

    A positive semidefinite matrix has neither.
    """
    entries = diagonal(G)
    xp = namespace(entries)
    lowest = float(xp.min(entries))
    highest = float(xp.max(entries))

    is_negative = lowest < -INDEFINITE * largest
    is_exceeded = largest > (1 + INDEFINITE) * highest
    if is_negative or is_exceeded:
        raise ValueError(
            f"The kernel is not positive semidefinite: its values have sizes up to {largest:.3g}, "
            f"and its diagonal entries are between {lowest:.3g} and {highest:.3g}. No diagonal "
            "entry can be negative, and the largest entry must lie on the diagonal."
        )
