"""A learner: one Nyström approximation, landmarks and an m×k projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nysboost.engine.factor import Factor
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import NOT_FINITE, Gram, Landmarks, refuse_indefinite
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    epsilon,
    like,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.linalg import norms
from nysboost.numerics.tolerances import ROUNDING, cutoff


@dataclass(frozen=True, eq=False)
class Learner:
    """The Nyström approximation C P Pᵀ Cᵀ, with C = k(X, Z).

    Parameters
    ----------
    landmarks : Landmarks
        The m landmarks Z.
    projection : array of shape (m, k)
        P, with P Pᵀ = W_k⁺ for the standard Nyström method.
    """

    landmarks: Landmarks
    projection: Array

    @property
    def rank(self) -> int:
        """Number of features k; below the rank asked for where W has fewer."""
        return int(self.projection.shape[1])

    def features(self, gram: Gram, rows: Indices | None = None) -> Array:
        """Return F = C P at `rows` (default all), with F Fᵀ the approximation there.

        Features that the Gram's precision does not know are left out.
        """
        transform = FeatureMap(gram, self.landmarks, (self._known_to(gram),))
        return transform.at(np.arange(gram.n) if rows is None else rows)

    def _known_to(self, gram: Gram) -> Array:
        """Return P, without eigenvalues of W that are rounding where the Gram is in float32."""
        if gram.eps <= epsilon(self.projection):
            return self.projection
        sizes = to_host(norms(self.projection, axis=0)) ** 2  # the inverses of W's eigenvalues
        kept = sizes * cutoff(ROUNDING, gram.eps) <= sizes.min()
        return take(self.projection, np.flatnonzero(kept), axis=1)

    def __repr__(self) -> str:
        return f"Learner({len(self.landmarks)} landmarks, rank={self.rank})"


@dataclass(frozen=True, eq=False)
class Mixture:
    """Σ_i w_i K_i: learners and their weights.

    Parameters
    ----------
    learners : tuple of Learner
        The p learners.
    weights : array of shape (p,)
        May be negative under ridge regression.
    """

    learners: tuple[Learner, ...]
    weights: Floats


def fit_learner(
    gram: Gram, landmarks: Landmarks, rank: int, weights: Floats | None = None
) -> Learner:
    """Fit the standard Nyström approximation C W_k⁺ Cᵀ (Section 2.2; steps 1 and 2e).

    With W = U Λ Uᵀ the projection is U_k Λ_k^(−1/2). Eigenvalues at the rounding level
    of the entries are zero, so duplicate landmarks and rank below m do no harm. Landmarks
    at which the kernel vanishes, such as empty rows under a linear one, give rank 0.

    Landmarks of different weights D stand for (D^½ W D^½)_k⁺ instead, between two D^½.
    """
    W = gram.within(landmarks)
    xp = namespace(W)
    if not bool(xp.all(xp.isfinite(W))):
        raise ValueError(NOT_FINITE)
    roots = like(np.ones(1) if weights is None else np.sqrt(weights), W)
    eigenvalues, eigenvectors = _eigh(roots[:, None] * W * roots)
    refuse_indefinite(eigenvalues)
    # rounding errors of the entries do not add up with m, so the cut-off does not grow either:
    # eps·m would cut eigenvalues that float32 still knows
    kept = eigenvalues[:rank] > cutoff(ROUNDING, gram.eps) * eigenvalues[0]
    k = int(xp.sum(xp.astype(kept, xp.int64)))
    projection = roots[:, None] * eigenvectors[:, :k] / xp.sqrt(eigenvalues[:k])
    return Learner(landmarks, xp.astype(projection, _dtype(xp, gram)))


def truncate(gram: Gram, learner: Learner, rank: int) -> Learner:
    """Return the best rank-k approximation of a learner's whole matrix, (C W⁺ Cᵀ)_k.

    Tropp, Yurtsever, Udell and Cevher (2017). All rows take part: with F = C P = Q R and
    the leading right singular vectors V_k of R, the projection is P V_k.
    """
    factor = Factor(FeatureMap(gram, learner.landmarks, (learner.projection,)))
    directions = np.linalg.svd(factor.triangular())[2][:rank].T
    return Learner(learner.landmarks, learner.projection @ like(directions, learner.projection))


def _eigh(W: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors, in float64."""
    xp = namespace(W)
    eigenvalues, eigenvectors = xp.linalg.eigh(xp.astype((W + W.T) / 2, xp.float64))
    return xp.flip(eigenvalues), xp.flip(eigenvectors, axis=1)


def _dtype(xp: object, gram: Gram) -> object:
    return getattr(xp, gram.dtype.name)
