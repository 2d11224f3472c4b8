"""The joint core: one small matrix M for all landmarks, fitted on a sample of rows.

With A = k(S, Z) for a sample S of rows and landmarks Z, the core M = A⁺ G[S, S] A⁺ᵀ minimises
‖G[S, S] − A M Aᵀ‖_F. It is positive semidefinite, and its cost does not depend on n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import fit_learner
from nysboost.gram import Gram, Landmarks, Sample, take_sample
from nysboost.joint.joint_constants import ANCHOR, ERROR_ROWS, ROWS_PER_LANDMARK
from nysboost.numerics.arrays import Array, Indices, like, namespace, positive_or_one, take, to_host
from nysboost.numerics.linalg import norms, range_basis, times
from nysboost.numerics.tolerances import CANCELLED, NEAR_ROUNDING, ROUNDING


@dataclass(frozen=True, eq=False)
class OptimalCore:
    """The core M = T H Tᵀ that is optimal on a sample S, and the matrices it is made of.

    Attributes
    ----------
    Q : array of shape (s, r)
        Basis of the range of A = k(S, Z).
    GQ : array of shape (s, r)
        G[S, S] Q.
    T : array of shape (c, r)
        A T = Q.
    H : array of shape (r, r)
        Qᵀ G Q. Like Q, it includes the landmarks' own rows where they were added.
    columns : array of shape (r, c)
        A in the basis Q.
    """

    Q: Array
    GQ: Array
    T: Array
    H: Array
    columns: Array

    @property
    def projection(self) -> Array:
        """P of shape (c, r) with M = P Pᵀ."""
        return self.T @ _square_root(self.H)

    def restrict(self, kept: Indices) -> OptimalCore:
        """Return the core of some of the landmarks, without another product with G."""
        columns = take(self.columns, kept, axis=1)
        U, T = _scaled_range_basis(columns)

        return OptimalCore(
            Q=self.Q @ U,
            GQ=self.GQ @ U,
            T=T,
            H=U.T @ self.H @ U,
            columns=U.T @ columns,
        )

    def relative_error(self, G: Array, *, single: bool = False) -> float:
        """Return ‖G − Q H Qᵀ‖ / ‖G‖ on the sample.

        `single` says that GQ has the digits of float32 alone.
        """
        if not single:
            squared = self._expanded_squared_error(float(norms(G)) or 1.0)
            if squared > CANCELLED:
                return float(np.sqrt(squared))

        # the expansion cancels: the residual itself
        return relative_error(G, self.Q @ _square_root(self.H))

    def _expanded_squared_error(self, norm: float) -> float:
        """Return 1 − 2⟨H, QᵀGQ⟩/‖G‖² + ‖Q H Qᵀ‖²/‖G‖², from matrices of shape (r, r)."""
        xp = namespace(self.Q)
        H = self.H / norm

        QGQ = self.Q.T @ self.GQ
        across = float(xp.sum(H * QGQ)) / norm
        HN = H @ (self.Q.T @ self.Q)  # Q is orthonormal only together with the landmarks' rows
        return 1 - 2 * across + float(xp.sum(HN * HN.T))


def optimal_core(
    A: Array, times_gram: Callable[[Array], Array], W: Array | None = None
) -> OptimalCore:
    """Return the core that is optimal on a sample, extended by the landmarks if W is given.

    Without the landmarks' own rows the core can be large where the sample has no rows.

    Parameters
    ----------
    A : array of shape (s, c)
        k(S, Z).
    times_gram : callable
        Q ↦ G[S, S] Q.
    W : array of shape (c, c), or None
        k(Z, Z).
    """
    xp = namespace(A)
    s = A.shape[0]

    # a basis [Q; Q_Z] of the range of [A; αW]
    stacked = A
    if W is not None:
        stacked = xp.concat([A, ANCHOR * W])
    basis, T = _scaled_range_basis(stacked)
    columns = basis.T @ xp.astype(stacked, basis.dtype, copy=False)

    Q = basis[:s, :]
    GQ = times_gram(Q)
    H = Q.T @ GQ
    if W is not None:
        # H gains the blocks of [S; Z] × [S; Z] that have a row or a column in Z
        Q_Z = ANCHOR * basis[s:, :]
        across = (Q.T @ xp.astype(A, basis.dtype)) @ Q_Z
        within = Q_Z.T @ (xp.astype(W, basis.dtype) @ Q_Z)
        H = H + across + across.T + within
    return OptimalCore(Q, GQ, T, (H + H.T) / 2, columns)


def _square_root(H: Array) -> Array:
    """Return Y with Y Yᵀ = H for H positive semidefinite up to rounding."""
    xp = namespace(H)
    eigenvalues, Y = xp.linalg.eigh(H)
    positive = xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues))
    root: Array = Y * xp.sqrt(positive)
    return root


def _scaled_range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A T = Q.

    Columns are scaled to norms between 1 and 2 first, by powers of two, which do not round.
    """
    mantissas, exponents = np.frexp(to_host(norms(A, axis=0)))
    powers = np.ldexp(0.5, exponents)
    units = like(np.where(mantissas > 0, powers, 1.0), A)

    Q, T = range_basis(A / units)
    return Q, T / namespace(A).astype(units, T.dtype)[:, None]


