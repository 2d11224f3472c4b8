"""Validation sets: true values and each learner's values on a set of rows × columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nysboost.boosting.learner import Learner, Mixture
from nysboost.gram import Gram, Sample
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    namespace,
    placed,
    take,
    to_host,
)
from nysboost.numerics.tolerances import EPS, cutoff

FIRST_ROOM = 16
"""Q has room for so many columns to begin with; it doubles when it is full."""

Flags: TypeAlias = NDArray[np.bool]


class FeatureTable:
    """Every learner's features on a set of rows, each row evaluated when first needed.

    Residuals and validation values are products of these features. Where the rows asked
    for are among those held they are looked up; otherwise they are evaluated.
    """

    def __init__(self, gram: Gram, rows: Indices) -> None:
        self.gram = gram
        self.rows = np.unique(rows)
        self.learners: list[Learner] = []
        self._first = self.rows
        self._features: dict[int, Array] = {}
        self._known: dict[int, Flags] = {}
        self._expected = np.zeros(len(self.rows), dtype=bool)

    def hold(self, rows: Indices) -> None:
        """Hold these rows beside the first ones; a learner is evaluated on all of them at once."""
        self.rows = np.union1d(self._first, rows)
        self._expected = np.ones(len(self.rows), dtype=bool)
        self._forget()

    def look_closely(self, gram: Gram) -> None:
        """Evaluate features by another Gram from now on, which knows more digits."""
        self.gram = gram
        self._forget()

    def _forget(self) -> None:
        self._features, self._known = {}, {}

    def expect(self, rows: Indices) -> None:
        """Evaluate each learner on all of these rows when the first of them is asked for."""
        self._expected |= np.isin(self.rows, rows)

    def append(self, learner: Learner) -> None:
        """Add a learner; it is evaluated on the rows held when they are first asked for."""
        self.learners.append(learner)

    def __getstate__(self) -> dict[str, Any]:
        # evaluated again when they are needed
        return self.__dict__ | {"_features": {}, "_known": {}}

    def features(self, rows: Indices, i: int) -> Array:
        """Return learner i's features at `rows`, shape (len(rows), k_i)."""
        return self._at(rows, (self.learners[i],))[0]

    def _places(self, rows: Indices) -> Indices | None:
        """Return where rows stand among those held; None where some do not."""
        places = np.searchsorted(self.rows, rows)
        held = np.minimum(places, len(self.rows) - 1)
        return places if np.array_equal(self.rows[held], rows) else None

    def _evaluated(self, i: int, places: Indices) -> Array:
        """Return learner i's features on all rows held, true at least at `places`."""
        known = self._known.setdefault(i, np.zeros(len(self.rows), dtype=bool))
        new = np.zeros_like(known)
        new[places] = ~known[places]
        if new.any():
            new |= self._expected & ~known
            fresh = self.learners[i].features(self.gram, self.rows[new])
            if new.all():
                self._features[i] = fresh
            else:
                xp, shape = namespace(fresh), (len(self.rows), fresh.shape[1])
                if i not in self._features:
                    self._features[i] = xp.zeros(shape, dtype=fresh.dtype, device=fresh.device)
                self._features[i][xp.asarray(new, device=fresh.device)] = fresh
            known |= new
        return self._features[i]

    def block(self, mixture: Mixture, rows: Indices, cols: Indices) -> Array:
        """Return Σ_i w_i K_i[rows, cols] as one matrix product."""
        left, right = (self._at(part, mixture.learners) for part in (rows, cols))
        left = [F * float(w) for F, w in zip(left, mixture.weights, strict=True)]
        xp = namespace(*left)
        return xp.concat(left, axis=1) @ xp.concat(right, axis=1).T

    def _at(self, rows: Indices, learners: tuple[Learner, ...]) -> list[Array]:
        """Return some learners' features; where they are held crosses over to a device once."""
        places = self._places(rows)
        if places is None:
            return [learner.features(self.gram, rows) for learner in learners]
        mine = {id(learner): i for i, learner in enumerate(self.learners)}
        everything = np.array_equal(rows, self.rows)
        at = placed(places, self.gram.rows.form)
        found = []
        for learner in learners:
            if id(learner) not in mine:
                found.append(learner.features(self.gram, rows))
                continue
            features = self._evaluated(mine[id(learner)], places)
            found.append(features if everything else take(features, at))
        return found


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
    weight: float = 1.0
    """By which values are multiplied, where the rows stand for more than themselves."""

    def __post_init__(self) -> None:
        self._gram = self.table.gram
        self._Qt = np.empty((0, len(self.rows) * len(self.cols)))
        self._factor = np.zeros((0, 0))

    def __getstate__(self) -> dict[str, Any]:
        fresh = ValidationSet(self.table, self.rows, self.cols, self.weight)
        return fresh.__dict__  # Q is as large as the data, and comes back when it is needed

    @property
    def rounding(self) -> float:
        """The norm of b or of a learner's column below which it is nothing but rounding errors."""
        gram = self.table.gram
        largest = float(np.max(np.abs(floats_on_host(gram.diag(self.cols)))))
        values = len(self.rows) * len(self.cols)
        return cutoff(1, gram.eps) * largest * self.weight * float(np.sqrt(values))

    def factor(self, p: int) -> Floats:
        """Return R of [b, a_1, …, a_p], upper triangular, shape (p + 1, p + 1)."""
        if self._gram is not self.table.gram:  # which looks more closely by now
            self.__post_init__()
        while len(self._factor) <= p:
            self._append(self._column(len(self._factor)))
        return self._factor[: p + 1, : p + 1]

    def _append(self, column: Floats) -> None:
        """Extend Q and R by a column: Gram–Schmidt, twice, which is as exact as Householder."""
        old = len(self._factor)
        if old == len(self._Qt):
            roomier = np.empty((max(2 * old, FIRST_ROOM), len(column)))
            roomier[:old] = self._Qt
            self._Qt = roomier
        Qt, rest = self._Qt[:old], self._Qt[old]
        size = float(np.linalg.norm(column))
        along = Qt @ column
        np.subtract(column, along @ Qt, out=rest)
        again = Qt @ rest
        rest -= again @ Qt
        beyond = float(np.linalg.norm(rest))
        if beyond <= cutoff(1, EPS) * size:
            beyond, rest[:] = 0.0, 0.0  # the column is a combination of the others
        rest /= beyond or 1.0
        grown = np.zeros((old + 1, old + 1))
        grown[:old, :old] = self._factor
        grown[:old, old] = along + again
        grown[old, old] = beyond
        self._factor = grown

    def _column(self, j: int) -> Floats:
        """Return b for j = 0 and a_j, learner j's values, otherwise."""
        if j == 0:
            values = self.table.gram.block(self.rows, self.cols)
        else:
            left = self.table.features(self.rows, j - 1)
            values = left @ self.table.features(self.cols, j - 1).T
        return to_host(values).astype(np.float64, copy=False).ravel() * self.weight


@dataclass(frozen=True, eq=False)
class Found:
    """What a run has found so far: all that a rule may look at.

    Parameters
    ----------
    sample : Sample
        The rows that the run looks at; all positions below are positions in it.
    table : FeatureTable
        The learners, in the order found.
    fit, tune : ValidationSet
        V1 and V2.
    observed, glanced_at : array of int
        The rows on which whole columns are observed: all, or a uniform sample; and a few of
        them, which tell residuals apart and how large errors are.
    """

    sample: Sample
    table: FeatureTable
    fit: ValidationSet
    tune: ValidationSet
    observed: Indices
    glanced_at: Indices

    @property
    def learners(self) -> tuple[Learner, ...]:
        """The learners, in the order found."""
        return tuple(self.table.learners)
