"""Kernels with a derivative, small samples for them, and finite differences."""

import numpy as np
import pytest

import nysboost as nb
from nysboost.rows.recognise import scan_rows

SMOOTH = [
    nb.Gaussian(sigma=1.3),
    nb.Linear(),
    nb.Polynomial(degree=2),
    nb.Polynomial(degree=3, coef0=0.5),
    nb.Laplacian(gamma=0.4),
    nb.Matern(nu=1.5, sigma=1.5),
    nb.Matern(nu=2.5, sigma=1.5),
    nb.Cosine(),
    nb.Anova(gamma=0.5, degree=2),
]
kernels = pytest.mark.parametrize("kernel", SMOOTH, ids=repr)


def sample(kernel, seed=0, n=40, c=5, d=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    kernel = kernel.resolve(scan_rows(X))
    Z = X[:c] + 0.3 * rng.normal(size=(c, d))
    # the Laplacian has a corner where a coordinate of both is the same, and no derivative there
    Z += 2e-4 * (np.abs(X[:, None] - Z).min(axis=0) < 1e-4)
    return kernel, X, kernel(X, X), Z


def factor(G):
    """Return F with F Fᵀ = G."""
    eigenvalues, V = np.linalg.eigh(G)
    return V * np.sqrt(np.maximum(eigenvalues, 0))


def finite_difference(function, Z, step=1e-6):
    gradient = np.zeros_like(Z)
    for where in np.ndindex(Z.shape):
        shift = np.zeros_like(Z)
        shift[where] = step
        gradient[where] = (function(Z + shift) - function(Z - shift)) / (2 * step)
    return gradient
