"""Columns in rounds: each round is drawn by what the columns before it leave unexplained.

The first round is uniform. In each later one column j is drawn with a probability
proportional to ‖e_j‖², the squared norm of its residual:

- *exact* (Deshpande, Rademacher, Vempala and Wang 2006): E = G − Q Qᵀ G, with Q an orthonormal
  basis of the columns so far, at a cost of all n² entries in each round;
- *partial* (Kumar, Mohri and Talwalkar 2012, Figure 4): from the columns so far alone, as the
  rows of C − C W_k⁺ W, at a cost that grows with n, not n².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from nysboost.boosting.learner import fit_learner
from nysboost.gram import Gram, Landmarks
from nysboost.methods.whole import refuse_large, strips
from nysboost.numerics.arrays import Floats, Indices, namespace, row_blocks, to_host
from nysboost.numerics.linalg import range_basis

ROUNDS = 5
"""As many as the cost allows: on Pendigits ten rounds gave the same error as five, to 2 %."""

Residuals: TypeAlias = Callable[[Gram, Indices], Floats]
"""(gram, columns so far) ↦ the squared residual norm of each of the n columns."""


def adaptive(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose columns in five rounds by the exact residual of all columns (all of G)."""
    refuse_large(gram, "adaptive")
    return gram.landmarks(in_rounds(gram, equal_parts(c, ROUNDS), exact_residuals, rng))


def adaptive_partial(gram: Gram, c: int, rng: np.random.Generator) -> Landmarks:
    """Choose columns in five rounds by the residual of the rows in the columns seen so far."""
    return gram.landmarks(in_rounds(gram, equal_parts(c, ROUNDS), partial_residuals, rng))


def in_rounds(
    gram: Gram, sizes: Sequence[int], residuals: Residuals, rng: np.random.Generator
) -> Indices:
    """Return distinct columns: the first round uniform, the others by the residuals."""
    chosen = rng.choice(gram.n, size=sizes[0], replace=False)
    for size in sizes[1:]:
        chosen = np.append(chosen, draw(residuals(gram, chosen), chosen, size, rng))
    return chosen


def exact_residuals(gram: Gram, chosen: Indices) -> Floats:
    """Return ‖(I − QQᵀ) g_j‖² for every column, with Q a basis of the chosen ones."""
    Q, _ = range_basis(gram.cross(slice(None), gram.landmarks(chosen)))
    xp, norms = namespace(Q), []
    for strip in strips(gram):
        rows = xp.astype(strip, Q.dtype)
        rest = rows - (rows @ Q) @ Q.T  # G is symmetric: its rows are its columns
        norms.append(to_host(xp.sum(rest * rest, axis=1)))
    return np.concatenate(norms)


def partial_residuals(gram: Gram, chosen: Indices) -> Floats:
    """Return the squared norm of each row of C − C W_k⁺ W, with k half of the columns.

    At full rank it would vanish; the paper leaves the choice of a rank below it open.
    """
    landmarks = gram.landmarks(chosen)
    P = fit_learner(gram, landmarks, max(1, len(chosen) // 2)).projection
    across = P @ (P.T @ gram.within(landmarks))
    xp, norms = namespace(P), []
    for block in row_blocks(gram.n, 16 * len(chosen)):
        C = gram.cross(block, landmarks)
        rest = xp.astype(C - C @ across, xp.float64)
        norms.append(to_host(xp.sum(rest * rest, axis=1)))
    return np.concatenate(norms)


def draw(weights: Floats, taken: Indices, size: int, rng: np.random.Generator) -> Indices:
    """Draw distinct indices that are not taken, in proportion to the weights.

    Where fewer have a positive weight than are wanted, the others are drawn uniformly.
    """
    weights = weights.copy()
    weights[taken] = 0
    positive = int(np.count_nonzero(weights))
    if positive < size:
        free = np.setdiff1d(np.flatnonzero(weights == 0), taken)
        others = rng.choice(free, size=size - positive, replace=False)
        return np.append(np.flatnonzero(weights), others)
    return rng.choice(len(weights), size=size, replace=False, p=weights / weights.sum())


def equal_parts(c: int, rounds: int) -> list[int]:
    """Split c columns into at most this many rounds of nearly equal size, none empty."""
    return [len(part) for part in np.array_split(np.arange(c), min(c, rounds))]
