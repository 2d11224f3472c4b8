"""A candidate: a kernel and a shape of the metric, with landmarks trained on y or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from nysboost.features.feature_map import FeatureMap
from nysboost.gram import KernelGram
from nysboost.kernels import Gaussian, Matern, Metric
from nysboost.kernels.base import Mapped
from nysboost.kernels.metric import Scale, Scaling, unit_spread
from nysboost.kernels.radial import Radial
from nysboost.learn.search import tuning
from nysboost.learn.search.loss import Point, TrainingRows, for_landmarks, map_rows, target_loss
from nysboost.numerics.arrays import Array, Floats, dense, like, namespace, take, to_host
from nysboost.numerics.kmeans import FEW_ITER, clusters
from nysboost.numerics.progress import Progress
from nysboost.rows.rows import ArrayRows

METRICS = {"one": "one scale", "each": "a scale per feature", "full": "full metric"}
"""Names of a metric's shapes in reports."""

START_GAMMA = 0.01
"""γ at the start of a descent."""

STILL_GAMMA = 0.1
"""γ for landmarks that are not trained; .01 has up to 1.2 % more log loss on noisy tables."""

LINEAR_GAMMA = 0.025
"""γ for linear models, whose kernel varies little; with .1 sparse tables have .98 times the R²."""

LOG_GAMMA = (-23.0, 7.0)
"""Bounds of log γ."""

Place: TypeAlias = Callable[[KernelGram, int, np.random.Generator], tuple[Array, Array | None]]
"""A function that returns c landmarks Z and N of the features k(x, Z) N; None is W^(−½)."""


def uniform_landmarks(
    gram: KernelGram,
    c: int,
    rng: np.random.Generator,
) -> tuple[Array, None]:
    """Return c of the rows, uniformly drawn."""
    drawn = rng.permutation(gram.n)[:c]
    return dense(gram.rows.take(np.sort(drawn))), None


def spanning_landmarks(
    gram: KernelGram,
    c: int,
    rng: np.random.Generator,
) -> tuple[Array, None]:
    """Return the origin and a unit vector for each feature, or c of the rows if c is less.

    Rows are nearly dependent by chance: of 100 rows with 3 features and a linear target, 4 of them
    as landmarks have 1.2 to 3 times the error of ridge regression.
    """
    X = gram.rows.template
    d = int(X.shape[1])
    if c <= d:
        return uniform_landmarks(gram, c, rng)
    corners = np.concatenate([np.zeros((1, d)), np.eye(d)])
    return like(corners, X), None


@dataclass(frozen=True, eq=False)
class Solution:
    """Landmarks Z (c, q), metric A (), (q,) or (q, r), γ, and N of a method's k(x, Z) N or None."""

    kernel: Mapped
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
        kernel = self.kernel.with_metric(scale.metric(self.A))
        return FeatureMap.of(kernel, scale.to_rows(self.Z), self.N)

    def features_of_scaled(self) -> FeatureMap:
        """Return the features of rows in the coordinates of the search."""
        kernel = self.kernel.with_metric(Metric(to_host(self.A)))
        return FeatureMap.of(kernel, self.Z, self.N)


