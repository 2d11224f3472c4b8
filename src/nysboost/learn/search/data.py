"""The data of a search: all rows, the rows in memory, and the held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearPredictor, Moments, moments_of
from nysboost.kernels.metric import Scale
from nysboost.learn.search import tuning
from nysboost.learn.search.loss import TrainingRows
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, spaced_indices
from nysboost.numerics.checks import Budget
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.tree import Tree
from nysboost.rows.rows import ArrayRows, Rows
from nysboost.tables.codes import PiecewiseCodes, with_codes

SAMPLE_SHARE = 4
"""Rows in memory take a quarter of the working memory (MNIST has an error of 1.8 % with a quarter,
and 2.1 % with an eighth)."""

COPIES = 4
"""Dense copies of few rows that a search has at least: sorted and shuffled, raw and scaled."""

FOLDS = 5
"""Number of folds for small tables; at most a fifth of the rows is held out."""


def uses_folds(n: int) -> bool:
    """Whether a table of n rows uses cross-validation."""
    return n <= FOLDS * tuning.HELD_OUT[0]


def count_held(n: int) -> int:
    """Return how many of n rows are held out at a time."""
    if uses_folds(n):
        return n // FOLDS
    least, most = tuning.HELD_OUT
    return min(max(n // 10, least), most)


class Split(NamedTuple):
    """Positions in `Data.order` of training and of held-out rows."""

    train: Indices
    held: Indices


@dataclass(frozen=True, eq=False)
class Data:
    """All rows, with targets (n, t) on the host and weights (n,), and some of them in memory.

    X holds the rows in memory, and `order` their numbers in random order. `folds` are the sizes of
    the parts at the beginning of `order` that are held out in turn. If there are rows for
    `validation`, these are held out instead, and all rows of X are training rows.
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
    validation: TrainingRows | None = None

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
        validation: TrainingRows | None = None,
    ) -> Data:
        """Draw the rows in memory, and choose the held-out rows among them.

        Rows of one of the `groups`, numbers of shape (n,), are held out together. With
        ``cv="time"``, the rows are in order of time, and the last ones are held out. With rows for
        `validation`, none of the table is held out.
        """
        # few rows are sorted, so that their order does not matter
        if uses_folds(rows.n):
            X = _read(rows, np.arange(rows.n), budget)
            table = SmallTable(X, Y, weights, groups)
            if cv is None:
                table = table.sorted()
            rows = ArrayRows(table.X)
            Y = table.Y
            weights = table.weights
            groups = table.groups

        # held-out rows, and as many others as memory holds
        others = _rows_that_fit(rows.n_features, budget)
        if validation is None:
            chosen = hold_out(rows.n, others, groups, cv, rng)
        else:
            chosen = HeldOut(rng.permutation(rows.n)[:others], (0,))

        # weights have the mean 1
        if weights is not None:
            n_counting = np.count_nonzero(weights)
            weights = weights * (n_counting / weights.sum())
            chosen = chosen.without(weights <= 0)

        return cls(
            rows,
            Y,
            weights,
            chosen.order,
            _read(rows, chosen.order, budget),
            chosen.folds,
            int(rng.integers(2**31)),
            budget,
            validation=validation,
        )

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
        """The weight of each row, shape (n,)."""
        if self.weights is None:
            return np.ones(self.rows.n)
        return self.weights

    @cached_property
    def splits(self) -> list[Split]:
        """Training and held-out rows of each fold; in very small tables, all rows are both."""
        every = np.arange(len(self.order))
        if self.validation is not None:
            return [Split(every, every[:0])]
        if sum(self.folds) == 0:
            return [Split(every, every)]

        splits = []
        ends = np.cumsum([0, *self.folds])
        for start, stop in pairwise(ends):
            held = every[start:stop]
            train = np.concatenate([every[:start], every[stop:]])
            splits.append(Split(train, held))
        return splits

    @cached_property
    def held(self) -> TrainingRows:
        """Held-out rows of all folds."""
        if self.validation is not None:
            return self.validation
        return self.sample(np.concatenate([split.held for split in self.splits]))

    @cached_property
    def truth(self) -> Floats:
        """Targets of the held-out rows on the host, shape (h, t)."""
        return arrays.to_host(self.held.Y)

    @cached_property
    def held_mass(self) -> Floats:
        """The weight of each held-out row, shape (h,)."""
        if self.held.weights is None:
            return np.ones(len(self.truth))
        return arrays.to_host(self.held.weights)

    def held_out(self, split: Split) -> TrainingRows:
        """Return the held-out rows of a split."""
        if self.validation is not None:
            return self.validation
        return self.sample(split.held)

    def trains_all(self, split: Split) -> bool:
        """Whether no row of the table is left out: it has too few, or others are for validation."""
        return len(split.train) == len(self.order)

    def mass_without(self, split: Split) -> Floats:
        """Return the weight of each row, with 0 for rows left out of training, shape (n,)."""
        mass = self.mass.copy()
        if not self.trains_all(split):
            held = self.order[split.held]
            mass[held] = 0.0
        return mass

    def error(self, mean: Floats) -> float:
        """Return the root mean squared error of held-out predictions, shape (h, t)."""
        missed = self.truth - mean
        of_rows = np.mean(missed**2, axis=1)
        mse = np.average(of_rows, weights=self.held_mass)
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
        fitting = _rows_that_fit(len(codes.origins), self.budget)
        most = sum(self.folds) + fitting
        some = self.X[:most, :]
        validation = self.validation
        if validation is not None:
            validation = validation._replace(X=codes(validation.X))
        return replace(
            self,
            rows=with_codes(self.rows, codes),
            order=self.order[:most],
            X=codes(some),
            codes=codes,
            validation=validation,
        )

    @property
    def few(self) -> bool:
        """Whether the table is small, and so in memory."""
        return uses_folds(self.rows.n)

    def scaled(self, scale: Scale) -> Data:
        """Return the data of few rows in the coordinates of a search."""
        every = self.rows.take(np.arange(self.rows.n))
        validation = self.validation
        if validation is not None:
            validation = validation._replace(X=scale(validation.X))
        return replace(
            self,
            rows=ArrayRows(scale(every)),
            X=scale(self.X),
            codes=None,
            validation=validation,
        )

    @cached_property
    def coded(self) -> Data:
        """The data with piecewise-linear codes, made once for all candidates that have them."""
        _, enough = tuning.HELD_OUT
        some = self.X[:enough, :]
        codes = PiecewiseCodes.of(some, tuning.CODES)
        return self.with_codes(codes)

    def after(self, model: LinearPredictor) -> Data:
        """Return the data with the residuals of a model as targets."""
        predicted = model.evaluate(self.rows, self.budget)
        validation = self.validation
        if validation is not None:
            of_held = model.evaluate(ArrayRows(validation.X), self.budget)
            validation = validation._replace(Y=validation.Y - of_held)
        return replace(self, Y=self.Y - arrays.to_host(predicted), validation=validation)

    def first_split(self) -> Data:
        """Return the data with only the first held-out part."""
        return replace(self, folds=self.folds[:1])

    def pilot(self, most: int) -> Data:
        """Return the first split with a limited number of training and held-out rows."""
        if len(self.order) <= most:
            return self

        # rows of the first part, and the first of the others
        n_held = self.folds[0]
        every = np.arange(len(self.order))
        held = every[:n_held][:most]
        train = every[n_held:][:most]
        both = np.concatenate([held, train])
        return self._only(both, (len(held),))

    def in_memory(self, most: int) -> Data:
        """Return only the rows in memory, with a limited number of training rows."""
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
        X = arrays.take(self.X, at)

        # targets and weights, from the host to the rows' device
        numbers = self.order[at]
        Y = arrays.like(self.Y[numbers], X)
        weights = None
        if self.weights is not None:
            weights = arrays.like(self.weights[numbers], X)

        if scale is not None:
            X = scale(X)
        return TrainingRows(X, Y, weights)

    def cut(self, U: Array, most: int) -> Tree:
        """Return the tree of the rows in memory, mapped to U; it does not depend on the seed."""
        rising = np.argsort(self.order)
        mapped = arrays.take(U, rising)
        n_counting = int(np.count_nonzero(self.mass))
        return Tree.of(mapped, most, n_counting)


