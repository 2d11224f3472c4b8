"""The learners in the order found, with V1 and V2, and the columns that no learner has used."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.boosting.learner import Mixture
from nysboost.boosting.rules import Rule
from nysboost.boosting.validation import FeatureTable, Found, ValidationSet
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import Gram, take_sample
from nysboost.numerics.arrays import Floats, Indices
from nysboost.settings import Settings, Sizes

ROWS_PER_COLUMN = 4
"""A sample has at least so many rows for each column that a run takes from it: with fewer the
last learners would have to take whatever is left."""


class Pool:
    """Columns still allowed, as a boolean mask. No column leaves it twice."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def free(self, among: Indices | None = None) -> Indices:
        """Return the columns that are still allowed, all or some, in rising order."""
        return np.flatnonzero(self._free) if among is None else among[self._free[among]]

    def sample(
        self,
        size: int,
        rng: np.random.Generator,
        shares: Floats | None = None,
        among: Indices | None = None,
    ) -> Indices:
        """Return up to `size` free columns without repetition, all or of `among`; they stay free.

        They are drawn in proportion to `shares`, of shape (n,), or uniformly.
        """
        free = self.free(among)
        size = min(size, len(free))
        if shares is None or not shares[free].any():
            return rng.choice(free, size=size, replace=False)
        mine = shares[free] / shares[free].sum()
        drawn = rng.choice(free, size=min(size, int(np.count_nonzero(mine))), replace=False, p=mine)
        rest = rng.choice(np.setdiff1d(free, drawn), size=size - len(drawn), replace=False)
        return np.concatenate([drawn, rest])

    def part(self, size: int, rng: np.random.Generator, apart_from: Indices) -> Indices:
        """Return `size` free columns, or all, in rising order, if possible not of `apart_from`."""
        free = self.free()
        others = np.setdiff1d(free, apart_from)
        return sample_rows(others if len(others) >= size else free, size, rng)

    def draw(self, size: int, rng: np.random.Generator) -> Indices:
        """Take `size` free columns out of the pool, uniformly."""
        columns = self.sample(size, rng)
        if len(columns) < size:
            raise ValueError(
                f"Only {len(columns)} columns are left, but a learner needs {size}. "
                "Lower n_learners or n_columns, or give more rows."
            )
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Take these columns out of the pool."""
        self._free[columns] = False


def start(
    gram: Gram, settings: Settings, sizes: Sizes, rng: np.random.Generator, *, whole: bool = True
) -> tuple[Pool, Found]:
    """Fit the first learner, and sample V1 and V2, all of them out of the pool (step 1).

    Beyond `row_cap` rows everything comes from a uniform sample of the rows. `whole` sees the
    residual on all rows observed.
    """
    columns = sizes.n_learners * sizes.n_columns + sizes.n_fit + sizes.n_tune
    sample = take_sample(gram, max(settings.row_cap, ROWS_PER_COLUMN * columns), rng)
    pool = Pool(len(sample))
    first, v1, v2 = (pool.draw(m, rng) for m in (sizes.n_columns, sizes.n_fit, sizes.n_tune))
    observed = sample_rows(np.arange(len(sample)), settings.row_cap, rng)
    few = sample_rows(observed, settings.residual_rows, rng.spawn(1)[0])
    tall, wide = (s == "columns" for s in (settings.validation_shape, settings.residual_shape))
    rows = (observed if whole else few) if tall or wide else few[:0]
    on_sample = wide and not whole and len(few) < len(observed)
    seen = sample.gram.in_float32() if on_sample else sample.gram
    table = FeatureTable(seen, np.concatenate([v1, v2, rows]))
    scale = float(np.sqrt(len(observed) / len(few))) if tall else 1.0
    fit, tune = (ValidationSet(table, few if tall else v, v, scale) for v in (v1, v2))
    found = Found(sample, table, fit, tune, observed, few)
    found.add_learner(first, sizes.rank)
    return pool, found


def sample_rows(rows: Indices, at_most: int, rng: np.random.Generator) -> Indices:
    """Return all these rows or, where they are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    return rows[np.sort(rng.choice(len(rows), size=at_most, replace=False))]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a run found, before the strong approximation weighs it.

    The first p learners are the run with p learners; `candidates` has the size of V in each step.
    """

    found: Found
    candidates: tuple[int, ...] = ()

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners, in the order found, as learners of the whole matrix."""
        return self._lift_to_rows(self.found.learners)

    def __len__(self) -> int:
        return len(self.found.learners)

    def mixture(self, rule: Rule, p: int | None = None) -> Mixture:
        """Return the strong approximation of the first p learners under a rule (step 3)."""
        p = len(self) if p is None else p
        if not 1 <= p <= len(self):
            raise ValueError(f"This run has {len(self)} learners; a prefix of {p} was asked for.")
        mixture = rule.strong(self.found, p)
        return replace(mixture, learners=self._lift_to_rows(mixture.learners))

    def _lift_to_rows(self, learners: tuple[FeatureMap, ...]) -> tuple[FeatureMap, ...]:
        """Return learners of the sample as learners of the whole matrix."""
        pairs = ((one, self.found.sample.lift_to_rows(one.landmarks)) for one in learners)
        return tuple(one if Z is one.landmarks else replace(one, landmarks=Z) for one, Z in pairs)
