"""F = k(X, Z) N on all rows: kept where it fits, else computed when asked for; sums over rows."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from nysboost.features.feature_map import FeatureMap, FeaturePass, features_of
from nysboost.gram import Gram
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, like
from nysboost.numerics.budget import Budget
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.linalg import spectrum, triangular_factor
from nysboost.numerics.tolerances import ROUNDING, cutoff
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.driver import BlockTask, Task
from nysboost.rows.lazy import gather
from nysboost.rows.rows import Rows

T = TypeVar("T")

BLOCK_BYTES = 2**25  # a block of features of this size is factorised at full speed


class Factor:
    """The n×K matrix F of features, x ↦ k(x, Z) N on `rows`, of an approximation F S Fᵀ.

    `weights` (K,) are the diagonal of S, ones if None; `kept` is F where it is known.
    """

    def __init__(
        self,
        gram: Gram,
        transform: FeatureMap,
        weights: Floats | None = None,
        rows: Rows | None = None,
        F: Array | None = None,
    ) -> None:
        self.gram, self.transform = gram, transform
        self.weights = np.ones(transform.rank) if weights is None else weights
        self.rows = gram.rows if rows is None else rows
        self.kept = F

    @property
    def shape(self) -> tuple[int, int]:
        """(n, K)."""
        return self.rows.n, self.transform.rank

    def fits(self, n: int) -> bool:
        """Whether the features of n rows may be kept: in half of the working memory."""
        gram = self.gram
        return bool(n * self.shape[1] * gram.dtype.itemsize <= gram.budget.bytes // 2)

    def keep(self) -> Array | None:
        """Return F, computed and kept if it fits, else None."""
        if self.kept is None and self.fits(self.rows.n) and not self.rows.lazy:
            self.kept = self._features()
        return self.kept

    def all(self) -> Array:
        """Return F, shape (n, K)."""
        F = self.keep()
        return self._features() if F is None else F

    def _features(self) -> Array:
        return self.transform.write(self.rows, None, self.gram.budget, self.gram.counter)

    def _task(self, **done: Any) -> FeaturePass:
        budget, counter = self.gram.budget, self.gram.counter
        return FeaturePass(self.transform, budget=budget, counter=counter, **done)

    def at(self, rows: Indices) -> Array:
        """Return F[rows], shape (len(rows), K), without computing the other rows."""
        if self.kept is None:
            return features_of(self.gram, self.transform, rows)
        return arrays.take(self.kept, rows)

    def only(self, rows: Indices) -> Factor:
        """Return the factor of some rows, kept where it fits."""
        some = self.rows.only(rows)
        fits = self.kept is not None or (self.fits(len(rows)) and not some.lazy)
        return Factor(
            self.gram, self.transform, self.weights, some, self.at(rows) if fits else None
        )

    # Passes over all rows

    def map(
        self, function: Callable[..., Array], shared: Any, columns: int, *aligned: Array
    ) -> Array:
        """Return function(shared, F[block], *others[block]) for all blocks of rows, (n, columns).

        The function can be pickled; each of `aligned` is a table of the same rows.
        """
        self.keep()
        rows, task = self._pass(function, shared)
        return rows.map(task, columns, *aligned)

    def fold(
        self,
        function: Callable[..., T],
        shared: Any = None,
        *aligned: Array,
        merge: Callable[[T, T], T] = operator.add,
        result_bytes: int = 0,
    ) -> T:
        """Return function(shared, F[block], *others[block]) of all blocks, merged in pairs."""
        self.keep()
        rows, task = self._pass(function, shared, result_bytes)
        return rows.fold(task, merge, *aligned)

    def _pass(
        self, function: Callable[..., Any], shared: Any, result_bytes: int = 0
    ) -> tuple[Rows, Task]:
        """Return the rows of a pass, X or F itself, and what is done to a block of them."""
        name, F, gram = function.__name__.strip("_"), self.kept, self.gram
        if F is None:
            how = {"function": function, "shared": shared, "result_bytes": result_bytes}
            return self.rows, self._task(name=name, **how)
        # a factorisation holds several copies of a block
        row = 8 * (self.shape[1] + gram.rows.n_features)
        size = max(1, min(BLOCK_BYTES, gram.budget.bytes // 8) // row)
        return ArrayRows(F), BlockTask(name, function, shared, size)

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
        return floats_on_host(gather(rows.map(task, 1))[:, 0])

    def triangular(self) -> Floats:
        """Return R of F = Q R, shape (K, K)."""
        size = 8 * self.shape[1] ** 2
        return self.fold(_factorise, merge=triangular_factor, result_bytes=size)

    def positive_part(self, row_cap: int | None) -> tuple[Floats, float]:
        """Return a rotation T with F T (F T)ᵀ the positive semidefinite part of F S Fᵀ.

        `row_cap` rows take part, or all. The second value is the negative eigenvalues' share.
        """
        (n, K), eps = self.shape, self.gram.eps
        size = n if row_cap is None else max(row_cap, 2 * K)
        factor = self if n <= size else self.only(spaced_indices(n, size))
        eigenvalues, basis = spectrum(factor.triangular(), self.weights, eps)
        sizes = np.abs(eigenvalues)  # none at all where every feature is zero
        floor = cutoff(ROUNDING, eps) * float(sizes.max(initial=0.0))
        positive = np.flatnonzero(eigenvalues > floor)
        rotation = basis[:, positive] * np.sqrt(eigenvalues[positive])
        mass = float(sizes[eigenvalues < 0].sum() / (sizes.sum() or 1.0))
        return rotation, mass


# Functions of a block of features, which can be pickled for the workers of a pass


def _inner(_: None, F: Array, V: Array) -> Array:
    return _beside(F, V).T @ V


def _times(T: Array, F: Array) -> Array:
    return _beside(F, T) @ T


def _beside(F: Array, V: Array) -> Array:
    return arrays.to_host(F) if isinstance(V, np.ndarray) else F


def _total(_: None, F: Array) -> Floats:
    return np.asarray(floats_on_host(F).sum(axis=0))


def _squared_norms(weights: Floats, F: Array) -> Floats:
    return np.asarray(floats_on_host(F) ** 2 @ weights)[:, None]


def _factorise(_: None, F: Array) -> Floats:
    return triangular_factor(F)


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over n rows with features F (n, r) and targets Y (n, t).

    `weight` is Σω; F (r,) and Y (t,) are Σωf and Σωy; FF (r, r), FY (r, t) and YY (t,) are Σωffᵀ,
    Σωfyᵀ and Σωy².
    """

    weight: Array
    F: Array
    Y: Array
    FF: Array
    FY: Array
    YY: Array

    @classmethod
    def of(cls, F: Array, Y: Array, weights: Array | None = None) -> Moments:
        """Return the moments of rows in memory."""
        xp = arrays.namespace(F)
        if weights is None:  # FᵀF of one and the same array costs BLAS half of a product
            G, V, count = F, Y, xp.ones_like(F[:, 0])
        else:
            G, V, count = F * weights[:, None], Y * weights[:, None], weights
        return cls(
            xp.sum(count), xp.sum(G, axis=0), xp.sum(V, axis=0), G.T @ F, G.T @ Y,
            xp.sum(V * Y, axis=0),
        )  # fmt: skip

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*(getattr(self, f.name) - getattr(other, f.name) for f in fields(self)))

    @property
    def mean(self) -> Array:
        """The mean target, shape (t,)."""
        return self.Y / self.weight


def moments_of(
    transform: FeatureMap,
    rows: Rows,
    Y: Array,
    *,
    weights: Array | None = None,
    budget: Budget | None = None,
) -> Moments:
    """Return the moments of all rows in one pass, in float64; Y is (n, t), `weights` (n,)."""
    size = 8 * transform.rank * (transform.rank + Y.shape[1])
    task = FeaturePass(transform, "moments", _moments, None, size, double=True, budget=budget)
    found: Moments = rows.fold(
        task, operator.add, Y, *([] if weights is None else [weights[:, None]])
    )
    return found


def _moments(_: None, F: Array, Y: Array, weights: Array | None = None) -> Moments:
    return Moments.of(F, like(Y, F), None if weights is None else like(weights[:, 0], F))
