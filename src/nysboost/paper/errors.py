"""Exact errors against a Gram matrix that is held whole, of many mixtures at once.

Inner products of shared features are computed once; small errors, where that expansion cancels,
go through an orthonormal basis of all features instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nysboost.data.rows import ArrayRows
from nysboost.gram import Gram, PrecomputedGram
from nysboost.numerics.arrays import Array, Floats, Indices, like, namespace, take, to_host

Key = TypeVar("Key", bound=Hashable)

CANCELS_BELOW = 1e-4
"""Below this relative error the expansion has lost more than half of its digits."""


class WholeGram(PrecomputedGram):
    """The whole matrix of another Gram, evaluated once; columns are read as rows: faster."""

    def __init__(self, gram: Gram) -> None:
        everything = np.arange(gram.n)
        values = gram.block(everything, everything)
        values = namespace(values).astype(values, namespace(values).float64, copy=False)
        self.values = (values + values.T) / 2
        super().__init__(ArrayRows(self.values))

    def _entries(self, rows: Indices, columns: Indices) -> Array:
        return take(take(self.values, columns), rows, axis=1).T


def relative_errors(
    G: Array, features: Sequence[Array], weights: Mapping[Key, Floats]
) -> dict[Key, float]:
    """Return ‖G − Σ w_i F_i F_iᵀ‖_F / ‖G‖_F for each vector of weights.

    G has shape (n, n), F_i (n, k_i); each vector, of shape (p,), weighs the first p learners.
    """
    xp = namespace(G)
    F = xp.concat(list(features), axis=1)
    starts = np.concatenate([[0], np.cumsum([f.shape[1] for f in features])])
    total = float(xp.sum(G * G))
    squares = _expand(G, F, starts, weights, total)
    smallest = min(squares.values(), default=total)
    if smallest < CANCELS_BELOW**2 * total:
        squares = _project(G, F, starts, weights)
    return {key: float(np.sqrt(max(square, 0.0) / total)) for key, square in squares.items()}


def _expand(
    G: Array, F: Array, starts: NDArray[np.intp], weights: Mapping[Key, Floats], total: float
) -> dict[Key, float]:
    """‖G‖² − 2 Σ w_i ⟨G, K_i⟩ + wᵀHw with H_ij = ‖F_iᵀF_j‖²."""
    columns = to_host(namespace(F).sum(F * (G @ F), axis=0))
    with_G = np.add.reduceat(columns, starts[:-1])
    products = to_host(F.T @ F) ** 2
    H = np.add.reduceat(np.add.reduceat(products, starts[:-1], axis=0), starts[:-1], axis=1)
    return {
        key: float(total - 2 * w @ with_G[: len(w)] + w @ H[: len(w), : len(w)] @ w)
        for key, w in weights.items()
    }


def _project(
    G: Array, F: Array, starts: NDArray[np.intp], weights: Mapping[Key, Floats]
) -> dict[Key, float]:
    """‖G − QSQᵀ‖² + ‖S − R D_w Rᵀ‖² with F = QR and S = QᵀGQ: a sum, so nothing cancels."""
    xp = namespace(G)
    Q, R = xp.linalg.qr(F)
    S = Q.T @ G @ Q
    beyond = _square(G - Q @ S @ Q.T)
    squares = {}
    for key, w in weights.items():
        r = min(int(starts[len(w)]), R.shape[0])
        c = int(starts[len(w)])
        scaled = R[:r, :c] * like(np.repeat(w, np.diff(starts[: len(w) + 1])), R)
        inner = _square(S[:r, :r] - scaled @ R[:r, :c].T)
        squares[key] = beyond + inner + 2 * _square(S[:r, r:]) + _square(S[r:, r:])
    return squares


def _square(A: Array) -> float:
    """Return ‖A‖²."""
    return float(namespace(A).sum(A * A))
