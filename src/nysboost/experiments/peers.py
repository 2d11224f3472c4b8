"""Learners of other libraries that need more than their constructor to be compared fairly."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from nysboost.numerics.arrays import Floats

KERNELS = ("l2", "l2_high_dim")
BANDWIDTHS = (10.0, 3.0)
"""xRFM's own default, and a narrower one, for features at unit spread."""

HELD_OUT = 0.2
"""Share of the rows that xRFM asks for to choose its iteration; the same choose its setting."""


@dataclass(eq=False)
class XRFM:
    """xRFM behind scikit-learn's interface: the best of two kernels and two bandwidths.

    Features are standardised, and a fifth of the rows chooses: xRFM asks for a validation set.

    Parameters
    ----------
    classify : bool
        Whether y are labels.
    device : str
        Where PyTorch works.
    random_state : int
        Seed of the split and of xRFM.
    """

    classify: bool = False
    device: str = "cpu"
    random_state: int = 0

    def fit(self, X: Floats, y: Any) -> XRFM:
        """Fit every setting, and keep the one that predicts the held-out rows best."""
        from xrfm import xRFM

        self._scale = StandardScaler().fit(X)
        y = np.asarray(y)
        if self.classify:
            self.classes_, y = np.unique(y, return_inverse=True)
        X, held, y, truth = train_test_split(
            self._scale.transform(X).astype(np.float32), y,
            test_size=HELD_OUT, random_state=self.random_state,
            stratify=y if self.classify and np.bincount(y).min() > 1 else None,
        )  # fmt: skip
        best = np.inf
        for kernel, bandwidth in product(KERNELS, BANDWIDTHS):
            model = xRFM(
                _settings(kernel, bandwidth),
                device=self.device, random_state=self.random_state, verbose=False,
            )  # fmt: skip
            model.fit(X, y, held, truth)
            found = model.predict(held).reshape(len(truth), -1)[:, 0]
            miss = np.mean(found != truth) if self.classify else np.mean((found - truth) ** 2)
            if miss < best:
                best, self._model = float(miss), model
        return self

    def predict(self, X: Floats) -> Any:
        """Return predictions, or labels, shape (n,)."""
        found = self._model.predict(self._scaled(X)).reshape(len(X), -1)[:, 0]
        return self.classes_[found.astype(np.intp)] if self.classify else found.astype(np.float64)

    def predict_proba(self, X: Floats) -> Floats:
        """Return the probability of each class, shape (n, k)."""
        return np.asarray(self._model.predict_proba(self._scaled(X)), dtype=np.float64)

    def _scaled(self, X: Floats) -> Floats:
        return np.asarray(self._scale.transform(X), dtype=np.float32)


def _settings(kernel: str, bandwidth: float) -> dict[str, dict[str, Any]]:
    """Return xRFM's own example settings with another kernel and bandwidth."""
    model = {"kernel": kernel, "bandwidth": bandwidth, "exponent": 1.0, "diag": False}
    fit = {"reg": 1e-3, "iters": 5, "early_stop_rfm": True, "verbose": False}
    return {"model": model | {"bandwidth_mode": "constant"}, "fit": fit}
