"""Validation sets: true values and each learner's values on a set of rows × columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.arrays import Array, Floats, Indices, namespace, to_host
from nysboost.gram import Gram
from nysboost.learner import Learner


class FeatureTable:
    """Every learner's features on a fixed set of rows, evaluated once, when first needed.

    Residuals and validation values are products of these features. Where the rows asked
    for are among those held they are looked up; otherwise they are evaluated.
    """

    def __init__(self, gram: Gram, rows: Indices) -> None:
        self.gram = gram
        self.rows = np.unique(rows)
        self.learners: list[Learner] = []
        self._features: dict[int, Array] = {}

    def append(self, learner: Learner) -> None:
        """Add a learner; it is evaluated on the rows held when they are first asked for."""
        self.learners.append(learner)

    def features(self, rows: Indices, i: int) -> Array:
        """Return learner i's features at `rows`, shape (len(rows), k_i)."""
        places = np.searchsorted(self.rows, rows)
        held = np.minimum(places, len(self.rows) - 1)
        if not np.array_equal(self.rows[held], rows):
            return self.learners[i].features(self.gram, rows)
        if i not in self._features:
            self._features[i] = self.learners[i].features(self.gram, self.rows)
        mine = self._features[i]
        xp = namespace(mine)
        return xp.take(mine, xp.asarray(places, device=mine.device), axis=0)

    def mixture(self, rows: Indices, cols: Indices, weights: Floats) -> Array:
        """Return Σ_i w_i K_i[rows, cols] as one matrix product."""
        left = [self.features(rows, i) * float(w) for i, w in enumerate(weights)]
        right = [self.features(cols, i) for i in range(len(weights))]
        xp = namespace(*left)
        return xp.concat(left, axis=1) @ xp.concat(right, axis=1).T


@dataclass(eq=False)
class ValidationSet:
    """V1 or V2: where weights are fitted or tuned, as the triangular factor that decides.

    With b the vector of true values and A the matrix of the learners' values, one column
    each, every weight rule depends only on ‖A w − b‖. The factor R of the QR factorisation
    of [b, A] gives that norm for any w, without cancellation, and its leading block is
    the factor of the first learners alone: one factor serves every prefix.
    """

    table: FeatureTable
    rows: Indices
    cols: Indices

    def __post_init__(self) -> None:
        self._values: list[Floats] = []
        self._factor: Floats = np.zeros((0, 0))

    def factor(self, p: int) -> Floats:
        """Return R of [b, a_1, …, a_p], shape (p + 1, p + 1) (fewer rows if V is tiny)."""
        if self._factor.shape[1] <= p:
            while len(self._values) <= len(self.table.learners):
                self._values.append(self._column(len(self._values)))
            self._factor = np.linalg.qr(np.stack(self._values, axis=1), mode="r")
        return self._factor[: p + 1, : p + 1]

    def _column(self, j: int) -> Floats:
        """Return b for j = 0 and a_j, learner j's values, otherwise."""
        if j == 0:
            values = self.table.gram.block(self.rows, self.cols)
        else:
            left = self.table.features(self.rows, j - 1)
            values = left @ self.table.features(self.cols, j - 1).T
        return to_host(values).astype(np.float64).ravel()
