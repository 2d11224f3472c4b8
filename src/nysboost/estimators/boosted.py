"""Boosting Nyström as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from nysboost.boosting.variants import JOINT_VARIANTS, VARIANTS
from nysboost.catalogue import RandomState, weight_rules
from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.numerics.checks import unknown
from nysboost.numerics.memory import MAX_MEMORY
from nysboost.settings import Settings


class BoostedNystroem(BaseNystroem):
    """Boosting Nyström as a transformer: landmarks found in sequence.

    Parameters
    ----------
    variant : str
        "joint", the most accurate for its number of landmarks, for which `n_components`
        is all that has to be set; or one of `nysboost.VARIANTS`, Algorithm 1 of the paper,
        and `nysboost.JOINT_VARIANTS`.
    kernel, gamma, coef0, degree, kernel_params
        As in `StandardNystroem`.
    n_learners, n_columns, rank, n_candidates, n_fit, n_tune : int or None
        The paper's p, m, k, s, v1 and v2; None is the default that suits n.
    n_components : int or None
        Number of landmarks, and of features, for "joint" (None is n_learners·n_columns if
        `n_columns` is given and 240 otherwise); for the others, a cut of the features to the
        leading ones.
    eta, nonnegative, max_memory, random_state
        As in `EnsembleNystroem`.
    """

    def __init__(
        self,
        variant: str = "joint",
        kernel: KernelLike = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        n_learners: int = 8,
        n_columns: int | None = None,
        rank: int | None = None,
        n_candidates: int | None = None,
        n_fit: int | None = None,
        n_tune: int | None = None,
        eta: float | Literal["tune"] = 0.01,
        nonnegative: bool = False,
        n_components: int | None = None,
        max_memory: int | str = MAX_MEMORY,
        random_state: RandomState = None,
    ) -> None:
        self.variant = variant
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_learners = n_learners
        self.n_columns = n_columns
        self.rank = rank
        self.n_candidates = n_candidates
        self.n_fit = n_fit
        self.n_tune = n_tune
        self.eta = eta
        self.nonnegative = nonnegative
        self.n_components = n_components
        self.max_memory = max_memory
        self.random_state = random_state

    def _plan(self) -> tuple[str, Settings, dict[str, Any]]:
        known = ("joint", *VARIANTS, *JOINT_VARIANTS)
        if self.variant not in known:
            raise ValueError(unknown("boosting variant", self.variant, known))
        settings = Settings(
            n_learners=self.n_learners,
            n_columns=self.n_columns,
            rank=self.rank,
            n_candidates=self.n_candidates,
            n_fit=self.n_fit,
            n_tune=self.n_tune,
            n_components=self.n_components if self.variant == "joint" else None,
        )
        return self.variant, settings, weight_rules(eta=self.eta, nonnegative=self.nonnegative)
