"""J, the joint core as a rule of Algorithm 1 for all landmarks of the learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nysboost.boosting.rules import Combination, Rule
from nysboost.boosting.state import State
from nysboost.features.factor import residual_diagonal
from nysboost.features.feature_map import FeatureMap, Mixture
from nysboost.gram import Landmarks, pool
from nysboost.joint.core import fit_core, select_best
from nysboost.joint.exchange import exchange_landmarks
from nysboost.numerics.arrays import Floats


@dataclass(frozen=True)
class JointCore(Rule):
    """The rule J: one core for all landmarks of the learners, fitted on whole columns."""

    needs_whole_columns: ClassVar[bool] = True

    def mixture(self, state: State, p: int) -> Combination:
        """Return C M Cᵀ over all landmarks of the first p learners, as one learner."""
        landmarks = _landmarks(state, p)
        rows = np.union1d(state.rows, landmarks.columns)
        learner = fit_core(state.sample, landmarks, rows)
        return _alone(learner)

    def strong(self, state: State, p: int) -> Combination:
        """Return C M Cᵀ with the same number of columns, after an exchange."""
        landmarks = _landmarks(state, p)
        fit, _ = exchange_landmarks(state.sample, landmarks)
        learner = select_best(state.sample, fit)
        return _alone(learner)

    def candidate_weights(self, state: State, mixture: Mixture) -> Floats:
        """Return the diagonal of the residual, so that outlying columns are found."""
        (learner,) = mixture.learners
        return residual_diagonal(state.G, learner)


def _landmarks(state: State, p: int) -> Landmarks:
    """Return all landmarks of the first p learners."""
    first = state.learners[:p]
    return pool([learner.landmarks for learner in first])


def _alone(learner: FeatureMap) -> Combination:
    """Return the combination of one learner, with the weight 1."""
    return Combination((learner,), np.ones(1))
