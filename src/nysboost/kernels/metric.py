"""Metrics, linear maps of the inputs before a kernel, and kernels that have one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import diags_array

from nysboost.kernels import base
from nysboost.kernels.base import Bandwidth, Evaluator, Kernel
from nysboost.kernels.warp import Quantiles
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, dense, is_sparse, like
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.magnitudes import unit_of
from nysboost.numerics.messages import format_value
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS


@dataclass(frozen=True, eq=False)
class Metric:
    """The linear map x ↦ xA: distances are those of the mapped points.

    .. versionadded:: 0.2

    Parameters
    ----------
    map : float, array of shape (d,) or array of shape (d, q)
        One scale for all features; one for each; or A itself, full if q = d and of low rank
        if q < d. Large entries make a feature matter.
    warp : Quantiles or None
        What each feature goes through before the map, as the learners' ``scale="quantile"``
        finds it: the map is then x ↦ h(x)A.

    See Also
    --------
    NystroemRegressor : finds one.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> metric = nb.Metric([2.0, 0.0])
    >>> metric
    Metric(a scale for each of 2 features)
    >>> kernel = nb.Gaussian(metric=metric)
    >>> float(kernel(np.array([[0.0, 5.0]]), np.array([[0.0, -3.0]]))[0, 0])
    1.0
    >>> metric.relevance(2)
    array([1., 0.])
    """

    map: Any
    warp: Quantiles | None = None

    def __post_init__(self) -> None:
        try:
            values = np.array(self.map, dtype=np.float64)
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.ndim > 2 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                "A metric is a finite number, a vector of d of them or a d×q matrix, but "
                f"{format_value(self.map)} was given."
            )
        values.flags.writeable = False
        object.__setattr__(self, "map", values)

    def __call__(self, X: Array) -> Array:
        """Return the mapped points XA: dense, unless X is CSR and each feature has a scale."""
        return self.mapping(X)(X)

    def mapping(self, template: Array) -> Callable[[Array], Array]:
        """Return X ↦ XA for points in the form of `template`, with A brought there once."""
        self.require_features(template.shape[1])
        if self.warp is not None:
            warp, linear = self.warp, replace(self, warp=None).mapping(dense(template))
            return lambda X: linear(warp(dense(X)))
        if self.map.ndim == 0:
            scale = float(self.map)
            return lambda X: X * scale
        if is_sparse(template):
            sparse_map = diags_array(self.map) if self.map.ndim == 1 else self.map
            return lambda X: (X @ sparse_map).astype(X.dtype)
        A = like(self.map.copy(), template)  # PyTorch wants arrays that could be written
        return (lambda X: X * A) if self.map.ndim == 1 else (lambda X: X @ A)

    def pull_back(self, gradient: Array, x: Array) -> Array:
        """Return the gradient with respect to x from that with respect to xA: times Aᵀ."""
        A = like(self.map.copy(), gradient)
        linear = gradient @ A.T if self.map.ndim == 2 else gradient * A
        return linear if self.warp is None else linear * self.warp.slope(x)

    def relevance(self, d: int) -> Floats:
        """Return how much each of d features moves the mapped point, shape (d,), sum 1.

        It is the diagonal of A Aᵀ, the squared length of a unit step along each feature.
        """
        self.require_features(d)
        squared = self.map**2
        lengths = squared.sum(axis=1) if squared.ndim == 2 else np.broadcast_to(squared, (d,))
        total = lengths.sum()
        return np.array(lengths / total) if total > 0 else np.full(d, 1 / d)

    def require_features(self, d: int) -> None:
        """Raise unless points of d features can be mapped."""
        needed = [len(self.map)] if self.map.ndim else []
        needed += [] if self.warp is None else [len(self.warp.knots)]
        if any(width != d for width in needed):
            msg = f"{self} maps points of {needed[0]} features, but these have {d}."
            raise ValueError(msg)

    def __repr__(self) -> str:
        of = "" if self.warp is None else " of quantiles"
        if self.map.ndim == 0:
            return f"Metric({float(self.map):.4g}{of})"
        if self.map.ndim == 1:
            return f"Metric(a scale for each of {len(self.map)} features{of})"
        return f"Metric({self.map.shape[0]} features{of} → {self.map.shape[1]})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Metric)
            and np.array_equal(self.map, other.map)
            and self.warp == other.warp
        )

    def __hash__(self) -> int:
        return hash((self.map.shape, self.map.tobytes(), self.warp))


class Mapped(Kernel, ABC):
    """k(xA, yA), a kernel of points under a metric A; k(x, x) = 1 unless said.

    Final classes have `_against_mapped`, `_pullback` and `_frequencies`, of mapped points.
    """

    metric: Metric | None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric | None):  # an array: the map
            object.__setattr__(self, "metric", Metric(self.metric))

    def mapping(self, template: Array) -> Callable[[Array], Array]:
        """Return X ↦ XA for points in the form of `template`."""
        return (lambda X: X) if self.metric is None else self.metric.mapping(template)

    def _against(self, Y: Array) -> Evaluator:
        mapped = self.mapping(Y)
        evaluate = self._against_mapped(mapped(Y))
        return lambda X, out=None: evaluate(mapped(X), out)

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        return like(np.ones(X.shape[0]), X)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        mapped = self.mapping(X)
        gradient = self._pullback(mapped(X), mapped(Z), K, A)
        return gradient if self.metric is None else self.metric.pull_back(gradient, Z)

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return ω of the plane waves whose mean is the kernel, shape (D, d)."""
        if self.metric is None:
            return self._frequencies(normals, uniforms)
        if self.metric.warp is not None:
            msg = f"{self} looks at quantiles of x, of which plane waves are not those of x."
            raise ValueError(msg)
        width = self.metric.map.shape[1] if self.metric.map.ndim == 2 else None
        of_mapped = self._frequencies(normals[:, :width], uniforms)
        return np.asarray(self.metric.pull_back(of_mapped, normals))

    @abstractmethod
    def _against_mapped(self, Y: Array) -> Evaluator: ...

    @abstractmethod
    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array: ...

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        return super().frequencies(normals, uniforms)  # there are none


