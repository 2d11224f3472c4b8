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
    steps = STEPS_PER_COLUMN * c
    return swap_chain(gram, start, steps, rng)


def spread_columns(gram: Gram, c: int, rng: Generator) -> Indices:
    """Return c columns by k-means++ in the kernel's feature space."""
    most = max(SEED_ROWS, 4 * c)
    rows = np.arange(gram.n)
    if gram.n > most:
        rows = rng.choice(gram.n, size=most, replace=False)

    n_rows = len(rows)
    diag = gram.host_diag(rows)
    nearest = np.full(n_rows, np.inf)  # squared distance to the nearest column chosen
    free = np.ones(n_rows, dtype=bool)
    chosen: list[int] = []
    for _ in range(c):
        # a free row, in proportion to its distance; the first uniformly
        mass = np.where(free, nearest, 0.0)
        if not chosen or mass.sum() == 0:  # every free row equals a column chosen
            mass = free.astype(np.float64)
        probabilities = mass / mass.sum()
        j = int(rng.choice(n_rows, p=probabilities))
        free[j] = False
        chosen.append(j)

        # ‖φ_i − φ_j‖² = k_ii − 2 k_ij + k_jj
        newest = rows[[j]]
        column = gram.host_block(rows, newest)[:, 0]
        squared = diag - 2 * column + diag[j]
        distance = np.maximum(squared, 0)
        nearest = np.minimum(nearest, distance)
    return rows[chosen]


def swap_chain(gram: Gram, start: Indices, steps: int, rng: Generator) -> Indices:
    """Return the state of the chain after all proposals, starting from distinct columns.

    A multiple of the identity, √eps of the mean diagonal, keeps determinants away from zero.
    """
    mean = float(gram.host_diag(start).mean())
    ridge = gram.eps**0.5 * mean or 1.0

    c = len(start)
    inside = start
    for first in range(0, steps, PROPOSALS):
        # the kernel matrix of the state and of a number of proposals
        count = min(PROPOSALS, steps - first)
        proposed = rng.integers(gram.n, size=count)
        rows = np.append(inside, proposed)
        distinct, places = np.unique(rows, return_inverse=True)
        W = gram.host_block(distinct, distinct)
        K = W + ridge * np.eye(len(distinct))

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

        # the determinant's factor d'/d when row and column s become b, with this corner
        b = K[inside, t]
        corner = float(K[t, t])
        u = A @ b
        schur = max(0.0, corner - b @ u)
        ratio = A[s, s] * schur + u[s] ** 2

        # accepted with probability d' / (d + d')
        if uniform * (1 + ratio) < ratio:
            A = _exchange(A, s, b, corner)
            inside[s] = t
    return inside


def _exchange(A: Floats, s: int, b: Floats, corner: float) -> Floats:
    """Return the inverse of a matrix with row and column s replaced; A is the old inverse.

    The new row has `corner` at s, and otherwise the entries of `b`.
    """
    # without row and column s
    product = np.outer(A[:, s], A[s])
    without = A - product / A[s, s]

    # with b in their place, and its corner
    change = -(without @ b)
    schur = corner + b @ change
    change[s] = 1.0
    added = np.outer(change, change) / schur
    exchanged: Floats = without + added
    return exchanged
