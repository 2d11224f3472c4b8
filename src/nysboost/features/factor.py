"""F = k(X, Z) N on all rows: kept if it fits in memory, else computed when needed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from nysboost.features.feature_map import FeatureMap, features_of, features_of_block
from nysboost.features.feature_pass import FeaturePass
from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    Numbers,
    floats_on_host,
    gather,
    spaced_indices,
    take,
    to_host,
)
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.tolerances import EXHAUSTED, ROUNDING
from nysboost.rows.driver import BlockFunction, BlockTask, Merge, Shared, Task
from nysboost.rows.pairs import PairTask
from nysboost.rows.rows import ArrayRows, Rows

R = TypeVar("R")

TileFunction: TypeAlias = Callable[[Shared, "Tile"], Floats]
"""(shared, tile) ↦ numbers that are summed over the tiles."""

BLOCK_BYTES = 2**25  # a block of features of this size is factorised at full speed


class Factor:
    """The n×K matrix F of features, x ↦ k(x, Z) N on rows, of an approximation F S Fᵀ.

    Parameters
    ----------
    gram : Gram
        The approximated matrix. It counts kernel values, and holds the budget of passes.
    transform : FeatureMap
        The map x ↦ k(x, Z) N.
    weights : array of shape (K,) or None
        The diagonal of S; None is ones.
    rows : Rows or None
        The n points; None is those of the Gram.
    F : array of shape (n, K) or None
        F, if it is already known. It is in `kept` once a pass has kept it.
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
        self.kept = F

        if weights is None:
            weights = np.ones(transform.rank)
        self.weights = weights

        if rows is None:
            rows = gram.rows
        self.rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        return self.rows.n, self.transform.rank

    # F itself

    def fits(self, n: int) -> bool:
        """Whether the features of n rows fit in half of the working memory."""
        row_bytes = self.transform.rank * self.gram.dtype.itemsize
        half = self.gram.budget.bytes // 2
        return bool(n * row_bytes <= half)

    def keep(self) -> Array | None:
        """Return F, computed and kept if it fits, else None."""
        rows = self.rows
        may_keep = not rows.lazy and self.fits(rows.n)
        if self.kept is None and may_keep:
            self.kept = self._compute()
        return self.kept

    def all(self) -> Array:
        """Return F, shape (n, K)."""
        F = self.keep()
        if F is None:
            F = self._compute()
        return F

    def at(self, rows: Indices) -> Array:
        """Return F[rows], shape (len(rows), K), without computing the other rows."""
        if self.kept is None:
            return features_of(self.gram, self.transform, rows)
        return take(self.kept, rows)

    def only(self, rows: Indices) -> Factor:
        """Return the factor of some rows, with their features if F is kept."""
        selected = self.rows.only(rows)
        F = None
        if self.kept is not None:
            F = take(self.kept, rows)
        return Factor(self.gram, self.transform, self.weights, selected, F)

    def _compute(self) -> Array:
        """Return F, from the rows."""
        gram = self.gram
        return self.transform.write(self.rows, budget=gram.budget, counter=gram.counter)

    # Passes over all rows. Functions can be pickled; each of `aligned` is a table of the same rows.

    def map(
        self,
        function: Callable[..., Array],
        shared: Shared,
        columns: int,
        *aligned: Array,
    ) -> Array:
        """Return function(shared, F[block], *aligned[block]) of all blocks, shape (n, columns)."""
        self.keep()
        task = self._task(function, shared)
        return self._pass_rows.map(task, columns, *aligned)

    def fold(
        self,
        function: Callable[..., R],
        shared: Shared = None,
        *aligned: Array,
        merge: Merge[R] = operator.add,
        result_bytes: int = 0,
    ) -> R:
        """Return function(shared, F[block], *aligned[block]) of all blocks, merged in pairs."""
        self.keep()
        task = self._task(function, shared, result_bytes)
        return self._pass_rows.fold(task, merge, *aligned)

    def fold_tiles(self, function: TileFunction, shared: Shared, numbers: Indices) -> Floats:
        """Return the sum of function(shared, tile) over all tiles of G, a few held at a time.

        `numbers` (n,) are those of the rows in the Gram.
        """
        # a block of rows comes with its numbers, and with its features where they are known
        aligned: list[Numbers] = [numbers[:, None]]
        if self.kept is not None:
            aligned.append(self.kept)

        gram = self.gram.forget_rows()
        width = gram.tile_width(self.transform.rank)
        task = TilePass(width, gram.budget, function, shared, gram, self.transform)
        return self.rows.fold_pairs(task, *aligned)

    @property
    def _pass_rows(self) -> Rows:
        """The rows of a pass: those of F if it is kept, else those of X."""
        if self.kept is None:
            return self.rows
        return ArrayRows(self.kept)

    def _task(self, function: BlockFunction, shared: Shared, result_bytes: int = 0) -> Task:
        """Return the task for a block of these rows."""
        name = function.__name__.strip("_")
        budget = self.gram.budget

        # a pass over rows of X computes their features first
        if self.kept is None:
            return FeaturePass(
                self.transform,
                name,
                function,
                shared,
                result_bytes=result_bytes,
                budget=budget,
                counter=self.gram.counter,
            )

        # in a pass over rows of F a factorisation holds several copies of a block
        block_bytes = min(BLOCK_BYTES, budget.bytes // 8)
        numbers_of_row = self.transform.rank + self.gram.rows.n_features
        size = max(1, block_bytes // (8 * numbers_of_row))
        return BlockTask(name, function, shared, size)

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
        task = self._task(_squared_norms, self.weights)
        column = gather(self._pass_rows.map(task, 1))
        return floats_on_host(column[:, 0])

    def triangular(self) -> Floats:
        """Return R of F = Q R, shape (K, K)."""
        size = 8 * self.transform.rank**2
        return self.fold(_factorise, merge=triangular_factor, result_bytes=size)

    def positive_part(self, row_cap: int | None) -> tuple[Floats, float]:
        """Return a rotation T with F T (F T)ᵀ the positive semidefinite part of F S Fᵀ.

        It uses `row_cap` rows, or all. The second value is the share of the negative eigenvalues.
        """
        # all rows, or some of them, spread evenly
        n, K = self.shape
        factor = self
        if row_cap is not None:
            most = max(row_cap, 2 * K)
            if n > most:
                spread = spaced_indices(n, most)
                factor = self.only(spread)

        # the eigenvalues of R S Rᵀ, with F = Q R, are those of F S Fᵀ
        eps = self.gram.eps
        R = factor.triangular()
        eigenvalues, basis = spectrum(R, self.weights, eps)
        sizes = np.abs(eigenvalues)
        largest = float(sizes.max(initial=0.0))  # none at all where every feature is zero

        # T = basis √λ, for the eigenvalues λ that are positive
        rounding = ROUNDING * eps * largest
        positive = np.flatnonzero(eigenvalues > rounding)
        roots = np.sqrt(eigenvalues[positive])
        rotation = basis[:, positive] * roots

        # the share of the others
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
    """Return F on the device of V, or on the host if V is there."""
    if isinstance(V, np.ndarray):
        return to_host(F)
    return F


def _total(_: None, F: Array) -> Floats:
    total: Floats = floats_on_host(F).sum(axis=0)
    return total


def _squared_norms(weights: Floats, F: Array) -> Floats:
    squares = floats_on_host(F) ** 2
    norms: Floats = squares @ weights
    return norms[:, None]


def _factorise(_: None, F: Array) -> Floats:
    return triangular_factor(F)


# A learner on all rows


def truncate(gram: Gram, learner: FeatureMap, rank: int) -> FeatureMap:
    """Return (C W⁺ Cᵀ)_k, its best approximation of rank k (Tropp et al. 2017).

    With F = C P = Q R and the leading right singular vectors V_k of R, the projection is P V_k.
    """
    R = Factor(gram, learner).triangular()
    _, _, V_transposed = np.linalg.svd(R)
    V_k = V_transposed[:rank].T
    return learner.times(V_k)


def residual_diagonal(gram: Gram, learner: FeatureMap) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)| (n,) in float64 on the host; rounding is zero."""
    diagonal = gram.host_diag()
    approximated = Factor(gram, learner).squared_norms()
    missing = np.abs(diagonal - approximated)

    # as many eliminations as there are features, each of which rounds
    eliminations = max(1, learner.rank)
    rounding = EXHAUSTED * eliminations * gram.eps * diagonal
    return np.where(missing > rounding, missing, 0.0)


# Tiles of G, with the features of both sides


@dataclass(frozen=True, eq=False)
class Tile:
    """A tile of G: the values of rows X against rows Y, with both rows' features.

    Attributes
    ----------
    G : array of shape (a, b)
        k(X, Y).
    F, H : arrays of shapes (a, K) and (b, K)
        The features of X and of Y.
    rows, columns : arrays of shapes (a, 1) and (b, 1)
        The numbers of the rows X and of the rows Y in the Gram.
    """

    G: Array
    F: Array
    H: Array
    rows: Indices
    columns: Indices


@dataclass(frozen=True, eq=False)
class TilePass(PairTask):
    """A pass over all tiles of G, whose result is function(shared, tile).

    `gram` has no rows. The transform computes features if they do not come with the rows.
    """

    function: TileFunction
    shared: Shared
    gram: Gram
    transform: FeatureMap

    def load(self, block: Array, *aligned: Array) -> tuple[Array, ...]:
        """Return rows, their numbers (b, 1) and their features (b, K)."""
        numbers, *features = aligned
        if not features:
            features = [features_of_block(self.gram, self.transform, block)]
        return block, numbers, *features

    def evaluate(self, upper: list[Numbers], lower: list[Numbers]) -> Floats:
        """Return the function's result for the tile of these rows."""
        X, rows, F = upper
        Y, columns, H = lower
        # the rows of Y are the landmarks of this tile
        landmarks = Landmarks(columns[:, 0], Y)
        G = self.gram.evaluate(X, landmarks)
        tile = Tile(G, F, H, rows, columns)
        return self.function(self.shared, tile)
