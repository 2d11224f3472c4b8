"""The predictive distribution of a regression, with width and shape from held-out rows.

An observation at x is distributed as mean(x) + std(x) · g(U, x) with a standard normal U. The
function g of U is increasing and piecewise linear: its values are quantiles of the standardised
residuals (y − mean)/std of held-out rows. They vary with the predicted mean or the predicted std,
so the noise may be skewed, heavy-tailed, and larger for larger predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator, default_rng
from scipy.stats import norm
from scipy.stats import t as student_t

from nysboost.learn.search.search import SearchResult
from nysboost.numerics.arrays import Array, Floats, Indices, like
from nysboost.numerics.linalg import positive_or_one
from nysboost.tables.values import Booleans

CENTRAL, NORMAL = 0.95, 1.959963984540054
"""The share of held-out rows that an interval of ±1.96 standard deviations should cover."""

FLOORS = np.array([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
"""Noise that is added to variances, relative to their mean, because leaves underestimate it near
equal rows (concrete: interval score 1.84 without, 1.44 with, 1.47 with equal widths)."""

NORMAL_SCORES = np.linspace(-3.0, 3.0, 31)
"""Values of U at which g is stored."""

STEP = float(NORMAL_SCORES[1] - NORMAL_SCORES[0])
LAST_SEGMENT = len(NORMAL_SCORES) - 2

ROWS_PER_LEVEL = 100
"""Held-out rows per level of the prediction. Pinball loss on twelve tables over that of a normal
distribution: .856 with 150 rows, .857 with 200, .852 with 100, .923 with a single level."""

MOST_LEVELS = 20
"""With more held-out rows, each level has more of them."""

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
        known = np.maximum(std, TINY)
        return np.asarray(np.log(known))

    def quantiles(self, level: Floats, scores: Floats) -> Floats:
        """Return g at q normal scores for rows of these levels, shape (n, q)."""
        # g at each level, and between the levels
        m = len(self.levels)
        repeated = np.tile(scores, (m, 1))
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
        outlying = student_t.logpdf(residual, 2)

        # the mixture (1 − ε) · inside + ε · outlying
        inside += np.log(1 - OUTLYING)
        outlying += np.log(OUTLYING)
        return np.asarray(np.logaddexp(inside, outlying))

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
        g = []
        for shape, level in self._by_target(mean, std):
            g.append(shape.quantiles(level, scores))
        return _add_noise(mean, std, g)

    def draw(self, mean: Floats, std: Floats, count: int, rng: Generator) -> Floats:
        """Return random observations for rows with means and stds (n, t): (n, t, count)."""
        n = len(mean)
        g = []
        for shape, level in self._by_target(mean, std):
            scores = rng.standard_normal((n, count))
            g.append(shape.draw(level, scores))
        return _add_noise(mean, std, g)

    def log_density(self, mean: Floats, std: Floats, y: Floats) -> Floats:
        """Return the logarithm of the density at y, for each target, shape (n, t)."""
        width = np.maximum(std, TINY)
        residual = (y - mean) / width

        columns = []
        for j, (shape, level) in enumerate(self._by_target(mean, std)):
            columns.append(shape.log_density(level, residual[:, j]))
        of_residuals = np.stack(columns, axis=1)

        # y = mean + width · residual stretches the density by the width
        return of_residuals - np.log(width)

    def _by_target(self, mean: Floats, std: Floats) -> Iterator[tuple[ResidualShape, Floats]]:
        """Yield for each target its shape, and the levels (n,) of rows with these predictions."""
        for j, shape in enumerate(self.shapes):
            yield shape, shape.level(mean[:, j], std[:, j])


def _add_noise(mean: Floats, std: Floats, g: Sequence[Floats]) -> Floats:
    """Return mean + std · g for rows (n, t), with t arrays g of shape (n, q): (n, t, q)."""
    noise = std[:, :, None] * np.stack(g, axis=1)
    return mean[:, :, None] + noise


def calibrate_distribution(
    fitted: SearchResult, gaps: Booleans, train_share: float = 1.0
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

    # residuals that a model of all rows would have
    learned = train_share**LEARNING_POWER
    residual = learned * (fitted.truth - fitted.mean)
    of_models = positive_or_one(fitted.variance())
    variance = np.broadcast_to(of_models, residual.shape)
    counts = np.ones(len(residual))
    if fitted.weights is not None:
        counts = fitted.weights

    # the width of both kinds of rows
    errors = HeldOutErrors(residual, variance, counts)
    without_gaps = _scale_to_cover(errors.of_kind(~gaps))
    with_gaps = _scale_to_cover(errors.of_kind(gaps))
    calibrated = without_gaps(variance)
    calibrated[gaps] = with_gaps(variance[gaps])

    # the shape of each target
    std = positive_or_one(np.sqrt(calibrated))
    z = residual / std
    shapes = []
    for j, width in enumerate(std.T):
        by_mean = StandardResiduals(fitted.mean[:, j], z[:, j], counts)
        shapes.append(_choose_shape(by_mean, width))
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

    def of_kind(self, kind: Booleans) -> HeldOutErrors:
        """Return the errors of rows of one kind, or of all rows if there are none of this kind."""
        counts = self.counts[kind]
        if not counts.any():
            return self
        return HeldOutErrors(self.residual[kind], self.variance[kind], counts)


def _scale_to_cover(errors: HeldOutErrors) -> VarianceScale:
    """Return the scale for which intervals cover held-out rows.

    b maximises the likelihood of these rows. The coverage is that of conformal prediction: a new
    row is one among n + 1.
    """
    counts = errors.counts
    mean = np.average(errors.variance, axis=0, weights=counts)
    squared = errors.residual**2

    # twice the negative log likelihood of each floor b, up to a constant: the mean of log(a² v),
    # with a² = mean of r²/v, which makes it smallest
    losses = []
    for floor in FLOORS:
        v = errors.variance + floor * mean
        amplitude = np.average(squared / v, axis=0, weights=counts)
        log_amplitude = np.log(np.maximum(amplitude, TINY))
        log_v = np.average(np.log(v), axis=0, weights=counts)
        losses.append(log_v + log_amplitude)

    best = np.argmin(losses, axis=0)
    b = FLOORS[best] * mean

    # a covers the share (h + 1)/h of 95 % of the held-out rows
    share = CENTRAL * (1 + 1 / counts.sum())
    ratio = np.sqrt(squared / (errors.variance + b))
    covering = np.quantile(
        ratio,
        min(share, 1.0),
        axis=0,
        weights=counts,
        method="inverted_cdf",
    )
    a = np.asarray(covering / NORMAL)
    return VarianceScale(a, b)


@dataclass(frozen=True, eq=False)
class StandardResiduals:
    """Standardised residuals z of one target, levels of predictions, and weights, (h,) each."""

    level: Floats
    z: Floats
    counts: Floats

    def take(self, rows: Indices) -> StandardResiduals:
        """Return the residuals of some rows."""
        return StandardResiduals(self.level[rows], self.z[rows], self.counts[rows])

    def find_shape(self) -> ResidualShape:
        """Return quantiles of z for rows of similar level."""
        # parts of equally many rows, in the order of their levels
        n_levels = len(self.z) // ROWS_PER_LEVEL
        n_levels = min(max(n_levels, 1), MOST_LEVELS)
        order = np.argsort(self.level, kind="stable")

        # each part stands for the median of its levels
        levels = []
        values = []
        for rows in np.array_split(order, n_levels):
            part = self.take(rows)
            levels.append(np.median(part.level))
            values.append(_conformal_quantiles(part.z, part.counts))
        return ResidualShape(np.array(levels), np.array(values))


def _choose_shape(by_mean: StandardResiduals, std: Floats) -> ResidualShape:
    """Return the shape of the residuals of one target, by levels of the mean or of the std (h,)."""
    shape = by_mean.find_shape()
    if len(shape.levels) == 1:
        return shape

    # losses are in the units of the target
    units = std * by_mean.counts
    by_std = replace(by_mean, level=np.log(std))
    loss_by_mean = _cross_validate(by_mean, units)
    loss_by_std = _cross_validate(by_std, units)
    if loss_by_std >= BY_STD * loss_by_mean:
        return shape
    return replace(by_std.find_shape(), by_std=True)


def _cross_validate(residuals: StandardResiduals, units: Floats) -> float:
    """Return the loss on each half of the rows of quantiles learned from the other half."""
    rng = default_rng(0)
    order = rng.permutation(len(units))
    first, second = np.array_split(order, 2)

    loss = 0.0
    for learned, scored in ((first, second), (second, first)):
        part = residuals.take(learned)
        shape = part.find_shape()
        quantiles = shape.quantiles(residuals.level[scored], CHOOSING_SCORES)
        missed = residuals.z[scored, None] - quantiles
        of_rows = pinball(missed, CHOOSING_LEVELS).sum(axis=1)
        loss += float(of_rows @ units[scored])
    return loss


def pinball(missed: Floats, levels: Floats) -> Floats:
    """Return the pinball loss: τ e if y is above the quantile of level τ, else (τ − 1) e.

    The last axis of the differences e = y − quantile has one entry for each of the levels (q,).
    """
    return np.maximum(levels * missed, (levels - 1) * missed)


def _conformal_quantiles(z: Floats, counts: Floats) -> Floats:
    """Return quantiles of z (h,) at `NORMAL_SCORES`, shape (k,).

    A new residual is as likely to be in any of the h + 1 gaps between the sorted ones, so that the
    i-th is the quantile of level i/(h + 1).
    """
    order = np.argsort(z, kind="stable")
    h = len(z)
    cumulated = np.cumsum(counts[order]) / counts.sum()
    level = cumulated * (h / (h + 1))
    scores = norm.ppf(level)
    values = _extend(scores, z[order])

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
    low_slope = _mean_slope(scores, z, first, min(first + 1, last))
    high_slope = _mean_slope(scores, z, max(last - 1, first), last)

    # how far each score lies beyond all that were observed
    below = np.minimum(NORMAL_SCORES - first, 0)
    above = np.maximum(NORMAL_SCORES - last, 0)
    return np.asarray(values + low_slope * below + high_slope * above)


def _mean_slope(scores: Floats, z: Floats, low: float, high: float) -> float:
    """Return the mean slope between two scores of the line through all (score, z)."""
    if low == high:  # of a single score, as of standard normal residuals
        return 1.0
    rise = np.diff(np.interp([low, high], scores, z))
    return float(rise[0] / (high - low))


# Piecewise-linear functions of the normal score, with straight tails


def _evaluate(curves: Floats, scores: Floats) -> Floats:
    """Return g at normal scores (n, m), of each row with values in its row of curves (n, k)."""
    segment = np.searchsorted(NORMAL_SCORES, scores, side="right") - 1
    segment = np.clip(segment, 0, LAST_SEGMENT)
    left, slope = _segments(curves, segment)
    return left + slope * (scores - NORMAL_SCORES[segment])


def _invert(curves: Floats, residuals: Floats) -> tuple[Floats, Floats]:
    """Return the normal score at which g of each row is its residual (n,), and the slope there."""
    # the segment that begins with the last value below the residual
    z = residuals[:, None]
    n_below = np.sum(curves <= z, axis=1, keepdims=True)
    segment = np.clip(n_below - 1, 0, LAST_SEGMENT)
    left, slope = _segments(curves, segment)

    # on the straight line through its ends
    score = NORMAL_SCORES[segment] + (z - left) / slope
    return score[:, 0], slope[:, 0]


def _segments(curves: Floats, segment: Indices) -> tuple[Floats, Floats]:
    """Return values at the left ends of segments (n, m) of each row's curve, and slopes there."""
    left = np.take_along_axis(curves, segment, axis=1)
    right = np.take_along_axis(curves, segment + 1, axis=1)
    return left, (right - left) / STEP
