"""Systems with right-hand sides that stay on a cluster's workers: solutions are lazy."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from nysboost.engine.factor import Factor
from nysboost.numerics.arrays import Array, Floats, epsilon, floats_on_host, like
from nysboost.numerics.linalg import REFINEMENTS


def lazy_solution(
    factor: Factor,
    triangle: Floats,
    weights: Array,
    spectrum: tuple[Floats, Floats],
    b: Any,
    alpha: float,
) -> tuple[Any, float]:
    """Solve (F S Fᵀ + αI) x = b for a Dask array b, refined, with x yet to be computed.

    x = (b − F y) / α with y = S Fᵀ x, which has as many rows as there are features. It is all that
    is looked for: what is left of b for any y is F (y − S Fᵀ x), and the next y comes from that.
    Each step is one pass over the rows, on the workers.

    Parameters
    ----------
    factor : Factor
        F.
    triangle : array of shape (K, K)
        R of F = Q R.
    weights : array of shape (K,)
        The diagonal of S, where the features are.
    spectrum : arrays of shape (r,) and (K, r)
        The eigenvalues of F S Fᵀ, and T with F T its eigenvectors.
    b : dask.array.Array of shape (n, q)
        Right-hand sides.
    alpha : float
        α.

    Returns
    -------
    solution : dask.array.Array of shape (n, q)
    residual : float
        ‖(F S Fᵀ + αI) x − b‖ / ‖b‖.
    """
    (eigenvalues, T), S = spectrum, floats_on_host(weights)[:, None]
    gain = (eigenvalues / (eigenvalues + alpha))[:, None]

    def inner(y: Floats) -> Floats:
        """Return Fᵀ x, and below it ‖b‖² of each column."""
        shared = like(y, weights), alpha
        return factor.fold(_inner_of_solution, operator.add, shared, b, task="inner-products")

    y = np.zeros((len(S), int(b.shape[1])))
    found = inner(y)
    scale = float(np.sqrt(found[-1].sum()))
    if not np.isfinite(scale):
        msg = "b contains NaN or infinity: there is no solution to that."
        raise ValueError(msg)
    y, best, reached = T @ (gain * (T.T @ (alpha * found[:-1]))), y, np.inf
    for _ in range(1 + REFINEMENTS):
        there = S * inner(y)[:-1]
        left = triangle @ (y - there)
        residual = float(np.linalg.norm(left)) / (scale or 1.0)
        if not residual < reached:
            break
        gained = residual < reached / 2
        best, reached = y, residual
        if not gained or residual <= epsilon(weights):
            break
        y = there + T @ (gain * (T.T @ (triangle.T @ left)))
    shared = like(best, weights), alpha
    return factor.map(_solution, shared, int(b.shape[1]), b, task="solution"), reached


# What passes do to a block of features


def _solution(shared: tuple[Array, float], F: Array, b: Array) -> Array:
    y, alpha = shared
    return (b - F @ y) / alpha


def _inner_of_solution(shared: tuple[Array, float], F: Array, b: Array) -> Floats:
    inner = floats_on_host(F.T @ _solution(shared, F, b))
    squares = (floats_on_host(b) ** 2).sum(axis=0, keepdims=True)
    return np.concatenate([inner, squares])
