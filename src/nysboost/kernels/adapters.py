"""Kernels that others wrote: scikit-learn's by name, and the user's own functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from sklearn.metrics.pairwise import pairwise_kernels

from nysboost.kernels.base import Kernel
from nysboost.numerics.arrays import Array, like, namespace


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

    parallel: ClassVar[bool] = False  # nobody promised that it can be

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
