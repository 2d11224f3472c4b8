"""The joint core: one small matrix M for all landmarks, fitted on a sample of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nysboost.features.feature_map import FeatureMap, features_of
from nysboost.features.nystrom import fit_learner
from nysboost.gram import Gram, Landmarks, Sample, take_sample
from nysboost.numerics.arrays import Array, Indices, like, namespace, take, to_host
from nysboost.numerics.linalg import norms, range_basis, times
from nysboost.numerics.magnitudes import positive_or_one
from nysboost.numerics.tolerances import CANCELLED, NEAR_ROUNDING

ROWS_PER_LANDMARK = 4
"""With fewer sample rows for each landmark the core overfits the sample."""

ERROR_ROWS = 250
"""Rows of the residual from which its norm is estimated where small matrices cancel. Between 250
and 500 the zoo's mean error changes by no more than chance (0.542 to 0.550)."""

ANCHOR = 0.1
"""Weight of the landmarks' own rows in the core's sample: with 0.3 the error is a tenth larger in
sample, with 0.03 larger on other rows of Covertype (1.135e-3 against 1.125e-3)."""


@dataclass(frozen=True, eq=False)
class OptimalCore:
    """The core M = T H Tᵀ that is optimal on a sample, and the products it is made of.

    `Q` (s, r) is a basis of the range of A = k(S, Z), `GQ` (s, r) is G[S, S] Q, `T` (c, r) has A T
    = Q, `H` (r, r) is Qᵀ G Q, and `columns` (r, c) is A in the basis. Q and H include the
    landmarks' own rows.
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
        return OptimalCore(self.Q @ U, self.GQ @ U, T, U.T @ self.H @ U, U.T @ columns)

    def relative_error(self, G: Array, *, single: bool = False) -> float:
        """Return ‖G − Q H Qᵀ‖ / ‖G‖ on the sample: by small matrices, unless these cancel.

        `single` says that GQ has the digits of float32 alone.
        """
        if not single:
            xp, norm = namespace(self.Q), float(norms(G)) or 1.0
            H = self.H / norm
            HN = H @ (self.Q.T @ self.Q)
            loss = 1 - 2 * float(xp.sum(H * (self.Q.T @ self.GQ))) / norm + float(xp.sum(HN * HN.T))
            if loss > CANCELLED:
                return float(np.sqrt(loss))
        return relative_error(G, self.Q @ _square_root(self.H))


def optimal_core(
    A: Array, times_gram: Callable[[Array], Array], W: Array | None = None
) -> OptimalCore:
    """Return the core that is optimal on a sample, extended by the landmarks if W is given.

    `A` = k(S, Z) has shape (s, c), `times_gram` is Q ↦ G[S, S] Q, and `W` = k(Z, Z) (c, c).
    Without the landmarks the core can be large where the sample has no rows.
    """
    xp, s = namespace(A), A.shape[0]
    stacked = A if W is None else xp.concat([A, ANCHOR * W])
    Q, T = _scaled_range_basis(stacked)
    columns = Q.T @ xp.astype(stacked, Q.dtype, copy=False)
    rows = Q[:s, :]
    GQ = times_gram(rows)
    H = rows.T @ GQ
    if W is not None:
        points = ANCHOR * Q[s:, :]
        A, W = xp.astype(A, Q.dtype), xp.astype(W, Q.dtype)
        across = (rows.T @ A) @ points
        H = H + across + across.T + points.T @ (W @ points)
    return OptimalCore(rows, GQ, T, (H + H.T) / 2, columns)


def _square_root(H: Array) -> Array:
    """Return Y with Y Yᵀ = H for H positive semidefinite up to rounding."""
    xp = namespace(H)
    eigenvalues, Y = xp.linalg.eigh(H)
    root: Array = Y * xp.sqrt(xp.where(eigenvalues > 0, eigenvalues, xp.zeros_like(eigenvalues)))
    return root


def _scaled_range_basis(A: Array) -> tuple[Array, Array]:
    """Return Q, orthonormal on the range of A, and T with A T = Q, from scaled columns."""
    mantissas, exponents = np.frexp(to_host(norms(A, axis=0)))
    units = like(np.where(mantissas > 0, np.ldexp(0.5, exponents), 1.0), A)
    Q, T = range_basis(A / units)
    return Q, T / namespace(A).astype(units, T.dtype)[:, None]


def project_sample(
    sample: Sample, landmarks: Landmarks, rows: Indices | None = None, *, single: bool = False
) -> OptimalCore:
    """Return the optimal core of landmarks on a sample, or on `rows` of it, by position.

    Landmarks that are points are added with weight `ANCHOR`. `single` multiplies by G in float32,
    for errors above `SINGLE`.
    """
    rows = None if rows is not None and len(rows) == len(sample) else rows  # no copy of all rows
    A = sample.gram.cross(slice(None) if rows is None else rows, landmarks)
    G = sample.single if single else sample.matrix
    G = G if rows is None else take(take(G, rows), rows, axis=1)
    W = sample.gram.within(landmarks) if landmarks.indices is None else None
    return optimal_core(A, lambda Q: times(G, Q), W)


# Approximations on a sample, and their errors


def fit_core(sample: Sample, landmarks: Landmarks, rows: Indices | None = None) -> FeatureMap:
    """Return K̂ = C M Cᵀ with M = A⁺ G[S, S] A⁺ᵀ and A = k(S, Z): positive semidefinite.

    On the sample, or on `rows` of it, no M gives a smaller ‖G − A M Aᵀ‖; the cost does not depend
    on n.
    """
    return _make_learner(sample, landmarks, project_sample(sample, landmarks, rows))


def core_on(gram: Gram, landmarks: Landmarks, row_cap: int, rng: np.random.Generator) -> FeatureMap:
    """Return the joint approximation on given landmarks, from `row_cap` rows or four for each."""
    sample = take_sample(gram, max(row_cap, ROWS_PER_LANDMARK * len(landmarks)), rng)
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
    core = project_sample(sample, landmarks, single=single) if core is None else core
    learner = _make_learner(sample, landmarks, core)
    G = sample.single if single else sample.matrix
    return Fit(learner, core.relative_error(G, single=single))


def _make_learner(sample: Sample, landmarks: Landmarks, core: OptimalCore) -> FeatureMap:
    projection = like(core.projection, sample.gram.rows.template)
    return FeatureMap(sample.gram.kernel, landmarks, projection)


def select_best(sample: Sample, *fits: Fit) -> FeatureMap:
    """Return the approximation with the smallest error on the sample, plain Nyström among them."""
    if min(fit.error for fit in fits) < NEAR_ROUNDING:
        learners = [fit.learner for fit in fits]
        learners += [fit_scaled(sample.gram, learner.landmarks) for learner in learners]
        eps = sample.gram.eps
        features = (features_of(sample.gram, learner.round_to(eps)) for learner in learners)
        errors = (relative_error(sample.matrix, F) for F in features)
        fits = tuple(map(Fit, learners, errors))
    return min(fits, key=lambda fit: fit.error).learner


def fit_scaled(gram: Gram, landmarks: Landmarks) -> FeatureMap:
    """Return plain Nyström, with landmarks in units of their own size: (D W D)⁺ between two D.

    On centroids of protein, polynomial kernel, c = 240, the error is 3.3e-12, and 5.5e-7 without.
    """
    W = gram.within(landmarks)
    sizes = to_host(namespace(W).linalg.diagonal(W)).astype(np.float64)
    return fit_learner(gram, landmarks, len(landmarks), 1 / positive_or_one(sizes))


def relative_error(G: Array, F: Array) -> float:
    """Return ‖G − F Fᵀ‖ / ‖G‖ from the residual itself, on at most `ERROR_ROWS` rows of it."""
    xp = namespace(F)
    F = xp.astype(F, xp.float64, copy=False)
    rows = np.unique(np.linspace(0, G.shape[0] - 1, ERROR_ROWS).astype(np.intp))
    part = take(G, rows)
    return float(norms(part - take(F, rows) @ F.T)) / (float(norms(part)) or 1.0)
