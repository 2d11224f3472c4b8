"""The exchange: rows that are missed take the place of landmarks that serve least.

What a landmark serves is known exactly. With C = k(S, Z), C⁺ = T Qᵀ and H = Qᵀ G Q, taking
landmark j away takes the unit vector u = t_j / ‖t_j‖ out of the range, and the error's square
grows by 2‖H u‖² − (uᵀ H u)². So candidates join all at once, and then the landmarks that
serve least leave, one after the other: the sample's Gram matrix is asked for one product.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, qr

from nysboost.boosting.judge import Judge
from nysboost.boosting.learner import Learner, fit_learner
from nysboost.boosting.residual import residual_diagonal
from nysboost.gram import Gram, Landmarks, Sample, pooled
from nysboost.numerics.arrays import Floats, Indices, to_host
from nysboost.numerics.tolerances import EPS, cutoff

LOOKED_AT = 4
"""Rows looked at for each that is wanted: enough for the pivots to lie apart."""

LOOKS = 2
"""Looks at the residual's diagonal, the second without what the first has found."""

CANDIDATES = 0.5
"""Rows that may take the place of landmarks, as a share of these."""

EXCHANGES = 3
"""At most: one is enough, unless it has gained much."""

MUCH = 0.5
"""A share of the squared error that is left, below which there is more to come."""

BATCH = 32
"""Landmarks that leave between two updates of what the others serve."""


def exchanged(sample: Sample, landmarks: Landmarks) -> tuple[Landmarks, Judge]:
    """Return landmarks of which some have made room for rows that they miss, and their judge.

    Parameters
    ----------
    sample : Sample
        Where they serve.
    landmarks : Landmarks
        Points, or columns by their positions in the sample.
    """
    judge = Judge.on(sample, landmarks)
    for _ in range(EXCHANGES):
        rows = missed(sample.gram, landmarks, candidates(landmarks))
        landmarks, left = exchange(judge, landmarks, rows)
        if left > MUCH:
            break
        judge = Judge.on(sample, landmarks)
    return landmarks, judge


def candidates(landmarks: Landmarks) -> int:
    """Return how many rows may take the place of landmarks."""
    return max(1, round(CANDIDATES * len(landmarks)))