def project_sample(
    sample: Sample, landmarks: Landmarks, rows: Indices | None = None, *, single: bool = False
) -> OptimalCore:
    """Return the optimal core of landmarks on a sample, or on `rows` of it, by position.

    Landmarks that are points are added to the sample with weight `ANCHOR`. `single` multiplies by
    G in float32, for errors above `SINGLE`.
    """
    G = sample.single if single else sample.matrix
    if rows is None or len(rows) == len(sample):
        A = sample.gram.cross(slice(None), landmarks)
    else:
        A = sample.gram.cross(rows, landmarks)
        G = take(take(G, rows), rows, axis=1)

    W = None
    if landmarks.indices is None:
        W = sample.gram.within(landmarks)
    return optimal_core(A, lambda Q: times(G, Q), W)


# Approximations on a sample, and their errors


def fit_core(sample: Sample, landmarks: Landmarks, rows: Indices | None = None) -> FeatureMap:
    """Return K̂ = C M Cᵀ with the core M that is optimal on the sample, or on `rows` of it."""
    return _make_learner(sample, landmarks, project_sample(sample, landmarks, rows))


def core_on(gram: Gram, landmarks: Landmarks, row_cap: int, rng: Generator) -> FeatureMap:
    """Return the joint approximation on given landmarks.

    The sample has `row_cap` rows, or four for each landmark, and the landmarks that are columns.
    """
    size = max(row_cap, ROWS_PER_LANDMARK * len(landmarks))
    sample = take_sample(gram, size, rng)
    if landmarks.indices is not None:
        sample = Sample.of(gram, np.union1d(sample.indices, landmarks.indices))
    return fit_core(sample, sample.locate(landmarks)).lift(sample)


class Fit(NamedTuple):
    """An approximation and its relative error on the sample that it was fitted on."""

    learner: FeatureMap
    error: float


def fit_landmarks(
    sample: Sample, landmarks: Landmarks, core: OptimalCore | None = None, *, single: bool = False
) -> Fit:
    """Return the joint approximation on landmarks, and its error on the sample."""
    if core is None:
        core = project_sample(sample, landmarks, single=single)
    learner = _make_learner(sample, landmarks, core)

    G = sample.single if single else sample.matrix
    return Fit(learner, core.relative_error(G, single=single))


def _make_learner(sample: Sample, landmarks: Landmarks, core: OptimalCore) -> FeatureMap:
    projection = like(core.projection, sample.gram.rows.template)
    return FeatureMap(sample.gram.kernel, landmarks, projection)


def select_best(sample: Sample, *fits: Fit) -> FeatureMap:
    """Return the approximation with the smallest error on the sample.

    Where errors are near rounding, plain Nyström on the same landmarks takes part, because it
    loses fewer digits, and all errors are computed anew. It is preferred where both errors are
    rounding alone: these say nothing of rows that are small.
    """
    if min(fit.error for fit in fits) >= NEAR_ROUNDING:
        return min(fits, key=lambda fit: fit.error).learner

    gram = sample.gram
    learners = [fit_scaled(gram, fit.learner.landmarks) for fit in fits]
    learners += [fit.learner for fit in fits]

    errors = []
    for learner in learners:
        F = features_of(gram, learner.round_to(gram.eps))
        rounding = ROUNDING * max(1, learner.rank) * gram.eps
        errors.append(max(rounding, relative_error(sample.matrix, F)))
    return learners[int(np.argmin(errors))]


def fit_scaled(gram: Gram, landmarks: Landmarks) -> FeatureMap:
    """Return plain Nyström, with landmarks in units of their own size: D (D W D)⁺ D.

    On centroids of protein, polynomial kernel, c = 240, the error is 3.3e-12, and 5.5e-7 without.
    """
    W = gram.within(landmarks)
    sizes = to_host(namespace(W).linalg.diagonal(W)).astype(np.float64)
    return fit_learner(gram, landmarks, len(landmarks), 1 / positive_or_one(sizes))


def relative_error(G: Array, F: Array) -> float:
    """Return ‖G − F Fᵀ‖ / ‖G‖ from the residual itself, on at most `ERROR_ROWS` rows of it."""
    xp = namespace(F)
    F = xp.astype(F, xp.float64, copy=False)
    spread = np.linspace(0, G.shape[0] - 1, ERROR_ROWS)
    rows = np.unique(spread.astype(np.intp))

    part = take(G, rows)
    missed = part - take(F, rows) @ F.T
    return float(norms(missed)) / (float(norms(part)) or 1.0)
