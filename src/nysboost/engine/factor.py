"""F = k(X, Z) N on all rows of a Gram: kept where it fits, else computed when asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from nysboost.data.rows import ArrayRows, Rows, spread_indices
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.arrays import Array, Floats, Indices, take
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.tolerances import ROUNDING, cutoff

T = TypeVar("T")

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
        kept: Array | None = self.__dict__.get("_kept")  # a few rows are no reason to compute all
        return self.transform.at(rows) if kept is None else take(kept, rows)

    def keep(self) -> None:
        """Compute F and keep it, if it fits: all of its rows will be asked for."""
        _ = self._kept

    def is_kept(self) -> bool:
        """Whether F has been computed, and kept."""
        return self.__dict__.get("_kept") is not None

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
        fits = self.fits(self.shape[0]) and not self.transform.gram.rows.lazy
        return self.transform.write(self.transform.gram.rows) if fits else None

    def map(
        self,
        function: Callable[..., Array],
        shared: Any,
        columns: int,
        *beside: Array,
        task: str,
    ) -> Array:
        """Return function(shared, F[block], *others[block]) for all blocks of rows.

        Parameters
        ----------
        function : callable
            Returns an array of shape (len(block), columns). A plain function of its arguments,
            so that it can be sent to where the rows are.
        shared : object
            What it needs at every block.
        columns : int
            Number of columns of the result.
        *beside : arrays of shape (n, q)
            Tables of the same rows.
        task : str
            What this is called in Dask's dashboard.

        Returns
        -------
        array of shape (n, columns)
            Of Dask rows a Dask array, yet to be computed.
        """
        rows, load = self._source(function, shared)
        return rows.map(_on_features, load, columns, *beside, task=task, size=self._size)

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any = None,
        *beside: Array,
        task: str,
    ) -> T:
        """Return the merger of function(shared, F[block], *others[block]) over all blocks of rows.

        The parameters are those of `map`, and `merge` makes one value of two neighbours.
        """
        rows, load = self._source(function, shared)
        done: T = rows.fold(_on_features, merge, load, *beside, task=task, size=self._size)
        return done

    def _source(self, function: Callable[..., Any], shared: Any) -> tuple[Rows, Any]:
        """Return the rows of a pass, X or F itself, and all that is done to a block of them."""
        if self._kept is not None:
            return ArrayRows(self._kept), (None, function, shared)
        return self.transform.gram.rows, (self.transform.alone(), function, shared)

    @property
    def _size(self) -> int:
        """Rows of a block, of which a factorisation holds several copies."""
        gram = self.transform.gram
        held = min(BLOCK_BYTES, gram.budget.bytes // 8)
        return max(1, held // (8 * (self.shape[1] + gram.rows.n_features)))

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield F in blocks of rows, in order: a pass over the data unless F is kept."""
        rows = self.transform.gram.rows if self._kept is None else ArrayRows(self._kept)
        stop = 0
        for piece in rows.pieces(self._size):
            start, stop = stop, stop + piece.shape[0]
            yield slice(start, stop), (self.transform(piece) if self._kept is None else piece)

    def inner(self, V: Array) -> Array:
        """Return Fᵀ V, shape (K, q)."""
        return self.fold(_inner, operator.add, None, V, task="inner-products")

    def triangular(self) -> Floats:
        """Return R of F = Q R, shape (K, K)."""
        return self.fold(_factor, _both_factors, task="triangular-factor")

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
        sizes = np.abs(eigenvalues)  # none at all where every feature is zero
        floor = cutoff(ROUNDING, eps) * float(sizes.max(initial=0.0))
        positive = np.flatnonzero(eigenvalues > floor)
        rotation = basis[:, positive] * np.sqrt(eigenvalues[positive])
        mass = float(sizes[eigenvalues < 0].sum() / (sizes.sum() or 1.0))
        return rotation, mass

    def __getstate__(self) -> dict[str, Any]:
        return {"transform": self.transform}


def _on_features(
    load: tuple[FeatureMap | None, Callable[..., T], Any], block: Array, *beside: Array
) -> T:
    """Do to the features of a block of rows what is to be done: this is what a worker runs."""
    transform, function, shared = load
    return function(shared, block if transform is None else transform(block), *beside)


def _inner(_: None, F: Array, V: Array) -> Array:
    return F.T @ V


def _factor(_: None, F: Array) -> Floats:
    return triangular_factor(iter([F]))


def _both_factors(upper: Floats, lower: Floats) -> Floats:
    return triangular_factor(iter([upper, lower]))
