"""The predictive distribution of a regression, with width and shape from held-out rows.

An observation at x is distributed as mean(x) + std(x) · g(U, x) with a standard normal U. The
function g of U is increasing and piecewise linear: its values are quantiles of the standardised
residuals (y − mean)/std of held-out rows. They vary with the predicted mean or the predicted std,
so the noise may be skewed, heavy-tailed, and larger for larger predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from scipy.stats import t as student_t

from nysboost.learn.search.search import SearchResult
from nysboost.numerics.arrays import Array, Floats, Indices, like
from nysboost.numerics.linalg import positive_or_one

CENTRAL, NORMAL = 0.95, 1.959963984540054
"""The share of held-out rows that an interval of ±1.96 standard deviations should cover."""

FLOORS = np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
"""Noise that is added to variances, relative to their mean, because leaves underestimate it near
equal rows (concrete: interval score 1.84 without, 1.44 with, 1.47 with equal widths)."""

NORMAL_SCORES = np.linspace(-3.0, 3.0, 31)
"""Values of U at which g is stored."""

STEP = float(NORMAL_SCORES[1] - NORMAL_SCORES[0])
LAST_SEGMENT = len(NORMAL_SCORES) - 2

ROWS_PER_LEVEL, MOST_LEVELS = 100, 20
"""Held-out rows per level of the prediction. Pinball loss on twelve tables over that of a normal
distribution: .856 with 150 rows, .857 with 200, .852 with 100, .923 with a single level."""

BY_STD = 0.98
"""The levels are those of the predicted std, not of the mean, if held-out quantiles then have less
than this share of the pinball loss (keggundirected: .95 of it on test rows; five others keep the
mean, whose loss levels of the std increase by 0 to 5 %)."""

CHOOSING_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
CHOOSING_SCORES = norm.ppf(CHOOSING_LEVELS)
"""The quantiles whose loss decides between mean and std, and their normal scores."""

MARGIN = 0.01
"""The ends of intervals are moved outwards by this share of the standard deviation. Values shared
by many rows lie at quantiles, and rounding put them just outside (solar: 69 % of rows in 90 %
intervals, and 93 % with the margin)."""

OUTLYING = 0.01
"""This share of a density is Student's t with two degrees of freedom, for residuals beyond those of
held-out rows."""

LEARNING_POWER = 0.125
"""Errors fall with this power of the number of rows, so a model of all rows has smaller errors than
those of the folds. 90 % intervals of nine small tables cover 89 to 95 % with it (the mean is 91.5),
90 to 95 % without, and with 1/4 88 to 94 %: too few where all is noise, which does not fall."""

TINY = float(np.finfo(np.float64).tiny)

STEEPNESS = 0.01
"""Smallest slope of g, which bounds the density if many residuals are equal."""


@dataclass(frozen=True, eq=False)
class VarianceScale:
    """a²(v + b) of a variance v, with factors a and floors b, shape (t,)."""

    a: Floats
    b: Floats

    def __call__(self, variance: Array) -> Array:
        """Return the calibrated variances, shape (n, t)."""
        amplitude = like(self.a**2, variance)
        floor = like(self.b, variance)
        return amplitude * (variance + floor)


@dataclass(frozen=True, eq=False)
class ResidualShape:
    """Quantiles of the standardised residuals of one target, at levels of what is predicted.

    `levels` (m,), in rising order, are of the predicted mean, or with `by_std` of the logarithm of
    the predicted std. Row j of `values` (m, k) has g at the normal scores `NORMAL_SCORES` for the
    level j. Between the levels g is interpolated.
    """

    levels: Floats
    values: Floats
    by_std: bool = False

    def level(self, mean: Floats, std: Floats) -> Floats:
        """Return the level of rows with these predicted means and stds, (n,) each."""
        if not self.by_std:
            return mean
        return np.asarray(np.log(np.maximum(std, TINY)))

    def quantiles(self, level: Floats, scores: Floats) -> Floats:
        """Return g at q normal scores for rows of these levels, shape (n, q)."""
        repeated = np.tile(scores, (len(self.levels), 1))
        at_levels = _evaluate(self.values, repeated)
        return self._interpolate(level, at_levels)

    def draw(self, level: Floats, scores: Floats) -> Floats:
        """Return g at the normal scores (n, m) of rows of these levels, (n, m)."""
        return _evaluate(self._curves(level), scores)

    def log_density(self, level: Floats, residual: Floats) -> Floats:
        """Return the logarithm of the density of g(U) at residuals (n,), shape (n,)."""
        # that of U at g⁻¹(residual), over the slope there
        score, slope = _invert(self._curves(level), residual)
        inside = norm.logpdf(score) - np.log(slope)

        # a share of the density is that of outlying residuals
        outlying = student_t.logpdf(residual, 2)
        mixed = np.logaddexp(inside + np.log(1 - OUTLYING), outlying + np.log(OUTLYING))
        return np.asarray(mixed)

    def _curves(self, level: Floats) -> Floats:
        """Return g at all normal scores for rows of these levels, shape (n, k)."""
        return self._interpolate(level, self.values)

    def _interpolate(self, level: Floats, at_levels: Floats) -> Floats:
        """Return values between those at the levels (m, k), for rows of any level: (n, k)."""
        columns = [np.interp(level, self.levels, column) for column in at_levels.T]
        return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class Distribution:
    """The distribution of prediction errors on held-out rows, for standardised targets.

    `without_gaps` and `with_gaps` calibrate variances of rows without and with missing values, and
    `shapes` has g for each target.
    """

    without_gaps: VarianceScale
    with_gaps: VarianceScale
    shapes: tuple[ResidualShape, ...]

    def quantiles(self, mean: Floats, std: Floats, levels: Floats) -> Floats:
        """Return quantiles of rows with means and standard deviations (n, t): (n, t, q)."""
        scores = norm.ppf(levels)
        g = [
            shape.quantiles(level, scores)
            for shape, level in zip(self.shapes, self._levels(mean, std), strict=True)
        ]
        return mean[:, :, None] + std[:, :, None] * np.stack(g, axis=1)

    def draw(self, mean: Floats, std: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Return random observations for rows with means and stds (n, t): (n, t, count)."""
        g = []
        for shape, level in zip(self.shapes, self._levels(mean, std), strict=True):
            scores = rng.standard_normal((len(mean), count))
            g.append(shape.draw(level, scores))
        return mean[:, :, None] + std[:, :, None] * np.stack(g, axis=1)

    def log_density(self, mean: Floats, std: Floats, y: Floats) -> Floats:
        """Return the logarithm of the density at y, for each target, shape (n, t)."""
        width = np.maximum(std, TINY)
        residual = (y - mean) / width
        columns = []
        levels = self._levels(mean, std)
        for shape, level, z in zip(self.shapes, levels, residual.T, strict=True):
            columns.append(shape.log_density(level, z))
        return np.stack(columns, axis=1) - np.log(width)

    def _levels(self, mean: Floats, std: Floats) -> list[Floats]:
        """Return the levels of rows with means and stds (n, t), of each target (n,)."""
        targets = zip(self.shapes, mean.T, std.T, strict=True)
        return [shape.level(of_target, width) for shape, of_target, width in targets]


