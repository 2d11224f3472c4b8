"""Which rows are held out, and how few rows are sorted before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nysboost.learn.search import tuning
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices

FOLDS = 5
"""Number of folds, if there are few rows; a fifth is held out at most."""


def uses_folds(n: int) -> bool:
    """Whether n rows are so few that folds are held out in turn."""
    return n <= FOLDS * tuning.HELD_OUT[0]


def count_held(n: int) -> int:
    """Return how many of n rows are held out at a time."""
    if uses_folds(n):
        return n // FOLDS
    least, most = tuning.HELD_OUT
    return min(max(n // 10, least), most)


class HeldOut(NamedTuple):
    """Numbers of rows, those held out first, and the sizes of the folds that they form."""

    order: Indices
    folds: tuple[int, ...]

    def without(self, dropped: NDArray[np.bool_]) -> HeldOut:
        """Return the choice without the rows that are dropped, shape (n,)."""
        kept = ~dropped[self.order]
        ends = np.cumsum([0, *self.folds])
        # the sizes of the folds without them
        n_kept = np.cumsum([0, *kept])
        sizes = np.diff(n_kept[ends])
        folds = tuple(sizes[sizes > 0].tolist())

        order = self.order[kept]
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
    """Choose the rows that are held out, and as many `others` as memory holds.

    They are the last ones in the order of time; folds of few rows, in turn; one random part of many
    rows; or whole groups.
    """
    held = count_held(n)
    room = held + others

    if cv == "time":
        return _last_rows(n, held, room, rng)
    if uses_folds(n):
        return _folds(n, held, room, groups, rng)
    if groups is None:
        return _random_part(n, held, room, rng)
    return _whole_groups(n, held, room, groups, rng)


def _last_rows(n: int, held: int, room: int, rng: np.random.Generator) -> HeldOut:
    """Hold out the last rows, in one part."""
    held = max(min(held, room // FOLDS), min(1, n - 1))
    last = n - held + rng.permutation(held)
    before = rng.permutation(n - held)[: room - held]
    return HeldOut(np.concatenate([last, before]), (held,))


def _random_part(n: int, held: int, room: int, rng: np.random.Generator) -> HeldOut:
    """Hold out one part of many rows, drawn at random."""
    order = rng.permutation(n)[:room]
    held = min(held, len(order) // FOLDS)
    return HeldOut(order, (held,))


def _whole_groups(
    n: int,
    held: int,
    room: int,
    groups: Indices,
    rng: np.random.Generator,
) -> HeldOut:
    """Hold out whole groups of many rows, in one part."""
    shuffled = ShuffledGroups.of(groups, rng)

    # as many groups as come near the number of rows, and at least one
    ends = shuffled.ends
    fitting = ends[ends <= min(held, room // FOLDS)]
    held = int(fitting.max(initial=ends[0]))

    training = held + rng.permutation(n - held)
    places = np.concatenate([np.arange(held), training])[:room]
    return HeldOut(shuffled.order[places], (held,))


def _folds(
    n: int,
    held: int,
    room: int,
    groups: Indices | None,
    rng: np.random.Generator,
) -> HeldOut:
    """Hold out folds of few rows in turn, as many as make enough held-out rows."""
    if n < 2:
        return HeldOut(np.arange(n), (0,))

    # groups in random order, as many as memory holds
    if groups is None:
        groups = np.arange(n)
    shuffled = ShuffledGroups.of(groups, rng)
    ends = shuffled.ends
    ends = ends[ends <= max(room, ends[1])]

    # each fold has about as many groups
    sizes_of_groups = np.diff(ends, prepend=0)
    parts = np.array_split(sizes_of_groups, min(FOLDS, len(ends)))
    sizes = [int(part.sum()) for part in parts]

    # of larger folds fewer are enough, but two at least
    n_folds = max(2, -(-tuning.FOLD_ROWS // max(held, 1)))
    order = shuffled.order[: ends[-1]]
    return HeldOut(order, tuple(sizes[:n_folds]))


class ShuffledGroups(NamedTuple):
    """Rows, group after group in random order, and where each group ends."""

    order: Indices
    ends: Indices

    @classmethod
    def of(cls, groups: Indices, rng: np.random.Generator) -> ShuffledGroups:
        """Shuffle groups, numbers of shape (n,)."""
        _, codes, counts = np.unique(groups, return_inverse=True, return_counts=True)
        if len(counts) < 2:
            raise ValueError(
                "All rows are of one group, so that none can be held out: give at least two "
                "groups, or leave groups out."
            )

        # the rank of each group in random order sorts its rows
        drawn = rng.permutation(len(counts))
        rank = np.argsort(drawn)
        order = np.argsort(rank[codes], kind="stable")
        return cls(order, np.cumsum(counts[drawn]))


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

        if self.groups is not None:
            groups = rows[:, d + t].astype(np.intp)
        X = arrays.like(rows[:, :d], self.X)
        return SmallTable(X, rows[:, d : d + t], _unless_equal(mass), groups)

    def _merge_equal_rows(self) -> tuple[Floats, Floats]:
        """Return the distinct rows of X, Y and groups, sorted, and the weight of each."""
        parts = [arrays.to_host(self.X), self.Y]
        if self.groups is not None:
            parts.append(self.groups[:, None])
        table = np.concatenate(parts, axis=1)

        counts = np.ones(len(table))
        if self.weights is not None:
            counts = self.weights
        table = table[counts > 0]
        counts = counts[counts > 0]

        rows, number = np.unique(table, axis=0, return_inverse=True)
        mass = np.bincount(number.ravel(), counts)
        return rows, np.asarray(mass, dtype=np.float64)


def _number_equal_rows(X: Floats) -> Indices:
    """Return the number of each sorted row, the same for equal ones, shape (n,)."""
    changes = np.any(X[1:] != X[:-1], axis=1)
    return np.concatenate([[0], np.cumsum(changes)])


def _whole_number_weights(mass: Floats) -> Indices:
    """Return how often each row comes, if weights are whole numbers, else once."""
    if (np.round(mass) != mass).any():
        return np.ones(len(mass), dtype=np.intp)
    times = mass.astype(np.intp)
    return np.asarray(times // np.gcd.reduce(times))


def _unless_equal(mass: Floats) -> Floats | None:
    """Return weights, or None if all are the same."""
    if (mass == mass[0]).all():
        return None
    return mass.astype(np.float64)
