"""What the estimators on features share: the features of any method, and passes over them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sklearn.base import BaseEstimator

from nysboost.catalogue import RandomState
from nysboost.data.rows import Rows
from nysboost.engine.feature_map import FeatureMap
from nysboost.estimators import NystroemFeatures
from nysboost.estimators.base import KernelLike
from nysboost.numerics.arrays import Floats, floats_on_host

BLOCK_BYTES = 2**25
"""A block of features of this size keeps matrix products busy and takes little memory."""


@dataclass(frozen=True)
class Features:
    """F of all rows, in blocks: kept where it fits, computed anew in each pass where it does not.

    Parameters
    ----------
    transform : FeatureMap
        x ↦ features.
    rows : Rows
        The rows that F is of.
    max_memory : int
        Bytes that may be held; half of them for F itself.
    """

    transform: FeatureMap
    rows: Rows
    max_memory: int

    def blocks(self) -> Iterator[tuple[slice, Floats]]:
        """Yield (rows, F at these rows) in order, on the host in float64."""
        if self._fits:
            yield from self._kept
        else:
            yield from self._computed()

    @property
    def _fits(self) -> bool:
        return 8 * self.rows.n * self.transform.n_features_out <= self.max_memory // 2

    @cached_property
    def _kept(self) -> list[tuple[slice, Floats]]:
        return list(self._computed())

    def _computed(self) -> Iterator[tuple[slice, Floats]]:
        row = 8 * (self.transform.n_features_out + self.rows.n_features)
        start = 0
        for piece in self.rows.pieces(max(1, min(BLOCK_BYTES, self.max_memory // 8) // row)):
            F = floats_on_host(self.transform(piece))
            yield slice(start, start + F.shape[0]), F
            start += F.shape[0]


class OnFeatures(BaseEstimator):
    """An estimator that works on the features of an approximation; final classes say how.

    Attributes
    ----------
    features_ : NystroemFeatures
        The fitted transformer: what the method found.
    n_features_in_ : int
        Number of features seen in fit.
    """

    kernel: KernelLike
    gamma: float | str | None
    coef0: float | None
    degree: float | None
    kernel_params: Mapping[str, Any] | None
    method: str
    n_landmarks: int | None
    max_memory: int | str
    random_state: RandomState

    def _fit_features(self, X: Any) -> Features:
        """Fit the transformer on X and return the features of its rows."""
        self.features_ = NystroemFeatures(
            self.method,
            self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            kernel_params=self.kernel_params,
            n_components=self.n_landmarks,
            max_memory=self.max_memory,
            random_state=self.random_state,
        ).fit(X)
        self.n_features_in_ = self.features_.n_features_in_
        if hasattr(self.features_, "feature_names_in_"):
            self.feature_names_in_ = self.features_.feature_names_in_
        gram = self.features_.approximation_.gram
        return Features(self.features_._transform, gram.rows, gram.max_memory)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.sparse = not precomputed
        return tags
