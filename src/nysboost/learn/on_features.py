"""What the estimators on features share: the features of any method, and passes over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from nysboost.catalogue import RandomState
from nysboost.engine.factor import Factor
from nysboost.estimators import Nystroem
from nysboost.estimators.base import KernelLike
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host
from nysboost.numerics.memory import MAX_MEMORY

T = TypeVar("T")


class Features:
    """F of the training rows, in blocks on the host: kept where it fits, else computed anew.

    Parameters
    ----------
    factor : Factor
        F, with the map that makes it.
    """

    def __init__(self, factor: Factor) -> None:
        self._factor = factor
        self.gram = factor.transform.gram
        self.n, self.r = factor.shape

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, F at these rows) in order, in float64."""
        return ((at, floats_on_host(F)) for at, F in self._factor.blocks())

    def keep(self) -> None:
        """Compute F now if it can be kept, and not some of its rows first."""
        self._factor.keep()

    def at(self, rows: Indices) -> Array:
        """Return F[rows] on the device and in the precision of the data."""
        return self._factor.at(rows)

    def fold(
        self,
        function: Callable[..., T],
        merge: Callable[[T, T], T],
        shared: Any = None,
        *beside: Array,
        task: str,
    ) -> T:
        """Return the merger of function(shared, F[block], *others[block]) over all blocks of rows.

        As `Factor.fold`, on the workers where the rows are there, with F in float64 on the host.
        """
        done: T = self._factor.fold(_on_host, merge, (function, shared), *beside, task=task)
        return done

    def blocks_in_place(self) -> Iterator[tuple[slice, Array]]:
        """Yield the same on the device and in the precision of the data."""
        return self._factor.blocks()


def _on_host(load: tuple[Callable[..., T], Any], F: Array, *beside: Array) -> T:
    function, shared = load
    return function(shared, floats_on_host(F), *beside)


def features_of(transformer: Nystroem) -> Features:
    """Return the features of the rows that a transformer was fitted on."""
    return Features(Factor(transformer._transform))


@dataclass(eq=False, repr=False, kw_only=True)
class OnFeatures(BaseEstimator):
    """An estimator that works on the features of an approximation; final classes say how.

    Attributes
    ----------
    features_ : Nystroem
        The fitted transformer: what the method found.
    n_features_in_ : int
        Number of features seen in fit.
    """

    kernel: KernelLike = "rbf"
    gamma: float | str | None = None
    coef0: float | None = None
    degree: float | None = None
    kernel_params: Mapping[str, Any] | None = None
    method: str = "joint"
    n_landmarks: int | None = None
    max_memory: int | str = MAX_MEMORY
    n_jobs: int | None = None
    random_state: RandomState = None

    def _fit_features(self, X: Any) -> Features:
        """Fit the transformer on X and return the features of its rows."""
        same = {f.name: getattr(self, f.name) for f in fields(OnFeatures)}
        same |= {"method": self._method(), "n_components": same.pop("n_landmarks")}
        self.features_ = Nystroem(**same).fit(X)
        self.n_features_in_ = self.features_.n_features_in_
        if hasattr(self.features_, "feature_names_in_"):
            self.feature_names_in_ = self.features_.feature_names_in_
        return features_of(self.features_)

    def _method(self) -> str:
        """Return the name of the method that finds the landmarks."""
        return self.method

    def _precomputed(self) -> bool:
        """Whether the rows are those of a kernel matrix."""
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed()
        tags.input_tags.sparse = not self._precomputed()
        return tags
