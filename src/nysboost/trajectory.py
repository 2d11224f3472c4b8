"""The learners in the order found, with V1 and V2: every final rule and every prefix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.arrays import Floats, Indices
from nysboost.gram import Gram
from nysboost.learner import Learner
from nysboost.pool import Pool
from nysboost.settings import ResolvedSettings, Shape
from nysboost.validation import FeatureTable, ValidationSet
from nysboost.weights import WeightRule


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ_i w_i K_i: learners and their weights.

    Parameters
    ----------
    learners : tuple of Learner
        The p learners.
    weights : array of shape (p,)
        May be negative under ridge regression.
    """

    learners: tuple[Learner, ...]
    weights: Floats


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a run found, before the strong approximation weighs it.

    Parameters
    ----------
    learners : tuple of Learner
        In the order found. The first p of them are the run with p learners.
    fit, tune : ValidationSet
        V1 and V2.
    candidates : tuple of int
        The size of V in each boosting step: below `n_candidates` once the pool runs out.
    """

    learners: tuple[Learner, ...]
    fit: ValidationSet
    tune: ValidationSet
    candidates: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.learners)

    def mixture(self, rule: WeightRule, p: int | None = None) -> Mixture:
        """Return the strong approximation of the first p learners under a rule (step 3)."""
        p = len(self) if p is None else p
        if not 1 <= p <= len(self):
            msg = f"This run has {len(self)} learners; a prefix of {p} was asked for."
            raise ValueError(msg)
        return Mixture(self.learners[:p], rule(self.fit, self.tune, p))


@dataclass(frozen=True, eq=False)
class Start:
    """Step 1, shared by ensemble and boosting: first columns, V1, V2 and the rows observed."""

    first: Indices
    pool: Pool
    table: FeatureTable
    fit: ValidationSet
    tune: ValidationSet
    observed: Indices


def start(gram: Gram, settings: ResolvedSettings, rng: np.random.Generator) -> Start:
    """Sample the first m columns, then V1 and V2, all of them out of the pool (step 1)."""
    pool = Pool(gram.n)
    first = pool.draw(settings.n_columns, rng)
    v1 = pool.draw(settings.n_fit, rng)
    v2 = pool.draw(settings.n_tune, rng)
    observed = _observed_rows(gram.n, settings.row_cap, rng)
    held = _rows_of(v1, observed, settings.validation_shape)
    held = np.concatenate([held, _rows_of(v2, observed, settings.validation_shape), v1, v2])
    if settings.residual_shape == "columns":
        held = np.concatenate([held, observed])
    table = FeatureTable(gram, held)
    fit, tune = (
        ValidationSet(table, _rows_of(v, observed, settings.validation_shape), v) for v in (v1, v2)
    )
    return Start(first, pool, table, fit, tune, observed)


def _observed_rows(n: int, cap: int, rng: np.random.Generator) -> Indices:
    """Return the rows on which whole columns are observed: all, or a uniform sample."""
    return np.arange(n) if n <= cap else np.sort(rng.choice(n, size=cap, replace=False))


def _rows_of(cols: Indices, observed: Indices, shape: Shape) -> Indices:
    return observed if shape == "columns" else cols
