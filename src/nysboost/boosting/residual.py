"""The diagonal of the residual: what an approximation misses of each row, in one pass."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import Learner
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats, Indices, block_bytes, namespace, row_blocks, to_host
from nysboost.numerics.tolerances import cutoff

WHOLE_DIAGONAL = 2**17
"""Up to so many rows the residual's diagonal is looked at in full, n·c kernel values; beyond
that at a sample, so that the cost of fitting does not grow with n."""


def residual_diagonal(gram: Gram, learner: Learner, rows: Indices) -> Floats:
    """Return |k(x, x) − k(x, Z) M k(Z, x)| for the rows, zero where it is rounding, on the host."""
    width = 8 * (len(learner.landmarks) + learner.rank)
    floor = 16 * cutoff(max(1, learner.rank), gram.eps)
    parts = []
    for block in row_blocks(len(rows), width, block_bytes(learner.projection)):
        F = learner.features(gram, rows[block])
        reached = to_host(namespace(F).sum(F * F, axis=1)).astype(np.float64)
        whole = to_host(gram.diag(rows[block])).astype(np.float64)
        missing = np.abs(whole - reached)
        parts.append(np.where(missing > floor * whole, missing, 0.0))
    return np.concatenate(parts)