def read_validation(
    rows: Rows,
    Y: Floats,
    weights: Floats | None,
    budget: Budget,
) -> TrainingRows:
    """Return rows for validation with targets (n, t); of many rows, evenly spaced ones."""
    # as many as are held out of a large table, and fit in memory
    _, enough = tuning.HELD_OUT
    fitting = _rows_that_fit(rows.n_features, budget)
    at = spaced_indices(rows.n, min(enough, fitting))

    X = _read(rows, at, budget)
    targets = arrays.like(Y[at], X)
    if weights is None:
        return TrainingRows(X, targets)
    return TrainingRows(X, targets, arrays.like(weights[at], X))


def _read(rows: Rows, order: Indices, budget: Budget) -> Array:
    """Return rows in this order in float64; a table on disk is read in rising order."""
    _refuse_too_wide(rows, len(order), budget)
    rising = np.sort(order)
    rank = np.argsort(np.argsort(order))
    stored = arrays.dense(rows.take(rising))
    return arrays.in_float64(arrays.take(stored, rank))


def _refuse_too_wide(rows: Rows, count: int, budget: Budget) -> None:
    """Raise if `count` sparse rows take more memory as arrays than there is."""
    needed = 8 * count * rows.n_features
    if uses_folds(rows.n):
        needed *= COPIES
    if arrays.is_sparse(rows.template) and needed > budget.bytes:
        raise ValueError(
            f"Landmarks are trained on {count} of the rows as dense arrays, which take about "
            f"{format_bytes(needed)} for {rows.n_features} columns, but max_memory is "
            f"{format_bytes(budget.bytes)}: allow more memory, or take fewer columns, with "
            "sklearn.decomposition.TruncatedSVD for example."
        )


