"""Exchange: rows with a large residual replace the landmarks that contribute least.

The contribution of a landmark is known exactly. With C = k(S, Z), C⁺ = T Qᵀ and H = Qᵀ G Q,
removing landmark j removes the unit vector u = t_j / ‖t_j‖ from the range, and the squared error
grows by 2‖H u‖² − (uᵀ H u)². So all candidates are added at once, and then the landmarks that
contribute least are removed one by one: one product with G is enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr

from nysboost.features.factor import residual_diagonal
from nysboost.features.feature_map import features_of, fit_learner
from nysboost.gram import Gram, Landmarks, Sample, pool
from nysboost.joint.core import (
    Fit,
    OptimalCore,
    fit_landmarks,
    matrix_of,
    norm,
    project_sample,
)
from nysboost.joint.joint_constants import BATCH, CANDIDATES, EXCHANGES, MOST, MUCH
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    like,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.linalg import choose_largest, pivoted_cholesky, range_basis
from nysboost.numerics.threads import threads_for
from nysboost.numerics.tolerances import EPS, NEAR_ROUNDING, SINGLE


def exchange_landmarks(sample: Sample, landmarks: Landmarks) -> tuple[Fit, OptimalCore]:
    """Replace landmarks by rows with a large residual, as long as the error falls.

    Parameters
    ----------
    sample : Sample
    landmarks : Landmarks
        Points, or positions in the sample.

    Returns
    -------
    fit : Fit
        The joint approximation on the new landmarks.
    core : OptimalCore
        The core of these and of all candidates of the last exchange.
    """
    gram = sample.gram
    c = len(landmarks)
    trace_of_gram = float(gram.host_diag().sum())
    for _ in range(EXCHANGES):
        rows, missed_trace = find_missed_rows(gram, landmarks)

        # ‖R‖ ≥ tr R / √s and ‖G‖ ≤ tr G bound the error from below
        bound = missed_trace / len(sample) ** 0.5
        single = bound > SINGLE * trace_of_gram

        # add all candidates
        candidates = gram.landmarks(rows)
        grown = pool([landmarks, candidates])
        core = project_sample(sample, grown, single=single)

        # and keep the best
        with threads_for(len(grown)):
            norm_of_gram = norm(matrix_of(sample, single))
            kept, again = select_landmarks(core, c, norm_of_gram)
        landmarks = grown.take(kept)
        if not again:
            break

    kept_core = core.restrict(kept)
    fit = fit_landmarks(sample, landmarks, kept_core, single=single)
    return fit, core


# Candidates


def find_missed_rows(gram: Gram, landmarks: Landmarks) -> tuple[Indices, float]:
    """Return distinct rows with a large residual of plain Nyström, and the residual's trace.

    A first round finds half of the rows. A second round, with these rows as landmarks, finds rows
    that a large group had hidden.
    """
    size = max(1, round(CANDIDATES * len(landmarks)))
    half = size // 2
    first, trace = _find_pivots(gram, landmarks, size - half)

    known = landmarks
    if len(first):
        found = gram.landmarks(first)
        known = pool([landmarks, found])
    second, _ = _find_pivots(gram, known, half)
    return np.concatenate([first, second]), trace


def _find_pivots(gram: Gram, landmarks: Landmarks, size: int) -> tuple[Indices, float]:
    """Return Cholesky pivots of the residual among four times as many rows, and its trace."""
    learner = fit_learner(gram, landmarks, len(landmarks))
    diagonal = residual_diagonal(gram, learner)
    missed = int(np.count_nonzero(diagonal))
    count = min(4 * size, missed)
    if count == 0:
        return np.arange(0), 0.0

    # the residual among these rows
    rows = _choose_rows(diagonal, count)
    F = floats_on_host(features_of(gram, learner, rows))
    G = gram.host_block(rows, rows)
    residual = G - F @ F.T

    # its pivots, above what is rounding
    largest = float(residual.diagonal().max())
    rounding = len(rows) * EPS * largest
    choose = choose_largest(rounding)
    places = pivoted_cholesky(residual, choose, size)
    trace = float(diagonal.sum())
    return rows[places], trace


def _choose_rows(diagonal: Floats, count: int) -> Indices:
    """Return about `count` rows: half the largest residuals, half drawn by their squares."""
    half = count // 2
    order = np.argsort(-diagonal, kind="stable")
    largest = order[: count - half]

    # systematic sampling: at equal steps of the cumulated squares
    relative = diagonal / diagonal.max()
    cumulated = np.cumsum(relative**2)
    middles = np.arange(half) + 0.5
    shares = middles / max(half, 1)
    drawn = np.searchsorted(cumulated, shares * cumulated[-1])

    # rounding may lead beyond the last row
    last = len(diagonal) - 1
    drawn = np.minimum(drawn, last)
    return np.union1d(largest, drawn)


# Selection


def select_landmarks(core: OptimalCore, c: int, norm_of_gram: float) -> tuple[Indices, bool]:
    """Return the c landmarks that are best on the sample, and whether to exchange once more.

    `core` is the core of all landmarks and candidates, and the norm is that of the sample's Gram
    matrix. The first c landmarks are kept if the others would be worse.
    """
    rank, size = core.columns.shape
    norm_in_range = norm(core.H)

    # the c that are left when the others are removed, and the squared error in the range
    kept = _independent_columns(core.columns, c)
    after = 0.0
    if len(kept) > c:
        C = take(core.columns, kept, axis=1)
        T = namespace(C).linalg.inv(C)
        stay, after = remove_landmarks(T, core.H, c)
        kept = kept[stay]

    # that of the first c
    first = core.columns[:, :c]
    before = error_outside(first, core.H)
    rounding = (rank * EPS * norm_in_range) ** 2
    if not after < before - rounding:
        return np.arange(c), False

    # what no candidate can explain is part of both errors
    beyond = max(0.0, norm_of_gram**2 - norm_in_range**2)
    error = after + beyond
    negligible = NEAR_ROUNDING * norm_of_gram
    if error < negligible**2:
        return kept, False

    # once more, if this one gained much
    n_new = int(np.count_nonzero(kept >= c))
    fell_much = error <= MUCH * (before + beyond)
    took_most = n_new >= MOST * (size - c)
    return kept, fell_much or took_most


def _independent_columns(B: Array, c: int) -> Indices:
    """Return at least c columns of B (r, k) that span its range; all if independent.

    They are the first pivots of a QR factorisation.
    """
    rank, size = B.shape
    if rank == size:
        return np.arange(size)

    on_host = to_host(B)
    _, pivots = qr(on_host, mode="r", pivoting=True)
    count = max(c, rank)
    return np.sort(pivots[:count])


def error_outside(B: Array, H: Array) -> float:
    """Return ‖H − P H P‖², with P the projector onto the range of B."""
    Q, _ = range_basis(B)
    inner = Q.T @ H @ Q
    projected = Q @ inner @ Q.T
    return norm(H - projected) ** 2


def remove_landmarks(T: Array, H: Array, c: int) -> tuple[Indices, float]:
    """Remove the landmarks that contribute least, one by one, and return the c that remain.

    Parameters
    ----------
    T : array of shape (k, r)
        The rows of C⁺ in the basis Q.
    H : array of shape (r, r)
        Qᵀ G Q.
    c : int
        Number of landmarks that remain.

    Returns
    -------
    left : array of shape (c,)
    error : float
        ‖H − P H P‖², with P the projector onto the range that is left.
    """
    left = np.arange(T.shape[0])
    HT: Array = T @ H
    error = 0.0
    while len(left) > c:
        # remove a batch from among twice as many of the least contributions
        order = np.argsort(_contributions(T, HT))
        cheapest = order[: 2 * BATCH]
        T_cheapest = to_host(take(T, cheapest))
        HT_cheapest = to_host(take(HT, cheapest))
        count = min(BATCH, len(left) - c)
        batch = _remove_batch(T_cheapest, HT_cheapest, count)
        error += batch.error

        # the rows that stay
        removed = cheapest[batch.removed]
        stay = np.delete(np.arange(len(left)), removed)
        left = left[stay]
        T = take(T, stay)
        HT = take(HT, stay)

        # project the batch's directions U out of T and of both sides of H
        U = like(batch.U, T)
        along_U = (T @ U.T) @ (U @ H)
        HT = _project_out(U, HT - along_U)
        T = _project_out(U, T)
        one_side = _project_out(U, H)
        H = _project_out(U, one_side.T)
    return left, error


class RemovedBatch(NamedTuple):
    """Removed landmarks: their positions, their unit vectors U, and the error that they add."""

    removed: Indices
    U: Floats
    error: float


def _remove_batch(T: Array, HT: Array, count: int) -> RemovedBatch:
    """Remove `count` of a few landmarks, updating the other contributions after each."""
    left = np.arange(len(T))
    removed: list[int] = []
    directions: list[Array] = []
    error = 0.0
    for _ in range(count):
        contributions = _contributions(T, HT)
        least = int(np.argmin(contributions))
        removed.append(int(left[least]))
        error += float(contributions[least])

        # u and H u
        length = np.linalg.norm(T[least])
        u = T[least] / length
        Hu = HT[least] / length
        directions.append(u)

        # without its row, and without its direction in the others
        left = np.delete(left, least)
        T = np.delete(T, least, axis=0)
        HT = np.delete(HT, least, axis=0)
        along_u = np.outer(T @ u, Hu)
        U = u[None]
        HT = _project_out(U, HT - along_u)
        T = _project_out(U, T)

    positions = np.array(removed)
    U = np.array(directions)
    return RemovedBatch(positions, U, error)


def _contributions(T: Array, HT: Array) -> Floats:
    """Return 2‖H u‖² − (uᵀ H u)² for the unit vectors u along the rows of T, on the host."""
    tt = _row_sums(T * T)
    tHt = _row_sums(T * HT)
    HtHt = _row_sums(HT * HT)

    # of u = t / ‖t‖
    HuHu = HtHt / tt
    uHu = tHt / tt
    return 2 * HuHu - uHu**2


def _row_sums(A: Array) -> Floats:
    """Return the sums of rows, on the host."""
    return floats_on_host(namespace(A).sum(A, axis=1))


def _project_out(U: Array, rows: Array) -> Array:
    """Project the orthonormal rows of U out of other rows."""
    return rows - (rows @ U.T) @ U
