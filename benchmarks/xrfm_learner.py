"""xRFM behind scikit-learn's interface, for the benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from nysboost.numerics.arrays import Floats


@dataclass(eq=False)
class XRFM(BaseEstimator):
    """xRFM behind scikit-learn: two kernels, two bandwidths, the best on a fifth of the rows."""

    classify: bool = False
    device: str = "cpu"
    random_state: int = 0

    def fit(self, X: Floats, y: Any) -> XRFM:
        """Fit every setting, and keep the one that predicts the held-out rows best."""
        from xrfm import xRFM

        self._scale, y = StandardScaler().fit(X), np.asarray(y)
        if self.classify:
            self.classes_, y = np.unique(y, return_inverse=True)
        several = self.classify and np.bincount(y).min() > 1
        X, held, y, truth = train_test_split(
            self._scaled(X), y, test_size=0.2, random_state=self.random_state,
            stratify=y if several else None,
        )  # fmt: skip
        best = np.inf
        for kernel, bandwidth in product(("l2", "l2_high_dim"), (10.0, 3.0)):
            model = {"kernel": kernel, "bandwidth": bandwidth, "exponent": 1.0, "diag": False}
            fit = {"reg": 1e-3, "iters": 5, "early_stop_rfm": True, "verbose": False}
            settings = {"model": model | {"bandwidth_mode": "constant"}, "fit": fit}
            tried = xRFM(
                settings, device=self.device, random_state=self.random_state, verbose=False
            )
            tried.fit(X, y, held, truth)
            found = tried.predict(held).reshape(len(truth), -1)[:, 0]
            loss = np.mean(found != truth) if self.classify else np.mean((found - truth) ** 2)
            if loss < best:
                best, self._model = float(loss), tried
        return self

    def predict(self, X: Floats) -> Any:
        """Return predictions, or labels, shape (n,)."""
        found = self._model.predict(self._scaled(X)).reshape(len(X), -1)[:, 0]
        return self.classes_[found.astype(np.intp)] if self.classify else found.astype(np.float64)

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probability of each class, shape (n, k)."""
        return np.asarray(self._model.predict_proba(self._scaled(X)), dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _scaled(self, X: Floats) -> Floats:
        return np.asarray(self._scale.transform(X), dtype=np.float32)
