"""Metrics, linear maps of the inputs before a kernel, and the base class of kernels with one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from nysboost.kernels.base import Kernel
from nysboost.kernels.evaluator import Evaluator
from nysboost.kernels.warp import Quantiles
from nysboost.numerics.arrays import Array, Floats, dense, is_sparse, like
from nysboost.numerics.messages import format_value


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

    def mapping(self, template: Array) -> PointMap:
        """Return X ↦ XA for points in the form of `template`, with A brought there once."""
        self.require_features(template.shape[1])
        if self.map.ndim == 0:
            return PointMap(float(self.map), self.warp)
        if is_sparse(template) and self.warp is None:
            A = diags_array(self.map) if self.map.ndim == 1 else self.map
            return PointMap(A)
        return PointMap(like(self.map.copy(), dense(template)), self.warp)

    def pull_back(self, gradient: Array, x: Array) -> Array:
        """Return the gradient with respect to x from that with respect to xA: times Aᵀ."""
        A = like(self.map.copy(), gradient)  # a copy, because PyTorch wants writable arrays
        if self.map.ndim == 2:
            linear = gradient @ A.T
        else:
            linear = gradient * A
        if self.warp is None:
            return linear
        return linear * self.warp.slope(x)

    def width(self, d: int) -> int:
        """Return the number of coordinates that points of d features are mapped to."""
        if self.map.ndim == 2:
            return int(self.map.shape[1])
        return d

    def relevance(self, d: int) -> Floats:
        """Return how much each of d features moves the mapped point, shape (d,), sum 1.

        It is the diagonal of A Aᵀ, the squared length of a unit step along each feature.
        """
        self.require_features(d)
        squared = self.map**2
        if squared.ndim == 2:
            lengths = squared.sum(axis=1)
        else:
            lengths = np.broadcast_to(squared, (d,))
        total = lengths.sum()
        if total == 0:
            return np.full(d, 1 / d)
        return np.array(lengths / total)

    def require_features(self, d: int) -> None:
        """Raise unless points of d features can be mapped."""
        needed = []
        if self.map.ndim > 0:
            needed.append(len(self.map))
        if self.warp is not None:
            needed.append(len(self.warp.knots))
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


@dataclass(frozen=True, eq=False)
class PointMap:
    """X ↦ h(X) A, for points of one namespace and device, where A is already.

    A is a number, a scale for each feature (d,), or a matrix (d, q); for CSR points a SciPy matrix.
    """

    A: float | Array
    warp: Quantiles | None = None

    def __call__(self, X: Array) -> Array:
        """Return the mapped points, shape (n, q)."""
        if self.warp is not None:
            X = self.warp(dense(X))
        if isinstance(self.A, float):
            return X * self.A
        if is_sparse(X):
            mapped: Array = (X @ self.A).astype(X.dtype)
            return mapped
        if self.A.ndim == 1:
            return X * self.A
        return X @ self.A


def _identity(X: Array) -> Array:
    return X


@dataclass(frozen=True, eq=False)
class MappedEvaluator(Evaluator):
    """x ↦ k(xA, Z) for points Z that have been mapped and prepared."""

    evaluate: Evaluator
    point_map: PointMap

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(XA, Z), shape (n, m)."""
        return self.evaluate(self.point_map(X), out)


class Mapped(Kernel, ABC):
    """k(xA, yA), a kernel of points under a metric A; k(x, x) = 1 unless said.

    Final classes have `_between` or `_against_mapped`, `_pullback` and `_frequencies`, of mapped
    points.
    """

    metric: Metric | None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric | None):  # an array: the map
            object.__setattr__(self, "metric", Metric(self.metric))

    def mapping(self, template: Array) -> Callable[[Array], Array]:
        """Return X ↦ XA for points in the form of `template`."""
        if self.metric is None:
            return _identity
        return self.metric.mapping(template)

    def _against(self, Y: Array) -> Evaluator:
        if self.metric is None:
            return self._against_mapped(Y)
        point_map = self.metric.mapping(Y)
        return MappedEvaluator(self._against_mapped(point_map(Y)), point_map)

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        return like(np.ones(X.shape[0]), X)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        if self.metric is None:
            return self._pullback(X, Z, K, A)
        point_map = self.metric.mapping(X)
        of_mapped = self._pullback(point_map(X), point_map(Z), K, A)
        return self.metric.pull_back(of_mapped, Z)

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return ω of the plane waves whose mean is the kernel, shape (D, d)."""
        if self.metric is None:
            return self._frequencies(normals, uniforms)
        if self.metric.warp is not None:
            msg = f"{self} looks at quantiles of x, of which plane waves are not those of x."
            raise ValueError(msg)
        width = self.metric.width(normals.shape[1])
        of_mapped = self._frequencies(normals[:, :width], uniforms)
        return np.asarray(self.metric.pull_back(of_mapped, normals))

    def _against_mapped(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y) for mapped points. A kernel that prepares something overrides it."""
        return super()._against(Y)

    @abstractmethod
    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to mapped Z."""

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return the frequencies of plane waves of mapped points; this kernel has none."""
        return super().frequencies(normals, uniforms)
