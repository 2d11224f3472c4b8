"""Kernels of the difference of two points, under a metric."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import numpy as np

from nysboost.kernels import distances
from nysboost.kernels.bandwidth import euclidean
from nysboost.kernels.base import Kernel
from nysboost.kernels.metric import Metric
from nysboost.numerics.arrays import Array, Floats, is_sparse, namespace


class Mapped(Kernel):
    """A kernel k(xA − yA) of the difference of points under a metric A; k(0) = 1 unless said.

    Attributes
    ----------
    metric : Metric or None
        The linear map before the kernel; None leaves the points as they are.
    """

    metric: Metric | None

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        if is_sparse(X):
            return np.ones(X.shape[0], dtype=X.dtype)
        return namespace(X).ones_like(X[:, 0])

    def mapping(self, form: Array) -> Callable[[Array], Array]:
        """Return X ↦ XA for points in the form of `form`."""
        return _unchanged if self.metric is None else self.metric.mapping(form)

    def _pulled_back(self, gradient: Array, x: Array) -> Array:
        """Return the gradient with respect to x, or a frequency, from that of xA."""
        return gradient if self.metric is None else self.metric.pulled_back(gradient, x)

    def _behind(self, normals: Floats) -> Floats:
        """Return as many columns as points have behind the metric."""
        if self.metric is not None and self.metric.warp is not None:
            msg = f"{self} looks at quantiles of x, of which plane waves are not those of x."
            raise ValueError(msg)
        if self.metric is None or self.metric.map.ndim < 2:
            return normals
        width: int = self.metric.map.shape[1]
        return normals[:, :width]


class Radial(Mapped):
    """A kernel φ(‖xA − yA‖²) of the distance under a metric A."""

    @abstractmethod
    def profile(self, squared: Array) -> tuple[Array, Array]:
        """Return φ(s) and its derivative φ'(s) at squared distances s ≥ 0, of the same shape.

        The values may be written over `squared`. Where the derivative is infinite, as that
        of Matérn 1/2 at 0, a large number stands for it.
        """

    def _between(self, X: Array, Y: Array) -> Array:
        """Return ‖xA − yA‖ for all pairs."""
        mapped = self.mapping(X)
        return euclidean(mapped(X), mapped(distances.in_the_form_of(X, Y)))


def _unchanged(X: Array) -> Array:
    return X
