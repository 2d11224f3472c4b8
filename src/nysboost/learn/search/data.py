"""All rows, the rows in memory, and which of these are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import Moments, moments_of
from nysboost.kernels.scaling import Scale
from nysboost.learn.search.loss import TrainingRows
from nysboost.learn.search.splits import SmallTable, hold_out, uses_folds
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.checks import Budget
from nysboost.numerics.tree import Tree
from nysboost.rows.rows import ArrayRows, Rows
from nysboost.tables.piecewise import PiecewiseCodes, with_codes

SAMPLE_SHARE = 4
"""Rows in memory take a fourth of the working memory (MNIST has an error of 1.8 % with a fourth,
and 2.1 % with an eighth)."""


class Split(NamedTuple):
    """Positions in `Data.order` of training and of held-out rows."""

    train: Indices
    held: Indices


@dataclass(frozen=True, eq=False)
class Data:
    """All rows, with targets (n, t) on the host and weights (n,), and some of them in memory.

    `order` are the numbers of those, in random order, and X the rows themselves; `folds` are the
    sizes of the parts, from the beginning of `order`, that are held out in turn.
    """

    rows: Rows
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
        cls,
        rows: Rows,
        Y: Floats,
        weights: Floats | None,
        rng: np.random.Generator,
        budget: Budget,
        *,
        groups: Indices | None = None,
        cv: str | None = None,
    ) -> Data:
        """Draw rows into memory, and decide which of them are held out.

        Rows of one of the `groups`, numbers of shape (n,), are held out together. With
        ``cv="time"`` the rows are in the order of time, and the last ones are held out.
        """
        _check_cv(cv, groups)

        # few rows are sorted, so that their order does not matter
        if uses_folds(rows.n):
            X = arrays.in_float64(arrays.dense(rows.take(slice(None))))
            table = SmallTable(X, Y, weights, groups)
            if cv is None:
                table = table.sorted()
            rows = ArrayRows(table.X)
            Y = table.Y
            weights = table.weights
            groups = table.groups

        # held-out rows, and as many others as memory holds; weights have the mean 1
        others = max(1, _rows_that_fit(rows.n_features, budget))
        chosen = hold_out(rows.n, others, groups, cv, rng)
        if weights is not None:
            weights = weights * (np.count_nonzero(weights) / weights.sum())
            chosen = chosen.without(weights <= 0)

        # a table on disk is read in rising order
        stored = arrays.dense(rows.take(np.sort(chosen.order)))
        rank = np.argsort(np.argsort(chosen.order))
        X = arrays.in_float64(arrays.take(stored, rank))
        seed = int(rng.integers(2**31))
        return cls(rows, Y, weights, chosen.order, X, chosen.folds, seed, budget)

    @property
    def uses_folds(self) -> bool:
        """Whether several parts are held out in turn."""
        return len(self.folds) > 1

    @property
    def n_outputs(self) -> int:
        """Number of targets, t."""
        return int(self.Y.shape[1])

    @property
    def mass(self) -> Floats:
        """How often each row counts, shape (n,)."""
        if self.weights is None:
            return np.ones(self.rows.n)
        return self.weights

    @cached_property
    def splits(self) -> list[Split]:
        """Training and held-out rows of each fold; of too few rows, all are both."""
        ends = np.cumsum([0, *self.folds])
        every = np.arange(len(self.order))
        if ends[-1] == 0:
            return [Split(every, every)]

        splits = []
        for start, stop in pairwise(ends):
            train = np.concatenate([every[:start], every[stop:]])
            splits.append(Split(train, every[start:stop]))
        return splits

    @cached_property
    def held(self) -> Indices:
        """Held-out rows of all folds, shape (h,)."""
        return np.asarray(self.order[self._held_positions])

    @cached_property
    def _held_positions(self) -> Indices:
        return np.concatenate([split.held for split in self.splits])

    @property
    def held_rows(self) -> Array:
        """Held-out rows of all folds, shape (h, d)."""
        return arrays.take(self.X, self._held_positions)

    def overlaps(self, split: Split) -> bool:
        """Whether the held-out rows are training rows too, because there are too few."""
        return len(split.held) == len(self.order)

    def mass_without(self, split: Split) -> Floats:
        """Return how often each row counts, with 0 for the held-out ones, shape (n,)."""
        mass = self.mass.copy()
        if not self.overlaps(split):
            mass[self.order[split.held]] = 0.0
        return mass

    def error(self, mean: Floats) -> float:
        """Return the root mean squared error of held-out predictions, shape (h, t)."""
        missed = self.Y[self.held] - mean
        of_rows = np.mean(missed**2, axis=1)
        mse = np.average(of_rows, weights=self.mass[self.held])
        return float(np.sqrt(mse))

    def moments(self, features: FeatureMap) -> Moments:
        """Return the sums over all rows of features and targets."""
        return moments_of(
            features,
            self.rows,
            self.Y,
            weights=self.weights,
            budget=self.budget,
        )

    def with_codes(self, codes: PiecewiseCodes) -> Data:
        """Return the data with codes added to the features, and fewer rows in memory."""
        most = sum(self.folds) + _rows_that_fit(len(codes.origins), self.budget)
        return replace(
            self,
            rows=with_codes(self.rows, codes),
            order=self.order[:most],
            X=codes(self.X[:most, :]),
            codes=codes,
        )

    def first_split(self) -> Data:
        """Return the data with the first of the held-out parts alone."""
        return replace(self, folds=self.folds[:1])

    def pilot(self, most: int) -> Data:
        """Return data of at most so many training and held-out rows, of one split."""
        if len(self.order) <= most:
            return self

        # rows of the first part, and the first of the others
        n_held = self.folds[0]
        every = np.arange(len(self.order))
        held = every[:n_held][:most]
        train = every[n_held:][:most]
        return self._only(np.concatenate([held, train]), (len(held),))

    def in_memory(self, most: int) -> Data:
        """Return data of the rows in memory only, with at most so many training rows."""
        n = min(len(self.order), sum(self.folds) + most)
        return self._only(np.arange(n), self.folds)

    def _only(self, at: Indices, folds: tuple[int, ...]) -> Data:
        """Return data of the rows in memory at some positions of `order`."""
        sample = self.sample(at)
        numbers = self.order[at]
        weights = None
        if self.weights is not None:
            weights = self.weights[numbers]
        return replace(
            self,
            rows=ArrayRows(sample.X),
            Y=self.Y[numbers],
            weights=weights,
            order=np.arange(len(at)),
            X=sample.X,
            folds=folds,
        )

    def sample(
        self,
        at: Indices | slice = slice(None),
        scale: Scale | None = None,
    ) -> TrainingRows:
        """Return some of the rows in memory, scaled if a scale is given."""
        # rows, and targets and weights where they are
        X = arrays.take(self.X, at)
        numbers = self.order[at]
        Y = arrays.like(self.Y[numbers], X)
        weights = None
        if self.weights is not None:
            weights = arrays.like(self.weights[numbers], X)
        if scale is not None:
            X = scale(X)
        return TrainingRows(X, Y, weights)

    def cut(self, U: Array, most: int) -> Tree:
        """Return the tree of the rows in memory, mapped to U, which does not depend on the seed."""
        mapped = arrays.take(U, np.argsort(self.order))
        n_counting = int(np.count_nonzero(self.mass))
        return Tree.of(mapped, most, n_counting)


def _check_cv(cv: str | None, groups: Indices | None) -> None:
    """Raise unless held-out rows can be chosen as asked for."""
    if cv not in (None, "time"):
        raise ValueError(f'cv must be None or "time", but {cv!r} was given.')
    if cv is not None and groups is not None:
        raise ValueError('Held-out rows are chosen by groups or by cv="time", not by both.')


def _rows_that_fit(n_features: int, budget: Budget) -> int:
    """Return how many rows of float64 the share of memory for a sample holds."""
    return budget.bytes // SAMPLE_SHARE // (8 * n_features)
