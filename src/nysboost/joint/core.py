"""The joint core: one small matrix M for all landmarks, fitted on a sample of rows.

With A = k(S, Z) for a sample S of rows and landmarks Z, the core M = A⁺ G[S, S] A⁺ᵀ minimises
‖G[S, S] − A M Aᵀ‖_F. It is positive semidefinite, and its cost does not depend on n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from nysboost.features.feature_map import FeatureMap, features_of, fit_learner
from nysboost.gram import Gram, Landmarks, Sample, take_sample
from nysboost.joint.joint_constants import ANCHOR, ERROR_ROWS, ROWS_PER_LANDMARK
from nysboost.numerics.arrays import (
    Array,
    Indices,
    Selection,
    diagonal,
    floats_on_host,
    in_float64,
    like,
    namespace,
    spaced_indices,
    take,
    to_host,
)
from nysboost.numerics.linalg import norms, positive_or_one, range_basis, times
from nysboost.numerics.tolerances import CANCELLED, NEAR_ROUNDING, ROUNDING


@dataclass(frozen=True, eq=False)
class OptimalCore:
    """The core M = T H Tᵀ that is optimal on a sample S, and its factors.

    Attributes
    ----------
    Q : array of shape (s, r)
        Basis of the range of A = k(S, Z).
    GQ : array of shape (s, r)
        G[S, S] Q.
    T : array of shape (c, r)
        A T = Q.
    H : array of shape (r, r)
        Qᵀ G Q. Like Q, it includes the landmarks' own rows if they were added.
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

    def learner(self, sample: Sample, landmarks: Landmarks) -> FeatureMap:
        """Return C M Cᵀ on the landmarks of this core."""
        projection = like(self.projection, sample.gram.rows.template)
        return FeatureMap(sample.gram.kernel, landmarks, projection)

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

        `single` says that GQ was computed in float32.
        """
        if not single:
            norm_of_gram = norm(G) or 1.0
            squared = self._expanded_squared_error(norm_of_gram)
            if squared > CANCELLED:
                return float(np.sqrt(squared))

        # the expansion cancels: the residual itself
        F = self.Q @ _square_root(self.H)
        return sampled_error(G, F)

    def _expanded_squared_error(self, norm_of_gram: float) -> float:
        """Return 1 − 2⟨H, QᵀGQ⟩/‖G‖² + ‖Q H Qᵀ‖²/‖G‖², from matrices of shape (r, r)."""
        xp = namespace(self.Q)
        H = self.H / norm_of_gram

        # ⟨H, QᵀGQ⟩ / ‖G‖²
        QGQ = self.Q.T @ self.GQ
        across = float(xp.sum(H * QGQ)) / norm_of_gram

        # ‖Q H Qᵀ‖² / ‖G‖²; Q is orthonormal only together with the landmarks' rows
        products = self.Q.T @ self.Q
        HN = H @ products
        squared = float(xp.sum(HN * HN.T))
        return 1 - 2 * across + squared


def optimal_core(
    A: Array,
    times_gram: Callable[[Array], Array],
    W: Array | None = None,
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
    columns = basis.T @ in_float64(stacked)

    # H = Qᵀ G Q
    Q = basis[:s, :]
    GQ = times_gram(Q)
    H = Q.T @ GQ
    if W is not None:
        # H gains the blocks of [S; Z] × [S; Z] that have a row or a column in Z
        Q_Z = ANCHOR * basis[s:, :]
        QA = Q.T @ in_float64(A)
        across = QA @ Q_Z
        WQ = in_float64(W) @ Q_Z
        within = Q_Z.T @ WQ
        H = H + across + across.T + within
    symmetric = (H + H.T) / 2
    return OptimalCore(Q, GQ, T, symmetric, columns)


def _square_root(H: Array) -> Array:
    """Return Y with Y Yᵀ = H for H positive semidefinite up to rounding."""
    xp = namespace(H)
    eigenvalues, Y = xp.linalg.eigh(H)
    zeros = xp.zeros_like(eigenvalues)
    positive = xp.where(eigenvalues > 0, eigenvalues, zeros)
    root: Array = Y * xp.sqrt(positive)
    return root


def _scaled_range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A T = Q.

    Columns are scaled to norms between 1 and 2 first, by powers of two, which do not round.
    """
    lengths = to_host(norms(A, axis=0))
    mantissas, exponents = np.frexp(lengths)
    powers = np.ldexp(0.5, exponents)
    positive = np.where(mantissas > 0, powers, 1.0)
    units = like(positive, A)

    Q, T = range_basis(A / units)
    units = in_float64(units)
    return Q, T / units[:, None]


