"""What is tried: kernels, shapes of the metric, landmarks that know y or do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from nysboost.engine.moments import Moments
from nysboost.kernels import Gaussian, Laplacian, Matern, Metric
from nysboost.kernels.mapped import Radial
from nysboost.numerics.arrays import Array, Floats, like, namespace, take, to_host
from nysboost.numerics.kmeans import centroids
from nysboost.target.linear import STEPS, Basis, chosen, errors_along
from nysboost.target.loss import Point, TargetLoss
from nysboost.target.search import annealed, improved

UNIT_LAPLACIAN = Laplacian(gamma=1.0)
UNIT_GAUSSIAN, MATERN12, MATERN32 = Gaussian(gamma=0.5), Matern(0.5, 1.0), Matern(1.5, 1.0)

WIDE = 96
"""Beyond this many features a full metric starts from as many principal components as `NARROW`."""

NARROW = 64
"""Principal components that a low-rank metric starts from (MNIST: 100 were no better)."""

PRINCIPAL_ROWS = 4096
"""Rows that principal components are taken from."""

START_GAMMA = 1e-2
KMEANS_ROWS, KMEANS_ITERATIONS = 8, 5

RATE = 0.05
"""First steps of the long descent, in units of each feature's spread. Test errors with 64
landmarks, 0.03 and 0.06: kin40k .244 and .237, protein .694 and .690, elevators .337 and .342;
bike, 0.03 and 0.1: .0018 and .0052 (split 5)."""

RATE_APART = 0.03
"""The same where landmarks and metric move apart; no other was tried."""

Shape = Literal["one", "each", "full"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Standardised rows in memory with their targets and weights.

    Parameters
    ----------
    X, Y : arrays of shape (n, d) and (n, t)
        Rows and targets.
    weights : array of shape (n,) or None
        How often each row counts.
    factor : array of shape (d,)
        What each feature was multiplied by, 0 for a constant one.
    """

    X: Array
    Y: Array
    weights: Array | None
    factor: Floats

    def __getitem__(self, rows: Any) -> Sample:
        weights = None if self.weights is None else take(self.weights, rows)
        return Sample(take(self.X, rows), take(self.Y, rows), weights, self.factor)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def mean(self) -> Array:
        """Weighted mean of the targets, shape (t,)."""
        xp = namespace(self.Y)
        if self.weights is None:
            return xp.mean(self.Y, axis=0)
        return xp.sum(self.Y * self.weights[:, None], axis=0) / xp.sum(self.weights)


@dataclass(frozen=True, eq=False)
class Found:
    """A kernel, a point of its search, and what rows that took no part say of it.

    N is that of the features k(x, Z) N, where a method has its own; None is W^(−½). `begun` is
    where the search began; `apart`, whether landmarks stay behind the metric when it changes.
    """

    name: str
    kernel: Any
    point: Point
    gammas: Floats
    error: float = np.inf
    gamma: float = START_GAMMA
    N: Array | None = None
    begun: Point | None = None
    apart: bool = False

    def basis(self) -> Basis:
        """Return the features, of standardised rows."""
        metric = Metric(to_host(self.point.A))
        return Basis.of(replace(self.kernel, metric=metric), self.point.Z, self.N)


