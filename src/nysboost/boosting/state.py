"""The state of Algorithm 1: learners with their features, V1 and V2, unused columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from nysboost.features.feature_map import (
    FeatureMap,
    Mixture,
    features_of,
    fit_learner,
    side_by_side,
)
from nysboost.gram import Gram, Sample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.linalg import max_abs, norms, triangular_factor

if TYPE_CHECKING:
    from nysboost.boosting.rules import Combination


@dataclass(frozen=True, eq=False)
class Step:
    """The record of one boosting step.

    Attributes
    ----------
    number : int
        i: the step that finds learner i + 1.
    V : array of shape (s,)
        The candidate columns, as row numbers of the data.
    columns : array of shape (m,)
        The candidates that were chosen for the new learner.
    weights : array of shape (i,)
        μ, the weights of the earlier learners.
    parameter : float or None
        λ of ridge weights, relative to the largest eigenvalue of the normal matrix, or η of
        exponential weights; None for other rules.
    residual_norm : float
        ‖e‖_F, the norm of the residual on V, over the evaluated rows.
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


@dataclass(frozen=True, eq=False)
class State:
    """The state of a run, in the paper's letters. A rule may read all of it.

    Attributes
    ----------
    p, m, k, s : int
        The number of learners, columns per learner, its rank, and the number of columns of V.
    sample : Sample
        The rows that the run uses: all rows, up to `row_cap`. `G` is their Gram matrix, and columns
        are numbered within the sample.
    rows : array
        The rows on which columns of V, V1 and V2 are evaluated.
    unused : Pool
        The columns that no learner and no validation set has used.
    V1, V2 : ValidationSet
        The columns on which weights are fitted, and on which λ and η are chosen.
    table : FeatureTable
        The learners with their features.
    square : bool
        Whether V is the square block G[V, V] instead of whole columns.
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
        """Fit the standard Nyström approximation C W_k⁺ Cᵀ on columns, and mark them as used."""
        self.unused.remove(columns)
        landmarks = self.G.landmarks(columns)
        learner = fit_learner(self.G, landmarks, self.k)

        # without features that are rounding errors in the precision of the table
        eps = self.table.gram.eps
        self.table.append(learner.round_to(eps))

    def residual(self, mixture: Mixture, V: Indices) -> Array:
        """Return e = G^V − Ḡ^V, the columns V of the residual, shape (len(rows), len(V)).

        If only some rows are evaluated, the rows of V are set to zero, because only some of the
        columns would contain their diagonal entry.
        """
        if self.square:
            return self._missed(mixture, V, V)

        e = self._missed(mixture, self.rows, V)
        if len(self.rows) == len(self.sample):
            return e

        # without the rows of V, unless there are no others
        outside = ~np.isin(self.rows, V)
        if not outside.any():
            return e
        counted = outside.astype(np.float64)
        return e * arrays.like(counted[:, None], e)

    def error_on_V2(self, mixture: Mixture) -> float:  # noqa: N802
        """Return ‖G − Ḡ‖_F on V2."""
        V2 = self.V2
        missed = self._missed(mixture, V2.rows, V2.cols)
        return float(norms(missed))

    def _missed(self, mixture: Mixture, rows: Indices, cols: Indices) -> Array:
        """Return the residual (G − Ḡ)[rows, cols], in float64 unless float32 was chosen."""
        # −Ḡ + G, in the memory of the first
        missed = self.table.block(mixture.learners, -mixture.weights, rows, cols)
        missed += self.table.gram.block(rows, cols)
        if self.table.gram is not self.G:
            return missed
        return arrays.in_float64(missed)

    def note(
        self,
        V: Indices,
        J: Indices,
        mixture: Combination,
        residual_norm: float,
        seconds: dict[str, float],
    ) -> Step:
        """Record a boosting step."""
        row_numbers = self.sample.indices
        step = Step(
            number=len(self.steps) + 1,
            V=row_numbers[V],
            columns=row_numbers[J],
            weights=mixture.weights,
            parameter=mixture.parameter,
            residual_norm=residual_norm,
            seconds=seconds,
        )
        self.steps.append(step)
        return step


class Pool:
    """The columns that are not yet used, as a boolean mask."""

    def __init__(self, n: int) -> None:
        self._free = np.ones(n, dtype=bool)

    def __len__(self) -> int:
        return int(np.count_nonzero(self._free))

    def sample(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Return up to `size` distinct unused columns, without removing them.

        They are drawn uniformly, or in proportion to `weights` (n,) if given. Columns with weight
        zero are drawn last.
        """
        free = np.flatnonzero(self._free)
        size = min(size, len(free))
        if weights is None or not weights[free].any():
            return rng.choice(free, size=size, replace=False)

        # columns of positive weight
        probabilities = weights[free] / weights[free].sum()
        possible = int(np.count_nonzero(probabilities))
        count = min(size, possible)
        drawn = rng.choice(free, size=count, replace=False, p=probabilities)

        # and, where these are too few, others
        others = np.setdiff1d(free, drawn)
        missing = size - count
        rest = rng.choice(others, size=missing, replace=False)
        return np.concatenate([drawn, rest])

    def draw(self, size: int, rng: Generator, weights: Floats | None = None) -> Indices:
        """Sample columns, and remove them from the pool."""
        columns = self.sample(size, rng, weights)
        self.remove(columns)
        return columns

    def remove(self, columns: Indices) -> None:
        """Remove these columns from the pool."""
        self._free[columns] = False


