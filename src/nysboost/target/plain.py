"""The simplest model: landmarks that do not know y, at several bandwidths."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.rows import ArrayRows
from nysboost.gram import KernelGram
from nysboost.kernels import Anova, Laplacian, Metric
from nysboost.numerics.arrays import Array, dense, like
from nysboost.target.candidates import UNIT_GAUSSIAN, Found, Sample, judged
from nysboost.target.loss import Point

BANDWIDTHS = 2.0 ** np.arange(-2.0, 3.1)
"""In units of √d times the features' spread; of the Laplacian, d times, and of ANOVA, once."""

SIMPLE_GAMMAS = 10.0 ** np.arange(1.0, -8.1, -1.0)

Place: TypeAlias = Callable[[KernelGram, int, np.random.Generator], tuple[Array, Array | None]]
"""From rows under a kernel to c landmarks Z and N of the features k(x, Z) N; None is W^(−½)."""


def at_random(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, None]:
    """Return c of the rows, uniformly drawn."""
    return dense(gram.rows.take(np.sort(rng.permutation(gram.n)[:c]))), None


@dataclass(frozen=True)
class Plain:
    """Landmarks that do not know y, under a kernel of which only the bandwidth is sought.

    Parameters
    ----------
    kernel : Kernel
        Of unit bandwidth.
    place : callable
        Where the landmarks come from.
    landmarks : str
        What these are called in a report.
    alike : bool
        Whether they are the same at every bandwidth: rows at random are, and centres of clusters.
    """

    kernel: Any = UNIT_GAUSSIAN
    place: Place = at_random
    landmarks: str = "uniform"
    alike: bool = False

    def found(self, sample: Sample, c: int, rng: np.random.Generator) -> list[Found]:
        """Return landmarks at each bandwidth, all with the same random numbers."""
        d = int(sample.X.shape[1])
        typical = {Laplacian: d, Anova: 1}.get(type(self.kernel), np.sqrt(d))
        name = f"{type(self.kernel).__name__}, {self.landmarks} landmarks"
        tried: list[Found] = []
        for bandwidth in BANDWIDTHS:
            scale = np.array(1 / (bandwidth * typical))
            if not (self.alike and tried):
                gram = KernelGram(ArrayRows(sample.X), replace(self.kernel, metric=Metric(scale)))
                Z, N = self.place(gram, c, deepcopy(rng))
                N = None if self.alike else N  # which is not the same
            point = Point(Z, like(scale, Z), 0.0)
            tried.append(Found(name, self.kernel, point, SIMPLE_GAMMAS, N=N))
        return tried

    def best(self, fit: Sample, judge: Sample, c: int, rng: np.random.Generator) -> Found:
        """Return the bandwidth that rows which took no part prefer."""
        tried = [judged(found, fit, judge) for found in self.found(fit, c, rng)]
        return min(tried, key=lambda found: found.error)


SIMPLEST = Plain(alike=True)
"""What is always among the candidates, and wins ties."""
