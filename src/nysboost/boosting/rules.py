"""Rules that combine the learners found so far (Section 2.4)."""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax

from nysboost.boosting.selectors import as_numpy, describe
from nysboost.boosting.state import State, ValidationSet
from nysboost.features.feature_map import Mixture
from nysboost.numerics.arrays import Floats
from nysboost.settings import GRID, Settings, require_eta, require_penalties


@dataclass(frozen=True, eq=False)
class Combination(Mixture):
    """Σ_i μ_i G_i, and the λ or η with which μ was computed, if the rule has one."""

    parameter: float | None = None


LARGEST_WEIGHT = 1e100
"""Squares of residuals with larger weights would be out of range."""


class Rule(ABC):
    """Combines learners, in the boosting step and in the final mixture.

    Attributes
    ----------
    needs_whole_columns : bool
        Whether columns must be evaluated on `row_cap` rows, regardless of `residual_rows`.

    See Also
    --------
    approximate : its setting `rule` accepts a rule, or a function (V1, V2, p) ↦ weights.

    Examples
    --------
    A rule of your own returns a mixture of the learners found so far; here the newest counts
    twice as much as each of the others:

    >>> import numpy as np, nysboost as nb
    >>> from nysboost.boosting.rules import Combination

    >>> class NewestTwice(nb.Rule):
    ...     def mixture(self, state, p):
    ...         weights = np.ones(p)
    ...         weights[-1] = 2.0
    ...         return Combination(state.learners[:p], weights / weights.sum())
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> run = nb.approximate(X, "URB-mean", rule=NewestTwice(), n_learners=3, n_columns=9,
    ...                      random_state=0)
    >>> run.weights
    array([0.25, 0.25, 0.5 ])
    """

    needs_whole_columns: ClassVar[bool] = False

    @abstractmethod
    def mixture(self, state: State, p: int) -> Combination:
        """Return the combination of the first p learners (step 2a)."""

    def strong(self, state: State, p: int) -> Combination:
        """Return the final mixture of the first p learners (step 3)."""
        return self.mixture(state, p)

    def candidate_weights(self, state: State, mixture: Mixture) -> Floats | None:  # noqa: ARG002
        """Return the weights of rows for drawing V, or None for a uniform draw."""
        return None

    def with_settings(self, settings: Settings) -> Self:  # noqa: ARG002
        """Return the rule with the settings of a run."""
        return self


def checked(rule: Rule, found: Combination) -> Combination:
    """Return what a rule returned, with float64 weights; raise unless each learner has one."""
    if not isinstance(found, Combination):
        msg = f"A rule returns a Combination of learners, but {rule!r} returned {found!r}."
        raise TypeError(msg)

    p = len(found.learners)
    weights = as_numpy(found.weights)
    is_one_for_each = weights.shape == (p,)
    is_real = weights.dtype.kind in "fiu"
    if not is_one_for_each or not is_real or not np.isfinite(weights).all():
        raise ValueError(
            f"A rule returns the weights of p = {p} learners, finite real numbers of shape "
            f"({p},), but {rule!r} returned {reprlib.repr(found.weights)}."
        )

    precise = weights.astype(np.float64)
    if np.abs(precise).max(initial=0.0) > LARGEST_WEIGHT:
        raise ValueError(f"The weights {precise} of {rule!r} are out of range: scale them down.")
    return replace(found, weights=precise)


class Chosen(NamedTuple):
    """Weights of the learners, shape (p,), and the λ or η with which they were computed."""

    weights: Floats
    parameter: float | None = None


