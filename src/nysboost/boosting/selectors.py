"""Selectors: cluster the columns of the residual into m groups, and choose m columns (step 2d)."""

from __future__ import annotations

import reprlib
from typing import Protocol

import numpy as np
from numpy.random import Generator

from nysboost.boosting import kmedoids
from nysboost.numerics.arrays import Array, Floats, Indices, Numbers, epsilon, is_array, to_host
from nysboost.numerics.kmeans import AT_ONCE, MAX_ITER, TRIALS, TRIALS_AT_ONCE
from nysboost.numerics.linalg import memberships
from nysboost.numerics.tolerances import EPS, SUMMED


class Selector(Protocol):
    """Chooses the columns of the next learner.

    See Also
    --------
    approximate : accepts a selector as its setting `selector`, or by name in the name of a method.

    Examples
    --------
    Any function of that form is a selector; this one takes the columns that are missed most:

    >>> import numpy as np, nysboost as nb
    >>> def largest(residual, m, rng):
    ...     return np.argsort(-np.linalg.norm(residual, axis=0))[:m]
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> run = nb.approximate(X, "URB-mean", selector=largest, n_learners=3, n_columns=9)
    >>> len(run.learners)
    3
    """

    def __call__(self, residual: Array, m: int, rng: Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""


def choose(selector: Selector, residual: Array, m: int, rng: Generator) -> Indices:
    """Return the selector's choice, or raise if it is not m distinct column positions."""
    chosen = selector(residual, m, rng)
    return as_positions(chosen, m, residual.shape[1], "A selector", selector)


def as_positions(chosen: object, m: int, n: int, role: str, function: object) -> Indices:
    """Return a user's choice, or raise if it is not m distinct whole numbers below n."""
    given = as_numpy(chosen)
    if given.shape == (m,) and given.dtype.kind in "iu":
        positions = given[(given >= 0) & (given < n)]
        if len(np.unique(positions)) == m:
            return positions.astype(np.intp)

    raise ValueError(
        f"{role} returns m = {m} distinct whole numbers from 0 to {n - 1}, but "
        f"{describe(function)} returned {reprlib.repr(chosen)}."
    )


def as_numpy(returned: object) -> Numbers:
    """Return a user's result as an array on the host, or an empty array if it cannot be one."""
    if is_array(returned):
        return to_host(returned)
    try:
        return np.asarray(returned)
    except ValueError:  # sequences of unequal lengths
        return np.array(None)


def describe(function: object) -> str:
    """Return the name of a user's function, or the text form of another object."""
    return getattr(function, "__name__", None) or repr(function)


# The clusterings of the paper


def kmeans_columns(residual: Array, m: int, rng: Generator) -> Indices:
    """k-means, then the column nearest to each centre; if it is taken, the next nearest."""
    squared, rounding = _squared_distances(residual)
    to_centres = kmeans_of_distances(squared, m, rng)

    # the members of a cluster of two are equally near: take the first, on every machine
    chosen = _nearest(to_centres, rounding)

    # a column serves the first of the centres that are nearest to it
    _, served = np.unique(chosen, return_index=True)
    others = np.setdiff1d(np.arange(m), served)
    to_centres[:, chosen] = np.inf
    for centre in others:
        distances = to_centres[[centre]]
        (next_nearest,) = _nearest(distances, rounding)
        chosen[centre] = next_nearest
        to_centres[:, next_nearest] = np.inf
    return chosen


def pam_columns(residual: Array, m: int, rng: Generator) -> Indices:  # noqa: ARG001
    """k-medoids by Partitioning Around Medoids, BUILD then SWAP, as R's ``pam``."""
    distances = _distances(residual)
    return kmedoids.pam(distances, m)


def park_jun_columns(residual: Array, m: int, rng: Generator) -> Indices:  # noqa: ARG001
    """k-medoids by the simple and fast algorithm of Park and Jun (2009)."""
    distances = _distances(residual)
    return kmedoids.park_jun(distances, m)


# Distances of the residual's columns


def _squared_distances(residual: Array) -> tuple[Floats, float]:
    """Return the s×s squared distances of the columns, and their rounding level."""
    products: Floats = to_host(residual.T @ residual)
    norms = products.diagonal().copy()

    # the level of rounding in sums of products
    relative = max(len(norms) * EPS, SUMMED * epsilon(residual))
    rounding = relative * float(norms.max())

    # ‖a‖² + ‖b‖² − 2⟨a, b⟩, in place: fresh memory costs as much as the arithmetic
    squared = products
    squared *= -2
    squared += norms
    squared += norms[:, None]

    # what rounding leaves of zeros: few, mostly the diagonal
    vanishing = np.flatnonzero(squared <= rounding)
    squared.ravel()[vanishing] = 0
    return squared, rounding


def _distances(residual: Array) -> Floats:
    """Return the s×s Euclidean distances of the columns, as multiples of one power of two.

    Sums of them are exact, so equally good medoids tie on every machine.
    """
    squared, _ = _squared_distances(residual)
    distances = np.sqrt(squared, dtype=np.float64)

    # multiples of 2⁻³² of the largest
    _, exponent = np.frexp(distances.max())
    step = 2.0 ** (exponent - 32)
    return np.asarray(np.round(distances / step) * step)


def _nearest(to_centres: Floats, rounding: float) -> Indices:
    """Return the column nearest to each centre; of columns that tie up to rounding, the first."""
    least = to_centres.min(axis=1, keepdims=True)
    is_nearest = to_centres <= least + rounding
    return np.asarray(is_nearest.argmax(axis=1))


# k-means by distances alone, at n² operations a round


def kmeans_of_distances(squared: Floats, k: int, rng: Generator) -> Floats:
    """Group n points round k centres: greedy k-means++, then Lloyd's rounds to their end.

    The squared distances (n, n), rough if in float32, give those from the centres, (k, n).
    """
    to_centres = squared[seeds(squared, k, rng)]
    owner = np.full(len(squared), -1)
    for _ in range(MAX_ITER):
        nearest = np.argmin(to_centres, axis=0)
        if np.array_equal(nearest, owner):
            break
        owner = nearest
        to_centres = _distances_from_means(squared, owner, to_centres)
    return to_centres


def seeds(squared: Floats, k: int, rng: Generator) -> Indices:
    """Return k points by greedy k-means++ (Arthur, Vassilvitskii 2007), each the best of `TRIALS`.

    Of equally good points the first is taken; of rough distances `AT_ONCE` seeds share one draw.
    """
    n = len(squared)
    together = 1
    trials = TRIALS
    if squared.dtype == np.float32:
        together = AT_ONCE
        trials = TRIALS_AT_ONCE

    # losses that differ by less are equal
    relative = max(n * EPS, SUMMED * epsilon(squared))
    rounding = n * relative * float(squared.max())

    chosen = np.empty(k, dtype=np.intp)
    chosen[0] = rng.integers(n)
    nearest = squared[chosen[0]]
    ones = np.ones(n, squared.dtype)

    for first in range(1, k, together):
        # points are drawn in proportion to their squared distance from the seeds
        mass = nearest.cumsum()
        uniform = rng.random(trials)
        drawn = mass.searchsorted(uniform * mass[-1], side="right")
        drawn = np.minimum(drawn, n - 1)  # no mass is left if few points are distinct
        drawn.sort()

        # and those that lower the loss most become seeds
        closer = squared[drawn]
        last = min(first + together, k)
        for i in range(first, last):
            closer = np.minimum(closer, nearest)
            losses = closer @ ones
            best = np.argmax(losses <= losses.min() + rounding)
            chosen[i] = drawn[best]
            nearest = closer[best]
    return chosen


def _distances_from_means(squared: Floats, owner: Indices, before: Floats) -> Floats:
    """Return the squared distances from the groups' means, (h_j D)_i − ½ h_j D h_jᵀ."""
    k, n = before.shape
    sizes = np.bincount(owner, minlength=k)

    # h_j D: the mean of the distances from the points of each group
    shares = (1 / sizes[owner]).astype(squared.dtype)
    means: Floats = memberships(owner, shares, k) @ squared

    # ½ h_j D h_jᵀ
    points = np.arange(n)
    within = means[owner, points] / sizes[owner]
    half = np.bincount(owner, within, minlength=k) / 2
    means -= half.astype(means.dtype)[:, None]

    # the centre of an empty group stays
    is_empty = sizes == 0
    means[is_empty] = before[is_empty]
    return means
