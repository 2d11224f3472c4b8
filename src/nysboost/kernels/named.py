"""Kernels by name: names, kernels and functions of a user's become kernels here."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping

from nysboost.kernels.adapters import CallableKernel, SklearnKernel
from nysboost.kernels.base import Kernel, Parameter
from nysboost.kernels.products import Anova, Cosine, Laplacian, Linear, Polynomial
from nysboost.kernels.radial import Gaussian, Matern, require_bandwidth
from nysboost.numerics.arrays import Array
from nysboost.numerics.checks import require_number, require_positive
from nysboost.numerics.messages import unknown

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
"""The names of all kernels."""

SHARED_PARAMETERS = {
    "gamma": require_bandwidth,
    "coef0": require_number,
    "degree": require_positive,
}
"""Parameters that scikit-learn's estimators have for every kernel, each with its check.

A kernel without them ignores them, as in scikit-learn, with a warning.
"""


def parameter_names(kernel: str) -> tuple[str, ...]:
    """Return the names of the parameters of a named kernel."""
    if kernel in _NAMED:
        return _NAMED[kernel].parameter_names()
    return tuple(SklearnKernel.parameters.get(kernel, ()))


def make_kernel(kernel: str | Kernel | Callable[..., Array], **params: Parameter) -> Kernel:
    """Return a kernel from a name of `KERNELS`, a kernel or a vectorised function k(X, Y).

    `params` that are None are left out. If a kernel has no gamma, coef0 or degree, it ignores them
    with a warning, as in scikit-learn.
    """
    given = _without_none(params)
    if isinstance(kernel, type):
        msg = f"kernel={kernel.__name__} is a class: pass an object, {kernel.__name__}(...)."
        raise TypeError(msg)

    if isinstance(kernel, Kernel):
        if given:
            msg = f"{', '.join(given)} was given in addition to {kernel}: set it in the kernel."
            raise ValueError(msg)
        return kernel

    if callable(kernel):
        return CallableKernel(kernel, given)
    return _make_named_kernel(kernel, given)


def merge_parameters(
    kernel_params: Mapping[str, Parameter] | None, **named: Parameter
) -> dict[str, Parameter]:
    """Merge `kernel_params` with parameters given by name."""
    if not isinstance(kernel_params, Mapping | None):
        raise TypeError(
            f'kernel_params must be a dictionary of parameters, for example {{"degree": 2}}, but '
            f"{kernel_params!r} was given."
        )

    parameters = dict(kernel_params or {})
    return parameters | _without_none(named)


def _without_none(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters that have been given."""
    return {name: value for name, value in parameters.items() if value is not None}


def _make_named_kernel(kernel: str, given: dict[str, Parameter]) -> Kernel:
    """Return the kernel of a name, with these parameters."""
    if isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(
            "kernel='precomputed' is for a matrix of kernel values, but this needs points: pass "
            "points, and a kernel such as 'gaussian'."
        )
    if not isinstance(kernel, str) or kernel not in KERNELS:
        raise ValueError(unknown("kernel", kernel, KERNELS))

    # parameters that the kernel has, and those of scikit-learn's estimators that have no effect
    known = parameter_names(kernel)
    used = {}
    for name, value in given.items():
        if name not in known and name not in SHARED_PARAMETERS:
            if not known:
                msg = f"The kernel {kernel!r} has no parameters: leave {name}={value!r} out."
                raise ValueError(msg)
            raise ValueError(unknown(f"parameter of the kernel {kernel!r},", name, sorted(known)))

        if name in SHARED_PARAMETERS:
            SHARED_PARAMETERS[name](name, value)
        if name in known:
            used[name] = value
        else:
            msg = f"The kernel {kernel!r} has no parameter {name}: {name}={value!r} has no effect."
            warnings.warn(msg, stacklevel=2)

    if kernel in _NAMED:
        return _NAMED[kernel](**used)
    for name, value in used.items():  # scikit-learn's kernels have no rule for "median"
        require_number(name, value)
    return SklearnKernel(kernel, used)
