"""Landmarks that move: gradient refinement of points on a fixed sample of rows.

The loss of landmarks Z on a sample with Gram matrix G is the relative squared error of
the joint approximation there, ‖G − P G P‖² / ‖G‖² with P the projector onto the range of
C = k(X, Z). It depends on the range alone, so no core has to be carried along.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from nysboost.arrays import Array, namespace, range_basis
from nysboost.kernels import Kernel

CANCELLED = 1e-9
"""Below this loss 1 − ‖PGP‖²/‖G‖² has lost seven digits: the residual itself is formed."""

SINGLE = 1e-5
"""Down to this loss a product in float32, right to 1e-8 of ‖G‖², gives three digits of it."""

MEMORY = 10
"""Pairs of steps from which L-BFGS knows the curvature."""

SUFFICIENT, NOTHING = 1e-3, 1e-9
"""The share of its promise that a step has to keep; a promise not worth an evaluation."""


def refine(kernel: Kernel, Z: Array, X: Array, G: Array, max_iter: int) -> tuple[Array, int]:
    """Return landmarks with a smaller loss on the sample, by L-BFGS, and the evaluations it took.

    The logarithm of the loss is minimised, over landmarks measured in units of the
    data's spread: neither the scale of the kernel nor that of the data matters.

    Parameters
    ----------
    kernel : Kernel
        A differentiable kernel.
    Z : array of shape (c, d)
        Where to start.
    X : array of shape (s, d)
        The sample, in float64.
    G : array of shape (s, s)
        Its Gram matrix. In float32 it halves the time; where the loss is too small for
        that, it is turned into float64.
    max_iter : int
        Evaluations at most, after the first: a step each, unless one has to be shortened.
    """
    xp = namespace(X)
    spread = float(xp.sqrt(xp.sum(xp.var(X, axis=0)))) or 1.0
    squared_norm, evaluations = _squared_norm(G), 0

    def objective(scaled: Array) -> tuple[float, Array]:
        nonlocal G, squared_norm, evaluations
        evaluations += 1
        loss, gradient = loss_and_gradient(kernel, scaled * spread, X, G, squared_norm)
        if loss < SINGLE and G.dtype != X.dtype:
            G = xp.astype(G, X.dtype)
            squared_norm = _squared_norm(G)
            return objective(scaled)
        return float(np.log(loss)), gradient * (spread / loss)

    return _descend(objective, Z / spread, max_iter) * spread, evaluations


def loss_and_gradient(
    kernel: Kernel, Z: Array, X: Array, G: Array, squared_norm: float
) -> tuple[float, Array]:
    """Return ‖G − P G P‖² / ‖G‖² and its gradient with respect to Z.

    With C = k(X, Z), P = Q Qᵀ and H = Qᵀ G Q, the gradient with respect to C is
    −4 (I − P) G Q H (C⁺Q)ᵀ / ‖G‖²; the kernel's own derivative does the rest.
    """
    xp = namespace(X)
    C = kernel(xp.astype(X, G.dtype, copy=False), xp.astype(Z, G.dtype, copy=False))
    Q, T = range_basis(C)
    GQ = times(G, Q)
    H = Q.T @ GQ
    loss = 1 - float(xp.sum(H * H)) / squared_norm
    if loss < CANCELLED:
        residual = G - (Q @ H) @ Q.T
        loss = float(xp.sum(residual * residual)) / squared_norm
    slope = (GQ - Q @ H) @ (H @ T.T * (-4 / squared_norm))
    gradient = kernel.pullback(X, Z, xp.astype(C, X.dtype, copy=False), slope)
    return max(loss, float(np.finfo(np.float64).tiny)), gradient


def times(G: Array, Q: Array) -> Array:
    """Return G Q, multiplied in the precision of G and returned in that of Q."""
    xp = namespace(G)
    return xp.astype(G @ xp.astype(Q, G.dtype, copy=False), Q.dtype, copy=False)


def _squared_norm(G: Array) -> float:
    xp = namespace(G)
    return float(xp.sum(G * G, dtype=xp.float64))


def _descend(objective: Callable[[Array], tuple[float, Array]], x: Array, max_iter: int) -> Array:
    """Return where L-BFGS arrives from x.

    A step that does not gain enough is tried again at a quarter of its length. SciPy's
    L-BFGS-B does the same at several times the cost: its BLAS and NumPy's, each with threads
    of its own, then contend for the processor.
    """
    value, gradient = objective(x)
    pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)
    direction, step = -gradient, 1 / (_dot(gradient, gradient) ** 0.5 or 1.0)
    for _ in range(max_iter):
        promised = step * _dot(direction, gradient)
        if not promised < -NOTHING:
            break
        moved = step * direction
        next_value, next_gradient = objective(x + moved)
        if not next_value <= value + SUFFICIENT * promised:
            step /= 4
            continue
        bend = next_gradient - gradient
        if _dot(moved, bend) > NOTHING * -promised:
            pairs.append((moved, bend))
        x, value, gradient = x + moved, next_value, next_gradient
        direction, step = -_inverse_hessian_times(pairs, gradient), 1.0 if pairs else step
    return x


def _inverse_hessian_times(pairs: Iterable[tuple[Array, Array]], gradient: Array) -> Array:
    """Return H g, where H takes each change of the gradient back to the step that made it.

    The two loops of Nocedal (1980), with the newest pair setting the scale.
    """
    known = [(moved, bend, 1 / _dot(moved, bend)) for moved, bend in pairs]
    shares = []
    for moved, bend, weight in reversed(known):
        shares.append(weight * _dot(moved, gradient))
        gradient = gradient - shares[-1] * bend
    if known:
        moved, bend, weight = known[-1]
        gradient = gradient / (weight * _dot(bend, bend))
    for (moved, bend, weight), share in zip(known, reversed(shares), strict=True):
        gradient = gradient + (share - weight * _dot(bend, gradient)) * moved
    return gradient


def _dot(a: Array, b: Array) -> float:
    return float(namespace(a).sum(a * b))
