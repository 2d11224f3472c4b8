"""J, the joint rule: all landmarks share one core, and change places with what they miss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.boosting.core import fit_core
from nysboost.boosting.exchange import exchanged
from nysboost.boosting.learner import Mixture
from nysboost.boosting.residual import residual_diagonal
from nysboost.boosting.rules import Rule
from nysboost.boosting.validation import Found
from nysboost.gram import pooled
from nysboost.numerics.arrays import Floats


@dataclass(frozen=True)
class JointCore(Rule):
    """J: the learners' landmarks are pooled, and their core is fitted jointly.

    What a joint core misses is hardly more than the residual's diagonal, so that its
    columns have to be whole.
    """

    def mixture(self, found: Found, p: int) -> Mixture:
        """Return C M Cᵀ over all landmarks of the first p learners, as one learner."""
        landmarks = pooled([learner.landmarks for learner in found.learners[:p]])
        rows = found.observed
        if landmarks.indices is not None:
            rows = np.union1d(rows, landmarks.indices)
        return Mixture((fit_core(found.sample, landmarks, rows),), np.ones(1))

    def strong(self, found: Found, p: int) -> Mixture:
        """Return C M Cᵀ on as many columns, some of which others have replaced."""
        landmarks = pooled([learner.landmarks for learner in found.learners[:p]])
        landmarks, judge = exchanged(found.sample, landmarks)
        return Mixture((judge.best(judge.fit(landmarks)),), np.ones(1))

    def missing(self, found: Found, current: Mixture) -> Floats:
        """Return the residual's diagonal: an outlying column is found wherever it is."""
        (learner,) = current.learners
        return residual_diagonal(found.sample.gram, learner)
