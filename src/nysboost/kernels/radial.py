"""Kernels of the difference x − y: Gaussian, Laplacian and Matérn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import gammaincinv, ndtr

from nysboost.kernels import distances
from nysboost.kernels.bandwidth import RULES, Bandwidth, Scaled
from nysboost.kernels.base import Evaluator
from nysboost.kernels.distances import SquaredDistances
from nysboost.kernels.metric import Metric
from nysboost.numerics.arrays import (
    Array,
    Floats,
    apply_in_place,
    in_dtype_of,
    in_float64,
    namespace,
)
from nysboost.numerics.tolerances import SMOOTHED
from nysboost.rows.rows import Rows


class Radial(Scaled):
    """A kernel φ(‖xA − yA‖²) of the distance under a metric A."""

    @abstractmethod
    def profile(self, squared: Array) -> tuple[Array, Array]:
        """Return φ(s) and a finite φ'(s) at squared distances s; may overwrite them."""

    def _distances(self, X: Array, Y: Array) -> Array:
        return distances.squared_distances(X, Y) ** 0.5


@dataclass(frozen=True, repr=False)
class Gaussian(Radial):
    """exp(−‖x−y‖² / (2σ²)) = exp(−γ‖x−y‖²), with γ = 1 / (2σ²).

    .. versionadded:: 0.1

    Parameters
    ----------
    sigma, gamma : float, "median", "scale" or None
        At most one of the two. "median" is the median distance, "scale" is
        γ = 1 / (d·var X); with neither, γ = 1/d, scikit-learn's default, or, where a metric
        sets the scale, σ = 1.
    metric : Metric, array or None
        A linear map before the kernel.

    See Also
    --------
    Matern : less smooth.
    Metric : a linear map before the kernel.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Gaussian(sigma=1.0)(np.zeros((1, 2)), np.array([[0.0, 0.0], [1.0, 1.0]])).round(3)
    array([[1.   , 0.368]])
    """

    sigma: Bandwidth = None
    gamma: Bandwidth = None
    metric: Metric | None = None
    temporaries: ClassVar[int] = 0

    def _against_mapped(self, Y: Array) -> Evaluator:
        return GaussianValues(distances.minus_squared_distances(Y, self._rate()))

    def profile(self, squared: Array) -> tuple[Array, Array]:
        """Return φ(s) = exp(−γs) and φ'(s) = −γφ(s)."""
        rate = self._rate()
        squared *= -rate
        values = apply_in_place("exp", squared)
        return values, values * -rate

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        pulled = _pull_towards(X, Z, A * K)
        return 2 * self._rate() * pulled

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return normal frequencies of variance 2γ."""
        deviation = float(np.sqrt(2 * self._rate()))
        return normals * deviation


@dataclass(frozen=True, eq=False)
class GaussianValues(Evaluator):
    """x ↦ exp(−γ‖x−y‖²)."""

    exponents: Evaluator

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        return apply_in_place("exp", self.exponents(X, out))


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
        exponents = self._distances(X, Y) * -self._rate()
        return apply_in_place("exp", exponents)

    def _distances(self, X: Array, Y: Array) -> Array:
        return distances.cityblock_distances(X, Y)

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        weights = A * K * self._rate()
        return distances.sum_over_points(X, Z, weights, namespace(Z).sign)

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return frequencies whose coordinates are Cauchy distributed, of scale γ."""
        uniform = ndtr(normals)
        cauchy: Floats = np.tan(np.pi * (uniform - 0.5))
        return self._rate() * cauchy


