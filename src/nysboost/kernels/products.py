"""Kernels of inner products, and ANOVA kernels: sums of products over features."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nysboost.kernels import distances
from nysboost.kernels.base import Evaluator, Kernel, finite, number
from nysboost.kernels.metric import Mapped, Metric
from nysboost.numerics.arrays import Array, like, namespace
from nysboost.numerics.parameters import require_number, require_positive
from nysboost.rows.rows import Rows


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

    def _against(self, Y: Array) -> Evaluator:
        return lambda X, _=None: finite(self, distances.inner_products(X, Y))

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

    def _against(self, Y: Array) -> Evaluator:
        return lambda X, _=None: self._power(distances.inner_products(X, Y))

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

    def _against(self, Y: Array) -> Evaluator:
        to = distances.directions(Y)
        return lambda X, _=None: distances.inner_products(distances.directions(X), to)

    def diag(self, X: Array) -> Array:
        """Return 1 for each row, and 0 for an all-zero row, shape (n,)."""
        norms = distances.squared_norms(distances.directions(X))
        return namespace(norms).astype(norms > 0, norms.dtype)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        xp, norms = namespace(Z), distances.squared_norms(Z)[:, None] ** 0.5
        along = xp.sum(A * K, axis=0)[:, None] * distances.directions(Z)
        towards = A.T @ distances.directions(X) - along
        return towards / xp.where(norms > 0, norms, xp.ones_like(norms))


@dataclass(frozen=True, repr=False)
class Anova(Mapped):
    """(Σ_j exp(−γ(x_j − y_j)²))^degree, the ANOVA kernel (Saunders et al. 1998).

    A function of its space is a sum of functions of at most `degree` features each.

    Parameters
    ----------
    gamma : float
        How fast each feature's term falls.
    degree : int
        How many features a product has at most.
    metric : Metric or None
        A map before the kernel: the sum is over the coordinates behind it.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Anova(gamma=1.0, degree=2)(np.zeros((1, 3)), np.array([[0.0, 0.0, 9.0]]))
    array([[4.]])
    """

    gamma: float = 1.0
    degree: int = 1
    metric: Metric | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("gamma", self.gamma)
        require_positive("degree", self.degree)

    def _against_mapped(self, Y: Array) -> Evaluator:
        return lambda X, _=None: distances.sum_of_gaussians(X, Y, self.gamma) ** self.degree

    def diag(self, X: Array) -> Array:
        """Return q^degree for each row, with q features behind the metric, shape (n,)."""
        flat = self.metric is None or self.metric.map.ndim < 2
        q = X.shape[1] if flat else self.metric.map.shape[1]  # type: ignore[union-attr]
        return like(np.full(X.shape[0], float(q) ** self.degree), X)

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        xp, slope = namespace(Z), A * K / distances.sum_of_gaussians(X, Z, self.gamma)

        def term(gap: Array) -> Array:
            return gap * xp.exp(-self.gamma * gap * gap)

        return 2 * self.gamma * self.degree * distances.sum_over_points(X, Z, slope, term)