def _rows_that_fit(n_features: int, budget: Budget) -> int:
    """Return the number of float64 rows that fit in the memory for a sample."""
    room = budget.bytes // SAMPLE_SHARE
    return max(1, room // (8 * n_features))


# Which rows are held out


class HeldOut(NamedTuple):
    """Row numbers, with held-out rows first, and the sizes of their folds."""

    order: Indices
    folds: tuple[int, ...]

    def without(self, dropped: NDArray[np.bool_]) -> HeldOut:
        """Return the choice without dropped rows."""
        kept = ~dropped[self.order]
        order = self.order[kept]

        # the sizes of the folds without them
        ends = np.cumsum([0, *self.folds])
        n_kept = np.cumsum([0, *kept])
        sizes = np.diff(n_kept[ends])
        folds = tuple(sizes[sizes > 0].tolist())

        # if none can be held out, all rows are both training and held-out rows
        if len(order) < 2 or not folds:
            return HeldOut(order, (0,))
        return HeldOut(order, folds)


def hold_out(
    n: int,
    others: int,
    groups: Indices | None,
    cv: str | None,
    rng: np.random.Generator,
) -> HeldOut:
    """Choose the held-out rows, and as many `others` as fit in memory.

    Held-out rows are the last rows, folds of a small table in turn, a random part of a large table,
    or whole groups.
    """
    held = count_held(n)
    draw = HeldOutDraw(n, held, held + others, rng)

    if cv == "time":
        return draw.last_rows()
    if uses_folds(n):
        return draw.in_turn(groups)
    if groups is None:
        return draw.random_part()
    return draw.whole_groups(groups)


@dataclass(frozen=True, eq=False)
class HeldOutDraw:
    """A draw of about `held` of n rows to hold out, with `room` for all rows in memory."""

    n: int
    held: int
    room: int
    rng: np.random.Generator

    @property
    def most(self) -> int:
        """Largest number of held-out rows: a fifth of the rows in memory."""
        return min(self.held, self.room // FOLDS)

    def last_rows(self) -> HeldOut:
        """Hold out the last rows, in one part."""
        # at least one row, and one before it, if there are two
        held = max(self.most, min(1, self.n - 1))
        first = self.n - held

        last = first + self.rng.permutation(held)
        before = self.rng.permutation(first)
        order = np.concatenate([last, before[: self.room - held]])
        return HeldOut(order, (held,))

    def random_part(self) -> HeldOut:
        """Hold out one part of many rows, drawn at random."""
        order = self.rng.permutation(self.n)[: self.room]
        return HeldOut(order, (self.most,))

    def whole_groups(self, groups: Indices) -> HeldOut:
        """Hold out whole groups of many rows, in one part."""
        shuffled = ShuffledGroups.of(groups, self.rng)

        # as many groups as come near the number of rows, and at least one
        ends = shuffled.ends
        fitting = ends[ends <= self.most]
        held = int(fitting.max(initial=ends[0]))

        # rows of the other groups in random order
        first = np.arange(held)
        others = held + self.rng.permutation(self.n - held)
        places = np.concatenate([first, others])[: self.room]
        return HeldOut(shuffled.order[places], (held,))

    def in_turn(self, groups: Indices | None) -> HeldOut:
        """Hold out folds of few rows in turn, until there are enough held-out rows."""
        if self.n < 2:
            return HeldOut(np.arange(self.n), (0,))

        # groups in random order, as many as memory holds
        if groups is None:
            groups = np.arange(self.n)
        shuffled = ShuffledGroups.of(groups, self.rng)
        ends = shuffled.ends
        fitting = max(self.room, ends[1])
        ends = ends[ends <= fitting]
        order = shuffled.order[: ends[-1]]

        # each fold has about as many groups
        sizes_of_groups = np.diff(ends, prepend=0)
        n_parts = min(FOLDS, len(ends))
        parts = np.array_split(sizes_of_groups, n_parts)
        sizes = [int(part.sum()) for part in parts]

        # of larger folds fewer are enough, but two at least
        enough = math.ceil(tuning.FOLD_ROWS / max(self.held, 1))
        n_folds = max(2, enough)
        return HeldOut(order, tuple(sizes[:n_folds]))


class ShuffledGroups(NamedTuple):
    """Row numbers, group by group in random order, and the end of each group."""

    order: Indices
    ends: Indices

    @classmethod
    def of(cls, groups: Indices, rng: np.random.Generator) -> ShuffledGroups:
        """Shuffle groups, numbers of shape (n,)."""
        _, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
        if len(counts) < 2:
            raise ValueError(
                "All rows belong to one group, so none can be held out: give at least two groups, "
                "or leave groups out."
            )

        # the rank of each group in random order sorts its rows
        drawn = rng.permutation(len(counts))
        rank = np.argsort(drawn)
        order = np.argsort(rank[codes], kind="stable")
        return cls(order, np.cumsum(counts[drawn]))


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

        So the result depends neither on the order of the rows, nor on whether a row is repeated or
        has twice the weight. Rows with equal X are one group, and held out together. In a table
        with few distinct rows, they are not grouped or merged, because otherwise all rows with a
        label could be missing from training.
        """
        d = self.X.shape[1]
        t = self.Y.shape[1]
        rows, mass = self._merge_equal_rows()
        groups = _number_equal_rows(rows[:, :d])

        # rows that come several times, in a table of few categories
        times = _whole_number_weights(mass)
        n = int(times.sum())
        n_distinct = groups[-1] + 1
        few_values = n_distinct < max(FOLDS, tuning.DISTINCT * n)
        if few_values and uses_folds(n):
            rows = np.repeat(rows, times, axis=0)
            mass = np.repeat(mass / times, times)
            groups = np.arange(n)

        # the user's groups are the last column
        if self.groups is not None:
            groups = rows[:, -1].astype(np.intp)
        X = arrays.like(rows[:, :d], self.X)
        Y = rows[:, d : d + t]
        return SmallTable(X, Y, _unless_equal(mass), groups)

    def _merge_equal_rows(self) -> tuple[Floats, Floats]:
        """Return the distinct rows of X, Y and groups, sorted, and the weight of each."""
        parts = [arrays.to_host(self.X), self.Y]
        if self.groups is not None:
            parts.append(self.groups[:, None])
        table = np.concatenate(parts, axis=1)

        # rows that count
        counts = np.ones(len(table))
        if self.weights is not None:
            counts = self.weights
        is_kept = counts > 0
        table = table[is_kept]
        counts = counts[is_kept]

        # the weight of equal rows is the sum of theirs
        rows, number = np.unique(table, axis=0, return_inverse=True)
        mass = np.bincount(number.ravel(), counts)
        return rows, np.asarray(mass, dtype=np.float64)


def _number_equal_rows(X: Floats) -> Indices:
    """Return a number for each sorted row, the same for equal rows, shape (n,)."""
    changes = np.any(X[1:] != X[:-1], axis=1)
    return np.concatenate([[0], np.cumsum(changes)])


def _whole_number_weights(mass: Floats) -> Indices:
    """Return the count of each row if weights are whole numbers, else 1."""
    if (np.round(mass) != mass).any():
        return np.ones(len(mass), dtype=np.intp)
    times = mass.astype(np.intp)
    return np.asarray(times // np.gcd.reduce(times))


def _unless_equal(mass: Floats) -> Floats | None:
    """Return weights, or None if all are the same."""
    if (mass == mass[0]).all():
        return None
    return mass.astype(np.float64)
