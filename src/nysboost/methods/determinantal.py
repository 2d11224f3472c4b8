"""Columns drawn by a determinantal point process, which prefers sets of different columns."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.gram import Gram
from nysboost.methods.method_constants import PROPOSALS, SEED_ROWS, STEPS_PER_COLUMN
from nysboost.numerics.arrays import Floats, Indices


def dpp(gram: Gram, c: int, rng: Generator) -> Indices:
    """Sample c columns J with probability proportional to det G[J, J] (Li, Jegelka and Sra 2016).

    A Markov chain of 20 c swaps starts from kernel k-means++. It accepts an exchange with
    probability d' / (d + d'), where d and d' are the determinants before and after.
    """
    start = spread_columns(gram, c, rng)
    return swap_chain(gram, start, STEPS_PER_COLUMN * c, rng)


def spread_columns(gram: Gram, c: int, rng: Generator) -> Indices:
    """Return c columns by k-means++ in the kernel's feature space."""
    most = max(SEED_ROWS, 4 * c)
    rows = np.arange(gram.n)
    if gram.n > most:
        rows = rng.choice(gram.n, size=most, replace=False)

    # squared distances to the nearest column chosen; `free` is 1 for rows that are not chosen
    diag = gram.host_diag(rows)
    size = len(rows)
    nearest = np.full(size, np.inf)
    free = np.ones(size)
    chosen: list[int] = []
    for _ in range(c):
        # a free row, in proportion to its distance; uniformly if it is the first, or if all free
        # rows are equal to columns chosen
        mass = free * nearest
        if not chosen or not mass.any():
            mass = free
        probabilities = mass / mass.sum()
        j = int(rng.choice(size, p=probabilities))
        free[j] = 0
        chosen.append(j)

        # ‖φ_i − φ_j‖² = k_ii − 2 k_ij + k_jj
        newest = rows[[j]]
        block = gram.host_block(rows, newest)
        column = block[:, 0]
        squared = diag - 2 * column + diag[j]
        distance = np.maximum(squared, 0)
        nearest = np.minimum(nearest, distance)
    return rows[chosen]


def swap_chain(gram: Gram, start: Indices, steps: int, rng: Generator) -> Indices:
    """Return the state of the chain after all proposals, starting from distinct columns.

    A multiple of the identity, √eps of the mean diagonal, keeps determinants away from zero.
    """
    diag = gram.host_diag(start)
    mean = float(diag.mean())
    ridge = gram.eps**0.5 * mean or 1.0

    c = len(start)
    inside = start
    for first in range(0, steps, PROPOSALS):
        # the kernel matrix of the state and of a number of proposals
        count = min(PROPOSALS, steps - first)
        proposed = rng.integers(gram.n, size=count)
        both = np.append(inside, proposed)
        distinct, places = np.unique(both, return_inverse=True)
        W = gram.host_block(distinct, distinct)
        identity = np.eye(len(distinct))
        K = W + ridge * identity

        state = places[:c]
        candidates = places[c:]
        state = _swaps(K, state, candidates, rng)
        inside = distinct[state]
    return inside


def _swaps(K: Floats, start: Indices, proposed: Indices, rng: Generator) -> Indices:
    """Propose to replace a random element of the state by each of `proposed`, one by one."""
    # the state, and A = K[inside, inside]⁻¹
    inside = start.copy()
    block = K[np.ix_(inside, inside)]
    inverse = np.linalg.inv(block)
    A = np.asarray(inverse, dtype=np.float64)
    for t in proposed:
        s = int(rng.integers(len(inside)))
        uniform = rng.uniform()
        if t in inside:
            continue

        # with row and column s replaced by b and this corner, the determinant changes by the factor
        # d'/d = A_ss (corner − bᵀA b) + (A b)_s²
        b = K[inside, t]
        corner = K[t, t]
        Ab = A @ b
        schur = max(0.0, corner - b @ Ab)
        ratio = A[s, s] * schur + Ab[s] ** 2

        # accepted with probability d' / (d + d')
        if uniform * (1 + ratio) < ratio:
            A = _exchange(A, s, b, corner)
            inside[s] = t
    return inside


def _exchange(A: Floats, s: int, b: Floats, corner: float) -> Floats:
    """Return the inverse of a matrix with row and column s replaced; A is the old inverse.

    The new row has `corner` at s, and otherwise the entries of `b`.
    """
    # without row and column s: A − A_:s A_s: / A_ss, whose own row and column s are zero
    product = np.outer(A[:, s], A[s])
    without = A - product / A[s, s]

    # block inversion adds v vᵀ / schur, with v = −(without · b) but 1 at s, and the Schur
    # complement corner − bᵀ (without · b)
    v = -(without @ b)
    schur = corner + b @ v
    v[s] = 1.0
    added = np.outer(v, v) / schur
    return np.asarray(without + added)
