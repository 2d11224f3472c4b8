"""Block-Nyström: the mean of several small Nyström approximations.

Garg and Dereziński (2025, arXiv:2506.17556): for the same work, several small approximations
estimate the tail of a slowly decaying spectrum better than a large one. They serve as a
preconditioner, or in ridge regression, where the tail matters more than the largest eigenvalues.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.features.feature_map import Mixture, fit_learner
from nysboost.gram import Gram
from nysboost.methods.leverage import recursive_scores


def block_nystrom(gram: Gram, q: int, m: int, rng: Generator) -> Mixture:
    """Return K̂ = (1/q) Σ_b C_b W_b⁺ C_bᵀ over q blocks of m columns each.

    Every block is drawn independently by ridge leverage scores, so a column may be in several
    blocks. Inverting q small W costs q m³ instead of (q m)³. The scores take about 2 n m kernel
    values.
    """
    rows, probabilities = recursive_scores(gram, m, rng)
    learners = []
    for _ in range(q):
        block = rng.choice(rows, size=m, replace=False, p=probabilities)
        landmarks = gram.landmarks(block)
        learner = fit_learner(gram, landmarks, m)
        learners.append(learner)

    weights = np.full(q, 1 / q)
    return Mixture(tuple(learners), weights)
