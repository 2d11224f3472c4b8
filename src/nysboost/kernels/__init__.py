"""Kernel functions: small frozen objects of one form, ``kernel(X, Y)``.

A kernel takes two sets of points, arrays of shape (n, d) and (m, d) or CSR matrices,
and returns the dense (n, m) matrix of its values in the dtype of X.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from nysboost.kernels.adapters import CallableKernel, SklearnKernel
from nysboost.kernels.base import Kernel
from nysboost.kernels.metric import Metric
from nysboost.kernels.products import Cosine, Linear, Polynomial
from nysboost.kernels.radial import Anova, Gaussian, Laplacian, Matern, Radial
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import unknown

__all__ = [
    "KERNELS",
    "Anova",
    "CallableKernel",
    "Cosine",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Metric",
    "Polynomial",
    "Radial",
    "SklearnKernel",
    "make_kernel",
]

_NAMED: dict[str, type[Kernel]] = {
    "gaussian": Gaussian,
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "linear": Linear,
    "polynomial": Polynomial,
    "poly": Polynomial,
    "cosine": Cosine,
    "anova": Anova,
}
SHARED = ("gamma", "coef0", "degree")
_SKLEARN = ("sigmoid", "chi2", "additive_chi2")

KERNELS: tuple[str, ...] = (*_NAMED, *_SKLEARN, "precomputed")
"""Every kernel name that is understood."""


def make_kernel(kernel: str | Kernel | Callable[..., Array], **params: Any) -> Kernel:
    """Turn a name, a kernel or a callable into a kernel, in the one place that does.

    Parameters
    ----------
    kernel : str, Kernel or callable
        One of `KERNELS` other than "precomputed", a kernel object, or a vectorised
        function ``k(X, Y)``.
    **params
        Parameters of a named kernel or of the callable. Those that are None are left out,
        and so are gamma, coef0 and degree for a kernel without them, as in scikit-learn.
    """
    given = {name: value for name, value in params.items() if value is not None}
    if isinstance(kernel, Kernel):
        if given:
            msg = f"{', '.join(given)} cannot be set beside the kernel {kernel}: put it inside."
            raise ValueError(msg)
        return kernel
    if callable(kernel):
        return CallableKernel(kernel, given)
    if kernel in _SKLEARN:
        return SklearnKernel(kernel, given)
    if kernel not in _NAMED:
        raise ValueError(unknown("kernel", kernel, KERNELS))
    made = _NAMED[kernel]
    known = {f.name for f in fields(made)}  # type: ignore[arg-type]
    others = sorted(set(given) - known - set(SHARED))
    if others:
        raise ValueError(unknown(f"parameter of the kernel {kernel!r},", others[0], sorted(known)))
    return made(**{name: value for name, value in given.items() if name in known})
