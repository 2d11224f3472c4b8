"""Regression with landmarks, and with all training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from nysboost.estimators.estimator import all_or_nothing, fit_method, with_usual_errors
from nysboost.learn.base import A, BaseLearner
from nysboost.learn.distribution import MARGIN, calibrate_distribution, pinball
from nysboost.learn.input import SMALLEST, TrainingTable
from nysboost.learn.search.data import FOLDS, uses_folds
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, TableLike, is_lazy
from nysboost.numerics.checks import (
    LEAVE_OUT,
    RandomState,
    bring_to_host,
    make_rng,
    refuse_non_finite,
    refuse_unequal,
    require_count,
    to_numbers,
)
from nysboost.numerics.linalg import positive_or_one
from nysboost.rows.rows import Rows

CRPS_LEVELS = np.arange(0.5, 100) / 100
"""Levels of the quantiles whose pinball losses are averaged to give the ranked probability
score."""


LARGEST = 1e308
"""Largest target: differences of larger ones are out of range."""


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemRegressor(MultiOutputMixin, RegressorMixin, BaseLearner):
    """Regression in two stages: landmarks learn kernel and metric, then all rows predict.

    The first stage finds kernel, metric, landmarks, noise and penalty on a sample whose size does
    not grow with n. The second stage divides all rows, mapped by the metric, into the leaves of a
    tree. In each leaf, exact kernel ridge regression corrects the prediction of the landmarks.
    Held-out rows decide which candidates are used, and with what weight. Small tables use
    cross-validation.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_components : int or "auto"
        Largest number of landmarks of each member of the mixture. "auto" is 256, or up to 1,024 for
        a linear model of a table with few rows and many columns. Raising this rarely helps:
        predictions also use all training rows.
    kernel : "auto", str or Kernel
        "auto" tries Matérn 1/2 and 3/2, or Gaussian and Matérn 3/2 if there are many features. You
        can also pass "gaussian", "matern" or a kernel; the learned metric replaces its bandwidth.
        For `Anova`, only a bandwidth is found, with landmarks chosen by "rpcholesky", which are not
        trained on y. "linear", with ``local=False``, is a linear model of the columns.
    metric : "auto", "one", "each", "full" or None
        Shape of the metric: one scale, one scale for each feature, or a matrix. None learns no
        metric: the kernel, such as ``Gaussian(gamma="scale")``, is used as given, on unscaled rows.
        Landmarks are then trained for a few steps only, which is much faster.
    landmarks : str
        "target" trains the landmarks on y. For comparison, you can choose landmarks that do not
        depend on y: "uniform", "joint", "kmeans", "rpcholesky" and every other method of
        `nysboost.METHODS` with landmarks. They have no metric, and a bandwidth chosen on held-out
        rows.
    scale : "auto", "standard", "quantile" or None
        Scaling of the features before the search: to unit standard deviation, to normal quantiles
        (for heavy tails), or all by the same factor (None). "auto" scales to unit standard
        deviation. It also tries piecewise-linear codes of the columns and, with up to 5,000 rows,
        quantiles.
    local : bool, int or "auto"
        Whether predictions also use all training rows, by kernel ridge regression in the leaf of a
        new row, if held-out rows show that this is better. "auto" uses leaves if they fit in
        `max_memory`; True raises an error if they do not. A number is the largest number of rows in
        a leaf.
    missing : "fill" or "raise"
        "fill" replaces a missing value by the median, and adds an indicator column; "raise" raises
        an error.
    ids : "drop" or "keep"
        Whether a column of a data frame with a different whole number in each row, such as order
        numbers, is left out or used.
    cv : "time", list of (train, test) or None
        Which rows are held out. None draws them at random, or by the `groups` passed to `fit`.
        "time" holds out the last rows of X, which must be in order of time; the model is then
        selected, and its intervals are calibrated, for later rows. A list of splits, such as
        ``list(KFold(5).split(X))``, holds out each test set in turn. The test sets must contain
        each row exactly once.
    max_time : float or None
        Approximate number of seconds after which `fit` ends with the best model so far; None is no
        limit. The first candidate is always fitted completely.
    max_memory : int or str
        Working memory of passes over the rows, in bytes or as "500MB".
    n_jobs, verbose, random_state
        As in `nysboost.approximate`.

    Attributes
    ----------
    n_components_ : int
        Number of landmarks, given or found.
    kernel_ : Kernel
        The kernel with its metric, of the member with the largest weight.
    components_ : array of shape (c, d)
        Its landmarks.
    approximation_ : Approximation
        Its Nyström approximation of the kernel matrix.
    mixture_weights_ : array of shape (m,)
        Weight of each member in the prediction; a single 1 if one candidate was chosen.
    n_local_rows_ : int
        Number of training rows used for predictions in leaves.
    validation_error_ : float
        Root mean squared error on held-out rows, in standard deviations of y.
    candidates_ : list of (str, float)
        All candidates, each with its root mean squared error on held-out rows.
    feature_importances_ : array of shape (d,)
        Importance of each column: the increase of the squared error on held-out rows when the
        column is shuffled, as shares of the total increase.

    See Also
    --------
    NystroemClassifier : the same for labels.
    Nystroem : features for any linear model.
    Metric : the learned metric, or one of your own.
    nysboost.plots.IntervalDisplay : draws predictions with intervals.
    save : writes a fitted model to a file.
    to_onnx : exports it for other programs.

    Notes
    -----
    Landmarks Z and metric A minimise the collapsed bound of sparse Gaussian process regression [1]_
    on a sample. With `local`, all rows, mapped by A, are then divided into leaves, and (k(V, V) +
    ρI) w = r is solved in each leaf with rows V.

    References
    ----------
    .. [1] M. Titsias (2009). Variational learning of inducing variables in sparse Gaussian
          processes. AISTATS.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=300)
    >>> model = nb.NystroemRegressor(n_components=30, random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:]) > 0.97
    True
    >>> int(model.feature_importances_.argmax())
    0
    """

    @fit_method
    def fit(
        self,
        X: TableLike | Iterator[tuple[TableLike, TableLike]],
        y: TableLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | str | None = None,
        validation: tuple[object, ...] | None = None,
    ) -> NystroemRegressor:
        """Find landmarks, metric and weights, and calibrate predictive distributions.

        Parameters
        ----------
        X : array-like, DataFrame, CSR matrix, memory map, HDF5 or Zarr array, GPU array
            Training rows, shape (n, d); or an iterator of pairs (X, y), with y left out.
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like of shape (n,) or None
            Weight of each row.
        groups : array-like of shape (n,), str or None
            Group of each row, such as its customer. All rows of a group are held out together, so
            that the model is selected for rows of new groups. A string names a column of the data
            frame X, which is then not used as a feature.
        validation : tuple (X, y) or (X, y, sample_weight), or None
            Rows that are held out instead of rows of X: they select and calibrate the model, which
            is then fitted to X alone. Of more than 16,384 rows, so many are used.

        Examples
        --------
        >>> import numpy as np, nysboost as nb
        >>> rng = np.random.default_rng(0)
        >>> customers = np.repeat(np.arange(40), 5)
        >>> X = rng.normal(size=(40, 2))[customers]
        >>> y = X[:, 0] + rng.normal(size=40)[customers]
        >>> model = nb.NystroemRegressor(10, random_state=0).fit(X, y, groups=customers)
        >>> bool(model.validation_error_ > 0.5)
        True
        """
        return self._fit_any(X, y, sample_weight, groups, validation)

    def _fit(self, table: TrainingTable) -> None:
        # targets and weights, without rows of weight 0
        Y, self._flat = self._targets(table.y, table.X)
        weights = self._sample_weight(table.weights, len(Y))
        table = replace(table, y=Y, weights=weights)
        table = table.counting()

        # targets of mean 0 and spread 1
        self._centre, self._unit = _location_and_scale(table.y, table.weights)
        scaled = self._standardise(table.y)
        self._variance_of_y = np.average(scaled**2, axis=0, weights=table.weights)

        table = replace(table, y=scaled)
        fitted = self._learn(table, local=self.local)

        # a model that was fitted without one of five folds knows 4/5 of the rows
        train_share = 1.0
        at_random = table.groups is None and self.cv is None and table.validation is None
        if at_random and uses_folds(len(scaled)):
            train_share = 1 - 1 / FOLDS

        # predictive distributions, from held-out rows
        assert fitted.X is not None
        gaps = self._find_gaps(fitted.X)
        self._distribution = calibrate_distribution(fitted, gaps, train_share)

    @all_or_nothing
    def partial_fit(
        self, X: TableLike, y: TableLike, sample_weight: ArrayLike | None = None
    ) -> NystroemRegressor:
        """Add rows to the weights and the leaves. The first call fits.

        Landmarks, metric, noise and intervals stay as they were fitted to the first rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        """
        if not hasattr(self, "_members"):
            return self.fit(X, y, sample_weight)
        self._add(TrainingTable(X, y, sample_weight))
        return self

    def _in_units_of_fit(self, table: TrainingTable) -> TrainingTable:
        Y = self._observations(table.y, table.X)
        scaled = self._standardise(Y)

        # squares of larger targets are out of range
        if abs(scaled).max() > 1 / SMALLEST:
            largest = float(abs(Y).max())
            raise ValueError(
                f"y has values up to {largest:.3g}. These are too far from the values that the "
                "model was fitted to: check their unit, or fit one model to all rows."
            )

        weights = self._added_weight(table.weights, len(Y))
        return replace(table, y=scaled, weights=weights)

    @overload
    def predict(self, X: TableLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: TableLike, return_std: Literal[True]) -> tuple[Array, Array]: ...
    @overload
    def predict(self, X: TableLike, return_std: bool) -> Array | tuple[Array, Array]: ...
    @with_usual_errors
    def predict(self, X: TableLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return predictions, and optionally the standard deviations of observations at X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Any rows. Far from all landmarks, the prediction is the mean of y.
        return_std : bool
            Whether to also return standard deviations. They are those of a Gaussian process, scaled
            so that ±1.96 standard deviations covered 95 % of the held-out rows, and separately 95 %
            of those with missing values. For intervals of other levels, use `predict_interval`.

        Returns
        -------
        mean : array of shape (n,) or (n, t)
        std : array of the same shape, if `return_std`
        """
        if not return_std:
            means = self._evaluate(X, _means)
            return self._shaped(means)
        side_by_side = self._evaluate(X, _means_and_stds)
        return self._shaped_halves(side_by_side)

    @with_usual_errors
    def predict_interval(self, X: TableLike, coverage: float = 0.9) -> tuple[Array, Array]:
        """Return the ends of central prediction intervals.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, from anywhere.
        coverage : float
            Share of new observations that the intervals should contain, between 0 and 1.

        Returns
        -------
        lower, upper : arrays of shape (n,) or (n, t)
            Quantiles of levels (1 − coverage)/2 and (1 + coverage)/2. Both are moved outwards by a
            hundredth of the standard deviation, so that values shared by many rows are inside.

        Notes
        -----
        Held-out rows calibrate the intervals, as in conformal prediction. The i-th smallest of h
        standardised residuals is the quantile of level i / (h + 1). A new row that is exchangeable
        with the held-out rows exceeds it with probability 1 − i / (h + 1). This holds only
        approximately, because the standard deviations and the levels of the prediction are
        estimated from the same rows. In cross-validation, residuals are multiplied by (4/5)^(1/8),
        because a model of all rows has smaller errors.

        Examples
        --------
        >>> import numpy as np, nysboost as nb
        >>> X = np.random.default_rng(0).uniform(size=(200, 2))
        >>> model = nb.NystroemRegressor(random_state=0).fit(X[:150], X[:150, 0])
        >>> lower, upper = model.predict_interval(X[150:], coverage=0.8)
        >>> bool((lower < upper).all())
        True
        """
        levels = check_levels(coverage, "coverage")
        if np.ndim(coverage):
            raise ValueError(
                f"coverage is one number, but {coverage!r} was given: for several levels, use "
                "predict_quantiles."
            )

        # as many observations are below the interval as above it
        outside = (1 - levels[0]) / 2
        ends = np.array([outside, 1 - outside])
        found = self._evaluate(X, Quantiles(ends, MARGIN))
        return self._shaped_halves(found)

    @with_usual_errors
    def predict_quantiles(self, X: TableLike, levels: ArrayLike = (0.05, 0.5, 0.95)) -> Array:
        """Return quantiles of observations at X. They do not cross.

        Their shape is that of the residuals of held-out rows. It varies with the predicted mean, or
        with the predicted standard deviation if that fits held-out rows better. The quantile of
        level 0.5 is the median. It differs from `predict` if the noise is skewed.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, from anywhere.
        levels : array-like of shape (q,)
            Levels of the quantiles, between 0 and 1.

        Returns
        -------
        array of shape (n, q) or (n, t, q)
        """
        checked = check_levels(levels, "levels")
        found = self._evaluate(X, Quantiles(checked))
        if self._flat:
            return found

        # side by side are the targets of the first level, of the second, …
        t = len(self._unit)
        of_levels = []
        for j in range(len(checked)):
            first = j * t
            of_levels.append(found[:, first : first + t])
        stacked: Array = arrays.namespace(found).stack(of_levels, axis=2)
        return stacked

    @with_usual_errors
    def sample(self, X: TableLike, n_samples: int = 1, random_state: RandomState = None) -> Floats:
        """Return independent random observations at X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows in memory.
        n_samples : int
            Number of observations at each row.
        random_state : int, Generator, RandomState or None
            The seed.

        Returns
        -------
        array of shape (n, n_samples) or (n, t, n_samples)
        """
        require_count("n_samples", n_samples)
        rng = make_rng(random_state)
        mean, std = self._predict_scaled(X)
        drawn = self._distribution.draw(mean, std, n_samples, rng)
        return self._shaped(self._in_units(drawn))

    @with_usual_errors
    def log_prob(self, X: TableLike, y: TableLike) -> Floats:
        """Return the logarithm of the predictive density at observations y.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows in memory.
        y : array-like of shape (n,) or (n, t)
            Observations.

        Returns
        -------
        array of shape (n,) or (n, t)
        """
        scaled, mean, std = self._compare(X, y)
        of_scaled = self._distribution.log_density(mean, std, scaled)

        # y = centre + unit · scaled stretches the density by the unit
        found = of_scaled - np.log(self._unit)
        return self._shaped(found)

    @with_usual_errors
    def crps(self, X: TableLike, y: TableLike) -> Floats:
        """Return the continuous ranked probability score of observations y; smaller is better.

        It is twice the pinball loss, averaged over quantile levels, in the units of y.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows in memory.
        y : array-like of shape (n,) or (n, t)
            Observations.

        Returns
        -------
        array of shape (n,) or (n, t)
        """
        scaled, mean, std = self._compare(X, y)
        quantiles = self._distribution.quantiles(mean, std, CRPS_LEVELS)
        missed = scaled[:, :, None] - quantiles

        # twice the integral of the pinball loss over the levels
        losses = pinball(missed, CRPS_LEVELS)
        found: Floats = 2 * losses.mean(axis=2) * self._unit
        return self._shaped(found)

    def _compare(self, X: TableLike, y: TableLike) -> tuple[Floats, Floats, Floats]:
        """Return observations, means and deviations, (n, t) each, of y at unit spread."""
        Y = self._observations(y, X)
        mean, std = self._predict_scaled(X)
        refuse_unequal(len(mean), len(Y))
        return self._standardise(Y), mean, std

    def _predict_scaled(self, X: TableLike) -> tuple[Floats, Floats]:
        """Return means and standard deviations on the host, of y at unit spread, (n, t) each."""
        found = self._evaluate(X, _means_and_stds)
        if is_lazy(found):
            raise ValueError(
                "X is lazy, but this method needs rows in memory: compute X first, or use "
                "predict_quantiles, which is lazy too."
            )
        return self._split_scaled(found)

    def _split_scaled(self, found: Array) -> tuple[Floats, Floats]:
        """Split predictions (n, 2t) into standardised means and deviations, (n, t) each."""
        host = arrays.floats_on_host(found)
        t = len(self._unit)
        mean = self._standardise(host[:, :t])
        std = host[:, t:] / self._unit
        return mean, std

    def _standardise(self, Y: Floats) -> Floats:
        """Return targets with mean 0 and standard deviation 1, shape (n, t)."""
        return (Y - self._centre) / self._unit

    def _in_units(self, scaled: Floats) -> Floats:
        """Return values of standardised targets, (n, t, q), in the units of y."""
        return scaled * self._unit[:, None] + self._centre[:, None]

    def _observations(self, y: TableLike, X: TableLike) -> Floats:
        """Return y as numbers, shape (n, t)."""
        check_is_fitted(self)
        Y, _ = self._targets(y, X)
        t = len(self._unit)
        if Y.shape[1] != t:
            raise ValueError(f"y has {Y.shape[1]} columns, but the model was fitted with {t}.")
        return Y

    def _shaped(self, found: A) -> A:
        """Return an array of shape (n, t, ...), or its first target if y had the shape (n,)."""
        if not self._flat:
            return found
        return cast("A", found[:, 0])

    def _shaped_halves(self, found: Array) -> tuple[Array, Array]:
        """Return the two halves of an array of shape (n, 2t), shaped like y."""
        t = len(self._unit)
        left = self._shaped(found[:, :t])
        right = self._shaped(found[:, t:])
        return left, right

    def _targets(self, y: TableLike | None, X: TableLike) -> tuple[Floats, bool]:
        """Return y as numbers, shape (n, t), and whether it had the shape (n,)."""
        host = bring_to_host(y, self)
        try:
            if not arrays.is_sparse(host):
                host = to_numbers(host, name="y")
        except ValueError as error:
            if "does not convert" not in str(error):
                raise
            raise ValueError(f"{error} For labels, use NystroemClassifier.") from error

        checked = check_array(
            host, ensure_2d=False, ensure_all_finite=False, dtype=np.float64,
            input_name="y", estimator=self,
        )  # fmt: skip
        refuse_non_finite(checked, 0, "y", LEAVE_OUT)
        largest = float(abs(checked).max(initial=0.0))
        if largest > LARGEST:
            raise ValueError(f"y has values up to {largest:.3g}, out of range: divide y by 1e10.")
        is_column = checked.ndim == 2 and checked.shape[1] == 1
        if is_column and hasattr(X, "shape"):
            checked = column_or_1d(checked, warn=True)
        Y = np.asarray(checked.reshape(len(checked), -1))
        return Y, checked.ndim == 1


