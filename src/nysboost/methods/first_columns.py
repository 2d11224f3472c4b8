"""Non-uniform choices of the m columns of boosting's first learner."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from nysboost.gram import Gram
from nysboost.kernels.distances import squared_distances
from nysboost.methods.centres import cluster_rows
from nysboost.methods.cholesky import rpcholesky
from nysboost.numerics.arrays import Indices, to_host


def by_pivots(gram: Gram, m: int, rng: Generator) -> Indices:
    """Return the m pivots of "rpcholesky"; if the residual vanishes, the rest are uniform."""
    pivots = rpcholesky(gram, m, rng)
    return _filled(pivots, gram.n, m, rng)


def nearest_to_centres(gram: Gram, m: int, rng: Generator) -> Indices:
    """Return the distinct rows nearest to the m centres of "kmeans"."""
    centres, rows, _ = cluster_rows(gram, m, rng)
    points = gram.rows.take(rows)
    distances = to_host(squared_distances(points, centres.Z))
    places = distances.argmin(axis=0)
    distinct = np.unique(rows[places])
    return _filled(distinct, gram.n, m, rng)


def _filled(columns: Indices, n: int, m: int, rng: Generator) -> Indices:
    """Return these columns and, if there are fewer than m, uniform ones among the others."""
    everything = np.arange(n)
    others = np.setdiff1d(everything, columns)
    missing = m - len(columns)
    rest = rng.choice(others, size=missing, replace=False)
    return np.concatenate([columns, rest])
