"""Ensemble Nyström as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nysboost.catalogue import RandomState, weight_rules
from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.numerics.checks import unknown
from nysboost.numerics.memory import MAX_MEMORY
from nysboost.settings import Settings


class EnsembleNystroem(BaseNystroem):
    """Ensemble Nyström as a transformer: a weighted mixture of independent learners.

    Parameters
    ----------
    weights : "uniform", "exponential" or "ridge"
        How the learners are weighed.
    kernel, gamma, coef0, degree, kernel_params
        As in `StandardNystroem`.
    n_learners, n_columns, rank, n_fit, n_tune : int or None
        The paper's p, m, k, v1 and v2; None is the default that suits n.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Fit non-negative ridge weights, so that nothing has to be cut.
    n_components : int or None
        Cut the features to this many, the leading ones.
    max_memory : int or str
        As in `StandardNystroem`.
    random_state : int, RandomState, Generator or None
        Seed.
    """

    def __init__(
        self,
        weights: Literal["uniform", "exponential", "ridge"] = "ridge",
        kernel: KernelLike = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        n_learners: int = 8,
        n_columns: int | None = None,
        rank: int | None = None,
        n_fit: int | None = None,
        n_tune: int | None = None,
        eta: float | Literal["tune"] = 0.01,
        nonnegative: bool = False,
        n_components: int | None = None,
        max_memory: int | str = MAX_MEMORY,
        random_state: RandomState = None,
    ) -> None:
        self.weights = weights
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_learners = n_learners
        self.n_columns = n_columns
        self.rank = rank
        self.n_fit = n_fit
        self.n_tune = n_tune
        self.eta = eta
        self.nonnegative = nonnegative
        self.n_components = n_components
        self.max_memory = max_memory
        self.random_state = random_state

    def _plan(self) -> tuple[str, Settings, dict[str, Any]]:
        known = ("uniform", "exponential", "ridge")
        if self.weights not in known:
            raise ValueError(unknown("weight rule", self.weights, known))
        settings = Settings(
            n_learners=self.n_learners,
            n_columns=self.n_columns,
            rank=self.rank,
            n_fit=self.n_fit,
            n_tune=self.n_tune,
        )
        rules = weight_rules(eta=self.eta, nonnegative=self.nonnegative)
        return f"ensemble-{self.weights}", settings, rules
