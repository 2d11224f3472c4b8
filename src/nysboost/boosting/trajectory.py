"""The learners in the order found, with V1 and V2, and the columns that no learner has used."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.boosting.rules import Rule
from nysboost.boosting.validation import FeatureTable, Found, ValidationSet
from nysboost.features.feature_map import FeatureMap
from nysboost.features.nystrom import Mixture
from nysboost.gram import Gram, take_sample
from nysboost.numerics.arrays import Floats, Indices
from nysboost.settings import Settings, Sizes

ROWS_PER_COLUMN = 4
"""Rows of a sample for each column that a run uses, at least: the last learners have a choice."""


class Pool:
    """The columns that are not yet used, as a boolean mask."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(self, size: int, rng: np.random.Generator, weights: Floats | None = None) -> Indices:
        """Return up to `size` distinct unused columns, which stay in the pool.

        They are drawn in proportion to `weights`, shape (n,), those of weight zero last, or
        uniformly.
        """
        free = np.flatnonzero(self._free)
        size = min(size, len(free))
        if weights is None or not weights[free].any():
            return rng.choice(free, size=size, replace=False)
        p = weights[free] / weights[free].sum()
        drawn = rng.choice(free, size=min(size, int(np.count_nonzero(p))), replace=False, p=p)
        rest = rng.choice(np.setdiff1d(free, drawn), size=size - len(drawn), replace=False)
        return np.concatenate([drawn, rest])

    def draw(self, size: int, rng: np.random.Generator, weights: Floats | None = None) -> Indices:
        """Sample columns, and take them out of the pool."""
        columns = self.sample(size, rng, weights)
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Take these columns out of the pool."""
        self._free[columns] = False


def start(
    gram: Gram, settings: Settings, sizes: Sizes, rng: np.random.Generator, *, whole: bool = True
) -> tuple[Pool, Found]:
    """Fit the first learner, and sample V1 and V2, all of them out of the pool (step 1).

    Beyond `row_cap` rows everything comes from a uniform sample of the rows. The residual is
    compared on all rows observed if `whole`, else on a few of them.
    """
    columns = sizes.n_learners * sizes.n_columns + sizes.n_fit + sizes.n_tune
    sample = take_sample(gram, max(settings.row_cap, ROWS_PER_COLUMN * columns), rng)
    pool = Pool(len(sample))
    first, v1, v2 = (pool.draw(m, rng) for m in (sizes.n_columns, sizes.n_fit, sizes.n_tune))
    observed = sample_rows(np.arange(len(sample)), settings.row_cap, rng)
    few = sample_rows(observed, settings.residual_rows or len(observed), rng.spawn(1)[0])
    rows = observed if whole else few
    tall, wide = (s == "columns" for s in (settings.validation_shape, settings.residual_shape))
    rounded = wide and len(rows) < len(observed) and settings.residual_dtype == "float32"
    seen = sample.gram.in_float32() if rounded else sample.gram
    table = FeatureTable(seen, np.concatenate([v1, v2, rows if tall or wide else rows[:0]]))
    weight = float(np.sqrt(len(observed) / len(few))) if tall else 1.0
    fit, tune = (ValidationSet(table, few if tall else v, v, weight) for v in (v1, v2))
    found = Found(sample, table, fit, tune, observed, rows)
    found.add_learner(first, sizes.rank)
    return pool, found


def sample_rows(rows: Indices, at_most: int, rng: np.random.Generator) -> Indices:
    """Return all these rows or, where they are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    return rows[np.sort(rng.choice(len(rows), size=at_most, replace=False))]


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The learners of a run, not yet combined; the first p are those of a run with p learners.

    `candidates` has the size of V in each step.
    """

    found: Found
    candidates: tuple[int, ...] = ()

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners, in the order found, on rows of the whole matrix."""
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
        return tuple(learner.lift(self.found.sample) for learner in learners)
