"""The diagonal of the residual: what an approximation misses of each row, in one pass."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import Learner
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, block_bytes, namespace, row_blocks, to_host
from nysboost.numerics.tolerances import EXHAUSTED, cutoff

WHOLE_DIAGONAL = 2**17
"""Up to so many rows joint looks at the residual's diagonal in full, which takes n·c kernel
values; beyond that on its sample, so that the cost of a fit does not grow with n."""


def residual_diagonal(gram: Gram, learner: Learner) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)| for all rows, and zero where that is rounding.

    Parameters
    ----------
    gram : Gram
        G.
    learner : Learner
        Landmarks Z and a projection P with M = P Pᵀ.

    Returns
    -------
    array of shape (n,)
        On the host, in float64.
    """
    width = 8 * (len(learner.landmarks) + learner.rank)
    floor = cutoff(EXHAUSTED * max(1, learner.rank), gram.eps)
    parts = []
    for block in row_blocks(gram.n, width, block_bytes(learner.projection)):
        F = gram.cross(block, learner.landmarks) @ learner.projection
        reached = to_host(namespace(F).sum(F * F, axis=1)).astype(np.float64)
        whole = to_host(gram.diag(block)).astype(np.float64)
        missing = np.abs(whole - reached)
        parts.append(np.where(missing > floor * whole, missing, 0.0))
    return np.concatenate(parts)
