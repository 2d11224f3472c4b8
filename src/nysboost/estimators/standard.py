"""The standard Nyström method as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nysboost.catalogue import RandomState, weight_rules
from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.numerics.memory import MAX_MEMORY
from nysboost.settings import Settings


class StandardNystroem(BaseNystroem):
    """The standard Nyström method as a transformer: C W_k⁺ Cᵀ on uniformly sampled columns.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As in `nysboost.approximate`.
    gamma, coef0, degree : float or None
        Parameters of a named kernel; gamma may be "scale" or "median".
    kernel_params : mapping or None
        Further parameters of a named or callable kernel.
    n_columns : int or None
        Landmarks; None is `n_components`, or 120, or as many as there are rows.
    rank : int or None
        k, the rank of W_k; None is `n_columns`.
    n_components : int or None
        Cut the features to this many, the leading ones.
    max_memory : int or str
        Working memory of `transform` beyond X and its result, in bytes or as "500MB".
    random_state : int, RandomState, Generator or None
        Seed.
    """

    def __init__(
        self,
        kernel: KernelLike = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        n_columns: int | None = None,
        rank: int | None = None,
        n_components: int | None = None,
        max_memory: int | str = MAX_MEMORY,
        random_state: RandomState = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_columns = n_columns
        self.rank = rank
        self.n_components = n_components
        self.max_memory = max_memory
        self.random_state = random_state

    def _plan(self) -> tuple[str, Settings, dict[str, Any]]:
        n_columns = self.n_components if self.n_columns is None else self.n_columns
        return "nystrom", Settings(n_columns=n_columns, rank=self.rank), weight_rules()
