"""Adapters for scikit-learn's kernels, the user's functions, and precomputed matrices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from nysboost.kernels.base import Evaluator, Kernel, Parameter, finite
from nysboost.numerics.arrays import Array, Indices, dense, dtype_name, like, take


@dataclass(frozen=True)
class SklearnKernel(Kernel):
    """One of scikit-learn's pairwise kernels, by name.

    "additive_chi2" is left out: its diagonal is 0 and its other values are negative.
    """

    parameters: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "sigmoid": ("gamma", "coef0"),
        "chi2": ("gamma",),
    }

    metric: str
    params: Mapping[str, Parameter] = field(default_factory=dict)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        try:
            values = pairwise_kernels(X, Y, metric=self.metric, filter_params=True, **self.params)
        except ValueError as error:
            msg = f"The kernel {self.metric!r} of scikit-learn refuses these points: {error}"
            raise ValueError(msg) from error
        in_dtype = values.astype(X.dtype, copy=False)
        return finite(self, in_dtype)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A user's vectorised function ``k(X, Y, **params) -> (n, m)``, with checked results."""

    parallel = False  # it may not be thread-safe

    function: Callable[..., Array]
    params: Mapping[str, Parameter] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            signature = inspect.signature(self.function)
            signature.bind(None, None, **self.params)
        except TypeError as error:
            given = "".join(f", {name}=…" for name in self.params)
            msg = f"The kernel function {self.name} cannot be called as k(X, Y{given}): {error}."
            raise TypeError(msg) from error
        except ValueError:
            return  # functions of other languages have no signature

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        values = dense(self.function(X, Y, **self.params))
        if not hasattr(values, "dtype"):
            values = np.asarray(values)

        # a user's function may return anything
        given = tuple(values.shape)
        expected = (X.shape[0], Y.shape[0])
        if given != expected:
            raise ValueError(
                f"The kernel function {self.name} returned shape {given} for {expected[0]} and "
                f"{expected[1]} points; {expected} was expected. A kernel takes two arrays of "
                "points and returns the matrix of all their values at once."
            )

        kind = dtype_name(values)
        if not kind.startswith(("float", "int", "uint", "bool")):
            raise ValueError(
                f"The kernel function {self.name} returned values of type {kind}, but it must "
                "return real numbers."
            )
        return finite(self, like(values, X))

    @property
    def name(self) -> str:
        """The name of the function."""
        return str(getattr(self.function, "__name__", "the kernel"))

    def __str__(self) -> str:
        return f"the kernel function {self.name}"


@dataclass(frozen=True)
class Columns(Kernel):
    """Columns of a precomputed matrix, whose rows hold kernel values.

    Landmarks are column numbers. A new row holds kernel values with all n rows of the matrix, from
    which these columns are picked, or with the landmarks alone.
    """

    n: int
    temporaries: ClassVar[int] = 0

    def at(self, columns: Indices) -> Evaluator:
        """Return x ↦ the values of rows x at these columns, shape (n, m)."""
        return PickColumns(columns, self.n)


@dataclass(frozen=True, eq=False)
class PickColumns(Evaluator):
    """Rows of n kernel values ↦ the values at the columns of the landmarks."""

    columns: Indices
    n: int

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return the values, shape (len(X), m)."""
        # rows that hold the landmarks' columns alone, or all n
        width = X.shape[1]
        m = len(self.columns)
        if width == m != self.n:
            return dense(X)
        columns = take(X, self.columns, axis=1)
        return dense(columns)
