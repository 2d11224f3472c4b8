"""All rows, the rows in memory, and which of these are held out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

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

FOLDS = 5
"""Number of folds, if there are few rows; a fifth is held out at most."""

SAMPLE_SHARE = 4
"""Rows in memory take a fourth of the working memory (MNIST has an error of 1.8 % with a fourth,
and 2.1 % with an eighth)."""


def uses_folds(n: int) -> bool:
    """Whether n rows are so few that folds are held out in turn."""
    return n <= FOLDS * tuning.HELD_OUT[0]


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
        if cv not in (None, "time"):
            raise ValueError(f'cv must be None or "time", but {cv!r} was given.')
        if cv is not None and groups is not None:
            raise ValueError('Held-out rows are chosen by groups or by cv="time", not by both.')
        few = uses_folds(rows.n)
        if few:
            X = arrays.in_float64(arrays.dense(rows.take(slice(None))))
            table = SmallTable(X, Y, weights, groups)
            if cv is None:
                table = table.sorted()
            rows, Y, weights, groups = ArrayRows(table.X), table.Y, table.weights, table.groups
        if weights is not None:
            weights = weights * (np.count_nonzero(weights) / weights.sum())

        # held-out rows and as many others as memory holds
        n = rows.n
        held = _count_held(n)
        room = held + max(1, budget.bytes // SAMPLE_SHARE // (8 * rows.n_features))
        if cv == "time":
            order, folds = _hold_out_last(n, held, room, rng)
        elif not few:
            order, folds = _hold_out_part(n, held, room, groups, rng)
        else:
            order, folds = _hold_out_folds(n, held, room, groups, rng)
        if weights is not None:
            order, folds = _drop(order, folds, weights <= 0)

        stored = arrays.dense(rows.take(np.sort(order)))
        X = arrays.in_float64(arrays.take(stored, np.argsort(np.argsort(order))))
        return cls(rows, Y, weights, order, X, folds, int(rng.integers(2**31)), budget)

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
        return [
            Split(np.concatenate([every[:start], every[stop:]]), every[start:stop])
            for start, stop in pairwise(ends)
        ]

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

    def error(self, mean: Floats) -> float:
        """Return the root mean squared error of held-out predictions, shape (h, t)."""
        squares = np.mean((self.Y[self.held] - mean) ** 2, axis=1)
        return float(np.sqrt(np.average(squares, weights=self.mass[self.held])))

    def with_codes(self, codes: PiecewiseCodes | None) -> Data:
        """Return the data with codes added to the features, and fewer rows in memory."""
        if codes is None:
            return self
        room = self.budget.bytes // SAMPLE_SHARE // (8 * len(codes.origins))
        most = sum(self.folds) + room
        rows = with_codes(self.rows, codes)
        X = codes(self.X[:most, :])
        return replace(self, rows=rows, order=self.order[:most], X=X, codes=codes)

    def first_split(self) -> Data:
        """Return the data with the first of the held-out parts alone."""
        return replace(self, folds=self.folds[:1])

    def pilot(self, most: int) -> Data:
        """Return data of at most so many training and held-out rows, of one split."""
        if len(self.order) <= most:
            return self
        n_held = self.folds[0]
        held = np.arange(min(n_held, most))
        train = np.arange(n_held, min(n_held + most, len(self.order)))
        return self._only(np.concatenate([held, train]), (len(held),))

    def in_memory(self, most: int) -> Data:
        """Return data of the rows in memory only, with at most so many training rows."""
        n = min(len(self.order), sum(self.folds) + most)
        return self._only(np.arange(n), self.folds)

    def _only(self, at: Indices, folds: tuple[int, ...]) -> Data:
        X = arrays.take(self.X, at)
        there = self.order[at]
        weights = None if self.weights is None else self.weights[there]
        return replace(
            self,
            rows=ArrayRows(X),
            Y=self.Y[there],
            weights=weights,
            order=np.arange(len(at)),
            X=X,
            folds=folds,
        )

    def sample(self, at: Any = slice(None), scale: Scale | None = None) -> TrainingRows:
        """Return some of the rows in memory, scaled if a scale is given."""
        X = arrays.take(self.X, at)
        there = self.order[at]
        Y = arrays.like(self.Y[there], X)
        weights = None if self.weights is None else arrays.like(self.weights[there], X)
        if scale is not None:
            X = scale(X)
        return TrainingRows(X, Y, weights)

    def cut(self, U: Array, most: int) -> Tree:
        """Return the tree of the rows in memory, mapped to U, which does not depend on the seed."""
        mapped = arrays.take(U, np.argsort(self.order))
        return Tree.of(mapped, most, int(np.count_nonzero(self.mass)))


# Which rows are held out: numbers of rows, those held out first, and the sizes of the folds


def _count_held(n: int) -> int:
    """Return how many of n rows are held out at a time."""
    if uses_folds(n):
        return n // FOLDS
    least, most = tuning.HELD_OUT
    return min(max(n // 10, least), most)


def _hold_out_last(
    n: int, held: int, room: int, rng: np.random.Generator
) -> tuple[Indices, tuple[int, ...]]:
    """Hold out the last rows, in one part."""
    held = min(held, room // FOLDS)
    last = n - held + rng.permutation(held)
    before = rng.permutation(n - held)[: room - held]
    return np.concatenate([last, before]), (held,)


def _hold_out_part(
    n: int, held: int, room: int, groups: Indices | None, rng: np.random.Generator
) -> tuple[Indices, tuple[int, ...]]:
    """Hold out one part of many rows, drawn at random, or whole groups."""
    if groups is None:
        order = rng.permutation(n)[:room]
        return order, (min(held, len(order) // FOLDS),)
    order, ends = _permute_groups(groups, rng)
    _require_groups(ends)
    within = ends[ends <= min(held, room // FOLDS)]
    held = int(max(ends[0], within.max(initial=0)))
    others = held + rng.permutation(n - held)
    return order[np.concatenate([np.arange(held), others])][:room], (held,)


def _hold_out_folds(
    n: int, held: int, room: int, groups: Indices | None, rng: np.random.Generator
) -> tuple[Indices, tuple[int, ...]]:
    """Hold out folds of few rows in turn, as many as make enough held-out rows."""
    if n < 2:
        return np.arange(n), (0,)
    order, ends = _permute_groups(np.arange(n) if groups is None else groups, rng)
    _require_groups(ends)
    ends = ends[ends <= max(room, ends[1])]
    order = order[: ends[-1]]

    parts = np.array_split(np.diff(ends, prepend=0), min(FOLDS, len(ends)))
    sizes = [int(part.sum()) for part in parts]
    enough = -(-tuning.HELD_OUT[0] // max(held, 1))
    return order, tuple(sizes[:enough])


def _permute_groups(groups: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Return the rows, group after group in random order, and where each group ends."""
    _, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
    drawn = rng.permutation(len(counts))
    rank = np.argsort(drawn)
    order = np.argsort(rank[codes], kind="stable")
    return order, np.cumsum(counts[drawn])


