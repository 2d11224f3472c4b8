"""Kernels of the difference x − y: Gaussian, Laplacian, Matérn and ANOVA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.special import gammaincinv, ndtr

from nysboost.data.rows import Rows, as_float
from nysboost.kernels import distances
from nysboost.kernels.bandwidth import (
    Bandwidth,
    euclidean,
    measured,
    number,
    require_at_most_one,
)
from nysboost.kernels.base import Kernel
from nysboost.numerics.arrays import Array, Floats, apply_in_place, like, namespace
from nysboost.numerics.checks import require_positive


class _UnitDiagonal(Kernel):
    """A kernel with k(x, x) = 1."""

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        if issparse(X):
            return np.ones(X.shape[0], dtype=X.dtype)
        return namespace(X).ones_like(X[:, 0])


@dataclass(frozen=True)
class Gaussian(_UnitDiagonal):
    """exp(−‖x−y‖² / (2σ²)) = exp(−γ‖x−y‖²), with γ = 1 / (2σ²).

    Parameters
    ----------
    sigma, gamma : float, "median", "scale" or None
        At most one of the two. "median" is the median distance, "scale" is
        γ = 1 / (d·var X); with neither, γ = 1/d, scikit-learn's default.
    """

    sigma: Bandwidth = None
    gamma: Bandwidth = None
    temporaries: ClassVar[int] = 0

    def __post_init__(self) -> None:
        require_at_most_one(self.sigma, self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        X = as_float(X)
        return self.against(distances.in_the_form_of(X, Y))(X)

    def against(self, Y: Array) -> Callable[[Array], Array]:
        """Return x ↦ k(x, Y), with what depends on Y alone prepared once."""
        exponents = distances.GaussianExponents(Y, self._rate())
        return lambda X: apply_in_place("exp", exponents(X))

    def resolve(self, rows: Rows) -> Gaussian:
        """Return the kernel with γ as a number."""
        if self.sigma is None and self.gamma is None:
            return Gaussian(gamma=1 / rows.n_features)
        rule, d = self.sigma or self.gamma, rows.n_features
        found = measured(rows, rule, euclidean, lambda spread: spread * (d / 2) ** 0.5)
        return Gaussian(gamma=(self if found is None else Gaussian(found))._rate())

    def _rate(self) -> float:
        if self.sigma is None:
            return number(self, "gamma")
        return 1 / (2 * number(self, "sigma") ** 2)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        return 2 * self._rate() * _pull_towards(X, Z, A * K)

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return normal frequencies of variance 2γ."""
        return normals * float(np.sqrt(2 * self._rate()))


