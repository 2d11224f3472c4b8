"""Boosting Nyström: Algorithm 1 of Hamm, Lu, Ouyang and Zhang."""

from __future__ import annotations

import numpy as np

from nysboost.gram import Gram
from nysboost.learner import fit_learner
from nysboost.selection import Selector
from nysboost.settings import Settings
from nysboost.trajectory import Trajectory, start
from nysboost.weights import WeightRule


def boost(
    gram: Gram,
    settings: Settings,
    weights: WeightRule,
    selector: Selector,
    rng: np.random.Generator,
) -> Trajectory:
    """Find learners in sequence, each on the columns that the last ones miss.

    Parameters
    ----------
    gram : Gram
        The n×n matrix G.
    settings : Settings
        p, m, k, s, v1, v2 and how V, V1 and V2 are read.
    weights : WeightRule
        X of "XYB-clustering": how learners are weighed in the boosting step.
    selector : Selector
        The clustering method.
    rng : numpy.random.Generator
        Source of all randomness.

    Returns
    -------
    Trajectory
        Its `mixture(rule)` is the strong approximation, step 3.
    """
    sizes = settings.resolve(gram.n)

    # Step 1. Standard Nyström on m uniformly sampled columns; V1 and V2.
    begin = start(gram, sizes, rng)
    pool, learners, candidates = begin.pool, begin.table, []
    learners.append(fit_learner(gram, gram.landmarks(begin.first), sizes.rank))

    # Step 2. Boosting, until there are p learners.
    for i in range(1, sizes.n_learners):
        # (a) weigh the learners found so far
        mu = weights(begin.fit, begin.tune, i)
        # (b) resample the columns of V among those never used
        V = pool.sample(sizes.n_candidates, rng)
        candidates.append(len(V))
        rows = begin.observed if sizes.residual_shape == "columns" else V
        # (c) residual on V
        residual = gram.block(rows, V) - learners.mixture(rows, V, mu)
        # (d) cluster its columns into m groups: the centres are the new columns
        chosen = V[selector(residual, sizes.n_columns, rng)]
        pool.remove(chosen)
        # (e) the weak approximation on them
        learners.append(fit_learner(gram, gram.landmarks(chosen), sizes.rank))

    return Trajectory(tuple(learners.learners), begin.fit, begin.tune, tuple(candidates))