class FeatureTable:
    """The learners, in the order found, with their features F_i on `rows`: G_i = F_i F_iᵀ.

    The features of a learner on `rows` are computed once, when they are first needed. Features on
    other rows are computed each time.
    """

    def __init__(self, gram: Gram, rows: Indices) -> None:
        self.gram = gram
        self.rows = np.unique(rows)
        self._features: dict[FeatureMap, Array | None] = {}

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners, in the order found."""
        return tuple(self._features)

    def append(self, learner: FeatureMap) -> None:
        """Add a learner."""
        self._features[learner] = None

    def features(self, learners: Sequence[FeatureMap], rows: Indices) -> Array:
        """Return the features of some learners at `rows`, side by side: (len(rows), Σ k_i)."""
        places = self._places(rows)
        are_known = all(learner in self._features for learner in learners)
        if places is None or not are_known:
            return features_of(self.gram, side_by_side(learners), rows)

        # of the features held, those of these rows
        parts = [self._held(learner) for learner in learners]
        if not np.array_equal(rows, self.rows):
            there = arrays.place(places, self.gram.rows.template)
            parts = [arrays.take(part, there) for part in parts]
        if len(parts) == 1:
            return parts[0]
        return arrays.namespace(*parts).concat(parts, axis=1)

    def block(
        self,
        learners: Sequence[FeatureMap],
        weights: Floats,
        rows: Indices,
        cols: Indices,
    ) -> Array:
        """Return Σ_i w_i G_i[rows, cols] as one matrix product."""
        # F_i[rows] and F_i[cols], side by side
        left = self.features(learners, rows)
        right = self.features(learners, cols)

        # w_i for each feature of learner i
        ranks = [learner.rank for learner in learners]
        repeated = np.repeat(weights, ranks)
        scaled = left * arrays.like(repeated, left)
        return scaled @ right.T

    def _places(self, rows: Indices) -> Indices | None:
        """Return the positions of `rows` among the table's rows, or None if some are missing."""
        if len(self.rows) == 0:
            return None

        places = np.searchsorted(self.rows, rows)
        places = np.minimum(places, len(self.rows) - 1)
        if np.array_equal(self.rows[places], rows):
            return places
        return None

    def _held(self, learner: FeatureMap) -> Array:
        """Return a learner's features on the table's rows."""
        F = self._features[learner]
        if F is None:
            F = features_of(self.gram, learner, self.rows)
            self._features[learner] = F
        return F

    def __getstate__(self) -> dict[str, object]:
        # without features, which are computed again when needed
        without = dict.fromkeys(self._features)
        return self.__dict__ | {"_features": without}


class ValidationSet:
    """V1 or V2: the entries [rows, cols] of G, and of the learners.

    Let b hold the true values, and let the columns of A hold the values of the learners. A weight
    rule depends only on ‖A w − b‖. The triangular factor R of [b, A] gives this norm for any w
    without cancellation, and its leading block is the factor of the first p learners.

    Values are multiplied by `weight` if `rows` are a sample of more rows.
    """

    def __init__(
        self,
        table: FeatureTable,
        rows: Indices,
        cols: Indices,
        weight: float = 1.0,
    ) -> None:
        self.table = table
        self.rows = rows
        self.cols = cols
        self.weight = weight
        self._columns: list[Floats] = []
        self._factor = np.zeros((0, 0))

    @property
    def rounding(self) -> float:
        """A norm of b or of a column of A below this level consists of rounding errors only."""
        gram = self.table.gram
        diagonal = gram.diag(self.cols)
        largest = max_abs(diagonal) * self.weight
        n_values = len(self.rows) * len(self.cols)
        return gram.eps * largest * float(np.sqrt(n_values))

    def system(self, p: int) -> tuple[Floats, Floats]:
        """Return a small b and A with the same norms ‖A w − b‖ for the first p learners."""
        # R of [b, a_1, …, a_p], with columns for the learners found since the last call
        known = len(self._columns)
        if known <= p:
            for j in range(known, p + 1):
                self._columns.append(self._column(j))
            b_and_A = np.array(self._columns).T
            self._factor = triangular_factor(b_and_A)

        R = self._factor[: p + 1, : p + 1]
        return R[:, 0], R[:, 1:]

    def _column(self, j: int) -> Floats:
        """Return b for j = 0 and a_j, the values of learner j, otherwise."""
        table = self.table
        if j == 0:
            values = table.gram.block(self.rows, self.cols)
        else:
            learner = table.learners[j - 1]
            one = np.ones(1)
            values = table.block([learner], one, self.rows, self.cols)
        on_host = arrays.floats_on_host(values)
        return on_host.ravel() * self.weight

    def __getstate__(self) -> dict[str, object]:
        # without [b, A], which is as large as the data, and is computed again when needed
        fresh = ValidationSet(self.table, self.rows, self.cols, self.weight)
        return fresh.__dict__
