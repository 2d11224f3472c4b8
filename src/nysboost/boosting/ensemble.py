"""Ensemble Nyström (Kumar, Mohri and Talwalkar 2009; Section 2.3 of the paper)."""

from __future__ import annotations

import numpy as np

from nysboost.boosting.learner import fit_learner
from nysboost.boosting.trajectory import Trajectory, start
from nysboost.gram import Gram
from nysboost.settings import Settings


def ensemble(gram: Gram, settings: Settings, rng: np.random.Generator) -> Trajectory:
    """Fit p learners on columns sampled uniformly, none of them twice.

    Parameters
    ----------
    gram : Gram
        The n×n matrix G.
    settings : Settings
        p, m, k, v1 and v2.
    rng : numpy.random.Generator
        Source of all randomness.

    Returns
    -------
    Trajectory
        Its `mixture(rule)` is Σ_i μ_i G_i under uniform, exponential or ridge weights.
    """
    sizes = settings.resolve(gram.n, boosted=False)
    columns, pool, found = start(gram, sizes, rng)
    gram = found.sample.gram
    found.table.append(fit_learner(gram, gram.landmarks(columns), sizes.rank))
    for _ in range(1, sizes.n_learners):
        columns = pool.draw(sizes.n_columns, rng)
        found.table.append(fit_learner(gram, gram.landmarks(columns), sizes.rank))
    return Trajectory(found)