class WeightRule(Rule):
    """A rule that computes weights, and does not change the learners."""

    @abstractmethod
    def choose(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Chosen:
        """Return the weights of the first p learners."""

    def __call__(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Floats:
        """Return only the weights, shape (p,)."""
        return self.choose(V1, V2, p).weights

    def mixture(self, state: State, p: int) -> Combination:
        """Return Σ_i w_i G_i over the first p learners."""
        first = state.learners[:p]
        weights, parameter = self.choose(state.V1, state.V2, p)
        return Combination(first, weights, parameter)


@dataclass(frozen=True, repr=False)
class FunctionOfSets(WeightRule):
    """A rule from a function (V1, V2, p) ↦ weights."""

    function: Callable[[ValidationSet, ValidationSet, int], Floats]

    def choose(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Chosen:
        """Return the weights that the function returns."""
        weights = self.function(V1, V2, p)
        return Chosen(weights)

    def __repr__(self) -> str:
        return describe(self.function)


@dataclass(frozen=True)
class UniformWeights(WeightRule):
    """w_i = 1/p."""

    def choose(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Chosen:  # noqa: ARG002
        """Return 1/p, p times."""
        weights = np.full(p, 1 / p)
        return Chosen(weights)


@dataclass(frozen=True)
class ExponentialWeights(WeightRule):
    """w_i = exp(−η ε_i) / Z, with ε_i = ‖G_i − G‖_F on V1.

    The paper fixes η = 0.01. "tune" chooses η on V2 from a grid relative to the mean error.
    """

    eta: float | Literal["tune"] = 0.01

    def __post_init__(self) -> None:
        require_eta(self.eta)

    def with_settings(self, settings: Settings) -> Self:
        """Return the rule with the setting `eta`."""
        return replace(self, eta=settings.eta)

    def choose(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Chosen:
        """Return weights from the errors on V1, and η."""
        # ε_i = ‖a_i − b‖
        b, A = V1.system(p)
        differences = A - b[:, None]
        errors = np.linalg.norm(differences, axis=0)

        # η as given, or a grid relative to the mean error
        if self.eta == "tune":
            scale = float(errors.mean()) or 1.0
            etas = [eta / scale for eta in (0.0, *GRID)]
        else:
            etas = [float(self.eta)]

        candidates = [_falling_weights(eta, errors) for eta in etas]
        best = _best_on(V2, candidates)
        return Chosen(candidates[best], etas[best])


def _falling_weights(eta: float, errors: Floats) -> Floats:
    """Return exp(−η ε_i) / Z; if η ε_i overflows, only the smallest errors have a weight."""
    above_least = errors - errors.min()
    with np.errstate(over="ignore"):
        return np.asarray(softmax(-eta * above_least))


@dataclass(frozen=True)
class RidgeWeights(WeightRule):
    """The w that minimises ‖Σ w_i G_i − G‖² + λ‖w‖² on V1, with λ tuned on V2.

    The grid `lambdas` is relative to the largest singular value of the normal matrix; None is the
    usual one. One singular value decomposition serves the whole grid. `nonnegative` allows no
    negative weights.
    """

    nonnegative: bool = False
    lambdas: Sequence[float] | None = None

    def __post_init__(self) -> None:
        require_penalties(self.lambdas)

    def with_settings(self, settings: Settings) -> Self:
        """Return the rule with the settings `nonnegative` and `lambdas`."""
        return replace(self, nonnegative=settings.nonnegative, lambdas=settings.lambdas)

    def choose(self, V1: ValidationSet, V2: ValidationSet, p: int) -> Chosen:
        """Return the weights for the λ that is best on V2, and this λ from the grid."""
        # A = U diag(s) Vᵀ
        b, A = V1.system(p)
        U, s, V_transposed = np.linalg.svd(A, full_matrices=False)
        if s[0] <= V1.rounding:
            # all learners vanish on V1: nothing is known of them
            return Chosen(np.zeros(p))

        # λ in falling order, so that ties on V2 go to the strongest penalty
        lambdas = GRID
        if self.lambdas is not None:
            lambdas = tuple(self.lambdas)
        grid = sorted(lambdas, reverse=True)
        penalties = [s[0] ** 2 * relative for relative in grid]

        if self.nonnegative:
            candidates = [_nonnegative_ridge(A, b, penalty) for penalty in penalties]
        else:
            # w = V diag(s / (s² + λ)) Uᵀ b
            V = V_transposed.T
            Ub = U.T @ b
            shrinkages = [s / (s * s + penalty) for penalty in penalties]
            candidates = [V @ (shrinkage * Ub) for shrinkage in shrinkages]

        best = _best_on(V2, candidates)
        return Chosen(candidates[best], grid[best])


def _nonnegative_ridge(A: Floats, b: Floats, penalty: float) -> Floats:
    """Return the w ≥ 0 that minimises ‖A w − b‖² + penalty ‖w‖²."""
    # ‖A w − b‖² + penalty ‖w‖² = ‖[A; √penalty I] w − [b; 0]‖²
    p = A.shape[1]
    ridge = np.sqrt(penalty) * np.eye(p)
    stacked = np.vstack([A, ridge])
    target = np.append(b, np.zeros(p))

    weights, _ = nnls(stacked, target)
    return np.asarray(weights)


def _best_on(V2: ValidationSet, candidates: list[Floats]) -> int:
    """Return the index of the weights with the smallest error ‖A w − b‖ on V2."""
    if len(candidates) == 1:
        return 0  # there is nothing to choose, so V2 is not evaluated

    p = len(candidates[0])
    b, A = V2.system(p)
    errors = [np.linalg.norm(A @ w - b) for w in candidates]
    return int(np.argmin(errors))
