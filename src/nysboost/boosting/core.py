"""The joint core: one small matrix M for all landmarks, fitted on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysboost.boosting.learner import Learner, Mixture
from nysboost.boosting.validation import Found
from nysboost.gram import Gram, Landmarks, pooled
from nysboost.numerics.arrays import Array, Indices, like, namespace, row_blocks
from nysboost.numerics.linalg import range_basis, times

BLOCK_BYTES = 2**26


@dataclass(frozen=True)
class JointCore:
    """J: the learners' landmarks are pooled, and their core is fitted jointly."""

    def mixture(self, found: Found, p: int) -> Mixture:
        """Return C M Cᵀ over all landmarks of the first p learners, as one learner."""
        landmarks = pooled([learner.landmarks for learner in found.learners[:p]])
        sample = found.observed
        if landmarks.indices is not None:
            sample = np.union1d(sample, landmarks.indices)
        return Mixture((fit_core(found.table.gram, landmarks, sample),), np.ones(1))


def fit_core(gram: Gram, landmarks: Landmarks, sample: Indices, anchor: float = 0.0) -> Learner:
    """Return K̂ = C M Cᵀ with M = A⁺ G[S, S] A⁺ᵀ and A = k(S, Z): positive semidefinite.

    On the sample this is the Frobenius-optimal core: no M gives a smaller ‖G − A M Aᵀ‖ there.
    With all rows as sample it is optimal for G. Its cost does not depend on n.

    Parameters
    ----------
    gram : Gram
        G.
    landmarks : Landmarks
        Z, columns or points.
    sample : array of int
        S, the rows on which the core is fitted, several times as many as landmarks. It
        should contain the landmarks if they are columns.
    anchor : float
        Weight at which landmarks that are points join the sample.
    """
    everything = gram.landmarks(sample)

    def times_gram(Q: Array) -> Array:
        xp = namespace(Q)
        blocks = row_blocks(len(sample), 8 * len(sample), BLOCK_BYTES)
        rows = (gram.cross(sample[block], everything) for block in blocks)
        return xp.concat([times(block, Q) for block in rows])

    A = gram.cross(sample, landmarks)
    projection = core_projection(A, gram.within(landmarks), times_gram, anchor)
    return Learner(landmarks, like(projection, A))


def core_projection(
    A: Array, W: Array, times_gram: Callable[[Array], Array], anchor: float
) -> Array:
    """Return P of shape (c, r) with P Pᵀ the core that is optimal on the sample.

    The landmarks themselves join the sample at a small weight. They bind the core where
    the sample has no rows: without them a core that is optimal on the sample can be
    large elsewhere.

    Parameters
    ----------
    A : array of shape (s, c)
        k(S, Z).
    W : array of shape (c, c)
        k(Z, Z).
    times_gram : callable
        Q ↦ G[S, S] Q.
    anchor : float
        The landmarks' weight.
    """
    xp = namespace(A)
    Q, T = range_basis(xp.concat([A, anchor * W]) if anchor else A)
    A, W = xp.astype(A, Q.dtype), xp.astype(W, Q.dtype)
    rows, points = Q[: A.shape[0], :], anchor * Q[A.shape[0] :, :]
    H = rows.T @ times_gram(rows)
    if anchor:
        across = rows.T @ (A @ points)
        H = H + across + across.T + points.T @ (W @ points)
    eigenvalues, Y = xp.linalg.eigh((H + H.T) / 2)
    roots = xp.sqrt(xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues)))
    return T @ (Y * roots)
