"""Selectors: cluster the columns of the residual into m groups, and choose m columns (step 2d)."""

from __future__ import annotations

import reprlib
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from nysboost.numerics import kmeans, kmedoids
from nysboost.numerics.arrays import Array, Floats, Indices, epsilon, is_array, to_host
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


def as_numpy(returned: object) -> NDArray[Any]:
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


def kmeans_columns(residual: Array, m: int, rng: Generator) -> Indices:
    """k-means, then the column nearest to each centre; if it is taken, the next nearest."""
    squared, rounding = _squared_distances(residual)
    to_centres = kmeans.kmeans(squared, m, rng)

    # the members of a cluster of two are equally near: take the first, on every machine
    chosen = _nearest(to_centres, rounding)

    # a column serves the first of the centres that are nearest to it
    _, served = np.unique(chosen, return_index=True)
    others = np.setdiff1d(np.arange(m), served)
    to_centres[:, chosen] = np.inf
    for centre in others:
        distances = to_centres[centre : centre + 1]
        (next_nearest,) = _nearest(distances, rounding)
        chosen[centre] = next_nearest
        to_centres[:, next_nearest] = np.inf
    return chosen


def pam_columns(residual: Array, m: int, rng: Generator) -> Indices:  # noqa: ARG001
    """k-medoids by Partitioning Around Medoids, BUILD then SWAP, as R's ``pam``."""
    return kmedoids.pam(_distances(residual), m)


def park_jun_columns(residual: Array, m: int, rng: Generator) -> Indices:  # noqa: ARG001
    """k-medoids by the simple and fast algorithm of Park and Jun (2009)."""
    return kmedoids.park_jun(_distances(residual), m)


def _squared_distances(residual: Array) -> tuple[Floats, float]:
    """Return the s×s squared distances of the columns, and their rounding level."""
    products: Floats = to_host(residual.T @ residual)
    norms = np.diag(products).copy()

    # the level of rounding in sums of products
    largest = float(norms.max())
    rounding = max(len(norms) * EPS, SUMMED * epsilon(residual)) * largest

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
    multiples = np.round(distances / step)
    return np.asarray(multiples * step)


def _nearest(to_centres: Floats, rounding: float) -> Indices:
    """Return the column nearest to each centre; of columns that tie up to rounding, the first."""
    least = to_centres.min(axis=1, keepdims=True)
    is_nearest = to_centres <= least + rounding

    first: Indices = np.argmax(is_nearest, axis=1)
    return first
