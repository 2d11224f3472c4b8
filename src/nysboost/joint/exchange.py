"""Exchange: rows with a large residual replace the landmarks that contribute least.

The contribution of a landmark is known exactly. With C = k(S, Z), C⁺ = T Qᵀ and H = Qᵀ G Q,
removing landmark j removes the unit vector u = t_j / ‖t_j‖ from the range, and the squared error
grows by 2‖H u‖² − (uᵀ H u)². So all candidates are added at once, and then the landmarks that
contribute least are removed one by one: one product with G is enough.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr

from nysboost.features.feature_map import features_of
from nysboost.features.nystrom import fit_learner, residual_diagonal
from nysboost.gram import Gram, Landmarks, Sample, pool
from nysboost.joint.core import Fit, OptimalCore, fit_landmarks, project_sample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, floats_on_host, take, to_host
from nysboost.numerics.linalg import choose_largest, norms, pivoted_cholesky, range_basis
from nysboost.numerics.threads import threads_for
from nysboost.numerics.tolerances import EPS, NEAR_ROUNDING, SINGLE, cutoff

CANDIDATES = 0.5
"""Number of candidate rows, as a share of the number of landmarks."""

EXCHANGES = 3
"""Largest number of exchanges; one is enough unless `MUCH` or `MOST` asks for another."""

MUCH, MOST = 0.25, 0.75
"""Exchange again if the squared error fell below MUCH of what it was (with 0.3 to 0.46 left, 3 to
5 % more is gained), or if more than MOST of the candidates became landmarks."""

BATCH = 32
"""Landmarks removed between two updates of the other contributions."""


def exchange_landmarks(sample: Sample, landmarks: Landmarks) -> tuple[Fit, OptimalCore]:
    """Replace landmarks by rows with a large residual, as long as the error falls.

    Returns the joint approximation on the new landmarks, and the core of these and all candidates
    of the last exchange. Landmarks are points, or positions in the sample.
    """
    whole = to_host(sample.gram.diag()).sum()
    for _ in range(EXCHANGES):
        rows, missing = find_missed_rows(sample.gram, landmarks)
        # ‖R‖ ≥ tr R / √s and ‖G‖ ≤ tr G bound the error from below
        single = bool(missing > SINGLE * len(sample) ** 0.5 * whole)
        grown = pool([landmarks, sample.gram.landmarks(rows)])
        core = project_sample(sample, grown, single=single)
        with threads_for(len(grown)):
            norm = float(norms(sample.single if single else sample.matrix))
            kept, gains = select_landmarks(core, len(landmarks), norm)
        landmarks = grown.take(kept)
        if not gains:
            break
    return fit_landmarks(sample, landmarks, core.restrict(kept), single=single), core


def find_missed_rows(gram: Gram, landmarks: Landmarks) -> tuple[Indices, float]:
    """Return distinct rows with a large residual of plain Nyström, and the residual's trace.

    They are Cholesky pivots of the residual on rows of which half have its largest diagonal
    entries and half are drawn by their squares; a second round finds rows hidden by a large group.
    """
    size = max(1, round(CANDIDATES * len(landmarks)))
    rows, trace = _find_pivots(gram, landmarks, -(-size // 2))
    known = pool([landmarks, gram.landmarks(rows)]) if len(rows) else landmarks
    others, _ = _find_pivots(gram, known, size // 2)
    return np.concatenate([rows, others]), trace


def _find_pivots(gram: Gram, landmarks: Landmarks, size: int) -> tuple[Indices, float]:
    """Return pivots of the residual among four times as many rows, and its trace."""
    learner = fit_learner(gram, landmarks, len(landmarks))
    diagonal = residual_diagonal(gram, learner)
    count = min(4 * size, int(np.count_nonzero(diagonal)))
    if count == 0:
        return np.arange(0), 0.0
    most = np.argsort(-diagonal, kind="stable")[: -(-count // 2)]
    reached = np.cumsum((diagonal / diagonal.max()) ** 2)  # at equal steps of which rows are drawn
    steps = (np.arange(count // 2) + 0.5) / max(count // 2, 1) * reached[-1]
    drawn = np.minimum(np.searchsorted(reached, steps), len(reached) - 1)
    rows = np.union1d(most, drawn)
    F = floats_on_host(features_of(gram, learner, rows))
    residual = floats_on_host(gram.block(rows, rows)) - F @ F.T
    floor = cutoff(len(rows), EPS) * float(np.diag(residual).max())
    chosen: Indices = rows[pivoted_cholesky(residual, choose_largest(floor), size)]
    return chosen, float(diagonal.sum())


def select_landmarks(core: OptimalCore, c: int, norm: float) -> tuple[Indices, bool]:
    """Return the c landmarks that are best on the sample, and whether to exchange once more.

    `core` is that of all landmarks and candidates, `norm` that of the sample's Gram matrix. The
    first c are kept where the others would be worse.
    """
    B, H = core.columns, core.H
    (rank, size), after = B.shape, 0.0
    kept = np.arange(size)
    if rank < size:  # independent columns are enough
        kept = np.sort(qr(to_host(B), mode="r", pivoting=True)[1][: max(c, rank)])
    if len(kept) > c:
        inverse = arrays.namespace(B).linalg.inv(take(B, kept, axis=1))
        stay, after = remove_landmarks(inverse, H, c)
        kept = kept[stay]
    before, reached = error_outside(B[:, :c], H), float(norms(H))
    if not after < before - (cutoff(rank, EPS) * reached) ** 2:
        return np.arange(c), False
    beyond = max(0.0, norm**2 - reached**2)  # error outside the range of all candidates
    if after + beyond < (NEAR_ROUNDING * norm) ** 2:
        return kept, False
    much = after + beyond <= MUCH * (before + beyond)
    return kept, much or int(np.sum(kept >= c)) >= MOST * (size - c)


def error_outside(B: Array, H: Array) -> float:
    """Return ‖H − P H P‖², with P the projector onto the range of B."""
    Q, _ = range_basis(B)
    return float(norms(H - Q @ (Q.T @ H @ Q) @ Q.T)) ** 2


def remove_landmarks(T: Array, H: Array, c: int) -> tuple[Indices, float]:
    """Remove the landmarks that contribute least, one by one, and return the c that remain.

    `T` (k, r) holds the rows of C⁺ in the basis Q, `H` (r, r) is Qᵀ G Q. The second result is ‖H −
    P H P‖², with P the projector onto the range that is left.
    """
    left, total = np.arange(T.shape[0]), 0.0
    HT: Array = T @ H
    while len(left) > c:
        cheapest = np.argsort(_costs(T, HT))[: 2 * BATCH]
        near, Hnear = (to_host(take(part, cheapest)) for part in (T, HT))
        gone, U, costs = _remove_from_batch(near, Hnear, min(BATCH, len(left) - c))
        stay, u = np.delete(np.arange(len(left)), cheapest[gone]), arrays.like(U, T)
        left, T, HT = left[stay], take(T, stay), take(HT, stay)
        HT = _project_out(u, HT - (T @ u.T) @ (u @ H))
        T, H = _project_out(u, T), _project_out(u, _project_out(u, H).T)
        total += costs
    return left, total


def _remove_from_batch(T: Array, HT: Array, count: int) -> tuple[Indices, Floats, float]:
    """Return which of a few landmarks are removed, their unit vectors, and the error they add."""
    here, gone, U, total = np.arange(len(T)), list[int](), [], 0.0
    for _ in range(count):
        costs = _costs(T, HT)
        least = int(np.argmin(costs))
        size = np.linalg.norm(T[least])
        u, Hu = T[least] / size, HT[least] / size
        gone.append(int(here[least]))
        U.append(u)
        total += float(costs[least])
        here = np.delete(here, least)
        T, HT = (np.delete(part, least, axis=0) for part in (T, HT))
        HT = _project_out(u[None], HT - np.outer(T @ u, Hu))
        T = _project_out(u[None], T)
    return np.array(gone), np.array(U), total


def _costs(T: Array, HT: Array) -> Floats:
    """Return 2‖H u‖² − (uᵀ H u)² for the unit vectors u along the rows of T, on the host."""
    xp = arrays.namespace(T)
    squares, along, whole = (to_host(xp.sum(part, axis=1)) for part in (T * T, T * HT, HT * HT))
    return np.asarray(2 * whole / squares - (along / squares) ** 2)


def _project_out(U: Array, rows: Array) -> Array:
    """Project the orthonormal rows of U out of other rows."""
    return rows - (rows @ U.T) @ U
