"""Any method of the catalogue as a transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nysboost.catalogue import MIXTURES, RandomState, find_method, weight_rules
from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.numerics.memory import MAX_MEMORY
from nysboost.settings import DEFAULT_COMPONENTS, Settings

LEARNERS = 8


class NystroemFeatures(BaseNystroem):
    """The features of any method that has some, by its name.

    Parameters
    ----------
    method : str
        One of `nysboost.METHODS`.
    kernel : str, Kernel or callable
        As in `nysboost.approximate`.
    gamma, coef0, degree : float or None
        Parameters of a named kernel; gamma may be "scale" or "median".
    kernel_params : mapping or None
        Further parameters of a named or callable kernel.
    n_components : int or None
        Number of landmarks, and of features at most; None is 240, or as many as there are rows.
        A mixture shares them between eight learners.
    max_memory : int or str
        Working memory of `transform` beyond X and its result, in bytes or as "500MB".
    random_state : int, RandomState, Generator or None
        Seed.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> nb.NystroemFeatures("dpp", n_components=20, random_state=0).fit_transform(X).shape
    (200, 20)
    """

    def __init__(
        self,
        method: str = "joint",
        kernel: KernelLike = "rbf",
        *,
        gamma: float | str | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: Mapping[str, Any] | None = None,
        n_components: int | None = None,
        max_memory: int | str = MAX_MEMORY,
        random_state: RandomState = None,
    ) -> None:
        self.method = method
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.max_memory = max_memory
        self.random_state = random_state

    def _plan(self) -> tuple[str, Settings, dict[str, Any]]:
        find_method(self.method)  # a name that is none gets its sentence before it is looked up
        if self.method not in MIXTURES:
            return self.method, Settings(n_components=self.n_components), weight_rules()
        c = self.n_components or DEFAULT_COMPONENTS
        settings = Settings(n_learners=min(LEARNERS, c), n_columns=max(1, c // LEARNERS))
        return self.method, settings, weight_rules()
