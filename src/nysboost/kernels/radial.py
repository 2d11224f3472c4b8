"""Kernels of a distance with a bandwidth: Gaussian and Matérn."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
from scipy.special import gammaincinv

from nysboost.kernels import distances
from nysboost.kernels.bandwidth import median_distance, spread_rows, standard_deviation
from nysboost.kernels.base import Evaluator, Kernel, Mapped
from nysboost.kernels.metric import Metric
from nysboost.numerics.arrays import Array, Floats, apply_in_place, namespace
from nysboost.numerics.checks import require_positive
from nysboost.numerics.tolerances import SMOOTHED
from nysboost.rows.rows import Rows

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that computes it from data; None is the kernel's default."""

RULES = ("median", "scale")

RANGES = {"sigma": (1e-150, 1e150), "gamma": (1e-300, 1e300)}
"""Outside these ranges, squared distances in units of σ overflow or underflow."""

FARTHEST = 1000.0
"""e⁻ʳ is 0 from here on; at larger r, (1 + r)e⁻ʳ might be ∞ · 0."""


class Scaled(Mapped):
    """A kernel with a metric and a bandwidth, given as σ or γ but not both.

    By default γ = 1/d, or σ = 1 if a metric sets the scale. With `power` q, the kernel is a
    function of γ·distance^q, and γ = 1 / (q·σ^q).
    """

    power: ClassVar[int] = 2
    sigma: Bandwidth
    gamma: Bandwidth

    def __post_init__(self) -> None:
        require_bandwidth("sigma", self.sigma)
        require_bandwidth("gamma", self.gamma)
        if self.sigma is not None and self.gamma is not None:
            given = f"sigma={self.sigma!r} and gamma={self.gamma!r}"
            raise ValueError(f"Give sigma or gamma, not both: {given} were given.")
        super().__post_init__()

        # "scale" is about the features, and a metric maps them to something else
        is_scale = "scale" in (self.sigma, self.gamma)
        if self.metric is not None and is_scale:
            raise ValueError('With a metric, the bandwidth is a number or "median", not "scale".')

    def resolve(self, rows: Rows) -> Self:
        """Return the kernel with γ as a number."""
        gamma = self._gamma_on(rows)
        return self.with_parameters(sigma=None, gamma=gamma)

    def _gamma_on(self, rows: Rows) -> float:
        """Return γ: the given number, or the number that a rule computes from the data."""
        default = 1 / rows.n_features
        rule = self.sigma or self.gamma
        if rule is None and self.metric is None:
            return default
        if rule not in RULES:
            return self._gamma()

        # the median distance, or scikit-learn's γ = 1/(d · var X)
        if rule == "median":
            mapping = self.mapping(rows.template)
            points = mapping(spread_rows(rows))
            sigma = median_distance(points, self._distances)
        else:
            sigma = standard_deviation(rows) * self._sigma_of(default)

        # if all points are equal, any bandwidth is right
        sigma = sigma or 1.0
        require_bandwidth("sigma", sigma)
        return self._gamma_of(sigma)

    def _gamma(self) -> float:
        """Return γ, or raise if it is not a number yet."""
        if self.gamma is not None:
            return number(self, "gamma")
        sigma = 1.0
        if self.sigma is not None or self.metric is None:
            sigma = number(self, "sigma")
        return self._gamma_of(sigma)

    def _rate(self) -> float:
        """Return the factor of the distances, or of their squares: γ by default."""
        return self._gamma()

    def _gamma_of(self, sigma: float) -> float:
        # γ = 1 / (q·σ^q)
        sigma_to_q = sigma**self.power
        return 1 / (self.power * sigma_to_q)

    def _sigma_of(self, gamma: float) -> float:
        # γ = 1 / (q·σ^q)
        sigma_to_q = 1 / (self.power * gamma)
        return float(sigma_to_q ** (1 / self.power))

    @abstractmethod
    def _distances(self, X: Array, Y: Array) -> Array:
        """Return the distances, in the norm of this kernel, of all pairs of mapped points."""


def require_bandwidth(name: str, value: Bandwidth) -> None:
    """Raise unless the value is a positive number, a rule or None."""
    if value is None or value in RULES:
        return
    if isinstance(value, str):
        msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
        raise ValueError(msg)

    require_positive(name, value)
    smallest, largest = RANGES[name]
    if not smallest < float(value) < largest:
        msg = f"{name}={value!r} is outside the range of floating point: scale the data instead."
        raise ValueError(msg)