def norm(A: Array) -> float:
    """Return ‖A‖_F."""
    return float(norms(A))


def matrix_of(sample: Sample, single: bool) -> Array:
    """Return G[S, S], in float32 if `single`."""
    if single:
        return sample.single
    return sample.matrix


def project_sample(
    sample: Sample,
    landmarks: Landmarks,
    rows: Indices | None = None,
    *,
    single: bool = False,
) -> OptimalCore:
    """Return the optimal core of landmarks on a sample, or on `rows` of it, by position.

    Landmarks that are points are added to the sample with weight `ANCHOR`. With `single`, products
    with G are in float32, for errors above `SINGLE`.
    """
    gram = sample.gram
    G = matrix_of(sample, single)
    seen: Selection = slice(None)
    if rows is not None and len(rows) < len(sample):
        seen = rows
        G = take(take(G, rows), rows, axis=1)

    W = None
    if landmarks.indices is None:
        W = gram.within(landmarks)
    A = gram.cross(seen, landmarks)
    return optimal_core(A, partial(times, G), W)


# Approximations on a sample, and their errors


def fit_core(sample: Sample, landmarks: Landmarks, rows: Indices | None = None) -> FeatureMap:
    """Return K̂ = C M Cᵀ with the core M that is optimal on the sample, or on `rows` of it."""
    return project_sample(sample, landmarks, rows).learner(sample, landmarks)


def core_on(gram: Gram, landmarks: Landmarks, row_cap: int, rng: Generator) -> FeatureMap:
    """Return the joint approximation on given landmarks.

    The sample has `row_cap` rows, or four for each landmark, and the landmarks that are columns.
    """
    size = max(row_cap, ROWS_PER_LANDMARK * len(landmarks))
    sample = take_sample(gram, size, rng)
    if landmarks.indices is not None:
        rows = np.union1d(sample.indices, landmarks.indices)
        sample = Sample.of(gram, rows)
    learner = fit_core(sample, sample.locate(landmarks))
    return learner.lift(sample)


class Fit(NamedTuple):
    """An approximation and its relative error on the sample that it was fitted on."""

    learner: FeatureMap
    error: float


def fit_landmarks(
    sample: Sample,
    landmarks: Landmarks,
    core: OptimalCore | None = None,
    *,
    single: bool = False,
) -> Fit:
    """Return the joint approximation on landmarks, and its error on the sample."""
    if core is None:
        core = project_sample(sample, landmarks, single=single)
    G = matrix_of(sample, single)
    error = core.relative_error(G, single=single)
    return Fit(core.learner(sample, landmarks), error)


def select_best(sample: Sample, *fits: Fit) -> FeatureMap:
    """Return the approximation with the smallest error on the sample.

    If errors are near rounding, plain Nyström on the same landmarks is also compared, because it
    loses fewer digits, and all errors are computed again. It is preferred if both errors are
    rounding errors, which say nothing about rows with small kernel values.
    """
    best = min(fits, key=lambda fit: fit.error)
    if best.error >= NEAR_ROUNDING:
        return best.learner

    # plain Nyström on the same landmarks first, so that it wins ties
    gram = sample.gram
    fitted = [fit.learner for fit in fits]
    plain = [fit_scaled(gram, learner.landmarks) for learner in fitted]

    def error(learner: FeatureMap) -> float:
        F = features_of(gram, learner.round_to(gram.eps))
        rounding = ROUNDING * max(1, learner.rank) * gram.eps
        return max(rounding, sampled_error(sample.matrix, F))

    return min(plain + fitted, key=error)


def fit_scaled(gram: Gram, landmarks: Landmarks) -> FeatureMap:
    """Return plain Nyström with scaled landmarks: D (D W D)⁺ D.

    On centroids of protein, polynomial kernel, c = 240, the error is 3.3e-12, and 5.5e-7 without
    scaling.
    """
    sizes = floats_on_host(diagonal(gram.within(landmarks)))
    D = 1 / positive_or_one(sizes)
    return fit_learner(gram, landmarks, len(landmarks), D)


def sampled_error(G: Array, F: Array) -> float:
    """Return ‖G − F Fᵀ‖ / ‖G‖ from the residual itself, on at most `ERROR_ROWS` rows of it."""
    rows = spaced_indices(G.shape[0], ERROR_ROWS)
    F = in_float64(F)
    part = take(G, rows)
    missed = part - take(F, rows) @ F.T
    scale = norm(part) or 1.0
    return norm(missed) / scale
