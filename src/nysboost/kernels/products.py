"""Kernels of the inner product ⟨x, y⟩: linear, polynomial and cosine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nysboost.data.rows import Rows
from nysboost.kernels import distances
from nysboost.kernels.bandwidth import number
from nysboost.kernels.base import Kernel, finite
from nysboost.numerics.arrays import Array, namespace
from nysboost.numerics.checks import require_number, require_positive


@dataclass(frozen=True, repr=False)
class Linear(Kernel):
    """⟨x, y⟩.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    temporaries: ClassVar[int] = 0

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return finite(self, distances.inner_products(X, Y))

    def diag(self, X: Array) -> Array:
        """Return ‖x‖², shape (n,)."""
        return finite(self, distances.squared_norms(X))

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        return A.T @ X


@dataclass(frozen=True, repr=False)
class Polynomial(Kernel):
    """(γ⟨x, y⟩ + coef0)^degree; γ = None is 1/d, scikit-learn's default.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Polynomial(degree=2, gamma=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: float = 3
    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        require_positive("degree", self.degree)
        require_number("coef0", self.coef0)
        if self.gamma is not None:
            require_positive("gamma", self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return self._power(distances.inner_products(X, Y))

    def diag(self, X: Array) -> Array:
        """Return (γ‖x‖² + coef0)^degree, shape (n,)."""
        return self._power(distances.squared_norms(X))

    def _power(self, products: Array) -> Array:
        """Return (γ⟨x, y⟩ + coef0)^degree; a fraction as degree has no values below 0."""
        with np.errstate(all="ignore"):
            return finite(self, (number(self, "gamma") * products + self.coef0) ** self.degree)

    def resolve(self, rows: Rows) -> Polynomial:
        """Return the kernel with γ as a number."""
        return replace(self, gamma=1 / rows.n_features if self.gamma is None else self.gamma)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        gamma = number(self, "gamma")
        base = gamma * distances.inner_products(X, Z) + self.coef0
        return gamma * self.degree * (A * base ** (self.degree - 1)).T @ X


@dataclass(frozen=True, repr=False)
class Cosine(Kernel):
    """⟨x, y⟩ / (‖x‖‖y‖), and 0 where a point is the origin.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Cosine()(np.array([[1.0, 0.0]]), np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0. ]])
    """

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return distances.inner_products(distances.directions(X), distances.directions(Y))

    def diag(self, X: Array) -> Array:
        """Return 1 for each row, and 0 for an all-zero row, shape (n,)."""
        norms = distances.squared_norms(distances.directions(X))
        return namespace(norms).astype(norms > 0, norms.dtype)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        xp, to = namespace(Z), distances.directions(Z)
        norms = xp.sqrt(distances.squared_norms(Z))[:, None]
        along = xp.sum(A * K, axis=0)[:, None] * to
        return (A.T @ distances.directions(X) - along) / xp.where(
            norms > 0, norms, xp.ones_like(norms)
        )
