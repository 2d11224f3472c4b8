"""The learners' features on the rows that a run looks at, and the validation sets V1 and V2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nysboost.features.feature_map import BlockDiagonal, FeatureMap, features_of
from nysboost.features.nystrom import Mixture
from nysboost.gram import Gram, pool
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.linalg import max_abs, triangular_factor


class FeatureTable:
    """The learners, in the order found, with their features F_i on `rows`: G_i = F_i F_iᵀ.

    Features on `rows` are evaluated once for each learner, when they are first asked for. Those on
    other rows are evaluated each time.
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
        known = all(learner in self._features for learner in learners)
        if places is None or not known:
            return features_of(self.gram, _side_by_side(learners), rows)

        # of the features held, those of these rows
        parts = [self._held(learner) for learner in learners]
        if not np.array_equal(rows, self.rows):
            there = arrays.place(places, self.gram.rows.template)
            parts = [arrays.take(part, there) for part in parts]

        if len(parts) == 1:
            return parts[0]
        xp = arrays.namespace(*parts)
        return xp.concat(parts, axis=1)

    def block(self, mixture: Mixture, rows: Indices, cols: Indices) -> Array:
        """Return Σ_i w_i G_i[rows, cols] as one matrix product."""
        # F_i[rows] and F_i[cols], side by side
        left = self.features(mixture.learners, rows)
        right = self.features(mixture.learners, cols)

        # w_i for each feature of learner i
        ranks = [learner.rank for learner in mixture.learners]
        repeated = np.repeat(mixture.weights, ranks)
        weights = arrays.like(repeated, left)

        return (left * weights) @ right.T

    def _places(self, rows: Indices) -> Indices | None:
        """Return where `rows` stand among the table's rows, or None if some do not."""
        if len(self.rows) == 0:
            return None

        places = np.searchsorted(self.rows, rows)
        places = np.minimum(places, len(self.rows) - 1)
        if not np.array_equal(self.rows[places], rows):
            return None
        return places

    def _held(self, learner: FeatureMap) -> Array:
        """Return a learner's features on the table's rows."""
        F = self._features[learner]
        if F is None:
            F = features_of(self.gram, learner, self.rows)
            self._features[learner] = F
        return F

    def __getstate__(self) -> dict[str, Any]:
        # without features, which are computed again when needed
        return self.__dict__ | {"_features": dict.fromkeys(self._features)}


def _side_by_side(learners: Sequence[FeatureMap]) -> FeatureMap:
    """Return the map to the features of all learners, which evaluates the kernel once."""
    if len(learners) == 1:
        return learners[0]
    landmarks = pool([learner.landmarks for learner in learners])
    projections = tuple(learner.normalization for learner in learners)
    N = BlockDiagonal(projections)
    return FeatureMap(learners[0].kernel, landmarks, N)


class ValidationSet:
    """V1 or V2: the entries [rows, cols] of G, and of the learners.

    With the true values as b and the learners' values as the columns of A, a weight rule depends on
    ‖A w − b‖ alone. The triangular factor R of [b, A] gives that norm for any w without
    cancellation, and its leading block is the factor of the first p learners.

    Values are multiplied by `weight`, where `rows` stand for more rows than they are.
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
        """The norm of b, or of a learner's column, below which it is rounding errors alone."""
        gram = self.table.gram
        diagonal = gram.diag(self.cols)
        largest = max_abs(diagonal)

        n_values = len(self.rows) * len(self.cols)
        return gram.eps * largest * self.weight * float(np.sqrt(n_values))

    def factor(self, p: int) -> Floats:
        """Return R of [b, a_1, …, a_p], upper triangular, shape (p + 1, p + 1) at most."""
        if len(self._columns) <= p:
            missing = range(len(self._columns), p + 1)
            self._columns += [self._column(j) for j in missing]
            self._factor = triangular_factor(np.array(self._columns).T)
        return self._factor[: p + 1, : p + 1]

    def system(self, p: int) -> tuple[Floats, Floats]:
        """Return b and A with the norms ‖A w − b‖ of the first p learners, from the factor."""
        factor = self.factor(p)
        return factor[:, 0], factor[:, 1:]

    def _column(self, j: int) -> Floats:
        """Return b for j = 0 and a_j, the values of learner j, otherwise."""
        if j == 0:
            values = self.table.gram.block(self.rows, self.cols)
        else:
            learner = self.table.learners[j - 1]
            alone = Mixture((learner,), np.ones(1))
            values = self.table.block(alone, self.rows, self.cols)

        on_host = arrays.floats_on_host(values)
        return on_host.ravel() * self.weight

    def __getstate__(self) -> dict[str, Any]:
        # without [b, A], which is as large as the data, and is computed again when needed
        return ValidationSet(self.table, self.rows, self.cols, self.weight).__dict__
