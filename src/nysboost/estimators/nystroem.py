"""One transformer for every method, where scikit-learn's `Nystroem` stood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from nysboost.estimators.base import BaseNystroem, KernelLike
from nysboost.settings import Settings


@dataclass(eq=False, repr=False)
class Nystroem(BaseNystroem):
    """Low-rank features of a kernel, by any method.

    A stand-in for ``sklearn.kernel_approximation.Nystroem``: each of its parameters is here,
    with the same default. Its landmarks are drawn at random; these are placed.

    Parameters
    ----------
    kernel : str, Kernel or callable
        As in `nysboost.approximate`.
    gamma, coef0, degree : float or None
        Parameters of a named kernel; gamma may be "scale" or "median".
    kernel_params : mapping or None
        Further parameters of a named or callable kernel.
    n_components : int or None
        Number of landmarks in all, and at most of features; not looked at beside `tol` or
        `landmarks`, which say how many.
    tol : float or None
        A relative Frobenius error of the kernel matrix to reach, with as few landmarks as
        the method can; out of reach is a `ToleranceWarning`.
    max_memory : int or str
        Working memory of `transform` beyond X and its result, in bytes or as "500MB".
    n_jobs : int or None
        Cores at most; None and -1 are all that matrix products use.
    verbose : bool
        Say how far a long fit has come.
    random_state : int, RandomState, Generator or None
        Seed.
    method : str
        One of `nysboost.METHODS`. "joint" is the most accurate for its number of landmarks,
        "uniform" is what scikit-learn does.
    landmarks : array of row numbers, or of points, or None
        Your own landmarks, for "joint" and "nystrom".
    settings : Settings or None
        Sizes and readings beyond `n_components`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> import nysboost as nb
    >>> X, y = load_digits(return_X_y=True)
    >>> nystroem = nb.Nystroem(gamma="scale", n_components=50, random_state=0)
    >>> make_pipeline(nystroem, RidgeClassifier()).fit(X, y).score(X, y) > 0.9
    True
    """

    kernel: KernelLike = "rbf"
    method: str = field(default="joint", kw_only=True)
    n_components: int | None = field(default=100, kw_only=True)
    landmarks: Any = field(default=None, kw_only=True)
    settings: Settings | None = field(default=None, kw_only=True)

    def _method(self) -> str:
        return self.method

    def _landmarks(self) -> Any:
        return self.landmarks

    def _settings(self) -> Settings:
        count = self.n_components if self.tol is None and self.landmarks is None else None
        return replace(self.settings or Settings(), n_components=count)
