"""k-medoids on a matrix of distances: PAM, as in R's ``pam``, and Park and Jun's algorithm."""

from __future__ import annotations

import numpy as np

from nysboost.numerics.arrays import Floats, Indices
from nysboost.numerics.kmeans import MAX_ITER
from nysboost.numerics.linalg import memberships, positive_or_one
from nysboost.numerics.tolerances import EPS


def pam(distances: Floats, k: int) -> Indices:
    """Return the k medoids of PAM (Kaufman and Rousseeuw 1990): BUILD, then SWAP.

    All k(n−k) exchanges of a step are evaluated together, in O(n²), on distances of shape (n, n),
    with the decomposition of Schubert and Rousseeuw (2019).
    """
    medoids = _build(distances, k)
    if k == len(distances):
        return medoids

    # changes of the loss below this are rounding
    least = float(distances.sum(axis=0).min())
    tolerance = 64 * EPS * least
    while True:
        change = _swap_changes(distances, medoids)
        change[:, medoids] = np.inf

        # the best exchange of medoid `out` for point `into`
        best = np.argmin(change)
        out, into = np.unravel_index(best, change.shape)
        if not change[out, into] < -tolerance:
            return medoids
        medoids[out] = into


def _build(distances: Floats, k: int) -> Indices:
    """Add, k times, the medoid that lowers the loss most; all steps cost a few n² operations."""
    n = len(distances)
    nearest = np.full(n, distances.max())
    loss = distances.sum(axis=0)
    medoids = np.empty(k, dtype=np.intp)
    free = np.ones(n, dtype=bool)

    for i in range(k):
        loss_of_free = np.where(free, loss, np.inf)
        best = np.argmin(loss_of_free)
        medoids[i] = best
        free[best] = False

        # the points that this medoid is nearest to change what another would gain
        to_medoid = distances[best]
        closer = to_medoid < nearest
        theirs = distances[closer]
        before = np.minimum(theirs, nearest[closer, None])
        after = np.minimum(theirs, to_medoid[closer, None])
        loss -= before.sum(axis=0)
        loss += after.sum(axis=0)
        nearest[closer] = to_medoid[closer]
    return medoids


def _swap_changes(distances: Floats, medoids: Indices) -> Floats:
    """Return the change in loss of swapping medoid i for point c, shape (k, n)."""
    k = len(medoids)
    n = len(distances)

    # distances from the nearest medoid and from the second
    points = np.arange(n)
    to_medoids = distances[:, medoids]
    owner = np.argmin(to_medoids, axis=1)
    first = to_medoids[points, owner]
    to_medoids[points, owner] = np.inf
    second = to_medoids.min(axis=1)

    # what adding the candidate c gains
    with_candidate = np.minimum(distances, first[:, None])
    added = with_candidate.sum(axis=0) - first.sum()

    # points of medoid i fall back on the candidate or on their second medoid
    without_medoid = np.minimum(distances, second[:, None])
    lost = without_medoid - with_candidate
    members = memberships(owner, np.ones(n), k)
    changes: Floats = members @ lost
    changes += added
    return changes


def park_jun(distances: Floats, k: int) -> Indices:
    """Return k medoids by Park and Jun (2009), from the k smallest v_j = Σ_i d_ij / Σ_l d_il."""
    # the k most central points
    totals = positive_or_one(distances.sum(axis=1))
    relative = distances / totals[:, None]
    order = np.argsort(relative.sum(axis=0), kind="stable")
    medoids = order[:k]

    points = np.arange(len(distances))
    loss = np.inf
    for _ in range(MAX_ITER):
        # every point belongs to its nearest medoid
        to_medoids = distances[:, medoids]
        owner = np.argmin(to_medoids, axis=1)
        owner[medoids] = np.arange(k)  # a medoid owns itself, also among duplicates
        to_own = distances[points, medoids[owner]]
        new_loss = float(to_own.sum())
        if not new_loss < loss:
            break
        loss = new_loss

        # the new medoid of a cluster has the smallest sum of distances in it
        medoids = medoids.copy()
        for i in range(k):
            members = np.flatnonzero(owner == i)
            within = distances[np.ix_(members, members)]
            sums = within.sum(axis=0)
            medoids[i] = members[np.argmin(sums)]
    return medoids
