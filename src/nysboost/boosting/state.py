"""What Algorithm 1 knows while it runs, what it did in each step, and the learners it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import Generator

from nysboost.boosting.pool import Pool, sample_rows
from nysboost.boosting.validation import FeatureTable, ValidationSet
from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import Mixture, fit_learner
from nysboost.gram import Gram, Sample, take_sample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, max_abs
from nysboost.numerics.tolerances import COARSE
from nysboost.settings import Settings, Sizes

if TYPE_CHECKING:
    from nysboost.boosting.rules import Combination, Rule

ROWS_PER_COLUMN = 4
"""Rows of a sample for each column that a run uses, at least: the last learners have a choice."""

Sampling: TypeAlias = Callable[[Gram, int, Generator], Indices]
"""(gram, m, rng) ↦ the m columns of the first learner (step 1)."""


@dataclass(frozen=True, eq=False)
class Step:
    """What one boosting step did.

    Attributes
    ----------
    number : int
        i; the step finds learner i + 1.
    V : array of shape (s,)
        The columns that were candidates, as rows of the data.
    columns : array of shape (m,)
        Those of them on which the new learner stands.
    weights : array of shape (i,)
        μ, by which the learners before were combined.
    parameter : float or None
        λ of ridge weights, relative to the largest eigenvalue of the normal matrix, or η of
        exponential weights; None for other rules.
    residual_norm : float
        ‖e‖_F, the norm of the residual on V, as far as it was looked at.
    seconds : dict
        Wall time of (a) to (e).
    """

    number: int
    V: Indices
    columns: Indices
    weights: Floats
    parameter: float | None
    residual_norm: float
    seconds: Mapping[str, float]


class Stopwatch:
    """Seconds of the parts of a step, by their letters."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun = time.perf_counter()

    def lap(self, letter: str) -> None:
        """Note the seconds since the last lap."""
        now = time.perf_counter()
        self.seconds[letter] = now - self._begun
        self._begun = now


@dataclass(frozen=True, eq=False)
class State:
    """What a run has found so far, in the letters of the paper: all that a rule may look at.

    Attributes
    ----------
    p, m, k, s : int
        Numbers of learners, of columns of each, its rank, and the number of columns of V.
    sample : Sample
        The rows that the run looks at, all of them up to `row_cap`; `G` is their Gram matrix, and
        columns are positions among them.
    rows : array
        The rows on which columns of V, V1 and V2 are observed.
    unused : Pool
        The columns that no learner and no validation set has used.
    V1, V2 : ValidationSet
        The columns by which weights are fitted, and by which λ and η are chosen.
    table : FeatureTable
        The learners with their features.
    square : bool
        Whether V is read as the block G[V, V] in place of whole columns.
    """

    p: int
    m: int
    k: int
    s: int
    sample: Sample
    rows: Indices
    unused: Pool
    V1: ValidationSet
    V2: ValidationSet
    table: FeatureTable
    square: bool
    steps: list[Step] = field(default_factory=list)

    @property
    def G(self) -> Gram:  # noqa: N802
        """The Gram matrix of the sample."""
        return self.sample.gram

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """G_1, G_2, …, in the order found."""
        return self.table.learners

    def add_learner(self, columns: Indices) -> None:
        """Fit the standard Nyström approximation C W_k⁺ Cᵀ on columns, which are used then."""
        self.unused.remove(columns)
        learner = fit_learner(self.G, self.G.landmarks(columns), self.k)
        self.table.append(learner.round_to(self.table.gram.eps))

    def residual(self, mixture: Mixture, V: Indices) -> Array:
        """Return e = G^V − Ḡ^V, the residual's columns V, shape (len(rows), len(V)).

        Where a part of the rows is observed, those of V are zero: only some columns would have
        their diagonal.
        """
        rows = V if self.square else self.rows
        e = self._missed(mixture, V, rows)
        partly = not self.square and len(rows) < len(self.sample)
        if partly:
            other = ~np.isin(rows, V)
            if other.any():
                e = e * arrays.like(other.astype(float), e)
        return e.T

    def error_on(self, V: ValidationSet, mixture: Mixture) -> float:
        """Return ‖G − Ḡ‖_F on a validation set."""
        missed = self._missed(mixture, V.cols, V.rows)
        return float(np.linalg.norm(arrays.floats_on_host(missed)))

    def _missed(self, mixture: Mixture, cols: Indices, rows: Indices) -> Array:
        """Return (G − Ḡ)[cols, rows], in float64 unless float32 was chosen."""
        negative = Mixture(mixture.learners, -mixture.weights)
        missed = self.table.block(negative, cols, rows)
        missed += self.table.gram.block(cols, rows)
        if self.table.gram is not self.G:
            return missed
        return arrays.in_float64(missed)

    def note(
        self, V: Indices, J: Indices, mixture: Combination, e: Array, seconds: dict[str, float]
    ) -> Step:
        """Record a boosting step."""
        step = Step(
            number=len(self.steps) + 1,
            V=self.sample.indices[V],
            columns=self.sample.indices[J],
            weights=mixture.weights,
            parameter=mixture.parameter,
            residual_norm=float(arrays.namespace(e).linalg.vector_norm(e.T)),
            seconds=seconds,
        )
        self.steps.append(step)
        return step