def number(kernel: Kernel, name: str) -> float:
    """Return a parameter, or raise if it is not a number yet."""
    value: Bandwidth = getattr(kernel, name)
    if value is not None and not isinstance(value, str):
        return float(value)

    said = f"{kernel} has no {name}, and its default depends on the data"
    if value is not None:
        said = f'{name}="{value}" of {kernel} needs data'
    raise ValueError(
        f"{said}: pass a number, or fit an estimator, which computes it from its data."
    )


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
        At most one of the two. "median" sets σ to the median distance, and "scale" sets γ = 1 /
        (d·var X). The default is γ = 1/d, as in scikit-learn, or σ = 1 if a metric sets the scale.
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
        exponents = distances.minus_squared_distances(Y, self._rate())
        return GaussianValues(exponents)

    def profile(self, squared: Array) -> tuple[Array, Array]:
        """Return φ(s) = exp(−γs) and φ'(s) = −γφ(s)."""
        squared *= -self._rate()
        values = apply_in_place("exp", squared)
        return values, values * -self._rate()

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        pulled = _pull_towards(X, Z, A * K)
        return 2 * self._rate() * pulled

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return normal frequencies of variance 2γ."""
        variance = 2 * self._rate()
        return normals * float(np.sqrt(variance))


@dataclass(frozen=True, eq=False)
class GaussianValues(Evaluator):
    """x ↦ exp(−γ‖x−y‖²)."""

    exponents: Evaluator

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return the kernel values, shape (n, m)."""
        return apply_in_place("exp", self.exponents(X, out))


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
        As in `Gaussian`: σ is the length scale, and σ = 1 / √(2γ).

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
            raise ValueError(f"nu of Matern is 0.5, 1.5 or 2.5, but nu={self.nu!r} was given.")
        super().__post_init__()

    def _against_mapped(self, Y: Array) -> Evaluator:
        # |dk / d(r²)| ≤ ½ for ν > ½, so that r² needs no more digits than k
        unit = self._rate() ** 2
        exact = not self.differentiable
        exponents = distances.minus_squared_distances(Y, unit, exact=exact)
        return MaternValues(self, exponents)

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
        half = -unit / 2
        slopes: Array
        if self.nu == 0.5:
            slopes = decay / (r + SMOOTHED) * half
        elif self.nu == 1.5:
            slopes = decay * half
        else:
            slopes = (1 + r) * (-unit / 6)
            slopes *= decay
        return self._values(r, decay), slopes

    def _rate(self) -> float:
        """Return √(2ν) / σ."""
        squared = 4 * self.nu * self._gamma()
        return float(np.sqrt(squared))

    def resolve(self, rows: Rows) -> Matern:
        """Return the kernel with σ, or the γ that was given, as a number."""
        given = self.sigma or self.gamma
        if given is not None and given not in RULES:
            return self

        gamma = self._gamma_on(rows)
        sigma = self._sigma_of(gamma)
        return replace(self, sigma=sigma, gamma=None)

    @property
    def differentiable(self) -> bool:
        """Whether the kernel is smooth where two points meet."""
        return self.nu > 0.5

    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        unit = self._rate() ** 2
        minus_squared = distances.minus_squared_distances(Z, unit)
        squared = minus_squared(X)
        squared *= -1 / unit

        # ∂φ(‖x − z‖²)/∂z = −2φ'(x − z)
        _, slope = self.profile(squared)
        slope *= A
        slope *= -2
        return _pull_towards(X, Z, slope)

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return frequencies of Student's t distribution with 2ν degrees of freedom, over σ."""
        # χ² / ν of 2ν degrees of freedom
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
        minus_squared = self.exponents(X, out)
        r, decay = _root_and_decay(minus_squared, -1.0)
        return self.kernel._values(r, decay)


def _root_and_decay(squared: Array, unit: float) -> tuple[Array, Array]:
    """Return r = √(unit · squared), at most FARTHEST and in the memory of the argument, and e⁻ʳ."""
    squared *= unit
    r = apply_in_place("sqrt", squared)

    # in a cache, to look for such values is faster than to write; NaN counts as one
    is_in_cache = isinstance(r, np.ndarray)
    if not is_in_cache or not r.max(initial=0.0) <= FARTHEST:
        r = apply_in_place("minimum", r, FARTHEST)
    return r, apply_in_place("exp", -r)


def _pull_towards(X: Array, Z: Array, pull: Array) -> Array:
    """Return Σ_i pull_ij (x_i − z_j) for each landmark, shape (m, d)."""
    # Σ_i pull_ij x_i − (Σ_i pull_ij) z_j
    total = namespace(pull).sum(pull, axis=0)
    towards = pull.T @ X
    away = total[:, None] * Z
    return towards - away
