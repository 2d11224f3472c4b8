"""Random features: plane waves instead of landmarks, for kernels of the difference x − y.

Such a kernel is a mean of plane waves, k(x, y) = E cos⟨ω, x − y⟩ (Bochner), so that D
frequencies give the features D^(−½) [cos⟨ω_i, x⟩, sin⟨ω_i, x⟩]. The frequencies are computed from D
standard normal points. The methods differ in these points: independent, orthogonal to each other,
or evenly spread. None of them is biased, and none uses the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.random import Generator
from scipy.special import ndtri
from scipy.stats import qmc

from nysboost.features.feature_map import FeatureMap
from nysboost.gram import Gram, Landmarks, require_points
from nysboost.kernels import Kernel
from nysboost.kernels.distances import inner_products
from nysboost.numerics.arrays import Array, Floats, identity, like, namespace, take

DrawPoints: TypeAlias = Callable[[int, int, Generator], tuple[Floats, Floats]]
"""(D, d, rng) ↦ D standard normal points with d coordinates, and D uniform numbers."""


@dataclass(frozen=True)
class Waves(Kernel):
    """[cos⟨x, ω⟩, sin⟨x, ω⟩], with the frequencies repeated for both halves."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Return the waves' values, shape (n, 2D)."""
        D = Y.shape[0] // 2
        frequencies = take(Y, slice(0, D))
        angles = inner_products(X, frequencies)
        xp = namespace(angles)
        cosines = xp.cos(angles)
        sines = xp.sin(angles)
        return xp.concat([cosines, sines], axis=1)


@dataclass(frozen=True)
class RandomFeatures:
    """c random features in pairs, computed from `points`."""

    points: DrawPoints

    def __call__(self, gram: Gram, c: int, rng: Generator) -> FeatureMap:
        """Return x ↦ D^(−½) [cos⟨ω_i, x⟩, sin⟨ω_i, x⟩] with D = c/2 frequencies ω_i."""
        kernel = require_points(gram).kernel
        D = max(1, c // 2)
        d = gram.rows.n_features
        normal, uniform = self.points(D, d, rng)
        omega = kernel.frequencies(normal, uniform)

        # once for the cosines, once for the sines
        frequencies = np.concatenate([omega, omega])
        Z = like(frequencies, gram.rows.template)
        landmarks = Landmarks(None, Z)

        # every wave by D^(−½)
        unit = identity(2 * D, Z)
        projection = unit / D**0.5
        return FeatureMap(Waves(), landmarks, projection)


def independent(size: int, d: int, rng: Generator) -> tuple[Floats, Floats]:
    """Return independent points (Rahimi and Recht 2007)."""
    normal = rng.normal(size=(size, d))
    uniform = rng.uniform(size=size)
    return normal, uniform


def orthogonal(size: int, d: int, rng: Generator) -> tuple[Floats, Floats]:
    """Return points in orthogonal groups of d, which reduces the variance (Yu et al. 2016)."""
    # directions: the rows of random rotations, as many as it takes; with random signs of Q the
    # distribution is uniform
    rotations = []
    for _ in range(0, size, d):
        square = rng.normal(size=(d, d))
        Q, _ = np.linalg.qr(square)
        signs = rng.choice([-1.0, 1.0], size=d)
        rotations.append(Q * signs)
    stacked = np.concatenate(rotations)
    directions = stacked[:size]

    # the lengths of normal points are χ-distributed
    squared = rng.chisquare(d, size=size)
    lengths = np.sqrt(squared)
    normal = directions * lengths[:, None]

    uniform = rng.uniform(size=size)
    return normal, uniform


def evenly_spread(size: int, d: int, rng: Generator) -> tuple[Floats, Floats]:
    """Return evenly spread points, from a scrambled Sobol sequence (Avron et al. 2016)."""
    # the sequence has 2^k ≥ size points
    sobol = qmc.Sobol(d + 1, rng=rng)
    k = (size - 1).bit_length()
    sequence = sobol.random_base2(k)
    points = sequence[:size]

    # away from 0 and 1, where normal quantiles are infinite
    margin = 2.0**-40
    spread = np.clip(points, margin, 1 - margin)

    # the first coordinate stays uniform
    uniform = spread[:, 0]
    normal = ndtri(spread[:, 1:])
    return normal, uniform
