"""The base classes of kernels, and evaluators of a kernel against points prepared once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from nysboost.kernels.metric import Metric, PointMap
from nysboost.numerics.arrays import (
    Array,
    Floats,
    as_float,
    convert_like,
    diagonal,
    dtype_name,
    is_sparse,
    like,
    namespace,
    slices,
    sum_duplicates,
)
from nysboost.numerics.linalg import all_finite
from nysboost.rows.rows import Rows

Parameter: TypeAlias = Any
"""What a user gives as a kernel's parameter: a number, the name of a rule, a metric, …"""

DIAGONAL_ROWS = 64
"""Rows of a block whose diagonal gives k(x, x) if a kernel has no formula for it."""


class Evaluator(Protocol):
    """x ↦ k(x, Z) for prepared points Z, shape (m, d)."""

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(X, Z), shape (n, m), possibly in `out`, memory of that shape."""


@dataclass(frozen=True, eq=False)
class Pairwise(Evaluator):
    """x ↦ f(x, Z) for a function of two sets of points that prepares nothing."""

    function: Callable[[Array, Array], Array]
    Z: Array

    def __call__(self, X: Array, out: Array | None = None) -> Array:  # noqa: ARG002
        """Return f(X, Z), shape (n, m)."""
        return self.function(X, self.Z)


class Kernel:
    """A positive semidefinite function of two points.

    Attributes
    ----------
    parallel : bool
        Whether several threads may evaluate it at the same time.
    temporaries : int
        Number of temporary float64 arrays of the size of the values that are needed to evaluate
        dense rows; `tests/kernels/test_memory.py` measures it.

    Examples
    --------
    A kernel of your own is a class with one method:

    >>> import numpy as np, nysboost as nb
    >>> class Exponential(nb.Kernel):
    ...     def __call__(self, X, Y):
    ...         return np.exp(X @ Y.T)
    >>> X = np.random.default_rng(0).uniform(size=(50, 2))
    >>> nb.approximate(X, "greedy", Exponential(), n_components=10).relative_error() < 1e-4
    True
    """

    parallel: bool = True
    temporaries: ClassVar[int] = 6

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        x_shape = tuple(getattr(X, "shape", ()))
        y_shape = tuple(getattr(Y, "shape", ()))
        are_tables = len(x_shape) == len(y_shape) == 2
        if not are_tables or x_shape[1] != y_shape[1]:
            raise ValueError(
                f"A kernel takes arrays of shapes (n, d) and (m, d), but X and Y have the shapes "
                f"{x_shape} and {y_shape}."
            )

        # both in one form, and in floating point
        X = sum_duplicates(as_float(X))
        Y = sum_duplicates(convert_like(X, Y))
        return self._against(Y)(X)

    def against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y) for points Y (m, d); what depends only on Y is prepared once.

        Y has the form (dense or CSR) and the dtype of the points x.
        """
        is_users_own = type(self).__call__ is not Kernel.__call__
        if is_users_own:
            return Pairwise(self, Y)
        return self._against(Y)

    def _against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y). A kernel that prepares something for Y overrides this."""
        return Pairwise(self._between, Y)

    def _between(self, X: Array, Y: Array) -> Array:  # noqa: ARG002
        """Return k(X, Y). A kernel that prepares nothing overrides this."""
        raise TypeError(f"{type(self).__name__} is not a kernel: it has no __call__(X, Y).")

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for each row, shape (n,)."""
        # the diagonals of blocks on the diagonal of k(X, X)
        n = X.shape[0]
        diagonals = []
        for at in slices(0, max(1, n), DIAGONAL_ROWS):
            block = X[at]
            values = self(block, block)
            diagonals.append(diagonal(values))
        return namespace(diagonals[0]).concat(diagonals)

    def bytes_per_value(self, template: Array) -> int:
        """Return the bytes of memory per kernel value for rows of this form and dtype."""
        value = np.dtype(dtype_name(template)).itemsize

        # sparse rows take as much as a kernel that says nothing
        temporaries = self.temporaries
        if is_sparse(template):
            temporaries = Kernel.temporaries
        return value + 8 * temporaries

    def __repr__(self) -> str:
        """Return the name of the kernel with the parameters that are set."""
        shown = []
        for name, value in self.get_params().items():
            if value is not None:
                shown.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def get_params(self, deep: bool = True) -> dict[str, Parameter]:  # noqa: ARG002
        """Return the parameters by name, as scikit-learn's estimators do.

        Estimators accept them as ``kernel__sigma``; a kernel object never changes.
        """
        names = self.parameter_names()
        return {name: getattr(self, name) for name in names}

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the parameters: the fields of a dataclass."""
        return getattr(cls, "__match_args__", ())

    def with_parameters(self, **changes: Parameter) -> Self:
        """Return the kernel with other values of some of its parameters."""
        parameters = self.get_params() | changes
        return type(self)(**parameters)

    def __sklearn_clone__(self) -> Kernel:
        return self

    def resolve(self, rows: Rows) -> Kernel:  # noqa: ARG002
        """Return this kernel with numbers instead of rules such as "median"."""
        return self

    @property
    def differentiable(self) -> bool:
        """Whether `pullback` exists, so that landmarks can be optimised by gradient descent."""
        return type(self).pullback is not Kernel.pullback

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d).

        X (n, d) and Z (m, d) are points, and K = k(X, Z) are the values, which most derivatives can
        reuse. A (n, m) is the gradient with respect to K.
        """
        raise TypeError(f"{self} has no derivative here.")

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return ω of the plane waves whose mean is the kernel, k(x, y) = E cos⟨ω, x − y⟩.

        The frequencies (D, d) are computed from standard `normals` (D, d) and, for some kernels,
        from `uniforms` on (0, 1), (D,).
        """
        raise ValueError(
            f"Random Fourier features are not available for {self}: choose a Gaussian, Laplacian "
            "or Matern kernel, or another method."
        )


def finite(kernel: Kernel, values: Array) -> Array:
    """Return a kernel's values, or raise if they are not finite."""
    if not all_finite(values):
        raise ValueError(
            f"The kernel matrix contains NaN or infinity, though the data do not: values of "
            f"{kernel} are outside the range of floating point. Scale the data down, pass float64 "
            "data, or check the parameters of the kernel."
        )
    return values


