"""The ANOVA kernel: a sum over the features, to a power."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.kernels import distances
from nysboost.kernels.mapped import Mapped
from nysboost.kernels.metric import Metric
from nysboost.numerics.arrays import Array, like, namespace
from nysboost.numerics.checks import require_positive


@dataclass(frozen=True, repr=False)
class Anova(Mapped):
    """(Σ_j exp(−γ(x_j − y_j)²))^degree, the ANOVA kernel (Saunders et al. 1998).

    A function of its space is a sum of functions of at most `degree` features each.

    Parameters
    ----------
    gamma : float
        How fast each feature's term falls.
    degree : int
        How many features meet in a product.
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
        require_positive("gamma", self.gamma)
        require_positive("degree", self.degree)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        mapped = self.mapping(X)
        return distances.sum_of_gaussians(mapped(X), mapped(Y), self.gamma) ** self.degree

    def diag(self, X: Array) -> Array:
        """Return q^degree for each row, with q features behind the metric, shape (n,)."""
        flat = self.metric is None or self.metric.map.ndim < 2
        q = X.shape[1] if flat else self.metric.map.shape[1]  # type: ignore[union-attr]
        return like(np.full(X.shape[0], float(q) ** self.degree), X)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        xp, mapped = namespace(Z), self.mapping(X)
        x, z = mapped(X), mapped(Z)
        slope = A * K / distances.sum_of_gaussians(x, z, self.gamma)
        columns = []
        for j in range(z.shape[1]):
            gap = x[:, j : j + 1] - z[:, j : j + 1].T
            columns.append(xp.sum(slope * gap * xp.exp(-self.gamma * gap * gap), axis=0))
        gradient = 2 * self.gamma * self.degree * xp.stack(columns, axis=1)
        return self._pulled_back(gradient, Z)
