"""Candidates: kernels and shapes of the metric, with landmarks that are trained on y or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nysboost.features.feature_map import FeatureMap
from nysboost.gram import KernelGram
from nysboost.kernels import Anova, Gaussian, Matern, Metric, make_kernel
from nysboost.kernels.metric import Mapped
from nysboost.kernels.radial import Radial
from nysboost.kernels.scaling import SCALINGS, Scale, Scaling, principal, unit_spread
from nysboost.learn.search import tuning
from nysboost.learn.search.data import uses_folds
from nysboost.learn.search.loss import Point, TrainingRows, for_landmarks, map_rows, target_loss
from nysboost.numerics.arrays import Array, Floats, dense, like, namespace
from nysboost.numerics.descent import anneal
from nysboost.numerics.devices import on_device
from nysboost.numerics.kmeans import FEW_ITER, clusters
from nysboost.numerics.messages import unknown
from nysboost.numerics.progress import Progress
from nysboost.rows.array_rows import ArrayRows

UNIT_GAUSSIAN, MATERN12, MATERN32 = Gaussian(gamma=0.5), Matern(0.5, 1.0), Matern(1.5, 1.0)
SHAPES = ("auto", "one", "each", "full")
METRICS = {"one": "one scale", "each": "a scale per feature", "full": "full metric"}

START_GAMMA, STILL_GAMMA, LOG_GAMMA = 0.01, 0.1, (-23.0, 7.0)
"""γ at the start of a descent, γ of landmarks that are not trained (.01: up to 1.2 % more log loss
on noisy tables), and the bounds of log γ."""

Place: TypeAlias = Callable[[KernelGram, int, np.random.Generator], tuple[Array, Array | None]]
"""A function that returns c landmarks Z and N of the features k(x, Z) N; None is W^(−½)."""


def uniform_landmarks(gram: KernelGram, c: int, rng: np.random.Generator) -> tuple[Array, None]:
    """Return c of the rows, uniformly drawn."""
    return dense(gram.rows.take(np.sort(rng.permutation(gram.n)[:c]))), None


@dataclass(frozen=True, eq=False)
class Solution:
    """Landmarks Z (c, q), metric A (), (q,) or (q, r), γ, and perhaps N of a method's k(x, Z) N."""

    kernel: Any
    Z: Array
    A: Array
    gamma: float
    N: Array | None = None

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
    def name(self) -> str:
        """Name in reports."""
        if self.place is not None:
            return f"{type(self.kernel).__name__}, {self.space} landmarks"
        nu = getattr(self.kernel, "nu", None)
        kernel = "Gaussian" if nu is None else f"Matérn {nu:g}"
        return f"{self.space}, {kernel}, {METRICS.get(str(self.shape), 'as given')}"

    def start(self, sample: TrainingRows, c: int, rng: np.random.Generator) -> Solution:
        """Return the landmarks of `place`, or k-means centres with the same scale for all."""
        q, c = int(sample.X.shape[1]), min(c, sample.n)
        if isinstance(self.shape, str):
            A = {"one": np.ones(()), "each": np.ones(q), "full": np.eye(q)}[self.shape] / q**0.5
        else:
            A = np.asarray(self.shape)
        X = sample.X[: batch_rows(c), :]
        if self.place is None:
            Z, _ = clusters(X, c, rng, max_iter=FEW_ITER)
            return Solution(self.kernel, Z, like(A, Z), START_GAMMA)
        gram = KernelGram(ArrayRows(X), replace(self.kernel, metric=Metric(A)))
        Z, N = self.place(gram, c, rng)
        return Solution(self.kernel, Z, like(A, Z), STILL_GAMMA, N)

    def descend(self, found: Solution, sample: TrainingRows, steps: int, work: Progress) -> Solution:
        """Return landmarks, metric and γ after steps of Adam, each on the next rows of a sample.

        A row of a batch counts n / batch times (protein: .711 without, .694 with). Bike has .0006
        after 300 steps, and .012 with L-BFGS.
        """
        if self.place is not None:
            return found
        Z, A, mapped = found.Z, found.A, self.mapped_landmarks
        xp, n, c, q = namespace(Z), sample.n, *Z.shape
        batch, trace = min(batch_rows(c, on_device(Z)), n), min(tuning.TRACE, c / n)
        centred = sample._replace(Y=sample.Y - sample.mean)

        def unpack(x: Array) -> tuple[Array, Array, float]:
            Z, A = xp.reshape(x[: c * q], (c, q)), xp.reshape(x[c * q : -1], found.A.shape)
            Z = Z @ xp.linalg.inv(A) if mapped else Z
            return Z, A, min(max(float(x[-1]), LOG_GAMMA[0]), LOG_GAMMA[1])

        def pack(Z: Array, A: Array, log_gamma: float) -> Array:
            last = like(np.array([log_gamma]), Z)
            return xp.concat([xp.reshape(Z, (-1,)), xp.reshape(A, (-1,)), last])

        def gradient_at(x: Array, i: int) -> Array | None:
            first = i * batch % (n - batch + 1)
            Z, A, log_gamma = unpack(x)
            point = Point(map_rows(Z, A), A, log_gamma)
            rows = centred.at(slice(first, first + batch))
            _, gradient = target_loss(self.kernel, rows, point, trace, n / batch)
            work.step(1 / tuning.FIRST_STEPS)
            if gradient is None:
                return None
            return pack(*(gradient if mapped else for_landmarks(Z, A, gradient)))

        spread, unit = xp.std(sample.X, axis=0), q**-0.5
        spread = xp.where(spread > 0, spread, xp.ones_like(spread)) * (unit if mapped else 1.0)
        moving = unit if isinstance(self.shape, str) else 0.0
        units = pack(xp.ones_like(Z) * spread, xp.ones_like(A) * moving, 1.0)
        x = pack(map_rows(Z, A) if mapped else Z, A, float(np.log(found.gamma)))
        Z, A, log_gamma = unpack(anneal(gradient_at, x, steps, tuning.RATE * units))
        return replace(found, Z=Z, A=A, gamma=float(np.exp(log_gamma)))


