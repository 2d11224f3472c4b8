"""F = k(X, Z) N on all rows: kept where it fits, else computed when asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.feature_pass import FeaturePass
from nysboost.gram import Gram
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host
from nysboost.numerics.budget import spaced_indices
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.tolerances import ROUNDING
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.driver import BlockTask, Task
from nysboost.rows.lazy import gather
from nysboost.rows.rows import Rows

R = TypeVar("R")

BLOCK_BYTES = 2**25  # a block of features of this size is factorised at full speed


class Factor:
    """The n×K matrix F of features, x ↦ k(x, Z) N on rows, of an approximation F S Fᵀ.

    Parameters
    ----------
    gram : Gram
        The matrix that is approximated. It counts kernel values, and has the budget of passes.
    transform : FeatureMap
        The map x ↦ k(x, Z) N.
    weights : array of shape (K,) or None
        The diagonal of S; None is ones.
    rows : Rows or None
        The n points; None is those of the Gram.
    F : array of shape (n, K) or None
        F itself where it is known. It is in `kept`, as soon as a pass has kept it.
    """

    def __init__(
        self,
        gram: Gram,
        transform: FeatureMap,
        weights: Floats | None = None,
        rows: Rows | None = None,
        F: Array | None = None,
    ) -> None:
        self.gram = gram
        self.transform = transform
        self.weights = np.ones(transform.rank) if weights is None else weights
        self.rows = gram.rows if rows is None else rows
        self.kept = F

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        return self.rows.n, self.transform.rank

    # F itself

    def fits(self, n: int) -> bool:
        """Whether the features of n rows may be kept: in half of the working memory."""
        size = n * self.transform.rank * self.gram.dtype.itemsize
        return bool(size <= self.gram.budget.bytes // 2)

    def keep(self) -> Array | None:
        """Return F, computed and kept if it fits, else None."""
        if self.kept is None and self.fits(self.rows.n) and not self.rows.lazy:
            self.kept = self._compute()
        return self.kept

    def all(self) -> Array:
        """Return F, shape (n, K)."""
        F = self.keep()
        if F is None:
            return self._compute()
        return F

    def at(self, rows: Indices) -> Array:
        """Return F[rows], shape (len(rows), K), without computing the other rows."""
        if self.kept is None:
            return features_of(self.gram, self.transform, rows)
        return arrays.take(self.kept, rows)

    def only(self, rows: Indices) -> Factor:
        """Return the factor of some rows, kept where it fits."""
        selected = self.rows.only(rows)
        F = None
        if self.kept is not None or (self.fits(len(rows)) and not selected.lazy):
            F = self.at(rows)
        return Factor(self.gram, self.transform, self.weights, selected, F)

    def _compute(self) -> Array:
        return self.transform.write(self.rows, None, self.gram.budget, self.gram.counter)

    # Passes over all rows. Functions can be pickled; each of `aligned` is a table of the same rows.

    def map(
        self, function: Callable[..., Array], shared: Any, columns: int, *aligned: Array
    ) -> Array:
        """Return function(shared, F[block], *aligned[block]) of all blocks, shape (n, columns)."""
        self.keep()
        rows, task = self._pass(function, shared)
        return rows.map(task, columns, *aligned)

    def fold(
        self,
        function: Callable[..., R],
        shared: Any = None,
        *aligned: Array,
        merge: Callable[[R, R], R] = operator.add,
        result_bytes: int = 0,
    ) -> R:
        """Return function(shared, F[block], *aligned[block]) of all blocks, merged in pairs."""
        self.keep()
        rows, task = self._pass(function, shared, result_bytes)
        return rows.fold(task, merge, *aligned)

    def _pass(
        self, function: Callable[..., Any], shared: Any, result_bytes: int = 0
    ) -> tuple[Rows, Task]:
        """Return the rows of a pass, X or F itself, and what is done to a block of them."""
        name = function.__name__.strip("_")
        gram = self.gram
        if self.kept is None:
            return self.rows, FeaturePass(
                self.transform,
                name,
                function,
                shared,
                result_bytes,
                budget=gram.budget,
                counter=gram.counter,
            )
        # a factorisation holds several copies of a block
        block_bytes = min(BLOCK_BYTES, gram.budget.bytes // 8)
        row_bytes = 8 * (self.transform.rank + gram.rows.n_features)
        size = max(1, block_bytes // row_bytes)
        return ArrayRows(self.kept), BlockTask(name, function, shared, size)

    # Products, sums and factorisations

    def inner(self, V: Array) -> Array:
        """Return Fᵀ V, shape (K, q)."""
        return self.fold(_inner, None, V)

    def times(self, T: Array) -> Array:
        """Return F T, shape (n, q)."""
        return self.map(_times, T, T.shape[1])

    def total(self) -> Floats:
        """Return the sum of the features over all rows, shape (K,)."""
        return self.fold(_total)

    def squared_norms(self) -> Floats:
        """Return Σ_k s_k F_ik² of each row, the diagonal of F S Fᵀ, shape (n,); F is not kept."""
        rows, task = self._pass(_squared_norms, self.weights)
        column = gather(rows.map(task, 1))
        return floats_on_host(column[:, 0])

    def triangular(self) -> Floats:
        """Return R of F = Q R, shape (K, K)."""
        size = 8 * self.transform.rank**2
        return self.fold(_factorise, merge=triangular_factor, result_bytes=size)

    def positive_part(self, row_cap: int | None) -> tuple[Floats, float]:
        """Return a rotation T with F T (F T)ᵀ the positive semidefinite part of F S Fᵀ.

        `row_cap` rows take part, or all. The second value is the negative eigenvalues' share.
        """
        n, K = self.shape
        factor = self
        if row_cap is not None and n > max(row_cap, 2 * K):
            factor = self.only(spaced_indices(n, max(row_cap, 2 * K)))

        # the eigenvalues of R S Rᵀ, with F = Q R, are those of F S Fᵀ
        eps = self.gram.eps
        eigenvalues, basis = spectrum(factor.triangular(), self.weights, eps)
        sizes = np.abs(eigenvalues)
        largest = float(sizes.max(initial=0.0))  # none at all where every feature is zero
        positive = np.flatnonzero(eigenvalues > ROUNDING * eps * largest)
        rotation = basis[:, positive] * np.sqrt(eigenvalues[positive])

        total = float(sizes.sum())
        if total == 0:
            return rotation, 0.0
        negative = float(sizes[eigenvalues < 0].sum())
        return rotation, negative / total


# Functions of a block of features, which can be pickled for the workers of a pass


def _inner(_: None, F: Array, V: Array) -> Array:
    return _beside(F, V).T @ V


def _times(T: Array, F: Array) -> Array:
    return _beside(F, T) @ T


def _beside(F: Array, V: Array) -> Array:
    """Return F where V is: on the host, if V is there."""
    if isinstance(V, np.ndarray):
        return arrays.to_host(F)
    return F


def _total(_: None, F: Array) -> Floats:
    return np.asarray(floats_on_host(F).sum(axis=0))


def _squared_norms(weights: Floats, F: Array) -> Floats:
    squares = floats_on_host(F) ** 2
    return np.asarray(squares @ weights)[:, None]


def _factorise(_: None, F: Array) -> Floats:
    return triangular_factor(F)
