"""Selectors: the residual's columns, clustered into m groups → m distinct columns (step 2d)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nysboost.numerics import kmeans, kmedoids
from nysboost.numerics.arrays import Array, Floats, Indices, epsilon, to_host
from nysboost.numerics.tolerances import EPS, SUMMED, cutoff


class Selector(Protocol):
    """Chooses the columns of the next learner.

    Examples
    --------
    Any function of that form is a selector; this one takes the columns that are missed most:

    >>> import numpy as np, nysboost as nb
    >>> from nysboost.boosting.algorithm import boost
    >>> from nysboost.boosting.rules import UniformWeights
    >>> from nysboost.gram import make_gram
    >>> def largest(residual, m, rng):
    ...     return np.argsort(-np.linalg.norm(residual, axis=0))[:m]
    >>> gram = make_gram(np.random.default_rng(0).normal(size=(200, 3)))
    >>> sizes = nb.Settings(n_learners=3, n_columns=9)
    >>> len(boost(gram, sizes, UniformWeights(), largest, np.random.default_rng(0)))
    3
    """

    def __call__(self, residual: Array, m: int, rng: np.random.Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""


def kmeans_columns(residual: Array, m: int, rng: np.random.Generator) -> Indices:
    """k-means, then the column nearest to each centre; if it is taken, the next nearest."""
    squared, rounding = _squared_distances(residual)
    to_centres = kmeans.kmeans(squared, m, rng)
    # both members of a group of two are as near: the first of them, on every machine
    chosen = _nearest(to_centres, rounding)
    to_centres[:, chosen] = np.inf
    _, served = np.unique(chosen, return_index=True)
    for centre in np.setdiff1d(np.arange(m), served):
        chosen[centre] = _nearest(to_centres[centre : centre + 1], rounding)[0]
        to_centres[:, chosen[centre]] = np.inf
    return chosen


def pam_columns(residual: Array, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG001
    """k-medoids by Partitioning Around Medoids, BUILD then SWAP, as R's ``pam``."""
    return kmedoids.pam(_distances(residual), m)


def park_jun_columns(residual: Array, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG001
    """k-medoids by the simple and fast algorithm of Park and Jun (2009)."""
    return kmedoids.park_jun(_distances(residual), m)


def _squared_distances(residual: Array) -> tuple[Floats, float]:
    """Return the s×s squared distances of the columns, and the level of rounding in them."""
    products: Floats = to_host(residual.T @ residual)
    norms = np.diag(products).copy()
    of_products = max(cutoff(len(norms), EPS), cutoff(SUMMED, epsilon(residual)))
    rounding = of_products * float(norms.max())
    squared = products  # in place: fresh memory costs as much as the arithmetic
    squared *= -2
    squared += norms
    squared += norms[:, None]
    squared.ravel()[np.flatnonzero(squared <= rounding)] = 0  # few, mostly the diagonal
    return squared, rounding


def _distances(residual: Array) -> Floats:
    """Return the s×s Euclidean distances of the columns, as multiples of one power of two.

    Sums of them are exact, so that medoids that are equally good tie on every machine.
    """
    distances = np.sqrt(_squared_distances(residual)[0], dtype=np.float64)
    step = 2.0 ** (np.frexp(distances.max())[1] - 32)
    exact: Floats = np.round(distances / step) * step
    return exact


def _nearest(to_centres: Floats, rounding: float) -> Indices:
    """Return the first of the columns that are nearest to each centre, but for rounding."""
    least = to_centres.min(axis=1, keepdims=True)
    first: Indices = np.argmax(to_centres <= least + rounding, axis=1)
    return first
