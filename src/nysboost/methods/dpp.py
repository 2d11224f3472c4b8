"""Columns that repel each other: a determinantal point process of fixed size."""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram, Landmarks
from nysboost.numerics.arrays import Floats, Indices, floats_on_host

STEPS_PER_COLUMN = 20
"""Proposals for each column: on Pendigits the error no longer falls after about ten."""

PROPOSALS = 64
"""Proposals whose kernel values are evaluated at once."""

SEED_ROWS = 2**13
"""k-means++ looks at this many rows, drawn uniformly, where there are more."""


def dpp(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Sample c columns J with probability proportional to det G[J, J].

    Li, Jegelka and Sra (2016), "Fast DPP sampling for Nyström with application to kernel
    methods": a Markov chain of swaps, begun at kernel k-means++. A step proposes to exchange
    one column of J for one of all n, and does so with probability d' / (d + d'), with d and d'
    the determinants before and after. The steps number 20 c; the cost does not depend on n
    beyond the first columns.
    """
    return gram.landmarks(swap_chain(gram, spread_columns(gram, c, rng), STEPS_PER_COLUMN * c, rng))


def spread_columns(gram: Gram, c: int, rng: np.random.Generator) -> Indices:
    """Return c columns by k-means++ in the kernel's feature space.

    Each is drawn in proportion to its squared distance k(x, x) − 2k(x, z) + k(z, z) from the
    nearest column z before it.
    """
    rows = np.arange(gram.n)
    if gram.n > max(SEED_ROWS, 4 * c):
        rows = rng.choice(gram.n, size=max(SEED_ROWS, 4 * c), replace=False)
    diag = floats_on_host(gram.diag(rows))
    nearest = np.full(len(rows), np.inf)
    free = np.ones(len(rows), dtype=bool)
    chosen = np.empty(c, dtype=np.intp)
    for i in range(c):
        mass = np.where(free, np.minimum(nearest, 1.0) if i == 0 else nearest, 0.0)
        share = mass / mass.sum() if mass.sum() > 0 else free / free.sum()
        chosen[i] = rng.choice(len(rows), p=share)
        free[chosen[i]] = False
        column = floats_on_host(gram.block(rows, rows[chosen[i : i + 1]]))[:, 0]
        distance = diag - 2 * column + diag[chosen[i]]
        nearest = np.minimum(nearest, np.maximum(distance, 0))
    return rows[chosen]


def swap_chain(gram: Gram, start: Indices, steps: int, rng: np.random.Generator) -> Indices:
    """Return the state of the chain after so many proposals, from distinct columns.

    A small multiple of the identity, √eps of the mean diagonal, keeps determinants away from
    zero where G has a rank below c.
    """
    ridge = float(np.sqrt(gram.eps)) * float(np.mean(floats_on_host(gram.diag(start)))) or 1.0
    inside = start
    for first in range(0, steps, PROPOSALS):
        proposed = rng.integers(gram.n, size=min(PROPOSALS, steps - first))
        places, local = np.unique(np.append(inside, proposed), return_inverse=True)
        K = floats_on_host(gram.block(places, places)) + ridge * np.eye(len(places))
        inside = places[_swaps(K, local[: len(inside)], local[len(inside) :], rng)]
    return inside


def _swaps(K: Floats, inside: Indices, proposed: Indices, rng: np.random.Generator) -> Indices:
    """Propose to exchange a random place of `inside` for each of `proposed`, one by one."""
    inside = inside.copy()
    A: Floats = np.linalg.inv(K[np.ix_(inside, inside)]).astype(np.float64)
    for t in proposed:
        s, uniform = int(rng.integers(len(inside))), rng.uniform()
        if t in inside:
            continue
        b = K[inside, t]
        ratio = _ratio(A, s, b, float(K[t, t]))
        if uniform * (1 + ratio) < ratio:
            A = _exchanged(A, s, b, float(K[t, t]))
            inside[s] = t
    return inside


def _ratio(A: Floats, s: int, b: Floats, corner: float) -> float:
    """Return by what the determinant grows when row and column s become b, with this corner.

    With A the inverse of the matrix it is A_ss (corner − bᵀAb) + (Ab)_s².
    """
    u = A @ b
    return float(A[s, s] * max(0.0, corner - b @ u) + u[s] ** 2)


def _exchanged(A: Floats, s: int, b: Floats, corner: float) -> Floats:
    """Return the inverse after row and column s of the matrix became b, with this corner."""
    without = A - np.outer(A[:, s], A[s]) / A[s, s]
    change = -(without @ b)
    rest = corner + b @ change
    change[s] = 1.0
    exchanged: Floats = without + np.outer(change, change) / rest
    return exchanged
