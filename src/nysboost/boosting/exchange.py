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
from nysboost.numerics.arrays import Array, Floats, Indices, like, namespace, take, to_host
from nysboost.numerics.linalg import norms, range_basis
from nysboost.numerics.tolerances import EPS, cutoff

LOOKED_AT = 4
"""Rows looked at for each that is wanted: enough for the pivots to lie apart."""

LOOKS = 2
"""Looks at the residual's diagonal, the second without what the first has found."""

CANDIDATES = 0.5
"""Rows that may take the place of landmarks, as a share of these."""

EXCHANGES = 3
"""At most: one is enough, unless it has gained much or most of the rows have stayed."""

MUCH, MOST = 0.25, 0.75
"""A share of the squared error that is left, below which there is more to come: where 0.3 to 0.46
were left another exchange gained 3 to 5 %, in a seventh of a fit's time (Covertype, pol). And a
share of the rows that have stayed, above which as many again would. Where G is nearly the
identity all do, and centroids serve nothing; on seven cells of the zoo 0 to 0.5 do, on an eighth,
GloVe with a quarter of the median distance, 0.87."""

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
        landmarks, more = exchange(judge, landmarks, rows)
        if not more:
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


def exchange(judge: Judge, landmarks: Landmarks, rows: Indices) -> tuple[Landmarks, bool]:
    """Return as many landmarks, among these and the given rows, that serve the sample best.

    They stay as they are where the sample would lose by it. The second result says whether
    another exchange is likely to gain: this one has gained much, or most of the rows stayed.

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
    kept, after = np.sort(independent(B)[: max(c, B.shape[0])]), 0.0
    if len(kept) > c:
        stay, after = prune(namespace(B).linalg.inv(take(B, kept, axis=1)), H, c)
        kept = kept[stay]
    before, reached = lost(B[:, :c], H), float(norms(H))
    if not after < before - (cutoff(B.shape[0], EPS) * reached) ** 2:
        return landmarks, False
    beyond = max(0.0, judge.matrix.norm**2 - reached**2)  # what none of them reaches
    much = after + beyond <= MUCH * (before + beyond)
    return grown.take(kept), much or int(np.sum(kept >= c)) >= MOST * len(rows)


def independent(B: Array) -> Indices:
    """Return the columns of B, of shape (r, k) and rank r, with r independent ones in front."""
    rank, size = B.shape
    if rank == size:
        return np.arange(size)
    pivots: Indices = qr(to_host(B), mode="r", pivoting=True)[1]
    return pivots


def lost(B: Array, H: Array) -> float:
    """Return ‖H − P H P‖², with P the projector onto the range of B."""
    Q, _ = range_basis(B)
    return float(norms(H - Q @ (Q.T @ H @ Q) @ Q.T)) ** 2


def prune(T: Array, H: Array, c: int) -> tuple[Indices, float]:
    """Return the c landmarks that are left when those that serve least go, one by one.

    The second result is ‖H − P H P‖², with P the projector onto the range that is left: the
    sum of what each has taken along. Large products are made once and then kept up to date.

    Parameters
    ----------
    T : array of shape (k, r)
        The rows of C⁺, in the basis Q: what only this landmark reaches.
    H : array of shape (r, r)
        Qᵀ G Q.
    c : int
        How many stay.
    """
    alive, lost_so_far = np.arange(T.shape[0]), 0.0
    HT: Array = T @ H
    while len(alive) > c:
        cheapest = np.argsort(_cost(T, HT))[: 2 * BATCH]
        near, Hnear = (to_host(take(part, cheapest)) for part in (T, HT))
        gone, U, costs = _leave(near, Hnear, min(BATCH, len(alive) - c))
        stay, u = np.delete(np.arange(len(alive)), cheapest[gone]), like(U, T)
        alive, T, HT = alive[stay], take(T, stay), take(HT, stay)
        HT = _without(u, HT - (T @ u.T) @ (u @ H))
        T, H = _without(u, T), _without(u, _without(u, H).T)
        lost_so_far += costs
    return alive, lost_so_far


def _leave(T: Array, HT: Array, count: int) -> tuple[Indices, Floats, float]:
    """Return which of a few landmarks leave first, the unit vectors that go, and their cost."""
    here, gone, U, total = np.arange(len(T)), [], [], 0.0
    for _ in range(count):
        costs = _cost(T, HT)
        least = int(np.argmin(costs))
        size = np.linalg.norm(T[least])
        u, Hu = T[least] / size, HT[least] / size
        gone.append(here[least])
        U.append(u)
        total += float(costs[least])
        here = np.delete(here, least)
        T, HT = (np.delete(part, least, axis=0) for part in (T, HT))
        HT = _without(u[None], HT - np.outer(T @ u, Hu))
        T = _without(u[None], T)
    return np.array(gone, dtype=np.intp), np.array(U), total


def _cost(T: Array, HT: Array) -> Floats:
    """Return 2‖H u‖² − (uᵀ H u)² for the unit vectors u along the rows of T, on the host."""
    xp = namespace(T)
    squares, along, whole = (to_host(xp.sum(part, axis=1)) for part in (T * T, T * HT, HT * HT))
    cost: Floats = 2 * whole / squares - (along / squares) ** 2
    return cost


def _without(U: Array, rows: Array) -> Array:
    """Project the orthonormal rows of U out of other rows."""
    return rows - (rows @ U.T) @ U
