"""What is tried: kernels and shapes of the metric, with landmarks that descend the loss or stay."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nysboost.data.rows import ArrayRows
from nysboost.engine.feature_map import FeatureMap
from nysboost.gram import KernelGram
from nysboost.kernels import Anova, Gaussian, Laplacian, Matern, Metric, make_kernel
from nysboost.kernels.metric import Mapped
from nysboost.kernels.radial import Radial
from nysboost.numerics.arrays import Array, Floats, dense, like, namespace, take, to_host
from nysboost.numerics.checks import unknown
from nysboost.numerics.descent import anneal
from nysboost.numerics.kmeans import clusters
from nysboost.search import tuning
from nysboost.search.loss import Point, TargetLoss
from nysboost.search.scaling import SCALINGS, Scale, Scaling, principal, unit_spread

UNIT_GAUSSIAN, MATERN12, MATERN32 = Gaussian(gamma=0.5), Matern(0.5, 1.0), Matern(1.5, 1.0)
SHAPES = ("auto", "one", "each", "full")
LOG_GAMMA = (-23.0, 7.0)
"""log γ stays between these: beyond them the loss is flat."""


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows X (n, q) in the coordinates of a search, targets Y (n, t) and weights (n,) or None."""

    X: Array
    Y: Array
    weights: Array | None

    def __getitem__(self, rows: Any) -> Sample:
        weights = None if self.weights is None else take(self.weights, rows)
        return Sample(take(self.X, rows), take(self.Y, rows), weights)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def centred(self) -> Array:
        """Targets without their weighted mean, shape (n, t)."""
        xp, Y = namespace(self.Y), self.Y
        if self.weights is None:
            return Y - xp.mean(Y, axis=0)
        return Y - xp.sum(Y * self.weights[:, None], axis=0) / xp.sum(self.weights)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where a search is: a kernel of unit bandwidth with landmarks, metric and γ.

    `grid` has γ of the weights to choose from, in units of the loss's; N that of features k(x, Z) N
    where a method has its own.
    """

    name: str
    kernel: Any
    point: Point
    grid: Floats
    N: Array | None = None

    @property
    def gamma(self) -> float:
        """γ of the loss."""
        return float(np.exp(self.point.log_gamma))

    def features(self, scale: Scale | None = None) -> FeatureMap:
        """Return the features of rows as they are, or in the coordinates of the search."""
        metric, Z = Metric(to_host(self.point.A)), self.point.Z
        if scale is not None:
            metric, Z = scale.metric(self.point.A), scale.to_rows(Z)
        return FeatureMap.of(replace(self.kernel, metric=metric), Z, self.N)

    def grow(self, sample: Sample, c: int, seed: int) -> Solution:
        """Return the same with rows of a sample as more landmarks, c in all."""
        Z, c = self.point.Z, min(c, sample.n)
        more = np.random.default_rng(seed).permutation(sample.n)[: max(0, c - Z.shape[0])]
        joined = namespace(Z).concat([Z, take(sample.X, more)])
        return replace(self, point=replace(self.point, Z=joined))

    def loss(self, sample: Sample, trace: float) -> float:
        """Return the loss on a sample."""
        loss = TargetLoss(self.kernel, sample.X, sample.centred, sample.weights, trace)
        return loss(self.point)[0]


@dataclass(frozen=True)
class Candidate:
    """Landmarks and a metric, "one", "each", "full" or "fixed", that descend the loss.

    `space` names the scaling, and codes stand beside the features or not. With `mapped_landmarks`
    U = ZA moves, so that landmarks stay behind a metric that changes (MNIST .9867 right, else
    .9826; but pol, where directions have to vanish, has .073, else .058).
    """

    kernel: Radial
    shape: str
    space: str
    scaling: Scaling
    codes: bool = False
    mapped_landmarks: bool = False

    @property
    def name(self) -> str:
        """What it is called in a report."""
        nu = getattr(self.kernel, "nu", None)
        kernel = "Gaussian" if nu is None else f"Matérn {nu:g}"
        metric = {"one": "one scale", "each": "a scale per feature", "full": "full metric"}
        return f"{self.space}, {kernel}, {metric.get(self.shape, 'as given')}"

    def start(self, sample: Sample, c: int, rng: np.random.Generator) -> Solution:
        """Return k-means landmarks under a round metric."""
        q = int(sample.X.shape[1])
        shapes = {"one": np.ones(()), "each": np.ones(q), "full": np.eye(q)}
        A = np.ones(()) if self.shape == "fixed" else shapes[self.shape] / np.sqrt(q)
        Z, _ = clusters(sample.X[: tuning.ROWS_PER_LANDMARK * c, :], c, rng, max_iter=5)
        point = Point(Z, like(A, Z), float(np.log(tuning.START_GAMMA)))
        return Solution(self.name, self.kernel, point, tuning.GAMMAS)

    def descend(
        self,
        found: Solution,
        sample: Sample,
        trace: float,
        batch: int,
        steps: int,
        after: Callable[[float], None] = lambda _: None,
    ) -> Solution:
        """Return landmarks, metric and γ after steps of Adam, each on the next rows of a sample.

        A row of a batch counts n / batch times, so that the batch stands for the sample (protein:
        .711 without, .694 with). Bike, 300 steps: .0006, L-BFGS .012.
        """
        X, Y, n, batch = sample.X, sample.centred, sample.n, min(batch, sample.n)
        pack = _Packing.of(found.point, X, self)

        def gradient_at(x: Array, i: int) -> Array | None:
            first = i * batch % (n - batch + 1)
            rows = slice(first, first + batch)
            counts = None if sample.weights is None else sample.weights[rows]
            loss = TargetLoss(found.kernel, X[rows, :], Y[rows, :], counts, trace, n / batch)
            at = pack.point(x)
            gradient = loss(at)[1]
            after(1 / steps)
            return None if gradient is None else pack.gradient(gradient, at)

        x = anneal(gradient_at, pack.vector(found.point), steps, tuning.RATE)
        return replace(found, point=pack.point(x))


@dataclass(frozen=True, eq=False)
class _Packing:
    """A point as one vector x: landmarks in units of spread, the metric if it moves, log γ."""

    spread: Array
    unit: float
    A: Array
    fixed: bool
    mapped: bool

    @classmethod
    def of(cls, point: Point, X: Array, candidate: Candidate) -> _Packing:
        xp, spread = namespace(X), namespace(X).std(X, axis=0)
        spread = xp.where(spread > 0, spread, xp.ones_like(spread))
        fixed = candidate.shape == "fixed"
        return cls(spread, X.shape[1] ** -0.5, point.A, fixed, candidate.mapped_landmarks)

    def vector(self, at: Point) -> Array:
        """Return x at a point."""
        Z = at.Z @ at.A / self.unit if self.mapped else at.Z
        return self._pack(Z / self.spread, at.A / self.unit, at.log_gamma)

    def point(self, x: Array) -> Point:
        """Return the point at x."""
        xp = namespace(x)
        end = x.shape[0] - 1 - (0 if self.fixed else int(np.prod(self.A.shape)))
        Z = xp.reshape(x[:end], (-1, self.spread.shape[0])) * self.spread
        A = self.A if self.fixed else xp.reshape(x[end:-1], self.A.shape) * self.unit
        Z = self.unit * Z @ xp.linalg.inv(A) if self.mapped else Z
        return Point(Z, A, min(max(float(x[-1]), LOG_GAMMA[0]), LOG_GAMMA[1]))

    def gradient(self, gradient: Point, at: Point) -> Array:
        """Return the gradient with respect to x: with Z = UA⁻¹ a step dA takes Z by −Z dA A⁻¹."""
        to_Z, to_A = gradient.Z, gradient.A
        if self.mapped:
            to_U = to_Z @ namespace(to_Z).linalg.inv(at.A).T
            to_Z, to_A = to_U * self.unit, to_A - at.Z.T @ to_U
        return self._pack(to_Z * self.spread, to_A * self.unit, gradient.log_gamma)

    def _pack(self, Z: Array, A: Array, log_gamma: float) -> Array:
        xp = namespace(Z)
        metric = [] if self.fixed else [xp.reshape(A, (-1,))]
        return xp.concat([xp.reshape(Z, (-1,)), *metric, like(np.array([log_gamma]), Z)])


Place: TypeAlias = Callable[[KernelGram, int, np.random.Generator], tuple[Array, Array | None]]
"""From rows under a kernel to c landmarks Z and N of the features k(x, Z) N; None is W^(−½)."""


def at_random(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, None]:
    """Return c of the rows, uniformly drawn."""
    return dense(gram.rows.take(np.sort(rng.permutation(gram.n)[:c]))), None


@dataclass(frozen=True)
class Baseline:
    """Landmarks that do not move, under a kernel whose bandwidth is sought, unless `as_given`."""

    kernel: Any = UNIT_GAUSSIAN
    place: Place = at_random
    landmarks: str = "uniform"
    scaling: Scaling = unit_spread
    as_given: bool = False

    @property
    def name(self) -> str:
        """What it is called in a report."""
        return f"{type(self.kernel).__name__}, {self.landmarks} landmarks"

    def variants(self, sample: Sample, c: int, rng: np.random.Generator) -> list[Solution]:
        """Return landmarks at each bandwidth, all with the same random numbers."""
        q = int(sample.X.shape[1])
        typical = {Laplacian: q, Anova: 1}.get(type(self.kernel), q**0.5)
        scales: Any = [1.0] if self.as_given else 1 / (tuning.BANDWIDTHS * typical)
        found: list[Solution] = []
        for scale in map(np.asarray, scales):
            gram = KernelGram(ArrayRows(sample.X), replace(self.kernel, metric=Metric(scale)))
            Z, N = self.place(gram, min(c, sample.n), deepcopy(rng))
            point = Point(Z, like(scale, Z), 0.0)
            found.append(Solution(self.name, self.kernel, point, tuning.BASELINE_GAMMAS, N))
        return found


@dataclass(frozen=True)
class Options:
    """What is tried: candidates, others with codes, and the baseline."""

    candidates: tuple[Candidate, ...]
    coded: tuple[Candidate, ...]
    baseline: Baseline


def options_of(
    kernel: Any, metric: str | None, scale: str | None, place: Place | None, name: str, rows: Any
) -> Options:
    """Return what is tried: the strings and kernels of a learner's settings as objects.

    `place` is where landmarks come from that are not trained on y, called `name`. A long descent
    takes the most general metric, and one with codes has a scale for each of them.
    """
    made = make_kernel(kernel) if isinstance(kernel, str) and kernel != "auto" else kernel
    if metric is None:
        return _as_given(made, place, name, rows)
    if metric not in SHAPES:
        raise ValueError(unknown("shape of a metric", metric, SHAPES))
    automatic, folds, wide = isinstance(made, str), in_folds(rows.n), rows.n_features > tuning.WIDE
    if place is not None:
        bare = UNIT_GAUSSIAN if automatic else _unit(made)
        return Options((), (), Baseline(bare, place, name, SCALINGS[scale or "none"]))
    rough, smooth = (MATERN12, MATERN32) if automatic else (_unit(made),) * 2
    narrow, general = ("each", "full") if metric == "auto" else (metric,) * 2
    coded: list[Candidate] = []
    if scale == "auto" and narrow == "each" and not (folds and wide):
        kernels = dict.fromkeys((rough, smooth) if folds else (rough,))
        coded = [Candidate(k, "each", "codes", unit_spread, codes=True) for k in kernels]
    if wide:
        kernel = UNIT_GAUSSIAN if automatic else smooth
        candidates = _wide_candidates(kernel, smooth, (narrow, general), scale, rows)
    else:
        spaces = ("standard", "quantile") if scale == "auto" else (scale or "none",) * 2
        tried = dict.fromkeys(zip((general, narrow), spaces, strict=True))
        candidates = [
            Candidate(k, shape, space, SCALINGS[space])
            for k in dict.fromkeys((smooth,) if coded and folds else (rough, smooth))
            for shape, space in (tried if folds else list(tried)[:1])
        ]
    return Options(tuple(candidates), tuple(coded), Baseline(scaling=SCALINGS[scale or "none"]))


def _wide_candidates(
    kernel: Radial, smooth: Radial, shapes: tuple[str, str], scale: str | None, rows: Any
) -> list[Candidate]:
    """Return full metrics of principal components, and a scale per feature where rows suffice.

    Pixels have common units; hotel rates, 146 columns, have .252, and .206 at unit spread.
    """
    spaces = ("none", "standard") if scale == "auto" else (scale or "none",) * 2
    found = []
    if shapes[1] == "full":
        found = [
            Candidate(
                kernel, "full", f"components, {space}", partial(principal, SCALINGS[space]),
                mapped_landmarks=True,
            )
            for space in dict.fromkeys(spaces)
        ]  # fmt: skip
    if shapes[0] != "full" and (rows.n_features <= rows.n or not found):
        found.append(Candidate(smooth, shapes[0], spaces[1], SCALINGS[spaces[1]]))
    return found


def in_folds(n: int) -> bool:
    """Whether fifths of n rows are held out in turn, because one would be too few."""
    return n <= tuning.HELD_OUT[0] * tuning.HELD_OUT[2]


def _as_given(made: Any, place: Place | None, name: str, rows: Any) -> Options:
    """Return the one kernel that stays as the user gave it."""
    if not isinstance(made, Mapped) or (made.metric is not None and made.metric.warp is not None):
        msg = (
            f"metric=None leaves the kernel as it is, but kernel={made!r} cannot stay: give one "
            'of the difference of rows, as Gaussian(gamma="scale") or Matern(1.5, sigma=2.0).'
        )
        raise ValueError(msg)
    kernel: Any = made.resolve(rows)
    d, own = rows.n_features, np.ones(()) if kernel.metric is None else kernel.metric.map
    matrix = own if own.ndim == 2 else None
    scale = Scale(np.zeros(d), np.ones(d) * (1.0 if own.ndim == 2 else own), None, matrix)
    bare = replace(kernel, metric=None)
    baseline = Baseline(bare, place or at_random, name, lambda _: scale, as_given=True)
    if place is not None or not isinstance(kernel, Radial):
        return Options((), (), baseline)
    return Options((Candidate(bare, "fixed", "as given", baseline.scaling),), (), baseline)


def _unit(kernel: Any) -> Any:
    """Return a kernel with unit bandwidth: the metric finds the scale."""
    if isinstance(kernel, Gaussian):
        return UNIT_GAUSSIAN
    if isinstance(kernel, Matern):
        return replace(kernel, sigma=1.0, gamma=None, metric=None)
    if isinstance(kernel, Anova):
        return replace(kernel, gamma=0.5, metric=None)
    msg = (
        f"kernel={kernel!r} cannot learn a metric: Gaussian and Matérn can, ANOVA at least a "
        'bandwidth; or leave kernel="auto".'
    )
    raise ValueError(msg)