# Kernels with a metric


def _identity(X: Array) -> Array:
    return X


@dataclass(frozen=True, eq=False)
class MappedEvaluator(Evaluator):
    """x ↦ k(xA, Z) for mapped and prepared points Z."""

    evaluate: Evaluator
    point_map: PointMap

    def __call__(self, X: Array, out: Array | None = None) -> Array:
        """Return k(XA, Z), shape (n, m)."""
        return self.evaluate(self.point_map(X), out)


class Mapped(Kernel, ABC):
    """k(xA, yA), a kernel of points under a metric A, with k(x, x) = 1 by default.

    Subclasses define `_between` or `_against_mapped`, `_pullback` and `_frequencies` for mapped
    points.
    """

    metric: Metric | None

    def __post_init__(self) -> None:
        if not isinstance(self.metric, Metric | None):  # an array: the map
            object.__setattr__(self, "metric", Metric(self.metric))

    def with_metric(self, metric: Metric | None) -> Self:
        """Return the kernel with another metric."""
        return self.with_parameters(metric=metric)

    def mapping(self, template: Array) -> Callable[[Array], Array]:
        """Return X ↦ XA for points in the form of `template`."""
        if self.metric is None:
            return _identity
        return self.metric.mapping(template)

    def _against(self, Y: Array) -> Evaluator:
        if self.metric is None:
            return self._against_mapped(Y)
        point_map = self.metric.mapping(Y)
        evaluate = self._against_mapped(point_map(Y))
        return MappedEvaluator(evaluate, point_map)

    def diag(self, X: Array) -> Array:
        """Return ones, shape (n,)."""
        ones = np.ones(X.shape[0])
        return like(ones, X)

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d)."""
        if self.metric is None:
            return self._pullback(X, Z, K, A)

        # the chain rule: by the mapped points, and then by the map
        point_map = self.metric.mapping(X)
        mapped_X = point_map(X)
        mapped_Z = point_map(Z)
        of_mapped = self._pullback(mapped_X, mapped_Z, K, A)
        return self.metric.pull_back(of_mapped, Z)

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return ω of the plane waves whose mean is the kernel, shape (D, d)."""
        if self.metric is None:
            return self._frequencies(normals, uniforms)
        if self.metric.warp is not None:
            msg = f"Random Fourier features are not available for {self}, which uses quantiles."
            raise ValueError(msg)

        # ⟨ω, xA⟩ = ⟨Aω, x⟩
        d = normals.shape[1]
        q = self.metric.width(d)
        of_mapped = self._frequencies(normals[:, :q], uniforms)
        frequencies = self.metric.pull_back(of_mapped, normals)
        return np.asarray(frequencies)

    def _against_mapped(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y) for mapped points. A kernel that prepares something overrides it."""
        return super()._against(Y)

    @abstractmethod
    def _pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to mapped Z."""

    def _frequencies(self, normals: Floats, uniforms: Floats) -> Floats:
        """Return the frequencies for mapped points; here, raise because this kernel has none."""
        return super().frequencies(normals, uniforms)
