"""What Algorithm 1 knows while it runs, what it did in each step, and the learners it found."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.random import Generator

from nysboost.boosting.validation import FeatureTable, ValidationSet
from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import Mixture, fit_learner
from nysboost.gram import Gram, Sample, take_sample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.linalg import max_abs
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


class Pool:
    """The columns that are not yet used, as a boolean mask."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Return up to `size` distinct unused columns, which stay in the pool.

        They are drawn uniformly or, with `weights` of shape (n,), in proportion to these. Columns
        of weight zero are drawn last.
        """
        free = np.flatnonzero(self._free)
        size = min(size, len(free))

        if weights is None or not weights[free].any():
            return rng.choice(free, size=size, replace=False)

        # columns of positive weight
        of_free = weights[free]
        probabilities = of_free / of_free.sum()
        possible = int(np.count_nonzero(probabilities))
        count = min(size, possible)
        drawn = rng.choice(free, size=count, replace=False, p=probabilities)

        # and, where these are too few, others
        others = np.setdiff1d(free, drawn)
        rest = rng.choice(others, size=size - count, replace=False)
        return np.concatenate([drawn, rest])

    def draw(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Sample columns, and take them out of the pool."""
        columns = self.sample(size, rng, weights)
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Take these columns out of the pool."""
        self._free[columns] = False


def uniform(gram: Gram, c: int, rng: Generator) -> Indices:
    """Choose c columns uniformly: what scikit-learn's Nystroem does."""
    return rng.choice(gram.n, size=c, replace=False)


def sample_rows(rows: Indices, at_most: int, rng: Generator) -> Indices:
    """Return all these rows or, where they are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    chosen = rng.choice(len(rows), size=at_most, replace=False)
    return rows[np.sort(chosen)]


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
        landmarks = self.G.landmarks(columns)
        learner = fit_learner(self.G, landmarks, self.k)

        # without features that are rounding errors in the precision of the table
        eps = self.table.gram.eps
        self.table.append(learner.round_to(eps))

    def residual(self, mixture: Mixture, V: Indices) -> Array:
        """Return e = G^V − Ḡ^V, the residual's columns V, shape (len(rows), len(V)).

        Where only a part of the rows is observed, rows of V are set to zero, because only some of
        the columns would have their diagonal entry.
        """
        if self.square:
            return self._missed(mixture, V, V).T

        e = self._missed(mixture, V, self.rows)
        if len(self.rows) < len(self.sample):
            outside = ~np.isin(self.rows, V)
            if outside.any():
                counted = outside.astype(float)
                e = e * arrays.like(counted, e)
        return e.T

    def error_on(self, V: ValidationSet, mixture: Mixture) -> float:
        """Return ‖G − Ḡ‖_F on a validation set."""
        missed = self._missed(mixture, V.cols, V.rows)
        on_host = arrays.floats_on_host(missed)
        return float(np.linalg.norm(on_host))

    def _missed(self, mixture: Mixture, cols: Indices, rows: Indices) -> Array:
        """Return (G − Ḡ)[cols, rows], in float64 unless float32 was chosen."""
        negative = Mixture(mixture.learners, -mixture.weights)
        missed = self.table.block(negative, cols, rows)
        missed += self.table.gram.block(cols, rows)

        if self.table.gram is not self.G:
            return missed
        return arrays.in_float64(missed)

    def note(
        self,
        V: Indices,
        J: Indices,
        mixture: Combination,
        e: Array,
        seconds: dict[str, float],
    ) -> Step:
        """Record a boosting step."""
        norm = arrays.namespace(e).linalg.vector_norm(e.T)
        step = Step(
            number=len(self.steps) + 1,
            V=self.sample.indices[V],
            columns=self.sample.indices[J],
            weights=mixture.weights,
            parameter=mixture.parameter,
            residual_norm=float(norm),
            seconds=seconds,
        )

        self.steps.append(step)
        return step


def start(
    gram: Gram,
    settings: Settings,
    sizes: Sizes,
    rng: Generator,
    sampling: Sampling,
) -> State:
    """Fit the first learner, and draw V1 and V2 among the other columns (step 1).

    Beyond `row_cap` rows all of them come from a uniform sample of the rows.
    """
    p, m, k, s, v1, v2 = sizes
    needed = p * m + v1 + v2
    n_rows = max(settings.row_cap, ROWS_PER_COLUMN * needed)
    sample = take_sample(gram, n_rows, rng)
    G = sample.gram

    # the m columns of the first learner, and those of V1 and V2
    unused = Pool(len(sample))
    first = _checked(sampling(G, m, rng), m, len(sample))
    unused.remove(first)
    of_V1 = unused.draw(v1, rng)
    of_V2 = unused.draw(v2, rng)

    # the rows on which columns are observed
    everything = np.arange(len(sample))
    most = min(settings.row_cap, settings.residual_rows or settings.row_cap)
    (rng_of_rows,) = rng.spawn(1)  # so that steps draw the same, whatever rows are observed
    rows = sample_rows(everything, most, rng_of_rows)
    if len(rows) < len(sample):
        # the values choose columns and weights only, for which float32 may be enough
        learner = fit_learner(G, G.landmarks(first), k)
        G = _choose_precision(G, learner, of_V2, rows)

    # the learners' features on the rows of V, V1 and V2
    seen = [of_V1, of_V2]
    square = settings.residual_shape == "square"
    square_sets = settings.validation_shape == "square"
    if not (square and square_sets):
        seen.append(rows)
    table = FeatureTable(G, np.concatenate(seen))

    if square_sets:
        V1 = ValidationSet(table, of_V1, of_V1)
        V2 = ValidationSet(table, of_V2, of_V2)
    else:
        # so that norms are those of columns of all n rows
        weight = float(np.sqrt(gram.n / len(rows)))
        V1 = ValidationSet(table, rows, of_V1, weight)
        V2 = ValidationSet(table, rows, of_V2, weight)

    state = State(
        p=p,
        m=m,
        k=k,
        s=s,
        sample=sample,
        rows=rows,
        unused=unused,
        V1=V1,
        V2=V2,
        table=table,
        square=square,
    )
    state.add_learner(first)
    return state


def _choose_precision(gram: Gram, learner: FeatureMap, cols: Indices, rows: Indices) -> Gram:
    """Return G in float32, if what the first learner misses is clear in it, else G itself."""
    G = gram.block(cols, rows)
    left = features_of(gram, learner, cols)
    right = features_of(gram, learner, rows)
    missed = G - left @ right.T

    if max_abs(missed) > COARSE * max_abs(G):
        return gram.in_float32()
    return gram


def _checked(columns: Indices, m: int, n: int) -> Indices:
    """Return the columns that a sampling has chosen, if they are m distinct ones."""
    columns = np.asarray(columns)
    distinct = np.intersect1d(columns, np.arange(n))

    if len(columns) != m or len(distinct) != m:
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
        if p is None:
            p = len(self)
        if not 1 <= p <= len(self):
            raise ValueError(f"This run has {len(self)} learners; a prefix of {p} was asked for.")
        mixture = rule.strong(self.state, p)
        return replace(mixture, learners=self._lift_to_rows(mixture.learners))

    def _lift_to_rows(self, learners: tuple[FeatureMap, ...]) -> tuple[FeatureMap, ...]:
        sample = self.state.sample
        return tuple(learner.lift(sample) for learner in learners)
