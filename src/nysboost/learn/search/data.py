"""All rows, the rows in memory, and which of these are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from nysboost.kernels.scaling import Scale
from nysboost.learn.search import tuning
from nysboost.learn.search.loss import TrainingRows
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.budget import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.array_rows import ArrayRows
from nysboost.rows.rows import Rows
from nysboost.tables.piecewise import PiecewiseCodes, with_codes

FOLDS, SAMPLE_SHARE = 5, 4
"""Number of folds, if there are few rows; rows in memory take a fourth of the working memory (MNIST
has an error of 1.8 % with a fourth, and 2.1 % with an eighth)."""


def uses_folds(n: int) -> bool:
    """Whether n rows are so few that folds are held out in turn."""
    return n <= FOLDS * tuning.HELD_OUT[0]


@dataclass(frozen=True, eq=False)
class Data:
    """All rows, with targets (n, t) on the host and weights (n,), and some of them in memory.

    `order` are the numbers of those, in random order, and X the rows themselves; `folds` are the
    sizes of the parts, from the beginning of `order`, that are held out in turn.
    """

    rows: Any
    Y: Floats
    weights: Floats | None
    order: Indices
    X: Array
    folds: tuple[int, ...]
    seed: int
    budget: Budget
    codes: PiecewiseCodes | None = None

    @classmethod
    def draw(
        cls, rows: Rows, Y: Floats, weights: Floats | None, rng: np.random.Generator, budget: Budget
    ) -> Data:
        """Draw rows into memory; few rows are sorted first."""
        least, most = tuning.HELD_OUT
        few = uses_folds(rows.n)
        if few:
            X = arrays.in_float64(arrays.dense(rows.take(slice(None))))
            X, Y, weights = _sort_rows(X, Y, weights)
            rows = ArrayRows(X)
        n, room = rows.n, budget.bytes // SAMPLE_SHARE // (8 * rows.n_features)
        held = n // FOLDS if few else min(max(n // 10, least), most)
        order = rng.permutation(n)[: held + max(1, room)]
        if weights is not None:
            order = order[weights[order] > 0]
            weights = weights * (np.count_nonzero(weights) / weights.sum())
        if few:  # as many folds as make enough rows
            count = min(FOLDS, -(-least // max(held, 1)))
            sizes = [len(part) for part in np.array_split(order, FOLDS)[:count]]
            folds = tuple(size for size in sizes if size) if len(order) > 1 else (0,)
        else:
            folds = (min(held, len(order) // FOLDS),)
        stored = arrays.dense(rows.take(np.sort(order)))
        X = arrays.in_float64(arrays.take(stored, np.argsort(np.argsort(order))))
        return cls(rows, Y, weights, order, X, folds, int(rng.integers(2**31)), budget)

    @property
    def mass(self) -> Floats:
        """How often each row counts, shape (n,)."""
        return np.ones(self.rows.n) if self.weights is None else self.weights

    @cached_property
    def splits(self) -> list[tuple[Indices, Indices]]:
        """Positions in `order` of training and held-out rows of each fold."""
        ends, every = np.cumsum([0, *self.folds]), np.arange(len(self.order))
        if ends[-1] == 0:
            return [(every, every)]
        return [(np.r_[every[:a], every[b:]], every[a:b]) for a, b in pairwise(ends)]

    @cached_property
    def held(self) -> Indices:
        """Held-out rows of all folds, shape (h,)."""
        return np.asarray(self.order[np.concatenate([held for _, held in self.splits])])

    def with_codes(self, codes: PiecewiseCodes | None) -> Data:
        """Return the data with codes added to the features, and fewer rows in memory."""
        if codes is None:
            return self
        most = sum(self.folds) + self.budget.bytes // SAMPLE_SHARE // (8 * len(codes.origins))
        order, X, rows = self.order[:most], codes(self.X[:most, :]), with_codes(self.rows, codes)
        return replace(self, rows=rows, order=order, X=X, codes=codes)

    def pilot(self, most: int) -> Data:
        """Return data of at most so many training and held-out rows, if there is one split."""
        if len(self.folds) > 1 or len(self.order) <= most:
            return self
        held = min(self.folds[0], most)
        at = np.r_[:held, self.folds[0] : self.folds[0] + most][: len(self.order)]
        return self._only(at, (held,))

    def in_memory(self, most: int) -> Data:
        """Return data of the rows in memory only, with at most so many training rows."""
        return self._only(np.arange(min(len(self.order), sum(self.folds) + most)), self.folds)

    def _only(self, at: Indices, folds: tuple[int, ...]) -> Data:
        X, there = arrays.take(self.X, at), self.order[at]
        weights = None if self.weights is None else self.weights[there]
        few = ArrayRows(X), self.Y[there], weights, np.arange(len(at)), X, folds
        return Data(*few, self.seed, self.budget, self.codes)

    def sample(self, at: Any = slice(None), scale: Scale | None = None) -> TrainingRows:
        """Return some of the rows in memory, scaled if a scale is given."""
        X, there = arrays.take(self.X, at), self.order[at]
        weights = None if self.weights is None else arrays.like(self.weights[there], X)
        return TrainingRows(X if scale is None else scale(X), arrays.like(self.Y[there], X), weights)

    def cut(self, U: Array, most: int) -> Tree:
        """Return the tree of the rows in memory, mapped to U, which does not depend on the seed."""
        mapped = arrays.take(U, np.argsort(self.order))
        return Tree.of(mapped, most, int(np.count_nonzero(self.mass)))


def _sort_rows(X: Any, Y: Floats, weights: Floats | None) -> tuple[Any, Floats, Floats | None]:
    """Return the rows sorted, without those of weight 0, and equal rows merged into one.

    So the result depends neither on the order of the rows nor on whether a row is repeated or has
    twice the weight. If many rows are equal, each is repeated instead: held out as one, all rows
    with a label could be missing from training.
    """
    counts = np.ones(X.shape[0]) if weights is None else weights
    both = np.concatenate([arrays.to_host(X), Y], axis=1)[counts > 0]
    distinct, group = np.unique(both, axis=0, return_inverse=True)
    added = np.bincount(group.ravel(), counts[counts > 0], minlength=len(distinct))
    d, times = X.shape[1], np.round(added).astype(np.intp)
    times = times // np.gcd.reduce(times) if (times == added).all() else np.ones_like(times)
    if len(distinct) < tuning.DISTINCT * times.sum() and uses_folds(int(times.sum())):
        distinct, added = np.repeat(distinct, times, axis=0), np.ones(times.sum())
    X, Y = arrays.like(distinct[:, :d], X), distinct[:, d:]
    return X, Y, None if (added == added[0]).all() else added.astype(np.float64)
