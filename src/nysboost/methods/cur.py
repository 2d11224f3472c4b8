"""CUR: columns, rows, and a small matrix between them, drawn apart from each other.

A kernel matrix is symmetric, and C U R with its own rows I and columns J is not. So K̂ is its
symmetric part ½ (C U R + (C U R)ᵀ), which is at least as near to G, and has the common form
k(X, Z) M k(Z, Y) with landmarks Z = J ∪ I and M = ½ [[0, U], [Uᵀ, 0]].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from nysboost.boosting.learner import Learner, Mixture
from nysboost.gram import Gram, Landmarks, pooled
from nysboost.methods.baselines import uniform
from nysboost.methods.leverage import rls
from nysboost.methods.whole import refuse_large, times_gram
from nysboost.numerics.arrays import Array, like, namespace, to_host
from nysboost.numerics.linalg import range_basis
from nysboost.numerics.tolerances import CROSSING, cutoff

Choice: TypeAlias = Callable[[Gram, int, np.random.Generator], Landmarks]
Core: TypeAlias = Callable[[Gram, Landmarks, Landmarks], Array]
"""(gram, columns, rows) ↦ U."""


def cur(choose: Choice, core: Core) -> Callable[[Gram, int, np.random.Generator], Mixture]:
    """Return the method that draws half of its c columns as columns, and half as rows.

    Parameters
    ----------
    choose : callable
        How both are drawn: `rls`, by leverage scores, or `uniform`.
    core : callable
        `projected`, U = C⁺ G R⁺, or `crossed`, U = G[I, J]⁺.
    """

    def run(gram: Gram, c: int, rng: np.random.Generator) -> Mixture:
        columns, rows = choose(gram, c - c // 2, rng), choose(gram, max(1, c // 2), rng)
        U = core(gram, columns, rows)
        xp = namespace(U)
        corner = [like(np.zeros((size, size)), U) for size in U.shape]
        top = xp.concat([corner[0], U / 2], axis=1)
        M = xp.concat([top, xp.concat([U.T / 2, corner[1]], axis=1)])
        return indefinite(gram, pooled([columns, rows]), M)

    return run


def projected(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = C⁺ G R⁺, the best for these columns and rows, from all of G."""
    refuse_large(gram, "cur")
    (Q, T), (V, S) = (range_basis(gram.cross(slice(None), part)) for part in (columns, rows))
    return T @ (Q.T @ times_gram(gram, V)) @ S.T


def crossed(gram: Gram, columns: Landmarks, rows: Landmarks) -> Array:
    """Return U = G[I, J]⁺, from the entries where rows and columns cross alone.

    Small singular values are cut off: they would multiply what C and R leave unexplained. So
    are all of them where nothing but rounding errors of the kernel's size stands at the crossing.
    """
    assert rows.indices is not None
    crossing = gram.cross(rows.indices, columns)
    xp = namespace(crossing)
    left, values, right = xp.linalg.svd(xp.astype(crossing, xp.float64), full_matrices=False)
    rounding = cutoff(len(rows), gram.eps) * float(xp.max(xp.abs(gram.diag(rows.indices))))
    k = int(np.sum(to_host(values) > max(CROSSING * float(values[0]), rounding)))
    inverse: Array = (right[:k, :].T / values[:k]) @ left[:, :k].T
    return inverse


def indefinite(gram: Gram, landmarks: Landmarks, M: Array) -> Mixture:
    """Return k(X, Z) M k(Z, Y) for a symmetric core M that may have negative eigenvalues."""
    xp = namespace(M)
    eigenvalues, V = xp.linalg.eigh((M + M.T) / 2)
    P = V * xp.sqrt(xp.abs(eigenvalues))
    dtype = getattr(xp, gram.dtype.name)
    negative = int(np.sum(to_host(eigenvalues) < 0))  # they come first
    parts = (P[:, negative:], P[:, :negative])
    learners = tuple(Learner(landmarks, xp.astype(part, dtype)) for part in parts)
    return Mixture(learners, np.array([1.0, -1.0]))


cur_leverage = cur(rls, projected)
cur_uniform = cur(uniform, projected)
cross_leverage = cur(rls, crossed)
cross_uniform = cur(uniform, crossed)
