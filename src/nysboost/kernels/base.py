"""The base class of kernels, and their parameters, which are checked and read off the data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.magnitudes import all_finite, unit_of
from nysboost.numerics.parameters import require_positive
from nysboost.rows.driver import BlockTask
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS, scan_size

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that reads it off the data; None is the kernel's default."""

RANGES = {"sigma": (1e-150, 1e150), "gamma": (1e-300, 1e300)}
"""Beyond these the squares of distances in units of σ leave the range of floating point."""


Evaluator: TypeAlias = Callable[..., Array]
"""(X, out=None) ↦ k(X, Z), shape (n, m), for points Z that have been prepared; `out` is memory of
that shape, which the result may be put in."""


class Kernel:
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

    parallel: bool = True
    temporaries: ClassVar[int] = 6

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the kernel matrix of shape (n, m)."""
        shapes = tuple(tuple(getattr(points, "shape", ())) for points in (X, Y))
        if any(len(shape) != 2 for shape in shapes) or shapes[0][1] != shapes[1][1]:
            raise ValueError(
                f"A kernel takes arrays of shapes (n, d) and (m, d), but those of X and Y are "
                f"{shapes[0]} and {shapes[1]}."
            )
        X = arrays.as_float(X)
        return self._against(arrays.convert_like(X, Y))(X)

    def against(self, Y: Array) -> Evaluator:
        """Return x ↦ k(x, Y) for points Y (m, d), with what depends on Y alone prepared once.

        Y is dense or CSR as the points x to come are, and has their dtype.
        """
        if type(self).__call__ is Kernel.__call__:
            return self._against(Y)
        return lambda X, _=None: self(X, Y)  # of users: their class has `__call__` alone

    def _against(self, Y: Array) -> Evaluator:  # noqa: ARG002
        raise TypeError(f"{type(self).__name__} is no kernel: it has no method __call__(X, Y).")

    def diag(self, X: Array) -> Array:
        """Return k(x, x) for each row, shape (n,)."""
        small = [X[i : i + 64] for i in range(0, max(1, X.shape[0]), 64)]
        blocks = [self(block, block) for block in small]
        xp = arrays.namespace(blocks[0])
        return xp.concat([xp.linalg.diagonal(block) for block in blocks])

    def bytes_per_value(self, template: Array) -> int:
        """Return what evaluating holds for each value, on rows of this form and dtype."""
        temporaries = Kernel.temporaries if arrays.is_sparse(template) else self.temporaries
        return int(np.dtype(arrays.dtype_name(template)).itemsize) + 8 * temporaries

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

        X (n, d) and Z (m, d) are points, K = k(X, Z) the values, which most derivatives can use
        again, and A, of the same shape (n, m), is the gradient with respect to K.
        """
        raise TypeError(f"{self} has no derivative here.")

    def frequencies(self, normals: Floats, uniforms: Floats) -> Floats:  # noqa: ARG002
        """Return ω of the plane waves whose mean is the kernel, k(x, y) = E cos⟨ω, x − y⟩.

        The frequencies, (D, d), are made of standard `normals` (D, d) and, for kernels that need
        one more number, of `uniforms` on (0, 1), (D,).
        """
        raise ValueError(
            f"{self} is no mean of plane waves that is known here, as random Fourier features need "
            "it: take a Gaussian, Laplacian or Matern kernel, or another method."
        )


def finite(kernel: Kernel, values: Array) -> Array:
    """Return a kernel's values, or say that they leave the range of floating point."""
    if not all_finite(values):
        raise ValueError(
            f"The kernel matrix contains NaN or infinity, though the data do not: {kernel} leaves "
            "the range of floating point. Scale the data down, pass them in float64, or check "
            "the kernel's parameters."
        )
    return values


# Parameters


def require_bandwidth(name: str, value: Bandwidth) -> None:
    """Raise unless the value is a positive number, a rule or None."""
    if isinstance(value, str):
        if value not in ("median", "scale"):
            msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
            raise ValueError(msg)
    elif value is not None:
        require_positive(name, value)
        if not RANGES[name][0] < float(value) < RANGES[name][1]:
            msg = f"{name}={value!r} leaves no digits of a distance: scale the data instead."
            raise ValueError(msg)


def number(kernel: Any, name: str) -> float:
    """Return a parameter that must be a number by now."""
    value = getattr(kernel, name)
    if isinstance(value, str) or value is None:
        raise ValueError(
            f"{kernel} takes {name} from data: call kernel.resolve(scan_rows(X)) first."
        )
    return float(value)


def standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    sample = rows.take(spaced_indices(rows.n, MEDIAN_ROWS))
    unit = unit_of(sample)
    shift = float(arrays.floats_on_host(arrays.dense(sample[:1])).mean()) / unit
    task = BlockTask("moments", _moments, (unit, shift), scan_size(rows))
    mean, square = rows.fold(task, np.add) / (rows.n * rows.n_features)
    return unit * float(np.sqrt(max(0.0, square - mean**2)))


def _moments(how: tuple[float, float], block: Array) -> Array:
    """Return the sums of entries, in a unit and about a shift, and of their squares."""
    unit, shift = how
    gap = arrays.floats_on_host(arrays.dense(block)) / unit - shift
    return np.array([gap.sum(), (gap * gap).sum()])