def calibrate_distribution(
    fitted: SearchResult, gaps: NDArray[np.bool_], train_share: float = 1.0
) -> Distribution:
    """Return the distribution estimated from held-out rows.

    Parameters
    ----------
    fitted : SearchResult
        Targets of h held-out rows, and predictions of models fitted without them.
    gaps : array of shape (h,)
        Which of them have missing values. Filling a gap increases the error, but hardly the
        variance. So rows with gaps have their own width (Mondrian conformal prediction, Vovk et al.
        2003).
    train_share : float
        Share of all rows that these models were fitted to.
    """
    if len(fitted.truth) == 1:  # which could not be held out: as uncertain as y
        return _distribution_of_one_row(fitted.mean)
    learned = train_share**LEARNING_POWER
    residual = learned * (fitted.truth - fitted.mean)
    variance = np.broadcast_to(positive_or_one(fitted.variance()), residual.shape)
    counts = np.ones(len(residual))
    if fitted.weights is not None:
        counts = fitted.weights

    # the width of both kinds of rows
    errors = HeldOutErrors(residual, variance, counts)
    without_gaps = _scale_to_cover(errors.of_kind(~gaps))
    with_gaps = _scale_to_cover(errors.of_kind(gaps))
    calibrated = np.where(gaps[:, None], with_gaps(variance), without_gaps(variance))

    # the shape of each target
    std = positive_or_one(np.sqrt(calibrated))
    shapes = []
    for mean, width, errors_of_target in zip(fitted.mean.T, std.T, residual.T, strict=True):
        shapes.append(_choose_shape(mean, width, errors_of_target, counts))
    return Distribution(without_gaps, with_gaps, tuple(shapes))


