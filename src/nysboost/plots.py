"""Displays in the style of scikit-learn; matplotlib is imported when one is drawn.

Two displays of scikit-learn are re-exported: `CalibrationDisplay` for the probabilities of a
classifier, and `PartialDependenceDisplay` for the effect of features.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from nysboost.approximation import Approximation
from nysboost.estimators.transformers import FeatureBasedEstimator
from nysboost.numerics.arrays import Floats, TableLike, to_host
from nysboost.numerics.checks import require_fraction
from nysboost.user_error import import_optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "CalibrationDisplay",
    "CoverageDisplay",
    "IntervalDisplay",
    "LandmarksDisplay",
    "PartialDependenceDisplay",
]

CLAIMED = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
"""Stated coverages at which the observed coverage is shown."""


def _new_axes() -> Axes:
    """Return the axes of a new figure."""
    plt = import_optional("matplotlib.pyplot")
    figure = plt.figure(layout="constrained")
    ax: Axes = figure.add_subplot()
    return ax


@dataclass
class IntervalDisplay:
    """True values against predictions, each with an interval.

    Parameters
    ----------
    y_true, y_pred : array of shape (n,)
        True values and predictions.
    lower, upper : array of shape (n,)
        The ends of the interval of each row.
    interval : float
        The stated coverage: the share of rows that the intervals should contain.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it is drawn.

    See Also
    --------
    CoverageDisplay : observed against stated coverage, at many levels.
    nysboost.NystroemRegressor : predicts such intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from nysboost.plots import IntervalDisplay
    >>> y = np.arange(5.0)
    >>> shown = IntervalDisplay.from_predictions(y, y + 0.1, np.full(5, 0.2))
    >>> shown.ax_.get_title()
    '90 % intervals contain 100 % of 5 rows'
    """

    y_true: Floats
    y_pred: Floats
    lower: Floats
    upper: Floats
    interval: float = 0.9

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: TableLike,
        y: ArrayLike,
        *,
        interval: float = 0.9,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the predictions of a fitted regressor with their intervals.

        Parameters
        ----------
        estimator : NystroemRegressor
            A fitted regressor with one target. Another regressor with ``predict(X,
            return_std=True)`` works too; its intervals are those of normal distributions.
        X : array-like or data frame of shape (n, d)
            Rows, preferably rows that were not used in the fit.
        y : array-like of shape (n,)
            Their true values.
        interval : float
            The stated coverage: the share of rows that the intervals should contain.
        ax : matplotlib axes or None
            Where to draw; None makes a figure.
        """
        require_fraction("interval", interval)
        _refuse_classifiers(cls.__name__, estimator)
        y_true = _check_column("y", y)
        y_pred = to_host(estimator.predict(X))
        check_consistent_length(y_true, y_pred)

        ends = _predict_ends(estimator, X, interval)
        return cls(y_true, y_pred, *ends, interval).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        y_std: ArrayLike,
        *,
        interval: float = 0.9,
        ax: Axes | None = None,
    ) -> Self:
        """Draw predictions with the intervals of normal distributions, all of shape (n,)."""
        require_fraction("interval", interval)
        truth, mean, std = _check_predictions(y_true, y_pred, y_std)
        ends = _normal_ends(mean, std, interval)
        return cls(truth, mean, *ends, interval).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the display on `ax`, or on a new figure if `ax` is None."""
        ax = ax or _new_axes()
        self.ax_ = ax
        _draw_diagonal(ax, np.concatenate([self.y_true, self.y_pred]))

        # bars; where noise is skewed, the mean may lie outside the interval
        left = np.maximum(self.y_pred - self.lower, 0)
        right = np.maximum(self.upper - self.y_pred, 0)
        bars = np.stack([left, right])

        # draw rows inside and outside in two colours
        inside = _is_inside(self.y_true, self.lower, self.upper)
        for label, colour, rows in (("inside", "C0", inside), ("outside", "C3", ~inside)):
            ax.errorbar(
                self.y_pred[rows],
                self.y_true[rows],
                xerr=bars[:, rows],
                fmt="o",
                ms=3,
                elinewidth=0.6,
                alpha=0.6,
                color=colour,
                label=label,
            )

        found = f"{inside.mean():.0%} of {len(inside)} rows"
        title = f"{self.interval:.0%} intervals contain {found}"
        ax.set(xlabel="predicted", ylabel="true", title=title.replace("%", " %"))
        ax.legend()
        return self


@dataclass
class CoverageDisplay:
    """Observed coverage of intervals against stated coverage.

    Parameters
    ----------
    covered : array of shape (11,)
        Observed coverages at stated coverages of 10 to 99 %.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it is drawn.

    See Also
    --------
    IntervalDisplay : the intervals of one level, row by row.

    Examples
    --------
    >>> import numpy as np
    >>> from nysboost.plots import CoverageDisplay
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> shown = CoverageDisplay.from_predictions(y, np.zeros(500), np.ones(500))
    >>> bool(abs(shown.covered[4] - 0.5) < 0.05)
    True
    """

    covered: Floats

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, X: TableLike, y: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Draw the coverage of a fitted regressor; parameters as in `IntervalDisplay`."""
        _refuse_classifiers(cls.__name__, estimator)
        truth = _check_column("y", y)
        ends = [_predict_ends(estimator, X, claim) for claim in CLAIMED.tolist()]
        return cls(_shares_inside(truth, ends)).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, y_std: ArrayLike, *, ax: Axes | None = None
    ) -> Self:
        """Draw the coverage of normal distributions; all arrays have shape (n,)."""
        truth, mean, std = _check_predictions(y_true, y_pred, y_std)
        ends = [_normal_ends(mean, std, claim) for claim in CLAIMED.tolist()]
        return cls(_shares_inside(truth, ends)).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the display on `ax`, or on a new figure if `ax` is None."""
        ax = ax or _new_axes()
        self.ax_ = ax
        _draw_diagonal(ax, np.array([0.0, 1.0]), label="perfectly calibrated")
        ax.plot(CLAIMED, self.covered, "o-", label="intervals")
        ax.set(xlabel="share claimed", ylabel="share of rows inside", aspect="equal")
        ax.legend()
        return self


# Predictions with intervals


def _refuse_classifiers(display: str, estimator: BaseEstimator) -> None:
    if is_classifier(estimator):
        msg = f"{display} is for regressors: for a classifier, use CalibrationDisplay."
        raise TypeError(msg)


def _check_column(name: str, values: ArrayLike) -> Floats:
    """Return finite numbers of shape (n,)."""
    column = column_or_1d(values)
    checked: Floats = check_array(column, ensure_2d=False, dtype=np.float64, input_name=name)
    return checked


def _check_predictions(
    y_true: ArrayLike, y_pred: ArrayLike, y_std: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    """Return true values, means and standard deviations, (n,) each, checked."""
    truth = _check_column("y_true", y_true)
    mean = _check_column("y_pred", y_pred)
    std = _check_column("y_std", y_std)
    check_consistent_length(truth, mean, std)

    if (std < 0).any():
        raise ValueError("y_std has negative values: standard deviations cannot be negative.")
    return truth, mean, std


def _predict_ends(estimator: BaseEstimator, X: TableLike, claim: float) -> tuple[Floats, Floats]:
    """Return the ends of intervals with this coverage, (n,) each."""
    if hasattr(estimator, "predict_interval"):
        lower, upper = estimator.predict_interval(X, claim)
        return to_host(lower), to_host(upper)

    # scikit-learn's regressors have only standard deviations
    mean, std = estimator.predict(X, return_std=True)
    return _normal_ends(to_host(mean), to_host(std), claim)


def _normal_ends(mean: Floats, std: Floats, claim: float) -> tuple[Floats, Floats]:
    """Return the ends of central intervals of normal distributions, (n,) each."""
    reach = norm.ppf(0.5 + claim / 2) * std
    return mean - reach, mean + reach


def _is_inside(truth: Floats, lower: Floats, upper: Floats) -> NDArray[np.bool_]:
    """Return which true values lie in their intervals, shape (n,)."""
    return (lower <= truth) & (truth <= upper)


def _shares_inside(truth: Floats, ends: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Return the share of true values in their intervals, for each of several pairs of ends."""
    shares = [_is_inside(truth, lower, upper).mean() for lower, upper in ends]
    return np.array(shares)


