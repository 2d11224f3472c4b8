"""Boosting Nyström: Algorithm 1 of Hamm, Lu, Ouyang and Zhang."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import fit_learner
from nysboost.boosting.residual import Residual
from nysboost.boosting.rules import Rule
from nysboost.boosting.selectors import Selector
from nysboost.boosting.trajectory import Trajectory, start
from nysboost.gram import Gram
from nysboost.numerics.progress import track
from nysboost.settings import Settings


def boost(
    gram: Gram,
    settings: Settings,
    rule: Rule,
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
    rule : Rule
        X of "XYB-clustering": how learners are combined in the boosting step.
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
    columns, pool, found = start(gram, sizes, rng, whole=rule.needs_whole_columns)
    gram = found.sample.gram
    found.table.append(fit_learner(gram, gram.landmarks(columns), sizes.rank))

    # Step 2. Boosting, until there are p learners.
    candidates = []
    rows = found.observed if rule.needs_whole_columns else found.glanced_at
    at_most = len(pool) if rule.needs_whole_columns else sizes.n_considered
    residual = Residual(found, None if sizes.residual_shape == "square" else rows)
    for i in track(range(1, sizes.n_learners), "boosting step"):
        if len(pool.left_of(residual.considered)) < sizes.n_candidates:
            residual.consider(pool.part(at_most, rng, apart_from=rows), shared=at_most < len(pool))
        # (a) combine the learners found so far
        current = rule.mixture(found, i)
        # (b) resample the columns of V among those never used
        V = pool.sample(sizes.n_candidates, rng, rule.missing(found, current), residual.considered)
        candidates.append(len(V))
        # (c, d) cluster the residual's columns into m groups: the centres are the new columns
        columns = V[selector(residual(current, V), sizes.n_columns, rng)]
        pool.remove(columns)
        # (e) the weak approximation on them
        found.table.append(fit_learner(gram, gram.landmarks(columns), sizes.rank))

    return Trajectory(found, tuple(candidates))
