"""A candidate: a kernel and a shape of the metric, with landmarks that are trained on y or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from nysboost.features.feature_map import FeatureMap
from nysboost.gram import KernelGram
from nysboost.kernels import Metric
from nysboost.kernels.scaling import Scale, Scaling
from nysboost.learn.search import tuning
from nysboost.learn.search.loss import Point, TrainingRows
from nysboost.learn.search.training import minimise_loss
from nysboost.numerics.arrays import Array, Floats, dense, like, namespace, on_device, take
from nysboost.numerics.kmeans import FEW_ITER, clusters
from nysboost.numerics.progress import Progress
from nysboost.rows.array_rows import ArrayRows

METRICS = {"one": "one scale", "each": "a scale per feature", "full": "full metric"}
"""Names of a metric's shapes in reports."""

START_GAMMA = 0.01
"""γ at the start of a descent."""

STILL_GAMMA = 0.1
"""γ of landmarks that are not trained; .01 has up to 1.2 % more log loss on noisy tables."""

Place: TypeAlias = Callable[[KernelGram, int, np.random.Generator], tuple[Array, Array | None]]
"""A function that returns c landmarks Z and N of the features k(x, Z) N; None is W^(−½)."""


def uniform_landmarks(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, None]:
    """Return c of the rows, uniformly drawn."""
    drawn = np.sort(rng.permutation(gram.n)[:c])
    return dense(gram.rows.take(drawn)), None


@dataclass(frozen=True, eq=False)
class Solution:
    """Landmarks Z (c, q), metric A (), (q,) or (q, r), γ, and perhaps N of a method's k(x, Z) N."""

    kernel: Any
    Z: Array
    A: Array
    gamma: float
    N: Array | None = None

    @property
    def n_landmarks(self) -> int:
        """Number of landmarks."""
        return int(self.Z.shape[0])

    def features(self, scale: Scale) -> FeatureMap:
        """Return the features of unscaled rows; the search uses scaled ones."""
        kernel = replace(self.kernel, metric=scale.metric(self.A))
        return FeatureMap.of(kernel, scale.to_rows(self.Z), self.N)


@dataclass(frozen=True)
class Candidate:
    """A kernel, and a metric of shape "one", "each" or "full", or a fixed map.

    Landmarks and metric are optimised, unless `place` chooses the landmarks. `space` names the
    scaling, and `codes` says whether piecewise-linear codes are added to the features. With
    `mapped_landmarks` the variables are U = ZA instead of Z: MNIST has an accuracy of .9867 with
    it and .9826 without, but pol, where directions have to vanish, an error of .073 and .058.
    """

    kernel: Any
    shape: str | float | Floats
    space: str
    scaling: Scaling
    codes: bool = False
    mapped_landmarks: bool = False
    place: Place | None = None

    @property
    def trained(self) -> bool:
        """Whether landmarks and metric are trained on y."""
        return self.place is None

    @property
    def name(self) -> str:
        """Name in reports."""
        if not self.trained:
            return f"{type(self.kernel).__name__}, {self.space} landmarks"
        nu = getattr(self.kernel, "nu", None)
        kernel = "Gaussian" if nu is None else f"Matérn {nu:g}"
        metric = METRICS.get(str(self.shape), "as given")
        return f"{self.space}, {kernel}, {metric}"

    def start(self, rows: TrainingRows, c: int, rng: np.random.Generator) -> Solution:
        """Return the landmarks of `place`, or k-means centres with the same scale for all."""
        c = min(c, rows.n)
        A = self._first_metric(int(rows.X.shape[1]))
        X = rows.X[: batch_rows(c), :]

        if self.place is None:
            Z, _ = clusters(X, c, rng, max_iter=FEW_ITER)
            return Solution(self.kernel, Z, like(A, Z), START_GAMMA)

        gram = KernelGram(ArrayRows(X), replace(self.kernel, metric=Metric(A)))
        Z, N = self.place(gram, c, rng)
        return Solution(self.kernel, Z, like(A, Z), STILL_GAMMA, N)

    def grow(
        self, found: Solution, rows: TrainingRows, c: int, rng: np.random.Generator
    ) -> Solution:
        """Return the solution with c landmarks: the new ones are random rows."""
        drawn = rng.permutation(rows.n)[: max(0, c - found.n_landmarks)]
        Z = namespace(found.Z).concat([found.Z, take(rows.X, drawn)])
        return replace(found, Z=Z)

    def _first_metric(self, q: int) -> Floats:
        """Return the metric with which a descent begins: all features alike, at spread 1/√q."""
        if not isinstance(self.shape, str):
            return np.asarray(self.shape)
        shapes = {"one": np.ones(()), "each": np.ones(q), "full": np.eye(q)}
        return np.asarray(shapes[self.shape] / q**0.5)

    def descend(self, start: Solution, rows: TrainingRows, steps: int, work: Progress) -> Solution:
        """Return landmarks, metric and γ after steps of Adam on the loss, from a start."""
        if not self.trained:
            return start
        first = Point(start.Z, start.A, float(np.log(start.gamma)))
        Z, A, log_gamma = minimise_loss(
            self.kernel,
            rows.centred(),
            first,
            steps=steps,
            batch=batch_rows(start.n_landmarks, on_device(start.Z)),
            fixed_metric=not isinstance(self.shape, str),
            mapped=self.mapped_landmarks,
            work=work,
        )
        return replace(start, Z=Z, A=A, gamma=float(np.exp(log_gamma)))


def batch_rows(c: int, device: bool = False) -> int:
    """Return the number of rows of a step with c landmarks."""
    return tuning.BATCH_ROWS[device] * max(tuning.LANDMARKS, c) // tuning.LANDMARKS
