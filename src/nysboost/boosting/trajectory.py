"""The learners in the order found, with V1 and V2: every final rule and every prefix."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nysboost.boosting.learner import Learner, Mixture
from nysboost.boosting.pool import Pool
from nysboost.boosting.rules import Rule
from nysboost.boosting.validation import FeatureTable, Found, ValidationSet
from nysboost.gram import Gram, take_sample
from nysboost.numerics.arrays import Indices
from nysboost.settings import ResolvedSettings

ROWS_PER_COLUMN = 4
"""A sample has at least so many rows for each column that a run takes from it: with fewer the
last learners would have to take whatever is left."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a run found, before the strong approximation weighs it.

    Parameters
    ----------
    found : Found
        The learners in the order found, V1 and V2. The first p learners are the run with
        p learners.
    candidates : tuple of int
        The size of V in each boosting step: below `n_candidates` once the pool runs out.
    """

    found: Found
    candidates: tuple[int, ...] = ()

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners, in the order found, as learners of the whole matrix."""
        return self._lifted(self.found.learners)

    def __len__(self) -> int:
        return len(self.found.learners)

    def mixture(self, rule: Rule, p: int | None = None) -> Mixture:
        """Return the strong approximation of the first p learners under a rule (step 3)."""
        p = len(self) if p is None else p
        if not 1 <= p <= len(self):
            msg = f"This run has {len(self)} learners; a prefix of {p} was asked for."
            raise ValueError(msg)
        mixture = rule.strong(self.found, p)
        return replace(mixture, learners=self._lifted(mixture.learners))

    def _lifted(self, learners: tuple[Learner, ...]) -> tuple[Learner, ...]:
        """Return learners of the sample as learners of the whole matrix."""
        pairs = ((one, self.found.sample.lifted(one.landmarks)) for one in learners)
        return tuple(one if Z is one.landmarks else replace(one, landmarks=Z) for one, Z in pairs)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where an approximation comes from.

    Parameters
    ----------
    method : str
        The name that `approximate` knows it by.
    trajectory : Trajectory or None
        The run that found the learners, for the mixtures of its prefixes.
    rule : Rule or None
        The final rule of that run.
    """

    method: str = "unnamed"
    trajectory: Trajectory | None = None
    rule: Rule | None = None


def start(
    gram: Gram, settings: ResolvedSettings, rng: np.random.Generator, *, whole: bool = True
) -> tuple[Indices, Pool, Found]:
    """Sample the first m columns, then V1 and V2, all of them out of the pool (step 1).

    Beyond `row_cap` rows a run looks at a uniform sample of the rows as though they were all:
    rows, columns and candidates come from it, and nothing is read twice. Features are kept where
    whole columns are looked at, or on a few rows alone.
    """
    columns = settings.n_learners * settings.n_columns + settings.n_fit + settings.n_tune
    sample = take_sample(gram, max(settings.row_cap, ROWS_PER_COLUMN * columns), rng)
    pool = Pool(len(sample))
    first = pool.draw(settings.n_columns, rng)
    v1 = pool.draw(settings.n_fit, rng)
    v2 = pool.draw(settings.n_tune, rng)
    observed = sample_rows(np.arange(len(sample)), settings.row_cap, rng)
    few = sample_rows(observed, settings.residual_rows, rng.spawn(1)[0])
    tall, wide = (s == "columns" for s in (settings.validation_shape, settings.residual_shape))
    held = [v1, v2]
    if tall or wide:
        held.append(observed if whole else few)
    glance = wide and not whole and len(few) < len(observed)
    table = FeatureTable(sample.gram.rounded() if glance else sample.gram, np.concatenate(held))
    scale = float(np.sqrt(len(observed) / len(few))) if tall else 1.0
    fit, tune = (ValidationSet(table, few if tall else v, v, scale) for v in (v1, v2))
    table.expect(np.concatenate([fit.rows, v1, v2]))
    return first, pool, Found(sample, table, fit, tune, observed, few)


def sample_rows(rows: Indices, at_most: int, rng: np.random.Generator) -> Indices:
    """Return all these rows or, where they are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    return rows[np.sort(rng.choice(len(rows), size=at_most, replace=False))]
