"""Kernels of inner products, and kernels with a term for each feature: Laplacian, ANOVA."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from nysboost.kernels import distances
from nysboost.kernels.base import Evaluator, Kernel, Mapped, finite
from nysboost.kernels.metric import Metric
from nysboost.kernels.radial import Bandwidth, Scaled, number
from nysboost.numerics.arrays import Array, Floats, apply_in_place, namespace
from nysboost.numerics.checks import require_number, require_positive
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

    def _between(self, X: Array, Y: Array) -> Array:
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

    def _between(self, X: Array, Y: Array) -> Array:
        return self._power(distances.inner_products(X, Y))

    def diag(self, X: Array) -> Array:
        """Return (γ‖x‖² + coef0)^degree, shape (n,)."""
        return self._power(distances.squared_norms(X))

    def _power(self, products: Array) -> Array:
        """Return (γ⟨x, y⟩ + coef0)^degree."""
        with np.errstate(all="ignore"):
            bases = self._base(products)

            # a negative base has real powers of whole degree alone
            is_whole = self.degree % 1 == 0
            any_negative = namespace(bases).any(bases < 0)
            if not is_whole and bool(any_negative):
                raise ValueError(
                    f"{self} raises γ⟨x, y⟩ + coef0 to the power {self.degree}, but it is negative "
                    "for some points: choose a whole number as degree, or a larger coef0."
                )
            return finite(self, bases**self.degree)

    def _base(self, products: Array) -> Array:
        """Return γ⟨x, y⟩ + coef0."""
        gamma = number(self, "gamma")
        return gamma * products + self.coef0

    def resolve(self, rows: Rows) -> Polynomial:
        """Return the kernel with γ as a number."""
        if self.gamma is not None:
            return self
        return replace(self, gamma=1 / rows.n_features)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        # degree · γ · base^(degree − 1) x
        gamma = number(self, "gamma")
        slope = gamma * self.degree
        products = distances.inner_products(X, Z)
        powers = self._base(products) ** (self.degree - 1)
        weights = A * powers
        return slope * weights.T @ X


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
        return Cosines(distances.directions(Y))

    def diag(self, X: Array) -> Array:
        """Return 1 for each row, and 0 for an all-zero row, shape (n,)."""
        directions = distances.directions(X)
        norms = distances.squared_norms(directions)
        return namespace(norms).astype(norms > 0, norms.dtype)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        # the part of Aᵀ x/‖x‖ that is orthogonal to z, over ‖z‖
        towards = A.T @ distances.directions(X)
        weighted = A * K
        cosines = namespace(Z).sum(weighted, axis=0)
        along = cosines[:, None] * distances.directions(Z)
        norms = distances.squared_norms(Z) ** 0.5
        return distances.divide_rows(towards - along, norms)


@dataclass(frozen=True, eq=False)
class Cosines(Evaluator):
    """x ↦ ⟨x, y⟩ / (‖x‖‖y‖), for the directions y / ‖y‖."""

    directions: Array

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the cosines, shape (n, m)."""
        directions = distances.directions(X)
        return distances.inner_products(directions, self.directions)


@dataclass(frozen=True, repr=False)
class Anova(Mapped):
    """(Σ_j exp(−γ(x_j − y_j)²))^degree, the ANOVA kernel (Saunders et al. 1998).

    A function of its space is a sum of functions of at most `degree` features each.

    Parameters
    ----------
    gamma : float
        Rate at which the term of each feature falls with the distance.
    degree : int
        Largest number of features in a product.
    metric : Metric or None
        A linear map before the kernel; the sum is over the mapped coordinates.

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

    def _between(self, X: Array, Y: Array) -> Array:
        sums = distances.sum_of_gaussians(X, Y, self.gamma)
        return sums**self.degree

    def diag(self, X: Array) -> Array:
        """Return q^degree for each row, with q mapped coordinates, shape (n,)."""
        # each of the q terms is 1
        q = X.shape[1]
        if self.metric is not None:
            q = self.metric.width(q)
        value = float(q) ** self.degree
        return super().diag(X) * value

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        # the derivative of s^degree is degree · s^degree / s, for the sum s over features
        sums = distances.sum_of_gaussians(X, Z, self.gamma)
        weights = self.degree * A * K / sums

        # and that of s a sum of slopes
        term = distances.GaussianTerm(self.gamma)
        return distances.sum_over_points(X, Z, weights, term.slope)


@dataclass(frozen=True, repr=False)
class Laplacian(Scaled):
    """exp(−‖x−y‖₁ / σ) = exp(−γ‖x−y‖₁), with γ = 1/σ.

    .. versionadded:: 0.1

    Parameters
    ----------
    sigma, gamma, metric
        As in `Gaussian`, but "median" is the median city-block distance, and "scale" is
        γ = 1 / (d·std X).

    See Also
    --------
    Matern : rotation-invariant, with ν = 0.5.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Laplacian(sigma=2.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    sigma: Bandwidth = None
    gamma: Bandwidth = None
    metric: Metric | None = None
    power: ClassVar[int] = 1

    def _between(self, X: Array, Y: Array) -> Array:
        # −γ‖x − y‖₁
        exponents = self._distances(X, Y)
        exponents *= -self._rate()
        return apply_in_place("exp", exponents)

    def _distances(self, X: Array, Y: Array) -> Array:
        return distances.cityblock_distances(X, Y)

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        # the slope of |t| is its sign
        weights = A * K * self._rate()
        sign = namespace(Z).sign
        return distances.sum_over_points(X, Z, weights, sign)

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return frequencies with independent Cauchy coordinates of scale γ."""
        uniform = ndtr(normals)
        angles = np.pi * (uniform - 0.5)
        cauchy: Floats = np.tan(angles)
        return self._rate() * cauchy