@dataclass(frozen=True, repr=False)
class Matern(Radial):
    """The Matérn kernel of smoothness ν = 0.5, 1.5 or 2.5 and length scale σ.

    With r = √(2ν)·‖x−y‖/σ it is e⁻ʳ, (1 + r)e⁻ʳ and (1 + r + r²/3)e⁻ʳ.

    .. versionadded:: 0.1

    Parameters
    ----------
    nu : 0.5, 1.5 or 2.5
        Smoothness.
    sigma, gamma, metric
        As in `Gaussian`: σ is the length scale, and γ that of a Gaussian as wide, σ = 1 / √(2γ).

    See Also
    --------
    Gaussian : the limit ν → ∞.
    Metric : a linear map before the kernel.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> nb.Matern(nu=0.5, sigma=5.0)(np.zeros((1, 2)), np.array([[3.0, 4.0]])).round(3)
    array([[0.368]])
    """

    nu: float = 1.5
    sigma: Bandwidth = None
    gamma: Bandwidth = None
    metric: Metric | None = None

    def __post_init__(self) -> None:
        if self.nu not in (0.5, 1.5, 2.5):
            raise ValueError(f"Matern has nu = 0.5, 1.5 or 2.5, but nu={self.nu!r} was given.")
        super().__post_init__()

    def _against_mapped(self, Y: Array) -> Evaluator:
        unit = self._rate() ** 2
        if self.differentiable:  # |dk / d(r²)| ≤ ½, so r² needs no more digits than k
            return MaternValues(self, distances.minus_squared_distances(Y, unit))
        return ExactMaternValues(self, SquaredDistances.to(in_float64(Y)), unit)

    def _values(self, r: Array, decay: Array) -> Array:
        """Return the kernel at r, with decay = e⁻ʳ, in the memory of r."""
        if self.nu == 0.5:
            return decay

        # 1 + r, or 1 + r + r²/3
        if self.nu == 2.5:
            r += r * r / 3
        r += 1
        r *= decay
        return r

    def profile(self, squared: Array) -> tuple[Array, Array]:
        """Return φ(s) and φ'(s): with r = q√s, −q²/2 times e⁻ʳ/r, e⁻ʳ or (1 + r)e⁻ʳ/3."""
        unit = self._rate() ** 2
        r, decay = _root_and_decay(squared, unit)

        # φ' before r is overwritten
        slopes: Array
        if self.nu == 0.5:
            slopes = decay / (r + SMOOTHED) * (-unit / 2)
        elif self.nu == 1.5:
            slopes = decay * (-unit / 2)
        else:
            slopes = decay * ((1 + r) * (-unit / 6))
        return self._values(r, decay), slopes

    def _rate(self) -> float:
        """Return √(2ν) / σ."""
        return float(np.sqrt(4 * self.nu * self._gamma()))

    def resolve(self, rows: Rows) -> Matern:
        """Return the kernel with σ, or the γ that was given, as a number."""
        given = self.sigma or self.gamma
        if given is not None and given not in RULES:
            return self

        gamma = self._gamma_on(rows)
        return replace(self, sigma=self._sigma_of(gamma), gamma=None)

    @property
    def differentiable(self) -> bool:
        """Whether the kernel is smooth where two points meet."""
        return self.nu > 0.5

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        unit = self._rate() ** 2
        squared = distances.minus_squared_distances(Z, unit)(X)
        squared *= -1 / unit

        # ∂φ(‖x − z‖²)/∂z = −2φ'(x − z)
        _, slope = self.profile(squared)
        slope *= A
        slope *= -2
        return _pull_towards(X, Z, slope)

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return frequencies of Student's t distribution with 2ν degrees of freedom, over σ."""
        chi_squared: Floats = gammaincinv(self.nu, uniforms) / self.nu
        scales = np.sqrt(2 * self.nu * chi_squared)
        student = normals / scales[:, None]
        return student * self._rate()


@dataclass(frozen=True, eq=False)
class MaternValues(Evaluator):
    """x ↦ the Matérn kernel, from −r²."""

    kernel: Matern
    exponents: Evaluator

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        r, decay = _root_and_decay(self.exponents(X, out), -1.0)
        return self.kernel._values(r, decay)


@dataclass(frozen=True, eq=False)
class ExactMaternValues(Evaluator):
    """x ↦ the Matérn kernel, from distances in float64: it has a corner where two points meet."""

    kernel: Matern
    squared_distances: SquaredDistances
    unit: float

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the kernel values, shape (n, m)."""
        squared = self.squared_distances(in_float64(X))
        r, decay = _root_and_decay(squared, self.unit)
        values = self.kernel._values(r, decay)
        return in_dtype_of(values, X)


def _root_and_decay(squared: Array, unit: float) -> tuple[Array, Array]:
    """Return r = √(unit · squared), in the memory of the argument, and e⁻ʳ."""
    squared *= unit
    r = apply_in_place("sqrt", squared)
    return r, apply_in_place("exp", -r)


def _pull_towards(X: Array, Z: Array, pull: Array) -> Array:
    """Return Σ_i pull_ij (x_i − z_j) for each landmark, shape (m, d)."""
    total = namespace(pull).sum(pull, axis=0)
    return pull.T @ X - total[:, None] * Z