@dataclass(frozen=True)
class Laplacian(_UnitDiagonal):
    """exp(−‖x−y‖₁ / σ) = exp(−γ‖x−y‖₁), with γ = 1/σ.

    Parameters
    ----------
    sigma, gamma : float, "median", "scale" or None
        At most one of the two. "median" is the median city-block distance, "scale" is
        γ = 1 / (d·std X); with neither, γ = 1/d.
    """

    sigma: Bandwidth = None
    gamma: Bandwidth = None

    def __post_init__(self) -> None:
        require_at_most_one(self.sigma, self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        exponents = distances.cityblock_distances(X, Y) * -self._rate()
        return apply_in_place("exp", exponents)

    def resolve(self, rows: Rows) -> Laplacian:
        """Return the kernel with γ as a number."""
        if self.sigma is None and self.gamma is None:
            return Laplacian(gamma=1 / rows.n_features)
        rule, d = self.sigma or self.gamma, rows.n_features
        found = measured(rows, rule, distances.cityblock_distances, lambda spread: spread * d)
        return Laplacian(gamma=self._rate() if found is None else 1 / found)

    def _rate(self) -> float:
        return number(self, "gamma") if self.sigma is None else 1 / number(self, "sigma")

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        xp, pull = namespace(Z), A * K * self._rate()
        columns = [
            xp.sum(pull * xp.sign(X[:, j : j + 1] - Z[:, j : j + 1].T), axis=0)
            for j in range(Z.shape[1])
        ]
        return xp.stack(columns, axis=1)

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return frequencies whose coordinates are Cauchy distributed, of scale γ."""
        cauchy: Floats = np.tan(np.pi * (ndtr(normals) - 0.5))
        return self._rate() * cauchy


@dataclass(frozen=True)
class Matern(_UnitDiagonal):
    """The Matérn kernel of smoothness ν = 0.5, 1.5 or 2.5 and length scale σ.

    With r = √(2ν)·‖x−y‖/σ it is e⁻ʳ, (1 + r)e⁻ʳ and (1 + r + r²/3)e⁻ʳ.

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5
        Smoothness.
    sigma, gamma : float, "median", "scale" or None
        At most one of the two: the length scale, or the γ of a Gaussian as wide, with
        σ = 1 / √(2γ); with neither, σ = √(d/2), that of scikit-learn's default Gaussian.
    """

    nu: float = 1.5
    sigma: Bandwidth = None
    gamma: Bandwidth = None

    def __post_init__(self) -> None:
        if self.nu not in (0.5, 1.5, 2.5):
            msg = f"Matern has nu = 0.5, 1.5 or 2.5, but nu={self.nu!r} was given."
            raise ValueError(msg)
        require_at_most_one(self.sigma, self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        X = as_float(X)
        squared = distances.squared_distances(X, Y)
        xp = namespace(squared)
        r = xp.sqrt(squared) * self._rate()
        polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[self.nu]
        return xp.astype(polynomial * xp.exp(-r), X.dtype)

    def _rate(self) -> float:
        """Return √(2ν) / σ."""
        if self.gamma is not None:
            return float(np.sqrt(4 * self.nu * number(self, "gamma")))
        return float(np.sqrt(2 * self.nu)) / number(self, "sigma")

    def resolve(self, rows: Rows) -> Matern:
        """Return the kernel with σ as a number."""
        default = float(np.sqrt(rows.n_features / 2))
        if self.sigma is None and self.gamma is None:
            return Matern(self.nu, default)
        rule = self.sigma or self.gamma
        found = measured(rows, rule, euclidean, lambda spread: spread * default)
        return self if found is None else Matern(self.nu, found)

    @property
    def differentiable(self) -> bool:
        """Whether the kernel is smooth where two points meet."""
        return self.nu > 0.5

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        squared = distances.squared_distances(X, Z)
        xp = namespace(squared)
        rate = self._rate()
        r = xp.sqrt(squared) * rate
        slope = {1.5: 1.0, 2.5: (1 + r) / 3}[self.nu] * xp.exp(-r) * rate**2
        return _pull_towards(X, Z, A * xp.astype(slope, K.dtype))

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return frequencies of Student's t distribution with 2ν degrees of freedom, over σ."""
        chi_squared: Floats = gammaincinv(self.nu, uniforms) / self.nu
        student: Floats = normals / np.sqrt(chi_squared)[:, None]
        return student / number(self, "sigma")


@dataclass(frozen=True)
class Anova(Kernel):
    """(Σ_j exp(−γ(x_j − y_j)²))^degree, the ANOVA kernel."""

    gamma: float = 1.0
    degree: int = 1

    def __post_init__(self) -> None:
        require_positive("gamma", self.gamma)
        require_positive("degree", self.degree)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return distances.sum_of_gaussians(X, Y, self.gamma) ** self.degree

    def diag(self, X: Array) -> Array:
        """Return d^degree for each row, shape (n,)."""
        return like(np.full(X.shape[0], float(X.shape[1]) ** self.degree), X)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        xp = namespace(Z)
        slope = A * K / distances.sum_of_gaussians(X, Z, self.gamma)
        columns = []
        for j in range(Z.shape[1]):
            gap = X[:, j : j + 1] - Z[:, j : j + 1].T
            columns.append(xp.sum(slope * gap * xp.exp(-self.gamma * gap * gap), axis=0))
        return 2 * self.gamma * self.degree * xp.stack(columns, axis=1)


def _pull_towards(X: Array, Z: Array, pull: Array) -> Array:
    """Return Σ_i pull_ij (x_i − z_j) for each landmark, shape (m, d)."""
    return pull.T @ X - namespace(pull).sum(pull, axis=0)[:, None] * Z