def batch_rows(c: int, device: bool = False) -> int:
    """Return the number of rows of a step with c landmarks."""
    return tuning.BATCH_ROWS[device] * max(tuning.LANDMARKS, c) // tuning.LANDMARKS


Groups: TypeAlias = list[tuple[Candidate, ...]]
"""Groups of candidates: first steps select one of each."""


def make_candidates(
    kernel: Any, metric: str | None, scale: str | None, place: Place | None, name: str, rows: Any
) -> Groups:
    """Return the candidates for a learner's settings.

    `place`, called `name`, chooses landmarks that are not trained on y; with trained ones, random
    rows are a baseline, for targets that are nearly linear.
    """
    automatic = isinstance(kernel, str) and kernel == "auto"
    made = make_kernel(kernel) if isinstance(kernel, str) and not automatic else kernel
    if metric is None:
        return [_as_given(made, place, name, rows)]
    if metric not in SHAPES:
        raise ValueError(unknown("shape of a metric", metric, SHAPES))
    unit, few, d = None if automatic else _unit(made), uses_folds(rows.n), rows.n_features
    still = Candidate(
        UNIT_GAUSSIAN, 1.0, "uniform", SCALINGS[scale or "none"], place=uniform_landmarks
    )
    if place is not None:
        still = replace(still, kernel=unit or UNIT_GAUSSIAN, space=name, place=place)
    scales = tuning.BANDWIDTHS * (1 if isinstance(unit, Anova) else d**0.5)
    baseline = tuple(replace(still, shape=s) for s in (1 / scales).tolist())
    if place is not None:
        return [baseline]
    rough, smooth, wide = unit or MATERN12, unit or MATERN32, d > tuning.WIDE
    narrow, general = ("each", "full") if metric == "auto" else (metric, metric)
    coded: Groups = []
    if scale == "auto" and narrow == "each" and not (few and wide):
        kernels = dict.fromkeys((rough, smooth) if few else (rough,))
        coded = [(Candidate(k, "each", "codes", unit_spread, codes=True),) for k in kernels]
    if wide:
        found = _wide_candidates(unit or UNIT_GAUSSIAN, smooth, (narrow, general), scale, rows)
        return [*([(one,) for one in found] if few else [tuple(found)]), *coded, baseline]
    first, second = ("standard", "quantile") if scale == "auto" else (scale or "none",) * 2
    shapes, both = [(general, first), (narrow, second)], dict.fromkeys((smooth, rough))
    if not few:
        return [tuple(Candidate(k, *shapes[0], SCALINGS[first]) for k in both), *coded, baseline]
    pairs = dict.fromkeys((k, *shape) for k in ((smooth,) if coded else both) for shape in shapes)
    return [*((Candidate(*pair, SCALINGS[pair[-1]]),) for pair in pairs), *coded, baseline]


def _wide_candidates(
    kernel: Radial, smooth: Radial, shapes: tuple[str, str], scale: str | None, rows: Any
) -> list[Candidate]:
    """Return full metrics of principal components, and a scale per feature if n ≥ d.

    Components without scaling suit pixels; hotel rates, 146 columns, have .252, and .206 scaled.
    """
    spaces, found = ("none", "standard") if scale == "auto" else (scale or "none",), []
    for space in spaces if shapes[1] == "full" else ():
        scaling, name = partial(principal, SCALINGS[space], tuning.WIDE), f"components, {space}"
        found.append(Candidate(kernel, "full", name, scaling, mapped_landmarks=True))
    if shapes[0] != "full" and (rows.n_features <= rows.n or not found):
        found.append(Candidate(smooth, shapes[0], spaces[-1], SCALINGS[spaces[-1]]))
    return found


def _as_given(made: Any, place: Place | None, name: str, rows: Any) -> tuple[Candidate, ...]:
    """Return the user's kernel with a fixed metric."""
    if not isinstance(made, Mapped) or (made.metric is not None and made.metric.warp is not None):
        msg = (
            f"metric=None leaves the kernel as it is, but kernel={made!r} cannot stay: give one "
            'of the difference of rows, as Gaussian(gamma="scale") or Matern(1.5, sigma=2.0).'
        )
        raise ValueError(msg)
    kernel: Any = made.resolve(rows)
    own = np.ones(()) if kernel.metric is None else kernel.metric.map
    scale = Scale(np.zeros(rows.n_features), np.ones(rows.n_features))
    if place is None and not isinstance(kernel, Radial):
        place = uniform_landmarks
    space = name if place else "as given"
    return (Candidate(replace(kernel, metric=None), own, space, lambda _: scale, place=place),)


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