class Scaled(Mapped):
    """A kernel with a bandwidth σ or γ, of which at most one is given, and a metric.

    With neither, γ = 1/d or, where a metric sets the scale, σ = 1. With `power` q the kernel is a
    function of γ·distance^q, and γ = 1 / (q·σ^q).
    """

    power: ClassVar[int] = 2
    sigma: Bandwidth
    gamma: Bandwidth

    def __post_init__(self) -> None:
        base.require_bandwidth("sigma", self.sigma)
        base.require_bandwidth("gamma", self.gamma)
        if self.sigma is not None and self.gamma is not None:
            given = f"sigma={self.sigma!r} and gamma={self.gamma!r}"
            raise ValueError(f"Give sigma or gamma, not both: {given} were given.")
        super().__post_init__()
        # of features, not of what becomes of them
        if self.metric is not None and "scale" in (self.sigma, self.gamma):
            raise ValueError('Beside a metric the bandwidth is a number or "median", not "scale".')

    def resolve(self, rows: Rows) -> Self:
        """Return the kernel with γ as a number."""
        known: Any = self
        rule, default = self.sigma or self.gamma, 1 / rows.n_features
        if isinstance(rule, str):
            by_median = rule == "median"
            spread = self._median_distance(rows) if by_median else base.standard_deviation(rows)
            sigma = spread if by_median else spread * self._sigma_of(default)
            # where all points are equal any bandwidth will do; a kernel checks its range
            known = replace(known, sigma=sigma or 1.0, gamma=None)
        gamma = default if rule is None and self.metric is None else known._gamma()
        return replace(self, sigma=None, gamma=gamma)  # type: ignore[type-var]

    def _median_distance(self, rows: Rows) -> float:
        sample = self.mapping(rows.template)(rows.take(spaced_indices(rows.n, MEDIAN_ROWS)))
        unit = unit_of(sample)
        matrix = arrays.to_host(self._distances(sample / unit, sample / unit))
        pairs = matrix[np.triu_indices(len(matrix), 1)]
        return unit * float(np.median(pairs)) if pairs.size else 0.0

    def _gamma(self) -> float:
        """Return γ, which must be known by now."""
        if self.metric is not None and self.sigma is None and self.gamma is None:
            return self._gamma_of(1.0)
        if self.sigma is None:
            return base.number(self, "gamma")
        return self._gamma_of(base.number(self, "sigma"))

    def _rate(self) -> float:
        """Return by what the distances, or their squares, are multiplied: γ unless said."""
        return self._gamma()

    def _gamma_of(self, sigma: float) -> float:
        return 1 / (self.power * sigma**self.power)

    def _sigma_of(self, gamma: float) -> float:
        return float((1 / (self.power * gamma)) ** (1 / self.power))

    @abstractmethod
    def _distances(self, X: Array, Y: Array) -> Array:
        """Return the distances of which σ is the unit, for all pairs of mapped points."""
