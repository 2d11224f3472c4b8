"""k-medoids on a matrix of distances: PAM, and the algorithm of Park and Jun.

Our own, because the fast package for it is GPL and scikit-learn has none. The loss is
the sum of each point's distance to its nearest medoid, as in R's ``pam``.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csc_array

from nysboost.numerics.arrays import Floats, Indices


def pam(distances: Floats, k: int) -> Indices:
    """Partitioning Around Medoids (Kaufman and Rousseeuw 1990): BUILD, then SWAP.

    SWAP makes the best of all k(n−k) exchanges until none lowers the loss. All exchanges
    are evaluated together, in O(n²), with the decomposition of Schubert and Rousseeuw
    (2019): a swap's effect is that of adding the candidate, plus a correction for the
    points that lose their nearest medoid.

    Parameters
    ----------
    distances : array of shape (n, n)
        Symmetric, with zero diagonal.
    k : int
        Number of medoids, at most n.

    Returns
    -------
    array of shape (k,)
        Distinct positions of the medoids.
    """
    medoids = _build(distances, k)
    if k == len(distances):
        return medoids
    tolerance = 64 * np.finfo(np.float64).eps * float(distances.sum(axis=0).min())
    while True:
        change = _swap_changes(distances, medoids)
        change[:, medoids] = np.inf
        out, into = np.unravel_index(np.argmin(change), change.shape)
        if not change[out, into] < -tolerance:
            return medoids
        medoids[out] = into


def _build(distances: Floats, k: int) -> Indices:
    """Add, k times, the medoid that lowers the loss most.

    A new medoid changes the losses only through the points that it is nearest to, fewer and
    fewer of them: all k steps together cost a few n² operations.
    """
    nearest = np.full(len(distances), distances.max())
    loss = distances.sum(axis=0)
    medoids = np.empty(k, dtype=np.intp)
    free = np.ones(len(distances), dtype=bool)
    for i in range(k):
        medoids[i] = np.argmin(np.where(free, loss, np.inf))
        free[medoids[i]] = False
        to_medoid = distances[medoids[i]]
        closer = to_medoid < nearest
        theirs = distances[closer]
        loss -= np.minimum(theirs, nearest[closer, None]).sum(axis=0)
        loss += np.minimum(theirs, to_medoid[closer, None]).sum(axis=0)
        nearest[closer] = to_medoid[closer]
    return medoids


def _swap_changes(distances: Floats, medoids: Indices) -> Floats:
    """Return the change in loss of swapping medoid i for point c, shape (k, n)."""
    k, n = len(medoids), len(distances)
    to_medoids = distances[:, medoids]
    owner = np.argmin(to_medoids, axis=1)
    first = to_medoids[np.arange(n), owner]
    to_medoids[np.arange(n), owner] = np.inf
    second = to_medoids.min(axis=1)
    with_candidate = np.minimum(distances, first[:, None])
    added = with_candidate.sum(axis=0) - first.sum()
    # points of medoid i fall back on the candidate or on their second medoid
    orphaned = np.minimum(distances, second[:, None]) - with_candidate
    members = csc_array((np.ones(n), owner, np.arange(n + 1)), shape=(k, n))
    changes: Floats = added[None, :] + members @ orphaned
    return changes


def park_jun(distances: Floats, k: int, max_iter: int = 300) -> Indices:
    """Cluster by the simple and fast k-medoids of Park and Jun (2009).

    The k points with the smallest v_j = Σ_i d_ij / Σ_l d_il start as medoids; then, in
    turn, points join their nearest medoid and each cluster takes its best medoid, until
    the loss stays the same.

    Parameters
    ----------
    distances : array of shape (n, n)
        Symmetric, with zero diagonal.
    k : int
        Number of medoids, at most n.
    max_iter : int
        Rounds at most; the loss falls in each, so this is a guard against rounding.

    Returns
    -------
    array of shape (k,)
        Distinct positions of the medoids.
    """
    totals = distances.sum(axis=1)
    centrality = (distances / np.where(totals > 0, totals, 1.0)[:, None]).sum(axis=0)
    medoids = np.argsort(centrality, kind="stable")[:k]
    loss = np.inf
    for _ in range(max_iter):
        owner = np.argmin(distances[:, medoids], axis=1)
        owner[medoids] = np.arange(k)  # a medoid owns itself, also among duplicates
        new_loss = float(distances[np.arange(len(distances)), medoids[owner]].sum())
        if not new_loss < loss:
            break
        loss = new_loss
        medoids = np.array([_cluster_medoid(distances, owner == i) for i in range(k)])
    return medoids


def _cluster_medoid(distances: Floats, members: np.ndarray[tuple[int], np.dtype[np.bool]]) -> int:
    where = np.flatnonzero(members)
    within = distances[np.ix_(where, where)].sum(axis=0)
    return int(where[np.argmin(within)])