def _distribution_of_one_row(mean: Floats) -> Distribution:
    """Return normal distributions with one variance of y beside the model's; mean is (1, t)."""
    one = np.ones(mean.shape[1])
    scale = VarianceScale(one, one)
    shapes = [ResidualShape(of_target, NORMAL_SCORES[None, :]) for of_target in mean.T]
    return Distribution(scale, scale, tuple(shapes))


@dataclass(frozen=True, eq=False)
class HeldOutErrors:
    """Residuals and variances of held-out rows, (h, t) each, and their weights (h,)."""

    residual: Floats
    variance: Floats
    counts: Floats

    def of_kind(self, kind: NDArray[np.bool_]) -> HeldOutErrors:
        """Return the errors of rows of one kind, or of all rows if there are none of this kind."""
        if not self.counts[kind].any():
            return self
        return HeldOutErrors(self.residual[kind], self.variance[kind], self.counts[kind])


def _scale_to_cover(errors: HeldOutErrors) -> VarianceScale:
    """Return the scale for which intervals cover held-out rows.

    b maximises the likelihood of these rows. The coverage is that of conformal prediction: a new
    row is one among n + 1.
    """
    counts = errors.counts
    mean = np.average(errors.variance, axis=0, weights=counts)
    squared = errors.residual**2

    # the negative log likelihood of each floor b, with the amplitude that suits it
    losses = []
    for floor in FLOORS:
        v = errors.variance + floor * mean
        amplitude = np.average(squared / v, axis=0, weights=counts)
        log_amplitude = np.log(np.maximum(amplitude, TINY))
        log_v = np.average(np.log(v), axis=0, weights=counts)
        losses.append(log_v + log_amplitude)
    best = np.argmin(losses, axis=0)
    b = FLOORS[best] * mean

    share = min(CENTRAL * (1 + 1 / counts.sum()), 1.0)
    ratio = np.sqrt(squared / (errors.variance + b))
    covering = np.quantile(ratio, share, axis=0, weights=counts, method="inverted_cdf")
    return VarianceScale(np.asarray(covering / NORMAL), b)


def _choose_shape(mean: Floats, std: Floats, residual: Floats, counts: Floats) -> ResidualShape:
    """Return the shape of residuals (h,) of one target, by levels of the mean or of the std."""
    z = residual / std
    log_std = np.log(std)
    by_mean = _find_shape(mean, z, counts)
    if len(by_mean.levels) == 1:
        return by_mean

    # each half of the rows scores quantiles of the other half
    half, other_half = np.array_split(np.random.default_rng(0).permutation(len(z)), 2)
    losses = []
    for level in (mean, log_std):
        loss = 0.0
        for some, others in ((half, other_half), (other_half, half)):
            shape = _find_shape(level[some], z[some], counts[some])
            of_rows = _pinball(shape.quantiles(level[others], CHOOSING_SCORES), z[others])
            loss += float(of_rows @ (std * counts)[others])
        losses.append(loss)
    if losses[1] >= BY_STD * losses[0]:
        return by_mean
    return replace(_find_shape(log_std, z, counts), by_std=True)


