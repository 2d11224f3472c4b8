"""What the estimators on features share: the features of any method, and passes over them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from nysboost.engine.factor import Factor
from nysboost.estimators import Nystroem
from nysboost.estimators.parameters import KernelEstimator
from nysboost.numerics.arrays import Array, Floats, floats_on_host


def features_of(transformer: Nystroem) -> Factor:
    """Return the features of the rows that a transformer was fitted on."""
    return Factor(transformer._transform)


def add_up(_: None, F: Array) -> Floats:
    """Return the sum of the features over a block of rows, shape (r,)."""
    total: Floats = floats_on_host(F).sum(axis=0)
    return total


@dataclass(eq=False, repr=False, kw_only=True)
class OnFeatures(KernelEstimator):
    """An estimator that works on the features of an approximation; final classes say how.

    Attributes
    ----------
    features_ : Nystroem
        The fitted transformer: what the method found.
    n_features_in_ : int
        Number of features seen in fit.
    """

    method: str = "joint"
    n_landmarks: int | None = None

    def _fit_features(self, X: Any) -> Factor:
        """Fit the transformer on X and return the features of its rows."""
        same = {f.name: getattr(self, f.name) for f in fields(OnFeatures)}
        same |= {"method": self._method(), "n_components": same.pop("n_landmarks")}
        self.features_ = Nystroem(**same).set_output(transform="default").fit(X)
        self.n_features_in_ = self.features_.n_features_in_
        if hasattr(self.features_, "feature_names_in_"):
            self.feature_names_in_ = self.features_.feature_names_in_
        return features_of(self.features_)

    def _method(self) -> str:
        """Return the name of the method that finds the landmarks."""
        return self.method