@dataclass(frozen=True)
class Candidate:
    """Landmarks and a metric that know the target.

    Parameters
    ----------
    kernel : Radial
        Of unit bandwidth.
    shape : "one", "each" or "full"
        Of the metric.
    own_units : bool
        Of many features, start from the principal components of these in their own units,
        as pixels have, and not at unit spread, as columns of a table need.
    """

    kernel: Radial
    shape: Shape
    own_units: bool = False

    @property
    def name(self) -> str:
        """What it is called in a report."""
        nu = getattr(self.kernel, "nu", None)
        kernel = "Gaussian" if nu is None else f"Matérn {nu:g}"
        metric = {"one": "one scale", "each": "a scale per feature", "full": "full metric"}
        return f"{kernel}, {metric[self.shape]}{', own units' if self.own_units else ''}"

    def start(self, sample: Sample, c: int, rng: np.random.Generator) -> Found:
        """Return k-means landmarks and a round metric."""
        X, d = sample.X, int(sample.X.shape[1])
        rows = X[: KMEANS_ROWS * c, :]
        Z: Array
        wide = self.shape == "full" and d > WIDE
        if wide:
            A = _principal(X, NARROW, _units(sample) if self.own_units else np.ones(d))
            U = centroids(rows @ A, c, rng, max_iter=KMEANS_ITERATIONS)
            Z = U @ namespace(X).linalg.pinv(A)
        else:
            shapes = {"one": np.ones(()), "each": np.ones(d), "full": np.eye(d)}
            A = like(shapes[self.shape] / np.sqrt(d), X)
            Z = centroids(rows, c, rng, max_iter=KMEANS_ITERATIONS)
        point = Point(Z, A, float(np.log(START_GAMMA)))
        return Found(self.name, self.kernel, point, START_GAMMA * STEPS, begun=point, apart=wide)


def moved(found: Found, sample: Sample, trace: float, max_iter: int) -> Found:
    """Return the candidate after some steps of descent on a sample."""
    point = improved(
        found.kernel, found.point, sample.X, sample.Y - sample.mean,
        weights=sample.weights, trace=trace, max_iter=max_iter,
    )  # fmt: skip
    return _at(point, found)


def settled(
    found: Found,
    sample: Sample,
    trace: float,
    batch: int,
    steps: int,
    after: Callable[[int], None] = lambda _: None,
    pace: float = 1.0,
) -> Found:
    """Return the candidate after a long descent, each step on other rows of a sample.

    `pace` is the length of its first steps, in those that a descent usually begins with.
    """
    point = annealed(
        found.kernel, found.point, sample.X, sample.Y - sample.mean,
        frame=(found.begun or found.point).A,
        weights=sample.weights, trace=trace, batch=batch, steps=steps,
        rate=pace * (RATE_APART if found.apart else RATE), apart=found.apart, after=after,
    )  # fmt: skip
    return _at(point, found)


def _at(point: Point, found: Found) -> Found:
    """Return the candidate at another point, with penalties around the γ there."""
    gamma = float(np.exp(point.log_gamma))
    return replace(found, point=point, gammas=gamma * STEPS, gamma=gamma, error=np.inf)


def loss_of(found: Found, sample: Sample, trace: float) -> float:
    """Return the loss of what was found, on a sample."""
    loss = TargetLoss(found.kernel, sample.X, sample.Y - sample.mean, sample.weights, trace)
    return loss(found.point)[0]


def judged(found: Found, fit: Sample, judge: Sample) -> Found:
    """Return the candidate with the best γ and error on rows that took no part."""
    basis = found.basis()
    train = Moments.of(basis(fit.X), fit.Y, fit.weights)
    errors = errors_along(train, basis(judge.X), judge.Y, judge.weights, found.gammas)
    at = chosen(found.gammas, errors)
    return replace(found, error=float(errors[at]), gamma=float(found.gammas[at]))


def _units(sample: Sample) -> Floats:
    """Return what takes standardised features back to their own units, shape (d,)."""
    return np.where(sample.factor > 0, 1 / np.where(sample.factor > 0, sample.factor, 1.0), 0.0)


def _principal(X: Array, q: int, units: Floats) -> Array:
    """Return the map onto the q leading principal components of X · units, at unit spread."""
    xp = namespace(X)
    of_features = like(units, X)
    some = X[:PRINCIPAL_ROWS, :] * of_features
    centred = some - xp.mean(some, axis=0)
    # a GPU has them from products in a fraction of the time of singular vectors
    variances, V = xp.linalg.eigh(centred.T @ centred / some.shape[0])
    spread = xp.sqrt(xp.sum(variances[-q:]))
    directions: Array = xp.flip(V, axis=1)[:, :q]
    return of_features[:, None] * directions / spread