def missed(gram: Gram, landmarks: Landmarks, size: int) -> Indices:
    """Return rows that plain Nyström on these landmarks misses, and that lie apart.

    Half of the rows looked at have the largest entries of the residual's diagonal; the other
    half stands for all, in proportion to the entries' squares, as they enter the error. Of
    these the pivots of the residual's Cholesky factorisation are chosen, so that one far group
    sends one row before it sends the next. A large group may hide others: when it has its
    rows, there is a second look.

    Parameters
    ----------
    gram : Gram
        G.
    landmarks : Landmarks
        Z.
    size : int
        Number of rows wanted; fewer come back if fewer are missed at all.
    """
    rows = np.arange(0)
    for look in range(LOOKS):
        known = pooled([landmarks, gram.landmarks(rows)]) if len(rows) else landmarks
        learner = fit_learner(gram, known, len(known))
        found = _pivots(gram, learner, -(-(size - len(rows)) // (LOOKS - look)))
        rows = np.concatenate([rows, found])
    return rows


def _pivots(gram: Gram, learner: Learner, size: int) -> Indices:
    """Return the rows that most of the residual's diagonal goes with."""
    diagonal = residual_diagonal(gram, learner)
    count = min(LOOKED_AT * size, int(np.count_nonzero(diagonal)))
    if count == 0:
        return np.arange(0)
    largest = np.argsort(-diagonal, kind="stable")[: -(-count // 2)]
    rows = np.union1d(largest, _systematic((diagonal / diagonal.max()) ** 2, count // 2))
    F = to_host(learner.features(gram, rows)).astype(np.float64)
    residual = to_host(gram.block(rows, rows)).astype(np.float64) - F @ F.T
    _, pivots, rank, _ = lapack.dpstrf(residual, lower=1)
    chosen: Indices = rows[pivots[: min(size, rank)] - 1]
    return chosen


def _systematic(shares: Floats, size: int) -> Indices:
    """Return the positions that lie at equal steps of the shares' sum."""
    reached = np.cumsum(shares)
    steps = (np.arange(size) + 0.5) / max(size, 1) * reached[-1]
    positions: Indices = np.minimum(np.searchsorted(reached, steps), len(shares) - 1)
    return positions


def exchange(judge: Judge, landmarks: Landmarks, rows: Indices) -> tuple[Landmarks, float]:
    """Return as many landmarks, among these and the given rows, that serve the sample best.

    They stay as they are where the sample would lose by it. The second result is the share
    of the squared error that is left.

    Parameters
    ----------
    judge : Judge
        The sample.
    landmarks : Landmarks
        Points, or columns by their positions in the sample.
    rows : array of int
        Positions in the sample.
    """
    c = len(landmarks)
    grown = pooled([landmarks, judge.sample.gram.landmarks(rows)])
    B, H = judge.seen_from(grown)
    kept = independent(B)[: max(c, len(B))]
    if len(kept) > c:
        kept = np.sort(kept)
        duals = np.asarray(np.linalg.inv(B[:, kept]), dtype=np.float64)
        kept = kept[prune(duals, H, c)]
    after, before = lost(B[:, kept], H), lost(B[:, :c], H)
    if not after < before:
        return landmarks, 1.0
    beyond = max(0.0, judge.matrix.norm**2 - float(np.sum(H**2)))  # what none of them reaches
    return grown.take(np.sort(kept)), (after + beyond) / (before + beyond)


def independent(B: Floats) -> Indices:
    """Return the columns of B, of shape (r, k) and rank r, with r independent ones in front."""
    rank, size = B.shape
    if rank == size:
        return np.arange(size)
    pivots: Indices = qr(B, mode="r", pivoting=True)[1]
    return pivots


def lost(B: Floats, H: Floats) -> float:
    """Return ‖H − P H P‖², with P the projector onto the range of B."""
    Q, R, _ = qr(B, mode="economic", pivoting=True)
    size = np.abs(np.diagonal(R))
    Q = Q[:, size > cutoff(len(B), EPS) * size[0]]
    return float(np.sum((H - Q @ (Q.T @ H @ Q) @ Q.T) ** 2))


def prune(T: Floats, H: Floats, c: int) -> Indices:
    """Return the c landmarks that are left when those that serve least go, one by one.

    Parameters
    ----------
    T : array of shape (k, r)
        The rows of C⁺, in the basis Q: what only this landmark reaches.
    H : array of shape (r, r)
        Qᵀ G Q.
    c : int
        How many stay.
    """
    alive = np.arange(len(T))
    while len(alive) > c:
        HT = T @ H
        cheapest = np.argsort(_cost(T, HT))[: 2 * BATCH]
        gone, U = _leave(T[cheapest], HT[cheapest], min(BATCH, len(alive) - c))
        stay = np.delete(np.arange(len(alive)), cheapest[gone])
        alive, T = alive[stay], _without(U, T[stay])
        H = _without(U, _without(U, H).T)
    return alive


def _leave(T: Floats, HT: Floats, count: int) -> tuple[Indices, Floats]:
    """Return which of a few landmarks leave first, and the unit vectors that go with them."""
    here, gone, U = np.arange(len(T)), [], []
    for _ in range(count):
        least = int(np.argmin(_cost(T, HT)))
        size = np.linalg.norm(T[least])
        u, Hu = T[least] / size, HT[least] / size
        gone.append(here[least])
        U.append(u)
        here = np.delete(here, least)
        T, HT = (np.delete(part, least, axis=0) for part in (T, HT))
        HT = _without(u[None], HT - np.outer(T @ u, Hu))
        T = _without(u[None], T)
    return np.array(gone, dtype=np.intp), np.array(U)


def _cost(T: Floats, HT: Floats) -> Floats:
    """Return 2‖H u‖² − (uᵀ H u)² for the unit vectors u along the rows of T."""
    squares = np.einsum("ij,ij->i", T, T)
    along = np.einsum("ij,ij->i", T, HT) / squares
    cost: Floats = 2 * np.einsum("ij,ij->i", HT, HT) / squares - along**2
    return cost


def _without(U: Floats, rows: Floats) -> Floats:
    """Project the orthonormal rows of U out of other rows."""
    projected: Floats = rows - (rows @ U.T) @ U
    return projected