def start(
    gram: Gram,
    settings: Settings,
    sizes: Sizes,
    rng: Generator,
    sampling: Sampling | None = None,
) -> State:
    """Fit the first learner, and draw V1 and V2 among the other columns (step 1).

    Beyond `row_cap` rows all of them come from a uniform sample of the rows.
    """
    p, m, k, s, v1, v2 = sizes
    needed = p * m + v1 + v2
    sample = take_sample(gram, max(settings.row_cap, ROWS_PER_COLUMN * needed), rng)

    # the m columns of the first learner, and those of V1 and V2
    unused = Pool(len(sample))
    if sampling is None:
        first = unused.draw(m, rng)
    else:
        first = _checked(sampling(sample.gram, m, rng), m, len(sample))
        unused.remove(first)
    of_V1 = unused.draw(v1, rng)
    of_V2 = unused.draw(v2, rng)

    # the rows on which columns are observed
    most = min(settings.row_cap, settings.residual_rows or settings.row_cap)
    rows = sample_rows(np.arange(len(sample)), most, rng.spawn(1)[0])

    square = settings.residual_shape == "square"
    square_sets = settings.validation_shape == "square"
    seen = [of_V1, of_V2]
    if not (square and square_sets):
        seen.append(rows)
    G = sample.gram
    if len(rows) < len(sample):
        # values of a part of the rows only choose columns and weights
        learner = fit_learner(G, G.landmarks(first), k)
        G = _choose_precision(G, learner, of_V2, rows)
    table = FeatureTable(G, np.concatenate(seen))

    def validation_set(columns: Indices) -> ValidationSet:
        if square_sets:
            return ValidationSet(table, columns, columns)
        # so that its norms are those of columns of all n rows
        weight = float(np.sqrt(gram.n / len(rows)))
        return ValidationSet(table, rows, columns, weight)

    V1, V2 = validation_set(of_V1), validation_set(of_V2)
    state = State(p, m, k, s, sample, rows, unused, V1, V2, table, square)
    state.add_learner(first)
    return state


def _choose_precision(gram: Gram, learner: FeatureMap, cols: Indices, rows: Indices) -> Gram:
    """Return G in float32, if what the first learner misses is clear in it, else G itself."""
    G = gram.block(cols, rows)
    missed = G - features_of(gram, learner, cols) @ features_of(gram, learner, rows).T
    if max_abs(missed) > COARSE * max_abs(G):
        return gram.in_float32()
    return gram


def _checked(columns: Indices, m: int, n: int) -> Indices:
    """Return the columns that a sampling has chosen, if they are m distinct ones."""
    columns = np.asarray(columns)
    distinct = np.unique(columns)
    if len(columns) != m or len(distinct) != m or distinct[0] < 0 or distinct[-1] >= n:
        raise ValueError(
            f"sampling returns m = {m} distinct row numbers from 0 to {n - 1}, but it returned "
            f"{columns!r}."
        )
    return columns


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The learners of a run, not yet combined; the first p are those of a run with p learners."""

    state: State

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners, in the order found, on rows of the whole matrix."""
        return self._lift_to_rows(self.state.learners)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What each boosting step did."""
        return tuple(self.state.steps)

    def __len__(self) -> int:
        return len(self.state.learners)

    def mixture(self, rule: Rule, p: int | None = None) -> Mixture:
        """Return the strong approximation of the first p learners under a rule (step 3)."""
        p = len(self) if p is None else p
        if not 1 <= p <= len(self):
            raise ValueError(f"This run has {len(self)} learners; a prefix of {p} was asked for.")
        mixture = rule.strong(self.state, p)
        return replace(mixture, learners=self._lift_to_rows(mixture.learners))

    def _lift_to_rows(self, learners: tuple[FeatureMap, ...]) -> tuple[FeatureMap, ...]:
        return tuple(learner.lift(self.state.sample) for learner in learners)