def _require_groups(ends: Indices) -> None:
    if len(ends) < 2:
        raise ValueError(
            "All rows are of one group, so that none can be held out: give at least two groups, "
            "or leave groups out."
        )


def _drop(
    order: Indices, folds: tuple[int, ...], dropped: np.ndarray[Any, np.dtype[np.bool_]]
) -> tuple[Indices, tuple[int, ...]]:
    """Return the order and the sizes of the folds without the rows that are dropped."""
    kept = ~dropped[order]
    ends = np.cumsum([0, *folds])
    sizes = [int(np.count_nonzero(kept[start:stop])) for start, stop in pairwise(ends)]
    sizes = [size for size in sizes if size > 0]
    order = order[kept]
    if len(order) < 2 or not sizes:
        return order, (0,)
    return order, tuple(sizes)


# Few rows


@dataclass(frozen=True, eq=False)
class SmallTable:
    """Few rows X (n, d) with targets (n, t), weights (n,) and groups (n,), or None."""

    X: Array
    Y: Floats
    weights: Floats | None
    groups: Indices | None

    def sorted(self) -> SmallTable:
        """Return the rows sorted, without those of weight 0, and equal rows merged into one.

        So the result depends neither on the order of the rows nor on whether a row is repeated or
        has twice the weight. Rows of equal X are one group: they are held out together. In a table
        of few categories they are not, and a row that comes twice stays two rows: held out as one,
        all rows with a label could be missing from training.
        """
        counts = np.ones(self.X.shape[0]) if self.weights is None else self.weights
        columns = [arrays.to_host(self.X), self.Y]
        if self.groups is not None:
            columns.append(self.groups[:, None])
        table = np.concatenate(columns, axis=1)[counts > 0]
        rows, group = np.unique(table, axis=0, return_inverse=True)
        mass = np.bincount(group.ravel(), counts[counts > 0], minlength=len(rows))

        # weights that are whole numbers say how often a row comes
        times = np.ones(len(rows), dtype=np.intp)
        if (np.round(mass) == mass).all():
            times = mass.astype(np.intp)
            times = times // np.gcd.reduce(times)
        n = int(times.sum())
        d = self.X.shape[1]
        changes = np.any(rows[1:, :d] != rows[:-1, :d], axis=1)
        equal_X = np.concatenate([[0], np.cumsum(changes)])
        few_values = equal_X[-1] + 1 < max(FOLDS, tuning.DISTINCT * n)
        if few_values and uses_folds(n):
            rows = np.repeat(rows, times, axis=0)
            equal_X = np.arange(n)
            mass = np.repeat(mass / times, times)

        t = self.Y.shape[1]
        groups = equal_X if self.groups is None else rows[:, d + t].astype(np.intp)
        weights = None if (mass == mass[0]).all() else mass.astype(np.float64)
        return SmallTable(arrays.like(rows[:, :d], self.X), rows[:, d : d + t], weights, groups)
