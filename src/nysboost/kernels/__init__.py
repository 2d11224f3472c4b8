"""Kernel functions: small frozen objects of one form, ``kernel(X, Y)``.

A kernel takes two sets of points, arrays of shape (n, d) and (m, d) or CSR matrices,
and returns the dense (n, m) matrix of its values in the dtype of X.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nysboost.kernels.adapters import CallableKernel, SklearnKernel
from nysboost.kernels.base import Evaluator, Kernel, require_bandwidth
from nysboost.kernels.columns import Columns
from nysboost.kernels.metric import Metric
from nysboost.kernels.products import Anova, Cosine, Linear, Polynomial
from nysboost.kernels.radial import Gaussian, Laplacian, Matern, Radial
from nysboost.numerics.arrays import Array
from nysboost.numerics.messages import unknown
from nysboost.numerics.parameters import require_number, require_positive

__all__ = [
    "KERNELS", "Anova", "CallableKernel", "Columns", "Cosine", "Evaluator", "Gaussian", "Kernel",
    "Laplacian", "Linear", "Matern", "Metric", "Polynomial", "Radial", "SklearnKernel",
    "make_kernel",
]  # fmt: skip

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

KERNELS: tuple[str, ...] = (*_NAMED, *SklearnKernel.parameters, "precomputed")
"""Every kernel name that is understood."""


SHARED = {"gamma": require_bandwidth, "coef0": require_number, "degree": require_positive}
"""Parameters that any named kernel may be given, as in scikit-learn, each with its check."""


def make_kernel(kernel: str | Kernel | Callable[..., Array], **params: Any) -> Kernel:
    """Turn a name of `KERNELS`, a kernel or a vectorised callable k(X, Y) into a kernel.

    `params` that are None are left out, and so are gamma, coef0 and degree for a kernel without
    them, as in scikit-learn.
    """
    given = {name: value for name, value in params.items() if value is not None}
    if isinstance(kernel, type):
        msg = f"kernel={kernel.__name__} is a class: make a kernel of it, {kernel.__name__}(...)."
        raise TypeError(msg)
    if isinstance(kernel, Kernel):
        if given:
            msg = f"{', '.join(given)} cannot be set beside the kernel {kernel}: put it inside."
            raise ValueError(msg)
        return kernel
    if callable(kernel):
        return CallableKernel(kernel, given)
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' stands for a matrix of kernel values, but this needs a kernel of "
            "data points: name one, as 'gaussian', and pass the points."
        )
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(unknown("kernel", kernel, KERNELS))
    for name, check in SHARED.items():  # also where the kernel has no such parameter
        if name in given:
            check(name, given[name])
    made: Any = _NAMED.get(kernel)
    known = SklearnKernel.parameters[kernel] if made is None else made.__match_args__
    others = sorted(set(given) - {*known} - {*SHARED})
    if others:
        raise ValueError(unknown(f"parameter of the kernel {kernel!r},", others[0], sorted(known)))
    used = {name: value for name, value in given.items() if name in known}
    if made is not None:
        return cast(Kernel, made(**used))
    for name, value in used.items():  # no rule finds it from the data
        require_number(name, value)
    return SklearnKernel(kernel, used)
