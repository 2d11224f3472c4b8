"""What a kernel is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np

from nysboost.data.rows import Rows
from nysboost.numerics.arrays import Array, Floats, dtype_name, is_sparse, namespace


class Evaluator(Protocol):
    """x ↦ k(x, Z), for points Z that have been prepared."""

    def __call__(self, X: Array, out: Array | None = None, /) -> Array:
        """Return k(X, Z), shape (n, m); `out` is memory of that shape for the result."""


class Kernel(ABC):
    """A positive semidefinite function of two points.

    Attributes
    ----------
    parallel : bool
        Whether several threads may evaluate it at the same time.
    temporaries : int
        Arrays of float64, as large as the values, that evaluating dense rows holds at a time
        beside them; `tests/kernels/test_memory.py` measures it.

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

    parallel: ClassVar[bool] = True
    temporaries: ClassVar[int] = 6

    @abstractmethod
    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""

    def against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y), with what depends on Y alone prepared once.

        Parameters
        ----------
        Y : array or CSR matrix of shape (m, d)
            Points, in the form and the dtype of those to come.
        """
        return lambda X, _=None: self(X, Y)

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for each row, shape (n,)."""
        small = [X[i : i + 64] for i in range(0, max(1, X.shape[0]), 64)]
        blocks = [self(block, block) for block in small]
        xp = namespace(blocks[0])
        return xp.concat([xp.linalg.diagonal(block) for block in blocks])

    def bytes_per_value(self, form: Array) -> int:
        """Return what evaluating holds for each value, on rows of this form and dtype."""
        temporaries = Kernel.temporaries if is_sparse(form) else self.temporaries
        return int(np.dtype(dtype_name(form)).itemsize) + 8 * temporaries

    def __repr__(self) -> str:
        """Return its name with the parameters that are set."""
        values = self.get_params().items()
        shown = ", ".join(f"{name}={value!r}" for name, value in values if value is not None)
        return f"{type(self).__name__}({shown})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the parameters by name, as scikit-learn's estimators do.

        Estimators take them as ``kernel__sigma``; a kernel itself never changes.
        """
        names: tuple[str, ...] = getattr(self, "__match_args__", ())  # a dataclass's parameters
        return {name: getattr(self, name) for name in names}

    def __sklearn_clone__(self) -> Kernel:
        return self

    def resolve(self, rows: Rows) -> Kernel:  # noqa: ARG002
        """Return this kernel with every rule for a parameter replaced by its number."""
        return self

    @property
    def differentiable(self) -> bool:
        """Whether `pullback` exists: landmarks may then move by gradient."""
        return type(self).pullback is not Kernel.pullback

    def pullback(self, X: Array, Z: Array, K: Array, A: Array) -> Array:  # noqa: ARG002
        """Return the gradient of Σ_ij A_ij k(x_i, z_j) with respect to Z, shape (m, d).

        Parameters
        ----------
        X, Z : arrays of shape (n, d) and (m, d)
            Points.
        K : array of shape (n, m)
            k(X, Z), which most derivatives can use again.
        A : array of shape (n, m)
            The gradient with respect to K.
        """
        raise TypeError(f"{self} has no derivative here.")

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return ω of the plane waves whose mean is the kernel, k(x, y) = E cos⟨ω, x − y⟩.

        Parameters
        ----------
        normals : array of shape (D, d)
            Standard normal numbers, from which the frequencies are made.
        uniforms : array of shape (D,)
            Numbers uniform on (0, 1), for kernels that need one more.

        Returns
        -------
        array of shape (D, d)
        """
        raise TypeError(
            f"{self} is no mean of plane waves that is known here, as random Fourier features need "
            "it: take a Gaussian, Laplacian or Matern kernel, or another method."
        )


def finite(kernel: Kernel, values: Array) -> Array:
    """Return a kernel's values, or say that they leave the range of floating point."""
    xp = namespace(values)
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not bool(xp.isfinite(xp.sum(values)))  # one pass, without a mask
    if suspicious and not bool(xp.all(xp.isfinite(values))):
        raise ValueError(
            f"The kernel matrix contains NaN or infinity, though the data do not: {kernel} leaves "
            "the range of floating point. Scale the data down, pass them in float64, or check "
            "the kernel's parameters."
        )
    return values
