"""Selectors: the residual's columns, clustered into m groups → m distinct columns (step 2d)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nysboost import medoids
from nysboost.arrays import Array, Floats, Indices, cutoff, namespace, to_host

EPS = float(np.finfo(np.float64).eps)


class Selector(Protocol):
    """Chooses the columns of the next learner."""

    def __call__(self, residual: Array, m: int, rng: np.random.Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""


@dataclass(frozen=True)
class KMeansSelector:
    """k-means, then the column nearest to each centre; if it is taken, the next nearest."""

    def __call__(self, residual: Array, m: int, rng: np.random.Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        columns = _isometric_points(_inner_products(residual))
        kmeans = KMeans(m, n_init=1, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            # fewer distinct columns than groups: the nearest-free rule fills the rest
            warnings.simplefilter("ignore", ConvergenceWarning)
            distances = kmeans.fit(columns).transform(columns).T
        # both members of a group of two are as near: the first of them, on every machine
        rounding = np.sqrt(cutoff(len(columns), EPS)) * distances.max()
        chosen = np.empty(m, dtype=np.intp)
        for centre, to_columns in enumerate(distances):
            chosen[centre] = np.argmax(to_columns <= to_columns.min() + rounding)
            distances[:, chosen[centre]] = np.inf
        return chosen


@dataclass(frozen=True)
class PAMSelector:
    """k-medoids by Partitioning Around Medoids, BUILD then SWAP, as R's ``pam``."""

    def __call__(self, residual: Array, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG002
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        return medoids.pam(_distances(_inner_products(residual)), m)


@dataclass(frozen=True)
class ParkJunSelector:
    """k-medoids by the simple and fast algorithm of Park and Jun (2009)."""

    def __call__(self, residual: Array, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG002
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        return medoids.park_jun(_distances(_inner_products(residual)), m)


def _inner_products(residual: Array) -> Floats:
    """Return the s×s inner products of the columns: all that a clustering depends on."""
    xp = namespace(residual)
    columns = xp.astype(residual, xp.float64)
    return to_host(columns.T @ columns)


def _isometric_points(gram: Floats) -> Floats:
    """Return s points with these inner products, in as few dimensions as they span."""
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    kept = eigenvalues > cutoff(len(gram), EPS) * eigenvalues[-1]
    points: Floats = eigenvectors[:, kept] * np.sqrt(eigenvalues[kept])
    return points if kept.any() else np.zeros((len(gram), 1))


def _distances(gram: Floats) -> Floats:
    """Return the s×s Euclidean distances between points with these inner products.

    They are multiples of one power of two, so that sums of them are exact: medoids that
    are equally good, such as both members of a group of two, tie on every machine.
    """
    norms = np.diag(gram)
    scale = norms[:, None] + norms[None, :]
    squared = scale - 2 * gram
    distances = np.sqrt(np.where(squared > cutoff(len(gram), EPS) * scale, squared, 0))
    step = 2.0 ** (np.frexp(distances.max())[1] - 32)
    exact: Floats = np.round(distances / step) * step
    return exact
