"""CUR: columns and rows, drawn separately, and a small matrix between them.

A kernel matrix is symmetric, but C U R with different rows I and columns J is not. So K̂ is its
symmetric part ½ (C U R + (C U R)ᵀ), which is at least as near to G. It has the common form k(X, Z)
M k(Z, Y) with landmarks Z = J ∪ I and M = ½ [[0, U], [Uᵀ, 0]].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from scipy.sparse import coo_array, vstack

from nysboost.features.feature_map import FeatureMap, Mixture
from nysboost.gram import Gram, Landmarks, pool
from nysboost.methods.adaptive import strips
from nysboost.methods.in_sample import InSample
from nysboost.methods.method_constants import ABOVE_NOISE, CONVERGED, FALL
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    in_float64,
    like,
    namespace,
)
from nysboost.numerics.linalg import max_abs, norms, range_basis
from nysboost.numerics.tolerances import CROSSING

Choice: TypeAlias = Callable[[Gram, int, Generator], Indices]
Core: TypeAlias = Callable[[Gram, Landmarks, Landmarks], Array]
"""(gram, columns, rows) ↦ U."""


@dataclass(frozen=True)
class CUR:
    """CUR with half of the c columns as columns J, and half as rows I.

    Parameters
    ----------
    choose : callable
        Chooses columns, and rows: `rls` or `uniform`.
    core : callable
        (gram, columns, rows) ↦ U: `project_core`, U = C⁺ G R⁺, or `invert_intersection`,
        U = G[I, J]⁺.
    """

    choose: Choice
    core: Core

    def __call__(self, gram: Gram, c: int, rng: Generator) -> Mixture:
        """Return K̂ = ½ (C U R + (C U R)ᵀ) as the difference of two feature maps.

        With the singular value decomposition U = Σ σ l rᵀ,
        M = Σ ¼ σ (l, r)(l, r)ᵀ − Σ ¼ σ (l, −r)(l, −r)ᵀ.
        """
        # C = G[:, J], R = G[I, :] and U
        n_rows = max(1, c // 2)
        n_columns = c - c // 2
        J = self.choose(gram, n_columns, rng)
        I = self.choose(gram, n_rows, rng)  # noqa: E741
        columns = gram.landmarks(J)
        rows = gram.landmarks(I)
        U = self.core(gram, columns, rows)

        # √σ l / 2 and √σ r / 2
        xp = namespace(U)
        left, singular, right = xp.linalg.svd(U, full_matrices=False)
        roots = xp.sqrt(singular)
        L = left * roots / 2
        R = right.T * roots / 2

        # (l, r) with the weight 1, and (l, −r) with the weight −1
        landmarks = pool([columns, rows])
        signs = np.array([1.0, -1.0])
        maps = []
        for sign in signs.tolist():
            signed_R = sign * R
            both = xp.concat([L, signed_R])
            projection = like(both, gram.rows.template)
            learner = FeatureMap(gram.kernel, landmarks, projection)
            maps.append(learner)
        return Mixture(tuple(maps), signs)


def project_core(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = C⁺ G R⁺, the best U for these columns and rows, from all of G."""
    # C⁺ = T Qᵀ and, with Rᵀ in place of C, R⁺ = V Sᵀ
    everything = slice(None)
    C = gram.cross(everything, columns)
    Q, T = range_basis(C)
    R_transposed = gram.cross(everything, rows)
    V, S = range_basis(R_transposed)

    # U = T QᵀGV Sᵀ
    GV = gram.times(V)
    inner = Q.T @ GV
    return T @ inner @ S.T


def invert_intersection(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = G[I, J]⁺ without small singular values, or without rounding errors."""
    crossing = in_float64(gram.cross(rows.columns, columns))
    svd = namespace(crossing).linalg.svd
    left, singular, right = svd(crossing, full_matrices=False)

    # k singular values stay
    values = floats_on_host(singular)
    largest_entry = max_abs(gram.diag(rows.columns))
    rounding = len(rows) * gram.eps * largest_entry
    smallest = max(CROSSING * values[0], rounding)
    k = np.count_nonzero(values > smallest)

    # V_k Σ_k⁻¹ U_kᵀ
    V_k = right[:k, :].T
    U_k = left[:, :k]
    scaled = V_k / singular[:k]
    inverse: Array = scaled @ U_k.T
    return inverse


# Iterated robust CUR


def robust_cur(gram: Gram, c: int, rng: Generator) -> InSample:
    """Return the low-rank part L = F Fᵀ of G = L + S, and the entries of the sparse S.

    Iterated robust CUR (Cai, Hamm, Huang, Li and Wang 2021, Algorithm 1) of a symmetric matrix. In
    each round, c new columns are drawn. Their entries that differ from L by more than a threshold ζ
    are replaced by those of L, and the next L is C W_r⁺ Cᵀ. Then ζ is reduced.
    """
    most = max(1, c // 3)  # eigenvalues that may stand out
    F = np.zeros((gram.n, 0))
    zeta = np.inf
    missing = np.inf
    everything = np.arange(gram.n)
    while missing > CONVERGED and zeta > 0:
        # fresh columns J, and the first threshold ζ
        J = rng.choice(gram.n, size=c, replace=False)
        given = gram.host_block(everything, J)
        largest = max_abs(given)
        zeta = min(zeta, largest)

        # S: entries of the columns that L = F Fᵀ does not explain
        L = F @ F[J].T
        deviations = np.abs(given - L)
        is_wrong = deviations > zeta
        C = np.where(is_wrong, L, given)

        # the next L = C W_r⁺ Cᵀ
        floor = ABOVE_NOISE * zeta * c**0.5
        root = _inverse_root(C[J], most, floor)
        F = C @ root
        L = F @ F[J].T

        # the share of the other entries that it misses
        rest = np.where(is_wrong, 0.0, given - L)
        scale = float(norms(C)) or 1.0
        missing = float(norms(rest)) / scale

        # all eigenvalues that may stand out are found
        rank = F.shape[1]
        if rank == most:
            break
        zeta *= FALL

    # S on all entries, and F where the data are
    corrupted = _find_wrong_entries(gram, F, zeta)
    first = J[:1]
    template = gram.block(first, first)
    features = like(F, template)
    signs = np.ones(F.shape[1])
    return InSample(gram, features, signs, corrupted=corrupted)


def _inverse_root(W: Floats, most: int, floor: float) -> Floats:
    """Return U_r Λ_r^(−½) of W = U Λ Uᵀ, for at most `most` eigenvalues above a floor."""
    symmetric = (W + W.T) / 2
    rising, U = np.linalg.eigh(symmetric)

    # the last r are the largest
    above = int(np.count_nonzero(rising > floor))
    r = min(most, above)
    first = len(W) - r
    U_r = U[:, first:]
    roots = np.sqrt(rising[first:])
    return np.asarray(U_r / roots)


def _find_wrong_entries(gram: Gram, F: Floats, threshold: float) -> coo_array:
    """Return the entries of G − F Fᵀ above the threshold, as a sparse array."""
    parts = []
    start = 0
    for strip in strips(gram):
        stop = start + strip.shape[0]
        given = floats_on_host(strip)
        L = F[start:stop] @ F.T
        rest = given - L
        is_wrong = np.abs(rest) > threshold
        wrong = np.where(is_wrong, rest, 0.0)
        parts.append(coo_array(wrong))
        start = stop
    return vstack(parts, format="coo")