def _draw_diagonal(ax: Axes, values: Floats, label: str | None = None) -> None:
    """Draw the diagonal over the range of the values."""
    ends = [values.min(), values.max()]
    ax.plot(ends, ends, "--", color="black", lw=1, zorder=3, label=label)


# Errors


@dataclass
class ErrorPathDisplay:
    """Relative error against the number of learners, as in the paper's figures.

    Parameters
    ----------
    errors : dict of str to array of shape (p,)
        The errors with 1, 2, …, p learners, by the name of the method. Further runs of the same
        method are numbered: "URB-mean (2)".

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it is drawn.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> from nysboost.plots import ErrorPathDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> how = {"n_learners": 4, "n_columns": 8, "sigma": 1.0, "random_state": 0}
    >>> runs = [nb.approximate(X, name, **how) for name in ("URB-mean", "ensemble-ridge")]
    >>> shown = ErrorPathDisplay.from_approximations(*runs)
    >>> list(shown.errors)
    ['URB-mean', 'ensemble-ridge']
    """

    errors: dict[str, Floats]

    @classmethod
    def from_approximations(cls, *approximations: Approximation, ax: Axes | None = None) -> Self:
        """Draw the errors of boosting and ensemble runs, with one pass over G for each run."""
        errors: dict[str, Floats] = {}
        runs_of: Counter[str] = Counter()
        for approximation in approximations:
            # number further runs of the same method
            method = approximation.method
            runs_of[method] += 1
            name = method
            if runs_of[method] > 1:
                name = f"{method} ({runs_of[method]})"
            errors[name] = approximation.error_path()
        return cls(errors).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the errors on `ax`, or on a new figure if `ax` is None; ensembles are dashed."""
        ax = ax or _new_axes()
        self.ax_ = ax
        for name, errors in self.errors.items():
            line = "-"
            if name.startswith("ensemble"):
                line = "--"
            n_learners = np.arange(1, len(errors) + 1)
            ax.semilogy(n_learners, errors, line, label=name)

        ax.set(xlabel="number of learners", ylabel="relative error")
        ax.legend()
        return self


@dataclass
class LandmarksDisplay:
    """Error against the number of landmarks, and against the time to fit.

    Parameters
    ----------
    n_components : array of shape (m,)
        Numbers of landmarks.
    errors, seconds : array of shape (m,)
        The error of each fit, and its time in seconds.
    measure : str
        What the errors are.

    Attributes
    ----------
    axes_ : pair of matplotlib axes
        Where it is drawn.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> from nysboost.plots import LandmarksDisplay
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> shown = LandmarksDisplay.from_estimator(nb.Nystroem(random_state=0), X, sizes=(5, 20))
    >>> bool(shown.errors[1] < shown.errors[0])
    True
    """

    n_components: Floats
    errors: Floats
    seconds: Floats
    measure: str = "error"

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: TableLike,
        y: TableLike | None = None,
        *,
        sizes: Sequence[int] = (16, 32, 64, 128, 256),
        axes: Sequence[Axes] | None = None,
    ) -> Self:
        """Fit a copy of the estimator with each number of landmarks, and draw errors and times.

        Parameters
        ----------
        estimator : transformer, KernelPCA or another estimator on features, or learner
            For a regressor or classifier with y, the error is the root mean squared error or the
            log loss on a held-out quarter of the rows. For others it is that of the kernel matrix.
        X, y : as in the estimator's fit
            Rows and targets.
        sizes : sequence of int
            Numbers of landmarks: values of `n_landmarks`, or of `n_components` where an estimator
            has no `n_landmarks`.
        axes : pair of matplotlib axes or None
            Where to draw; None makes a figure.
        """
        # a learner is measured on held-out rows, a transformer by the kernel matrix
        scorer = None
        measure = "relative error of the kernel matrix"
        if y is not None and hasattr(estimator, "predict"):
            measure = "root mean squared error"
            if is_classifier(estimator):
                measure = "log loss"
            scorer = get_scorer(f"neg_{measure.replace(' ', '_')}")
            X, held_out, y, truth = train_test_split(X, y, random_state=0)

        # of an estimator on features, `n_components` is not the number of landmarks
        parameter = "n_components"
        if isinstance(estimator, FeatureBasedEstimator):
            parameter = "n_landmarks"

        errors = []
        seconds = []
        for size in sizes:
            fitted = clone(estimator).set_params(**{parameter: size})
            begun = time.perf_counter()
            fitted.fit(X, y)
            seconds.append(time.perf_counter() - begun)
            if scorer is None:
                transformer = getattr(fitted, "features_", fitted)
                errors.append(transformer.approximation_.relative_error())
            else:
                errors.append(-scorer(fitted, held_out, truth))

        found = cls(np.array(sizes), np.array(errors), np.array(seconds), measure)
        return found.plot(axes=axes)

    def plot(self, *, axes: Sequence[Axes] | None = None) -> Self:
        """Draw the display on two `axes`, or on a new figure if `axes` is None."""
        if axes is None:
            plt = import_optional("matplotlib.pyplot")
            _, axes = plt.subplots(1, 2, layout="constrained", sharey=True, figsize=(9, 4))

        # draw errors against landmarks and against time
        self.axes_ = axes
        left, right = axes
        self._draw_errors(left, self.n_components, "landmarks")
        self._draw_errors(right, self.seconds, "seconds to fit")
        left.set(ylabel=self.measure)
        return self

    def _draw_errors(self, ax: Axes, values: Floats, label: str) -> None:
        """Draw the errors against some values, with readable ticks."""
        ticker = import_optional("matplotlib.ticker")

        ax.loglog(values, self.errors, "o-")
        ax.set(xlabel=label)
        ax.grid(alpha=0.3)

        # label plain numbers, three in each power of ten
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(ticker.NullFormatter())