@dataclass(frozen=True)
class Candidate:
    """A kernel, and a metric of shape "one", "each" or "full", or a fixed map.

    Landmarks and metric are optimised, unless `place` chooses the landmarks. `space` names the
    scaling, and `codes` says whether piecewise-linear codes are added to the features. With
    `mapped_landmarks` the variables are U = ZA instead of Z: MNIST has an accuracy of .9867 with
    it and .9826 without, but pol, where directions have to vanish, an error of .073 and .058.
    `n_landmarks` replaces the user's number of landmarks if a linear model needs more. With
    `after_linear` it is fitted to the residuals of a linear model.
    """

    kernel: Mapped
    shape: str | float | Floats
    space: str
    scaling: Scaling
    codes: bool = False
    mapped_landmarks: bool = False
    place: Place | None = None
    n_landmarks: int | None = None
    after_linear: bool = False

    @property
    def trained(self) -> bool:
        """Whether landmarks and metric are trained on y."""
        return self.place is None

    @property
    def linear(self) -> bool:
        """Whether it is a linear model: a kernel much wider than the rows, with many landmarks."""
        return self.n_landmarks is not None

    @property
    def name(self) -> str:
        """Name in reports."""
        if self.linear:
            return f"linear model, {self.space} columns"
        if not self.trained:
            return f"{type(self.kernel).__name__}, {self.space} landmarks"

        # a trained candidate: scaling, kernel and metric
        kernel = "Gaussian"
        if isinstance(self.kernel, Matern):
            kernel = f"Matérn {self.kernel.nu:g}"
        metric = METRICS.get(str(self.shape), "as given")
        name = f"{self.space}, {kernel}, {metric}"
        if self.after_linear:
            return f"{name}, after a linear model"
        return name

    def start(self, rows: TrainingRows, c: int, rng: np.random.Generator) -> Solution:
        """Return the landmarks of `place`, or k-means centres with one scale for all features."""
        c = min(c, rows.n)
        n = sample_rows(c)
        X = rows.X[:n, :]
        q = int(X.shape[1])
        A = self._first_metric(q)

        # landmarks that are not trained, under the metric of the candidate
        if self.place is not None:
            kernel = self.kernel.with_metric(Metric(A))
            gram = KernelGram(ArrayRows(X), kernel)
            Z, N = self.place(gram, c, rng)
            gamma = STILL_GAMMA
            if self.linear:
                gamma = LINEAR_GAMMA
            return Solution(self.kernel, Z, like(A, Z), gamma, N)

        # where a descent begins
        Z, _ = clusters(X, c, rng, max_iter=FEW_ITER)
        return Solution(self.kernel, Z, like(A, Z), START_GAMMA)

    def grow(
        self,
        found: Solution,
        rows: TrainingRows,
        c: int,
        rng: np.random.Generator,
    ) -> Solution:
        """Return the solution extended to c landmarks by random rows."""
        n_more = max(0, c - found.n_landmarks)
        drawn = rng.permutation(rows.n)[:n_more]
        new = take(rows.X, drawn)
        Z = namespace(new).concat([found.Z, new])
        return replace(found, Z=Z)

    def descend(
        self,
        start: Solution,
        rows: TrainingRows,
        steps: int,
        work: Progress,
    ) -> Solution:
        """Return landmarks, metric and γ after steps of Adam on the loss."""
        if not self.trained:
            return start
        assert isinstance(self.kernel, Radial)

        # the loss needs targets of mean zero
        centred = rows.centred()
        log_gamma = math.log(start.gamma)
        first = Point(start.Z, start.A, log_gamma)
        end = minimise_loss(
            self.kernel,
            centred,
            first,
            steps=steps,
            batch=step_rows(start.n_landmarks, rows.n),
            fixed_metric=not isinstance(self.shape, str),
            mapped=self.mapped_landmarks,
            work=work,
        )
        gamma = math.exp(end.log_gamma)
        return replace(start, Z=end.U, A=end.A, gamma=gamma)

    def _first_metric(self, q: int) -> Floats:
        """Return the initial metric: the same scale 1/√q for all features."""
        if not isinstance(self.shape, str):
            return np.asarray(self.shape)

        # distances of columns of unit spread are then about 1
        unit = q**-0.5
        if self.shape == "one":
            return np.full((), unit)
        if self.shape == "each":
            return np.full(q, unit)
        return np.asarray(unit * np.eye(q))


def linear_candidate(n_rows: int, n_features: int) -> Candidate:
    """Return a linear model of columns at unit spread.

    A Gaussian kernel much wider than the data is nearly linear. With as many landmarks as rows or
    columns, its ridge regression equals that of the columns.
    """
    # landmarks that span the rows
    enough = min(n_rows, n_features + 1, tuning.LINEAR_LANDMARKS)

    # a metric of one scale, the inverse of the bandwidth
    bandwidth = tuning.LINEAR_BANDWIDTH * n_features**0.5
    return Candidate(
        Gaussian(gamma=0.5),
        1 / bandwidth,
        "standard",
        unit_spread,
        place=spanning_landmarks,
        n_landmarks=enough,
    )


def sample_rows(c: int) -> int:
    """Return the number of rows from which c landmarks start, and which first steps use."""
    return tuning.ROWS_OF_LANDMARK * max(tuning.LANDMARKS, c)


def step_rows(c: int, n: int) -> int:
    """Return how many of n rows a step with c landmarks uses: more rows give less noise."""
    # a share of the rows, within bounds
    least, most = tuning.STEP_ROWS
    share = n // tuning.SHARE_OF_ROWS
    share = min(max(share, least), most)

    # but enough for the landmarks
    enough = max(share, tuning.ROWS_OF_LANDMARK * c)
    return min(n, enough)


# The descent of landmarks, metric and γ down the loss, by Adam on batches of rows


@dataclass(frozen=True)
class Variables:
    """Landmarks Z (c, q), metric A and log γ as one vector.

    If `mapped`, the landmarks of the vector are U = ZA, and the metric does not move them.
    """

    n_landmarks: int
    n_features: int
    metric_shape: tuple[int, ...]
    mapped: bool

    def pack(self, point: Point) -> Array:
        """Return the vector of a point, or of a gradient."""
        xp = namespace(point.U)
        landmarks = xp.reshape(point.U, (-1,))
        metric = xp.reshape(point.A, (-1,))
        log_gamma = like(np.array([point.log_gamma]), point.U)
        return xp.concat([landmarks, metric, log_gamma])

    def unpack(self, x: Array) -> Point:
        """Return the point of a vector, with log γ within its bounds."""
        # in the order in which they were packed
        xp = namespace(x)
        size = self.n_landmarks * self.n_features
        shape = self.n_landmarks, self.n_features
        landmarks = xp.reshape(x[:size], shape)
        A = xp.reshape(x[size:-1], self.metric_shape)

        least, most = LOG_GAMMA
        log_gamma = min(max(float(x[-1]), least), most)
        return Point(landmarks, A, log_gamma)

    def mapped_point(self, point: Point) -> Point:
        """Return the point with mapped landmarks U, which the loss depends on."""
        if self.mapped:
            return point
        return point._replace(U=map_rows(point.U, point.A))

    def gradient(self, point: Point, of_loss: Point) -> Point:
        """Convert the gradient with respect to U, A and log γ to these variables."""
        if self.mapped:
            return of_loss
        return for_landmarks(point.U, point.A, of_loss)


