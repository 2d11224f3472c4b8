"""CUR: columns, rows, and a small matrix between them, drawn apart from each other.

A kernel matrix is symmetric, and C U R with its own rows I and columns J is not. So K̂ is its
symmetric part ½ (C U R + (C U R)ᵀ), which is at least as near to G, and has the common form
k(X, Z) M k(Z, Y) with landmarks Z = J ∪ I and M = ½ [[0, U], [Uᵀ, 0]].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.sparse import coo_array, vstack

from nysboost.features.feature_map import FeatureMap
from nysboost.features.nystrom import Mixture
from nysboost.gram import Gram, Landmarks, pool
from nysboost.methods.adaptive import strips
from nysboost.methods.in_sample import InSample
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, floats_on_host, like, namespace
from nysboost.numerics.linalg import range_basis
from nysboost.numerics.magnitudes import max_abs
from nysboost.numerics.tolerances import CROSSING, cutoff

Choice: TypeAlias = Callable[[Gram, int, np.random.Generator], Landmarks]
Core: TypeAlias = Callable[[Gram, Landmarks, Landmarks], Array]
"""(gram, columns, rows) ↦ U."""


@dataclass(frozen=True)
class CUR:
    """Half of the c columns as columns J, half as rows I, and U between them.

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

    def __call__(self, gram: Gram, c: int, rng: np.random.Generator) -> Mixture:
        """Return K̂ = ½ (C U R + (C U R)ᵀ) as the difference of two feature maps.

        With the singular value decomposition U = Σ σ l rᵀ,
        M = Σ ¼ σ (l, r)(l, r)ᵀ − Σ ¼ σ (l, −r)(l, −r)ᵀ.
        """
        columns = self.choose(gram, c - c // 2, rng)
        rows = self.choose(gram, max(1, c // 2), rng)
        U = self.core(gram, columns, rows)

        # √σ l / 2 and √σ r / 2
        xp = namespace(U)
        left, singular, right = xp.linalg.svd(U, full_matrices=False)
        L = left * xp.sqrt(singular) / 2
        R = right.T * xp.sqrt(singular) / 2

        landmarks = pool([columns, rows])
        template = gram.rows.template
        plus = FeatureMap(gram.kernel, landmarks, like(xp.concat([L, R]), template))
        minus = FeatureMap(gram.kernel, landmarks, like(xp.concat([L, -R]), template))
        return Mixture((plus, minus), np.array([1.0, -1.0]))


def project_core(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = C⁺ G R⁺, the best for these columns and rows, from all of G."""
    (Q, T), (V, S) = (range_basis(gram.cross(slice(None), part)) for part in (columns, rows))
    return T @ (Q.T @ gram.times(V)) @ S.T


def invert_intersection(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = G[I, J]⁺ without its small singular values, or those that are rounding."""
    crossing = gram.cross(rows.columns, columns)
    xp = namespace(crossing)
    left, values, right = xp.linalg.svd(xp.astype(crossing, xp.float64), full_matrices=False)
    rounding = cutoff(len(rows), gram.eps) * max_abs(gram.diag(rows.columns))
    k = int(np.sum(arrays.to_host(values) > max(CROSSING * float(values[0]), rounding)))
    inverse: Array = (right[:k, :].T / values[:k]) @ left[:, :k].T
    return inverse


FALL = 0.8
"""How fast the threshold falls; 0.7 as in the paper's experiments failed at 20 % corruption."""

ABOVE_NOISE = 0.3
"""Eigenvalues of W count from this multiple of threshold·√c on; 0.3 to 0.5 are alike."""

CONVERGED = 1e-4
"""The loop ends when the entries that are not called wrong fit to this relative error."""


def robust_cur(gram: Gram, c: int, rng: np.random.Generator) -> InSample:
    """Return the low-rank part of G = low rank + sparse, and which entries are the sparse one.

    Iterated robust CUR (Cai, Hamm, Huang, Li and Wang 2021) of a symmetric matrix: in each round
    entries of c fresh columns that differ from the low rank L by more than a falling threshold are
    replaced by L's; the next L is C W_r⁺ Cᵀ, with r the eigenvalues of W that stand out.
    """
    everything = np.arange(gram.n)
    F, threshold, missing = np.zeros((gram.n, 0)), np.inf, np.inf
    while missing > CONVERGED and threshold > 0:
        J = rng.choice(gram.n, size=c, replace=False)
        given = floats_on_host(gram.block(everything, J))
        threshold = min(threshold, float(np.abs(given).max()))
        low = F @ F[J].T
        wrong = np.abs(given - low) > threshold
        C = np.where(wrong, low, given)
        eigenvalues, U = np.linalg.eigh((C[J] + C[J].T) / 2)
        most, floor = max(1, c // 3), ABOVE_NOISE * threshold * np.sqrt(c)
        r = min(most, int(np.sum(eigenvalues > floor)))
        F = C @ (U[:, ::-1][:, :r] / np.sqrt(eigenvalues[::-1][:r]))
        scale = float(np.abs(C).max()) or 1.0
        rest = np.where(wrong, 0.0, given - F @ F[J].T) / scale
        missing = float(np.linalg.norm(rest) / (np.linalg.norm(C / scale) or 1.0))
        if r == most:
            break
        threshold *= FALL
    template = gram.block(everything[:1], everything[:1])
    corrupted = _wrong_entries(gram, F, threshold)
    return InSample(gram, like(F, template), np.ones(F.shape[1]), corrupted=corrupted)


def _wrong_entries(gram: Gram, F: Floats, threshold: float) -> coo_array:
    """Return G − F Fᵀ where it is above the threshold, as a sparse array."""
    parts, start = [], 0
    for strip in strips(gram):
        rest = floats_on_host(strip) - F[start : start + strip.shape[0]] @ F.T
        parts.append(coo_array(np.where(np.abs(rest) > threshold, rest, 0.0)))
        start += strip.shape[0]
    return vstack(parts, format="coo")
