"""The joint core: one small matrix M for all landmarks, fitted on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nysboost.boosting.learner import Learner
from nysboost.gram import Gram, Landmarks, Sample, take_sample
from nysboost.numerics.arrays import Array, Floats, Indices, like, namespace, take, to_host
from nysboost.numerics.linalg import norms, range_basis, times

ROWS_PER_LANDMARK = 4
"""With fewer rows for each landmark a core fits its sample and little else."""

ANCHOR = 0.1
"""Weight of landmarks that are points in the core's sample. Over 155 cells of the zoo 0.3 costs a
tenth of the error in sample and 3 % on other rows; with 0.03 the error on other rows of
Covertype begins to grow (1.135e-3 against 1.125e-3)."""


def fit_core(
    sample: Sample, landmarks: Landmarks, rows: Indices | None = None, anchor: float = 0.0
) -> Learner:
    """Return K̂ = C M Cᵀ with M = A⁺ G[S, S] A⁺ᵀ and A = k(S, Z): positive semidefinite.

    On the sample this is the Frobenius-optimal core: no M gives a smaller ‖G − A M Aᵀ‖ there.
    With all rows as sample it is optimal for G. Its cost does not depend on n.

    Parameters
    ----------
    sample : Sample
        S, several times as many rows as landmarks. It should contain the landmarks if they
        are columns.
    landmarks : Landmarks
        Z, columns of the sample, or points.
    rows : array of int or None
        Positions in the sample, where the core is fitted on a part of it.
    anchor : float
        Weight at which landmarks that are points join the sample.
    """
    everything = np.arange(len(sample))
    rows = everything if rows is None else rows
    whole = np.array_equal(rows, everything)  # which are not copied
    G = sample.matrix if whole else take(take(sample.matrix, rows), rows, axis=1)
    A = sample.gram.cross(rows, landmarks)
    W = sample.gram.within(landmarks)
    projection = core_projection(A, W, lambda Q: times(G, Q), anchor)
    return Learner(landmarks, like(projection, A))


def core_on(gram: Gram, landmarks: Landmarks, row_cap: int, rng: np.random.Generator) -> Learner:
    """Return the joint approximation on landmarks that somebody else chose.

    Its sample has `row_cap` rows, or four for each landmark, and the landmarks' own.
    """
    sample = take_sample(gram, max(row_cap, ROWS_PER_LANDMARK * len(landmarks)), rng)
    if landmarks.indices is None:
        return fit_core(sample, landmarks, anchor=ANCHOR)
    sample = Sample.of(gram, np.union1d(sample.indices, landmarks.indices))
    local = replace(landmarks, indices=sample.positions(landmarks.indices))
    return replace(fit_core(sample, local), landmarks=landmarks)


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
    _, T, H, _ = optimal_core(A, W, times_gram, anchor)
    return T @ square_root(H)


def square_root(H: Array) -> Array:
    """Return Y with Y Yᵀ = H, a positive semidefinite matrix but for rounding."""
    xp = namespace(H)
    eigenvalues, Y = xp.linalg.eigh(H)
    root: Array = Y * xp.sqrt(xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues)))
    return root


def optimal_core(
    A: Array, W: Array, times_gram: Callable[[Array], Array], anchor: float
) -> tuple[Array, Array, Array, Array]:
    """Return Q, T and H with H = Qᵀ G Q, and H of the sample alone: the core is M = T H Tᵀ.

    Q is orthonormal on the range of A, below which the landmarks' own rows stand at the
    anchor's weight, and A T = Q. See `core_projection` for the parameters.

    Columns are looked at in units of their own size. Under a polynomial kernel some are 10⁸ times
    as large as others, which rounding would take for nothing.
    """
    xp = namespace(A)
    A_W = xp.concat([A, anchor * W]) if anchor else A
    units = like(_units(to_host(norms(A_W, axis=0))), A_W)
    Q, T = range_basis(A_W / units)
    T = T / xp.astype(units, T.dtype)[:, None]
    A, W = xp.astype(A, Q.dtype), xp.astype(W, Q.dtype)
    rows, points = Q[: A.shape[0], :], anchor * Q[A.shape[0] :, :]
    H = alone = rows.T @ times_gram(rows)
    if anchor:
        across = (rows.T @ A) @ points
        H = H + across + across.T + points.T @ (W @ points)
    return Q, T, (H + H.T) / 2, alone


def _units(sizes: Floats) -> Floats:
    """Return the powers of two next below some sizes: dividing by these rounds nothing."""
    mantissas, exponents = np.frexp(sizes)
    return np.where(mantissas > 0, np.ldexp(0.5, exponents), 1.0)