@dataclass(frozen=True, eq=False)
class BatchGradient:
    """The gradient of the loss on the next rows of a sample, for each step of Adam.

    A row of a batch counts n / batch times (protein: .711 without, .694 with).
    """

    kernel: Radial
    rows: TrainingRows
    variables: Variables
    batch: int
    trace: float
    work: Progress

    def __call__(self, x: Array, step: int) -> Array | None:
        """Return the gradient at a vector, or None if a factorisation fails or time is over."""
        if not self.work.has_time(tuning.TIME_FOR_DESCENTS):
            return None

        # the next rows of the sample
        n = self.rows.n
        n_starts = n - self.batch + 1
        first = step * self.batch % n_starts
        last = first + self.batch
        batch = self.rows.at(slice(first, last))
        copies = n / self.batch

        # the loss's gradient by U and A, and from it that by the variables
        point = self.variables.unpack(x)
        mapped = self.variables.mapped_point(point)
        _, gradient = target_loss(self.kernel, batch, mapped, self.trace, copies)
        self.work.step(1 / tuning.FIRST_STEPS)
        if gradient is None:
            return None
        by_variables = self.variables.gradient(point, gradient)
        return self.variables.pack(by_variables)


def minimise_loss(
    kernel: Radial,
    rows: TrainingRows,
    start: Point,
    *,
    steps: int,
    batch: int,
    fixed_metric: bool,
    mapped: bool,
    work: Progress,
) -> Point:
    """Return Z, A and log γ after steps of Adam on the loss of centred rows.

    Bike has .0006 after 300 steps, and .012 with L-BFGS.
    """
    # the gradient of batches, by the variables of the candidate
    xp = namespace(start.U)
    c, q = start.U.shape
    variables = Variables(c, q, tuple(start.A.shape), mapped)
    trace = min(tuning.TRACE, c / rows.n)
    gradient = BatchGradient(kernel, rows, variables, batch, trace, work)

    # the unit of a step is a feature's spread for landmarks, and 1/√q for the metric
    spread = xp.std(rows.X, axis=0)
    spread = xp.where(spread > 0, spread, xp.ones_like(spread))
    if mapped:
        spread = spread / q**0.5
        start = start._replace(U=map_rows(start.U, start.A))
    of_landmarks = xp.ones_like(start.U) * spread

    # a metric that is given does not move
    of_metric = xp.ones_like(start.A) * q**-0.5
    if fixed_metric:
        of_metric = 0 * of_metric

    # Adam
    units = Point(of_landmarks, of_metric, 1.0)
    rates = tuning.RATE * variables.pack(units)
    first = variables.pack(start)
    found = anneal(gradient, first, steps, rates)
    end = variables.unpack(found)
    if not mapped:
        return end

    # from mapped landmarks U back to Z = U A⁻¹
    back = xp.linalg.inv(end.A)
    return end._replace(U=end.U @ back)


def anneal(
    gradient_at: Callable[[Array, int], Array | None],
    x: Array,
    steps: int,
    rate: Array,
) -> Array:
    """Minimise by Adam (Kingma and Ba 2015) from x, with a cosine schedule of learning rates.

    `gradient_at` maps x and the step's number to a gradient, or to None to leave the step out.
    """
    xp = namespace(x)
    mean = xp.zeros_like(x)
    square = xp.zeros_like(x)

    for i in range(steps):
        gradient = gradient_at(x, i)
        if gradient is None:
            continue

        # running means of the gradient and its square
        mean = tuning.FORGET * mean + (1 - tuning.FORGET) * gradient
        square = tuning.FORGET_SQUARE * square + (1 - tuning.FORGET_SQUARE) * gradient**2

        # which begin at zero, and are corrected for it
        known = 1 - tuning.FORGET ** (i + 1)
        known_square = 1 - tuning.FORGET_SQUARE ** (i + 1)
        size = xp.sqrt(square / known_square)

        # the rate falls along a cosine
        angle = math.pi * i / steps
        length = rate / 2 * (1 + math.cos(angle)) / known
        x = x - length * mean / (size + tuning.STILL)
    return x
