"""The paper's three families under their own names: standard, ensemble and boosting Nyström."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nysboost.boosting.variants import JOINT_VARIANTS, VARIANTS
from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.kernels import KERNELS
from nysboost.numerics.checks import unknown


@dataclass(eq=False, repr=False)
class StandardNystroem(BaseNystroem):
    """The standard Nyström method: C W_k⁺ Cᵀ on uniformly sampled columns.

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params, n_components
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_columns : int or None
        Landmarks, where `n_components` does not say: 120, or as many as there are rows.
    rank : int or None
        k, the rank of W_k; None is `n_columns`.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> nb.StandardNystroem(n_components=20, random_state=0).fit_transform(X).shape
    (300, 20)
    """

    kernel: KernelLike = "rbf"
    n_columns: int | None = field(default=None, kw_only=True)
    rank: int | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        return "nystrom"


@dataclass(eq=False, repr=False, kw_only=True)
class _Mixture(BaseNystroem):
    """What ensemble and boosting share: the paper's p, m, k, v1 and v2, and the weights."""

    n_learners: int | None = None
    n_columns: int | None = None
    rank: int | None = None
    n_fit: int | None = None
    n_tune: int | None = None
    eta: float | Literal["tune"] = 0.01
    nonnegative: bool = False


@dataclass(eq=False, repr=False)
class EnsembleNystroem(_Mixture):
    """Ensemble Nyström: a weighted mixture of independent learners.

    Parameters
    ----------
    weights : "uniform", "exponential" or "ridge"
        How the learners are weighed.
    kernel, gamma, coef0, degree, kernel_params, n_components
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_learners, n_columns, rank, n_fit, n_tune : int or None
        The paper's p, m, k, v1 and v2; None is the default that suits n. Where
        `n_components` is given, m is n_components // n_learners.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Fit non-negative ridge weights, so that nothing has to be cut.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> ensemble = nb.EnsembleNystroem("uniform", n_components=40, n_learners=4, random_state=0)
    >>> ensemble.fit_transform(X).shape
    (300, 40)
    """

    weights: Literal["uniform", "exponential", "ridge"] = "ridge"

    def _method(self) -> str:
        known = ("uniform", "exponential", "ridge")
        if self.weights not in known:
            raise ValueError(unknown("weight rule", self.weights, known))
        return f"ensemble-{self.weights}"


@dataclass(eq=False, repr=False)
class BoostedNystroem(_Mixture):
    """Boosting Nyström: landmarks found in sequence, where the last ones miss most.

    Parameters
    ----------
    variant : str
        "joint", the most accurate for its number of landmarks; or one of `nysboost.VARIANTS`,
        Algorithm 1 of the paper, and `nysboost.JOINT_VARIANTS`.
    kernel, gamma, coef0, degree, kernel_params, n_components
        As in `Nystroem`.
    max_memory, n_jobs, verbose, random_state
        As in `Nystroem`.
    n_learners, n_columns, rank, n_fit, n_tune : int or None
        The paper's p, m, k, v1 and v2; None is the default that suits n. Where
        `n_components` is given, m is n_components // n_learners.
    eta : float or "tune"
        Rate of the exponential weights.
    nonnegative : bool
        Fit non-negative ridge weights, so that nothing has to be cut.
    n_candidates : int or None
        The paper's s, the columns of V; None is 4m.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> boosted = nb.BoostedNystroem("UUB-mean", n_components=40, n_learners=4, random_state=0)
    >>> boosted.fit(X).weights_
    array([0.25, 0.25, 0.25, 0.25])
    """

    variant: str = "joint"
    n_candidates: int | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        known = ("joint", *VARIANTS, *JOINT_VARIANTS)
        if self.variant not in known:
            if self.variant in KERNELS:
                msg = f"{self.variant!r} is a kernel, no boosting variant: kernel={self.variant!r}."
                raise ValueError(msg)
            raise ValueError(unknown("boosting variant", self.variant, known))
        return self.variant
