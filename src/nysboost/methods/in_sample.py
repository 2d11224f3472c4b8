"""An approximation of G on its own rows only: F S Fᵀ + δI, with F in memory."""

from __future__ import annotations

from functools import cached_property
from typing import NoReturn

import numpy as np
from scipy.sparse import coo_array

from nysboost.approximation import Approximation
from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap, Mixture
from nysboost.features.residual import Residual
from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Array, Floats, like, namespace
from nysboost.numerics.linalg import max_abs


class InSample(Approximation):
    """K̂ = F S Fᵀ + δI on the n rows of the data, with no features for any other row.

    F has shape (n, r), `signs` (r,) is the diagonal of S, +1 or −1, and `shift` is δ. `corrupted`
    holds the entries of G that the approximation leaves out, as a sparse array (n, n) of G − K̂.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> a = np.arange(1.0, 51.0)[:, None]
    >>> approx = nb.approximate(a @ a.T + 3 * np.eye(50), "spectral-shift", "precomputed",
    ...                         n_components=4, random_state=0)
    >>> round(approx.shift, 6), approx.has_features, approx.relative_error() < 1e-10
    (3.0, False, True)
    """

    def __init__(
        self,
        gram: Gram,
        F: Array,
        signs: Floats,
        *,
        shift: float = 0.0,
        corrupted: coo_array | None = None,
    ) -> None:
        no_learners = Mixture((), signs)
        super().__init__(gram, no_learners)
        self.shift = shift
        self.corrupted = corrupted

        # F in the dtype of G
        xp = namespace(F)
        dtype = getattr(xp, gram.dtype.name)
        self._kept = xp.astype(F, dtype)

    @property
    def is_psd(self) -> bool:
        """Whether K̂ is positive semidefinite."""
        eigenvalues, _ = self._spectrum
        n = self.shape[0]
        rounding = self.gram.eps * n * max_abs(eigenvalues)
        smallest = eigenvalues.min(initial=0.0) + self.shift
        return bool(smallest >= -rounding)

    @property
    def has_features(self) -> bool:
        """False: there is no map for other rows."""
        return False

    @property
    def landmarks(self) -> Landmarks:
        """None: there are no landmarks."""
        no_columns = np.arange(0)
        return Landmarks(no_columns, None)

    def feature_map(self, row_cap: int | None = None) -> NoReturn:  # noqa: ARG002
        """Raise, because there is no feature map."""
        raise ValueError(
            "This approximation has no features for new rows. Use it for products, eigenpairs and "
            'linear systems, or choose a method with features, such as "joint" or "modified".'
        )

    def _residual(self, other: Gram | None) -> Residual:
        """Return G − K̂; raise for other rows."""
        if other is not None:
            self.feature_map()
        return super()._residual(None)

    @property
    def _weights_like(self) -> Array:
        return like(self.weights, self._kept)

    @cached_property
    def _factor(self) -> Factor:
        # a map without landmarks, because F is known
        shape = (0, len(self.weights))
        projection = np.empty(shape)
        no_map = FeatureMap(self.gram.kernel, self.landmarks, projection)
        return Factor(self.gram, no_map, self.weights, F=self._kept)
