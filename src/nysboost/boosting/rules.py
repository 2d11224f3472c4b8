"""Rules: how the learners found so far are combined, by weights (Section 2.4) or a joint core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax

from nysboost.boosting.validation import Found, ValidationSet
from nysboost.features.nystrom import Mixture, residual_diagonal
from nysboost.gram import pool
from nysboost.joint.core import fit_core, select_best
from nysboost.joint.exchange import exchange_landmarks
from nysboost.numerics.arrays import Floats
from nysboost.settings import GRID, require_eta, require_penalties


class Rule(ABC):
    """How learners are combined: in the boosting step, and in the strong approximation.

    Attributes
    ----------
    needs_whole_columns : bool
        Whether the residual under this rule is compared on all rows that are observed; else
        a smaller sample of them suffices.

    Examples
    --------
    A rule of your own returns a mixture of the learners found so far; here the newest counts
    twice as much as each of the others:

    >>> import numpy as np, nysboost as nb
    >>> from nysboost.features.nystrom import Mixture

    >>> class NewestTwice(nb.Rule):
    ...     def mixture(self, found, p):
    ...         weights = np.ones(p)
    ...         weights[-1] = 2.0
    ...         return Mixture(found.learners[:p], weights / weights.sum())
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> run = nb.approximate(X, "ensemble-uniform", n_learners=3, n_columns=9, random_state=0)
    >>> run.trajectory.mixture(NewestTwice()).weights
    array([0.25, 0.25, 0.5 ])
    """

    needs_whole_columns: ClassVar[bool] = True

    @abstractmethod
    def mixture(self, found: Found, p: int) -> Mixture:
        """Return the combination of the first p learners."""

    def strong(self, found: Found, p: int) -> Mixture:
        """Return the strong approximation of the first p learners (step 3)."""
        return self.mixture(found, p)

    def missing(self, found: Found, current: Mixture) -> Floats | None:  # noqa: ARG002
        """Return weights of the sample's rows by which V is drawn; None is uniformly."""
        return None


class WeightRule(Rule):
    """A rule that weighs the learners and leaves them as they are."""

    needs_whole_columns: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, fit: ValidationSet, tune: ValidationSet, p: int) -> Floats:
        """Return the weights of the first p learners, shape (p,)."""

    def mixture(self, found: Found, p: int) -> Mixture:
        """Return Σ_i w_i K_i over the first p learners."""
        return Mixture(found.learners[:p], self(found.fit, found.tune, p))


@dataclass(frozen=True)
class UniformWeights(WeightRule):
    """w_i = 1/p."""

    def __call__(self, fit: ValidationSet, tune: ValidationSet, p: int) -> Floats:  # noqa: ARG002
        """Return 1/p, p times."""
        return np.full(p, 1 / p)


@dataclass(frozen=True)
class ExponentialWeights(WeightRule):
    """w_i = exp(−η ε_i) / Z, with ε_i = ‖G_i − G‖_F on V1.

    The paper fixes η = 0.01; "tune" takes the best on V2 of a grid relative to the mean error.
    """

    eta: float | Literal["tune"] = 0.01

    def __post_init__(self) -> None:
        require_eta(self.eta)

    def __call__(self, fit: ValidationSet, tune: ValidationSet, p: int) -> Floats:
        """Return the weights by the errors on V1, shape (p,)."""
        factor = fit.factor(p)
        errors = np.linalg.norm(factor[:, 1:] - factor[:, :1], axis=0)
        if self.eta != "tune":
            return np.asarray(softmax(-float(self.eta) * errors))
        scale = errors.mean() or 1.0
        return _best_on(tune, [softmax(-eta / scale * errors) for eta in (0.0, *GRID)])


@dataclass(frozen=True)
class RidgeWeights(WeightRule):
    """The w that minimises ‖Σ w_i G_i − G‖² + λ‖w‖² on V1, with λ tuned on V2.

    The grid `lambdas` is relative to the largest singular value of the normal matrix; one singular
    value decomposition gives all of it. `nonnegative` allows no negative weight.
    """

    nonnegative: bool = False
    lambdas: tuple[float, ...] = GRID

    def __post_init__(self) -> None:
        require_penalties(self.lambdas)

    def __call__(self, fit: ValidationSet, tune: ValidationSet, p: int) -> Floats:
        """Return the weights of the λ that is best on V2, shape (p,)."""
        factor = fit.factor(p)
        A, b = factor[:, 1:], factor[:, 0]
        U, s, Vt = np.linalg.svd(A, full_matrices=False)
        if s[0] <= fit.rounding:
            return np.zeros(p)  # all learners vanish on V1: nothing is known of them
        # in falling order, so that ties on V2 go to the strongest penalty
        lambdas = [s[0] ** 2 * penalty for penalty in sorted(self.lambdas, reverse=True)]
        if self.nonnegative:
            ridges = (np.vstack([A, np.sqrt(penalty) * np.eye(p)]) for penalty in lambdas)
            candidates = [nnls(rows, np.append(b, np.zeros(p)))[0] for rows in ridges]
        else:
            candidates = [Vt.T @ (s / (s * s + penalty) * (U.T @ b)) for penalty in lambdas]
        return _best_on(tune, candidates)


def _best_on(tune: ValidationSet, candidates: list[Floats]) -> Floats:
    """Return the weights with the smallest error ‖A w − b‖ on V2."""
    factor = tune.factor(len(candidates[0]))
    errors = [float(np.linalg.norm(factor[:, 1:] @ w - factor[:, 0])) for w in candidates]
    return candidates[int(np.argmin(errors))]


@dataclass(frozen=True)
class JointCore(Rule):
    """J: the learners' landmarks are pooled, and one core is fitted on whole columns."""

    def mixture(self, found: Found, p: int) -> Mixture:
        """Return C M Cᵀ over all landmarks of the first p learners, as one learner."""
        landmarks = pool([learner.landmarks for learner in found.learners[:p]])
        rows = np.union1d(found.observed, landmarks.columns)
        return Mixture((fit_core(found.sample, landmarks, rows),), np.ones(1))

    def strong(self, found: Found, p: int) -> Mixture:
        """Return C M Cᵀ on as many columns, after an exchange of some for others."""
        landmarks = pool([learner.landmarks for learner in found.learners[:p]])
        fit, _ = exchange_landmarks(found.sample, landmarks)
        return Mixture((select_best(found.sample, fit),), np.ones(1))

    def missing(self, found: Found, current: Mixture) -> Floats:
        """Return the residual's diagonal: an outlying column is found wherever it is."""
        (learner,) = current.learners
        return residual_diagonal(found.sample.gram, learner)