def _location_and_scale(Y: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    """Return the weighted means and standard deviations of the columns of Y, (t,) each."""
    # in units of a power of two, which changes no digit, so that no square is out of range
    largest = np.abs(Y).max(axis=0)
    _, exponents = np.frexp(largest)
    unit = np.exp2(exponents - 1.0)
    scaled = Y / unit

    centre = np.average(scaled, axis=0, weights=weights)
    squared = (scaled - centre) ** 2
    variance = np.average(squared, axis=0, weights=weights)
    if len(Y) == 1:  # nothing says how much y varies: take its own size
        variance = centre**2

    spread = np.sqrt(variance) * unit
    return centre * unit, positive_or_one(spread)


def _means(learner: NystroemRegressor, rows: Rows) -> Array:
    """Return predictions in the units of y, shape (n, t)."""
    mean = learner._predict_mixture(rows)
    unit = arrays.like(learner._unit, mean)
    centre = arrays.like(learner._centre, mean)
    return mean * unit + centre


def _means_and_stds(learner: NystroemRegressor, rows: Rows) -> Array:
    """Return predictions and standard deviations side by side, shape (n, 2 t)."""
    mean = _means(learner, rows)
    variance, outlying, gaps = learner._variance(rows)
    xp = arrays.namespace(variance)

    # calibrated on held-out rows of the same kind
    distribution = learner._distribution
    has_gap = arrays.like(gaps[:, None], variance) > 0
    with_gaps = distribution.with_gaps(variance)
    variance = xp.where(has_gap, with_gaps, distribution.without_gaps(variance))

    # far from all training rows the variance is that of y plus the squared distance of the
    # prediction from the mean of y
    unit = arrays.like(learner._unit, variance)
    centre = arrays.like(learner._centre, variance)
    of_y = arrays.like(learner._variance_of_y, variance)
    precise = arrays.in_dtype_of(mean, variance)
    away = (precise - centre) / unit
    missing = xp.clip(of_y + away**2 - variance, min=0.0)
    variance = variance + outlying[:, None] * missing

    spread = xp.sqrt(variance) * unit
    std = arrays.in_dtype_of(spread, mean)
    return xp.concat([mean, std], axis=1)


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of rows in the units of y, for all targets, level by level.

    They are moved away from the median by a margin, given in standard deviations.
    """

    levels: Floats
    margin: float = 0.0

    def __call__(self, learner: NystroemRegressor, rows: Rows) -> Array:
        """Return the quantiles, shape (n, q t)."""
        found = _means_and_stds(learner, rows)
        mean, std = learner._split_scaled(found)
        quantiles = learner._distribution.quantiles(mean, std, self.levels)
        outwards = self.margin * np.sign(self.levels - 0.5)
        quantiles += outwards * std[:, :, None]

        # side by side: the targets of the first level, of the second, …
        in_units = learner._in_units(quantiles)
        by_level = np.swapaxes(in_units, 1, 2)
        side_by_side = by_level.reshape(len(mean), -1)
        return arrays.like(side_by_side, found)


def check_levels(levels: ArrayLike, name: str) -> Floats:
    """Return quantile levels, shape (q,), or raise if one is not between 0 and 1."""
    try:
        found = np.atleast_1d(np.asarray(levels, dtype=np.float64))
    except (TypeError, ValueError):
        found = np.empty(0)

    inside = (found > 0) & (found < 1)
    if found.ndim != 1 or not found.size or not inside.all():
        raise ValueError(
            f"{name} should be between 0 and 1, both excluded, but {levels!r} was given: for 90 % "
            "write 0.9."
        )
    return found
