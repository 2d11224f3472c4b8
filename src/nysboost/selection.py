"""Selectors: the residual's columns, clustered into m groups → m distinct columns (step 2d)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from nysboost import medoids
from nysboost.arrays import Floats, Indices


class Selector(Protocol):
    """Chooses the columns of the next learner."""

    def __call__(self, residual: Floats, m: int, rng: np.random.Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""


@dataclass(frozen=True)
class KMeansSelector:
    """k-means, then the column nearest to each centre; if it is taken, the next nearest."""

    def __call__(self, residual: Floats, m: int, rng: np.random.Generator) -> Indices:
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        columns = _isometric_columns(residual)
        kmeans = KMeans(m, n_init=1, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            # fewer distinct columns than groups: the nearest-free rule fills the rest
            warnings.simplefilter("ignore", ConvergenceWarning)
            distances = kmeans.fit(columns).transform(columns).T
        chosen = np.empty(m, dtype=np.intp)
        for centre, to_columns in enumerate(distances):
            chosen[centre] = np.argmin(to_columns)
            distances[:, chosen[centre]] = np.inf
        return chosen


@dataclass(frozen=True)
class PAMSelector:
    """k-medoids by Partitioning Around Medoids, BUILD then SWAP, as R's ``pam``."""

    def __call__(self, residual: Floats, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG002
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        return medoids.pam(_column_distances(residual), m)


@dataclass(frozen=True)
class ParkJunSelector:
    """k-medoids by the simple and fast algorithm of Park and Jun (2009)."""

    def __call__(self, residual: Floats, m: int, rng: np.random.Generator) -> Indices:  # noqa: ARG002
        """Return m distinct positions among the columns of `residual`, shape (r, s)."""
        return medoids.park_jun(_column_distances(residual), m)


def _isometric_columns(residual: Floats) -> Floats:
    """Return s points in at most s dimensions with the distances of the residual's columns."""
    r, s = residual.shape
    return np.linalg.qr(residual, mode="r").T if r > s else residual.T


def _column_distances(residual: Floats) -> Floats:
    """Return the s×s matrix of Euclidean distances between the columns."""
    gram = residual.T @ residual
    norms = np.diag(gram)
    squared = norms[:, None] + norms[None, :] - 2 * gram
    np.fill_diagonal(squared, 0)
    return np.sqrt(np.maximum(squared, 0))
