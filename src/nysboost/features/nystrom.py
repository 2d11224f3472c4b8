"""Learners: standard Nyström approximations, each a feature map, and mixtures of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap
from nysboost.gram import NOT_FINITE, Gram, Landmarks, refuse_indefinite
from nysboost.numerics.arrays import (
    Array,
    Floats,
    floats_on_host,
    in_dtype_of,
    in_float64,
    like,
    namespace,
    to_host,
)
from nysboost.numerics.linalg import all_finite
from nysboost.numerics.tolerances import EXHAUSTED, ROUNDING


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ_i w_i K_i: p learners and their weights, of shape (p,), negative ones under ridge too."""

    learners: tuple[FeatureMap, ...]
    weights: Floats


def fit_learner(
    gram: Gram, landmarks: Landmarks, rank: int, weights: Floats | None = None
) -> FeatureMap:
    """Fit the standard Nyström approximation C W_k⁺ Cᵀ (Section 2.2; steps 1 and 2e).

    With W = U Λ Uᵀ the projection is U_k Λ_k^(−1/2); eigenvalues at the rounding level are zero.
    With weights D it is (D^½ W D^½)_k⁺ between two D^½.
    """
    W = gram.within(landmarks)
    if not all_finite(W):
        raise ValueError(NOT_FINITE)

    if weights is None:
        root = _inverse_root(W, rank, gram.eps)
    else:
        # D^½ W D^½
        D_root = like(np.sqrt(weights)[:, None], W)
        weighted = D_root * W * D_root.T
        root = D_root * _inverse_root(weighted, rank, gram.eps)
    projection = in_dtype_of(root, W)
    return FeatureMap(gram.kernel, landmarks, projection)


def _inverse_root(W: Array, rank: int, eps: float) -> Array:
    """Return U_k Λ_k^(−1/2) of W = U Λ Uᵀ, in float64, without eigenvalues at the rounding level.

    Rounding errors of the entries do not add up with m, so the cut-off does not grow either: eps·m
    would cut eigenvalues that float32 still knows.
    """
    xp = namespace(W)
    symmetric = (W + W.T) / 2
    eigenvalues, U = xp.linalg.eigh(in_float64(symmetric))

    # in falling order
    eigenvalues = xp.flip(eigenvalues)
    U = xp.flip(U, axis=1)
    refuse_indefinite(eigenvalues)

    leading = eigenvalues[:rank]
    kept = leading > ROUNDING * eps * leading[0]
    k = int(to_host(kept).sum())
    return U[:, :k] / xp.sqrt(leading[:k])


def truncate(gram: Gram, learner: FeatureMap, rank: int) -> FeatureMap:
    """Return (C W⁺ Cᵀ)_k, the best of rank k (Tropp, Yurtsever, Udell and Cevher 2017).

    With F = C P = Q R and the leading right singular vectors V_k of R, the projection is P V_k.
    """
    R = Factor(gram, learner).triangular()
    _, _, V_transposed = np.linalg.svd(R)
    return learner.times(V_transposed[:rank].T)


def residual_diagonal(gram: Gram, learner: FeatureMap) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)|, shape (n,), float64 on the host; rounding is zero."""
    diagonal = floats_on_host(gram.diag())
    approximated = Factor(gram, learner).squared_norms()
    missing = np.abs(diagonal - approximated)

    eliminations = max(1, learner.rank)
    rounding = EXHAUSTED * eliminations * gram.eps * diagonal
    return np.where(missing > rounding, missing, 0.0)
