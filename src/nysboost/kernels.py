"""Kernel functions: small frozen objects of one form, ``kernel(X, Y)``.

A kernel takes two sets of points, arrays of shape (n, d) and (m, d) or CSR matrices,
and returns the dense (n, m) matrix of its values in the dtype of X.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import normalize

from nysboost import distances
from nysboost.arrays import Array, apply_in_place, like, namespace
from nysboost.bandwidth import (
    Bandwidth,
    euclidean,
    measured,
    number,
    require_at_most_one,
    require_bandwidth,
    require_positive,
)
from nysboost.names import unknown
from nysboost.rows import Rows


class Kernel(ABC):
    """A positive semidefinite function of two points."""

    @abstractmethod
    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for each row, shape (n,)."""
        small = [X[i : i + 64] for i in range(0, X.shape[0], 64)]
        blocks = [self(block, block) for block in small]
        xp = namespace(blocks[0])
        return xp.concat([xp.linalg.diagonal(block) for block in blocks])

    def resolve(self, rows: Rows) -> Kernel:  # noqa: ARG002
        """Return this kernel with every rule for a parameter replaced by its number."""
        return self


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

    def __post_init__(self) -> None:
        require_at_most_one(self.sigma, self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        exponents = distances.gaussian_exponents(X, Y, self._rate())
        return apply_in_place("exp", exponents)

    def resolve(self, rows: Rows) -> Gaussian:
        """Return the kernel with γ as a number."""
        if self.sigma is None and self.gamma is None:
            return Gaussian(gamma=1 / rows.n_features)
        rule, d = self.sigma or self.gamma, rows.n_features
        found = measured(rows, rule, euclidean, lambda spread: spread * (d / 2) ** 0.5)
        return Gaussian(gamma=self._rate() if found is None else 1 / (2 * found * found))

    def _rate(self) -> float:
        if self.sigma is None:
            return number(self, "gamma")
        return 1 / (2 * number(self, "sigma") ** 2)


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


@dataclass(frozen=True)
class Matern(_UnitDiagonal):
    """The Matérn kernel of smoothness ν = 0.5, 1.5 or 2.5 and length scale σ.

    With r = √(2ν)·‖x−y‖/σ it is e⁻ʳ, (1 + r)e⁻ʳ and (1 + r + r²/3)e⁻ʳ.

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5
        Smoothness.
    sigma : float, "median" or "scale"
        Length scale; None is √(d/2), the σ of scikit-learn's default Gaussian.
    """

    nu: float = 1.5
    sigma: Bandwidth = None

    def __post_init__(self) -> None:
        if self.nu not in (0.5, 1.5, 2.5):
            msg = f"Matern has nu = 0.5, 1.5 or 2.5, but nu={self.nu!r} was given."
            raise ValueError(msg)
        require_bandwidth("sigma", self.sigma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        squared = distances.squared_distances(X, Y)
        xp = namespace(squared)
        r = xp.sqrt(squared) * (float(np.sqrt(2 * self.nu)) / number(self, "sigma"))
        polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[self.nu]
        return xp.astype(polynomial * xp.exp(-r), X.dtype)

    def resolve(self, rows: Rows) -> Matern:
        """Return the kernel with σ as a number."""
        default = float(np.sqrt(rows.n_features / 2))
        found = measured(rows, self.sigma, euclidean, lambda spread: spread * default)
        return Matern(nu=self.nu, sigma=found or self.sigma or default)


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


@dataclass(frozen=True)
class Linear(Kernel):
    """⟨x, y⟩."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return distances.inner_products(X, Y)

    def diag(self, X: Array) -> Array:
        """Return ‖x‖², shape (n,)."""
        return distances.squared_norms(X)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(γ⟨x, y⟩ + coef0)^degree; γ = None is 1/d, scikit-learn's default."""

    degree: float = 3
    gamma: float | None = None
    coef0: float = 1.0

    def __post_init__(self) -> None:
        require_positive("degree", self.degree)
        if self.gamma is not None:
            require_positive("gamma", self.gamma)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        products = distances.inner_products(X, Y)
        return (number(self, "gamma") * products + self.coef0) ** self.degree

    def diag(self, X: Array) -> Array:
        """Return (γ‖x‖² + coef0)^degree, shape (n,)."""
        norms = distances.squared_norms(X)
        return (number(self, "gamma") * norms + self.coef0) ** self.degree

    def resolve(self, rows: Rows) -> Polynomial:
        """Return the kernel with γ as a number."""
        return replace(self, gamma=1 / rows.n_features if self.gamma is None else self.gamma)


@dataclass(frozen=True)
class Cosine(Kernel):
    """⟨x, y⟩ / (‖x‖‖y‖), and 0 where a point is the origin."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        return distances.inner_products(_directions(X), _directions(Y))

    def diag(self, X: Array) -> Array:
        """Return 1 for each row, and 0 for an all-zero row, shape (n,)."""
        norms = distances.squared_norms(X)
        return namespace(norms).astype(norms > 0, norms.dtype)


@dataclass(frozen=True)
class SklearnKernel(Kernel):
    """One of scikit-learn's pairwise kernels, by its name there."""

    metric: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        values = pairwise_kernels(X, Y, metric=self.metric, filter_params=True, **self.params)
        return values.astype(X.dtype, copy=False)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's vectorised function ``k(X, Y, **params) -> (n, m)``, its answers checked."""

    function: Callable[..., Array]
    params: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        values = like(self.function(X, Y, **self.params), X)
        name = getattr(self.function, "__name__", "the kernel")
        expected = (X.shape[0], Y.shape[0])
        if tuple(values.shape) != expected:
            msg = (
                f"The kernel function {name} returned shape {tuple(values.shape)} for "
                f"{expected[0]} and {expected[1]} points; {expected} was expected. A kernel takes "
                "two arrays of points and returns the matrix of all their values at once."
            )
            raise ValueError(msg)
        if not bool(namespace(values).all(namespace(values).isfinite(values))):
            msg = f"The kernel function {name} returned NaN or infinity for finite points."
            raise ValueError(msg)
        return values


_NAMED: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "cosine": Cosine,
    "anova": Anova,
}
_SKLEARN = ("sigmoid", "chi2", "additive_chi2")

KERNELS: tuple[str, ...] = (*_NAMED, *_SKLEARN, "precomputed")
"""Every kernel name that is understood."""


def make_kernel(kernel: str | Kernel | Callable[..., Array], **params: Any) -> Kernel:
    """Turn a name, a kernel or a callable into a kernel, in the one place that does.

    Parameters
    ----------
    kernel : str, Kernel or callable
        One of `KERNELS` other than "precomputed", a kernel object, or a vectorised
        function ``k(X, Y)``.
    **params
        Parameters of a named kernel or of the callable. Those that are None, and those
        that a named kernel does not have, are left out, as scikit-learn does.
    """
    given = {name: value for name, value in params.items() if value is not None}
    if isinstance(kernel, Kernel):
        if given:
            msg = f"{', '.join(given)} cannot be set beside the kernel {kernel}: put it inside."
            raise ValueError(msg)
        return kernel
    if callable(kernel):
        return CallableKernel(kernel, given)
    if kernel in _SKLEARN:
        return SklearnKernel(kernel, given)
    if kernel not in _NAMED:
        raise ValueError(unknown("kernel", kernel, KERNELS))
    made = _NAMED[kernel]
    known = {f.name for f in fields(made)}  # type: ignore[arg-type]
    return made(**{name: value for name, value in given.items() if name in known})


def _directions(X: Array) -> Array:
    if issparse(X) or isinstance(X, np.ndarray):
        return normalize(X)
    xp = namespace(X)
    norms = xp.sqrt(distances.squared_norms(X))[:, None]
    return X / xp.where(norms > 0, norms, xp.ones_like(norms))
