"""Learners: standard Nyström approximations, each a feature map, and mixtures of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.features.factor import Factor
from nysboost.features.feature_map import FeatureMap
from nysboost.gram import NOT_FINITE, Gram, Landmarks, refuse_indefinite
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Floats
from nysboost.numerics.tolerances import EXHAUSTED, ROUNDING, cutoff


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
    xp = arrays.namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    roots = arrays.like(np.ones(1) if weights is None else np.sqrt(weights), W)
    W = roots[:, None] * W * roots
    eigenvalues, eigenvectors = xp.linalg.eigh(xp.astype((W + W.T) / 2, xp.float64))
    eigenvalues, eigenvectors = xp.flip(eigenvalues), xp.flip(eigenvectors, axis=1)
    refuse_indefinite(eigenvalues)
    # rounding errors of the entries do not add up with m, so the cut-off does not grow either:
    # eps·m would cut eigenvalues that float32 still knows
    kept = eigenvalues[:rank] > cutoff(ROUNDING, gram.eps) * eigenvalues[0]
    k = int(xp.sum(xp.astype(kept, xp.int64)))
    projection = roots[:, None] * eigenvectors[:, :k] / xp.sqrt(eigenvalues[:k])
    return FeatureMap(gram.kernel, landmarks, xp.astype(projection, getattr(xp, gram.dtype.name)))


def truncate(gram: Gram, learner: FeatureMap, rank: int) -> FeatureMap:
    """Return (C W⁺ Cᵀ)_k, the best of rank k (Tropp, Yurtsever, Udell and Cevher 2017).

    With F = C P = Q R and the leading right singular vectors V_k of R, the projection is P V_k.
    """
    factor = Factor(gram, learner)
    directions = np.linalg.svd(factor.triangular())[2][:rank].T
    return learner.times(directions)


def residual_diagonal(gram: Gram, learner: FeatureMap) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)|, shape (n,), float64 on the host; rounding is zero."""
    floor = cutoff(EXHAUSTED * max(1, learner.rank), gram.eps)
    whole = arrays.floats_on_host(gram.diag())
    missing = np.abs(whole - Factor(gram, learner).squared_norms())
    return np.where(missing > floor * whole, missing, 0.0)