def _pinball(quantiles: Floats, z: Floats) -> Floats:
    """Return the pinball loss of quantiles (h, q) of residuals z (h,), summed over the levels."""
    missed = z[:, None] - quantiles
    loss = np.maximum(CHOOSING_LEVELS * missed, (CHOOSING_LEVELS - 1) * missed)
    return np.asarray(loss.sum(axis=1))


def _find_shape(level: Floats, z: Floats, counts: Floats) -> ResidualShape:
    """Return the quantiles of standardised residuals z (h,), by levels of what is predicted."""
    n_levels = min(max(len(z) // ROWS_PER_LEVEL, 1), MOST_LEVELS)
    parts = np.array_split(np.argsort(level, kind="stable"), n_levels)
    levels = [np.median(level[rows]) for rows in parts]
    values = [_conformal_quantiles(z[rows], counts[rows]) for rows in parts]
    return ResidualShape(np.array(levels), np.array(values))


def _conformal_quantiles(z: Floats, counts: Floats) -> Floats:
    """Return quantiles of z (h,) at `NORMAL_SCORES`, shape (k,).

    A new residual is as likely to be in any of the h + 1 gaps between the sorted ones, so that the
    i-th is the quantile of level i/(h + 1).
    """
    order = np.argsort(z, kind="stable")
    cumulated = np.cumsum(counts[order]) / counts.sum()
    level = cumulated * (len(z) / (len(z) + 1))
    values = _extend(norm.ppf(level), z[order])

    # no slope below the least one, without a shift of the median
    line = STEEPNESS * NORMAL_SCORES
    increasing = np.maximum.accumulate(values - line)
    return np.asarray(increasing + line)


def _extend(scores: Floats, z: Floats) -> Floats:
    """Return the values z at rising normal scores, both (h,), interpolated at `NORMAL_SCORES`.

    Each tail is straight, with the mean slope of its outer unit of scores.
    """
    values = np.interp(NORMAL_SCORES, scores, z)
    first = float(scores[0])
    last = float(scores[-1])
    low_slope = 1.0
    high_slope = 1.0
    if first < last:
        low_slope = _mean_slope(scores, z, first, min(first + 1, last))
        high_slope = _mean_slope(scores, z, max(last - 1, first), last)

    below = np.minimum(NORMAL_SCORES - first, 0)
    above = np.maximum(NORMAL_SCORES - last, 0)
    return np.asarray(values + low_slope * below + high_slope * above)


def _mean_slope(scores: Floats, z: Floats, low: float, high: float) -> float:
    """Return the mean slope between two scores of the line through all (score, z)."""
    ends = np.interp([low, high], scores, z)
    return float((ends[1] - ends[0]) / (high - low))


# Piecewise-linear functions of the normal score, with straight tails


def _evaluate(curves: Floats, scores: Floats) -> Floats:
    """Return g at normal scores (n, m), of each row with values in its row of curves (n, k)."""
    segment = np.searchsorted(NORMAL_SCORES, scores, side="right") - 1
    segment = np.clip(segment, 0, LAST_SEGMENT)
    left, slope = _segments(curves, segment)
    return left + slope * (scores - NORMAL_SCORES[segment])


def _invert(curves: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """Return the normal score at which g of each row is its residual (n,), and the slope there."""
    is_left = curves <= residuals[:, None]
    segment = np.clip(is_left.sum(axis=1) - 1, 0, LAST_SEGMENT)
    left, slope = _segments(curves, segment[:, None])

    beyond = (residuals - left[:, 0]) / slope[:, 0]
    return NORMAL_SCORES[segment] + beyond, slope[:, 0]


def _segments(curves: Floats, segment: Indices) -> tuple[Floats, Floats]:
    """Return values at the left ends of segments (n, m) of each row's curve, and slopes there."""
    left = np.take_along_axis(curves, segment, axis=1)
    right = np.take_along_axis(curves, segment + 1, axis=1)
    return left, (right - left) / STEP
