"""Kernel functions: small frozen objects of one form, ``kernel(X, Y)``.

A kernel takes two sets of points, arrays of shape (n, d) and (m, d) or CSR matrices,
and returns the dense (n, m) matrix of its values in the dtype of X.
"""

from nysboost.kernels.adapters import CallableKernel, Columns, SklearnKernel
from nysboost.kernels.base import Evaluator, Kernel, Parameter
from nysboost.kernels.metric import Metric
from nysboost.kernels.named import KERNELS, make_kernel, merge_parameters, parameter_names
from nysboost.kernels.products import Anova, Cosine, Laplacian, Linear, Polynomial
from nysboost.kernels.radial import Gaussian, Matern, Radial

__all__ = [
    "KERNELS", "Anova", "CallableKernel", "Columns", "Cosine", "Evaluator", "Gaussian", "Kernel",
    "Laplacian", "Linear", "Matern", "Metric", "Parameter", "Polynomial", "Radial",
    "SklearnKernel", "make_kernel", "merge_parameters", "parameter_names",
]  # fmt: skip
