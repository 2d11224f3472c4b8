"""What a run has found, and its values on rows × columns: validation sets, and the residual."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import Mixture, fit_learner
from nysboost.gram import Gram, Sample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices
from nysboost.numerics.linalg import triangular_factor
from nysboost.numerics.magnitudes import max_abs
from nysboost.numerics.tolerances import COARSE, cutoff


class FeatureTable:
    """The learners, with their features on a set of rows, evaluated when first asked for."""

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

    def forget(self) -> None:
        """Forget all features, which are computed again when asked for."""
        self._features = dict.fromkeys(self._features)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_features": dict.fromkeys(self._features)}

    def features(self, rows: Indices, *learners: FeatureMap) -> list[Array]:
        """Return learners' features at `rows`, shapes (len(rows), k_i)."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        held, whole = np.array_equal(self.rows[at], rows), np.array_equal(self.rows, rows)
        places = arrays.place(at, self.gram.rows.template)  # copied to a device once for all
        found = []
        for learner in learners:
            if not held or learner not in self._features:
                found.append(features_of(self.gram, learner.round_to(self.gram.eps), rows))
                continue
            F = self._features[learner]
            if F is None:
                rounded = learner.round_to(self.gram.eps)
                F = self._features[learner] = features_of(self.gram, rounded, self.rows)
            found.append(F if whole else arrays.take(F, places))
        return found

    def block(self, mixture: Mixture, rows: Indices, cols: Indices) -> Array:
        """Return Σ_i w_i K_i[rows, cols] as one matrix product."""
        left, right = (self.features(part, *mixture.learners) for part in (rows, cols))
        left = [F * float(w) for F, w in zip(left, mixture.weights, strict=True)]
        xp = arrays.namespace(*left)
        return xp.concat(left, axis=1) @ xp.concat(right, axis=1).T


class ValidationSet:
    """V1 or V2, as the triangular factor R of [b, A]: true values b, the learners' values A.

    It gives ‖A w − b‖ for any w without cancellation, and its leading block is that of a prefix.
    Values are multiplied by `weight`, where the rows stand for more than themselves.
    """

    def __init__(
        self, table: FeatureTable, rows: Indices, cols: Indices, weight: float = 1.0
    ) -> None:
        self.table, self.rows, self.cols, self.weight = table, rows, cols, weight
        self._gram, self._factor = table.gram, np.zeros((0, 0))
        self._columns: list[Floats] = []

    def __getstate__(self) -> dict[str, Any]:
        # without [b, A], which is as large as the data, and is computed again when needed
        return ValidationSet(self.table, self.rows, self.cols, self.weight).__dict__

    @property
    def rounding(self) -> float:
        """The norm of b, or of a learner's column, below which it is rounding errors alone."""
        gram = self.table.gram
        largest = max_abs(gram.diag(self.cols))
        values = len(self.rows) * len(self.cols)
        return cutoff(1, gram.eps) * largest * self.weight * float(np.sqrt(values))

    def factor(self, p: int) -> Floats:
        """Return R of [b, a_1, …, a_p], upper triangular, shape (p + 1, p + 1) at most."""
        if self._gram is not self.table.gram:  # float64 has replaced float32
            self._gram, self._columns = self.table.gram, []
        if len(self._columns) <= p:
            self._columns += [self._column(j) for j in range(len(self._columns), p + 1)]
            self._factor = triangular_factor(np.array(self._columns).T)
        return self._factor[: p + 1, : p + 1]

    def _column(self, j: int) -> Floats:
        """Return b for j = 0 and a_j, learner j's values, otherwise."""
        if j == 0:
            values = self.table.gram.block(self.rows, self.cols)
        else:
            learner = self.table.learners[j - 1]
            left, right = (self.table.features(at, learner)[0] for at in (self.rows, self.cols))
            values = left @ right.T
        return arrays.floats_on_host(values).ravel() * self.weight


@dataclass(frozen=True, eq=False)
class Found:
    """What a run has found so far: all that a rule may look at.

    Positions are those in `sample`. `fit` and `tune` are V1 and V2; whole columns are seen on the
    rows `observed`, residuals compared on the few `residual_rows`.
    """

    sample: Sample
    table: FeatureTable
    fit: ValidationSet
    tune: ValidationSet
    observed: Indices
    residual_rows: Indices

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners, in the order found."""
        return self.table.learners

    def add_learner(self, columns: Indices, rank: int) -> None:
        """Fit the standard Nyström approximation on columns of the sample, of rank k."""
        gram = self.sample.gram
        self.table.append(fit_learner(gram, gram.landmarks(columns), rank))


class ResidualColumns:
    """Columns of G less a mixture.

    `rows`, in rising order, are where columns are observed; None observes them on themselves. On a
    part of the observed rows it is in float32, as long as that shows the residual.
    """

    def __init__(self, found: Found, rows: Indices | None) -> None:
        self.found, self.table, self.rows = found, found.table, rows
        self.on_sample = rows is not None and len(rows) < len(found.observed)

    def __call__(self, mixture: Mixture, V: Indices) -> Array:
        """Return the residual's columns V, shape (rows, len(V)).

        On a sample of rows, those of V are zero: only a few columns would have their diagonal.
        """
        rows = V if self.rows is None else self.rows
        true = self.table.gram.block(V, rows)
        missed = true - self.table.block(mixture, V, rows)
        exact = self.found.sample.gram
        in_float32 = self.table.gram is not exact  # too coarse for small residuals, and for NaN
        if in_float32 and not max_abs(missed) > COARSE * max_abs(true):
            self.table.gram = exact
            self.table.forget()
            return self(mixture, V)
        if not self.on_sample:
            return arrays.in_float64(missed).T
        own = np.isin(rows, V)
        if own.any() and not own.all():
            missed *= arrays.like(np.asarray(~own, float), missed)
        return missed.T
