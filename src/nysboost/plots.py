"""Displays in the style of scikit-learn's; matplotlib is imported when one is drawn.

Two of scikit-learn's own are here too: `CalibrationDisplay` for the probabilities of a
classifier, and `PartialDependenceDisplay` for the effect of features.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibrationDisplay
from sklearn.inspection import PartialDependenceDisplay
from sklearn.metrics import get_scorer
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from nysboost.numerics.arrays import Floats, to_host
from nysboost.numerics.parameters import require_fraction

__all__ = [
    "CalibrationDisplay",
    "CoverageDisplay",
    "IntervalDisplay",
    "LandmarksDisplay",
    "PartialDependenceDisplay",
]

CLAIMED = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99])
"""Nominal coverages at which the true one is shown."""


def _new_axes(count: int, **how: Any) -> Any:
    """Return the axes of a new figure, side by side."""
    import matplotlib.pyplot as plt

    return plt.subplots(1, count, layout="constrained", **how)[1]


@dataclass
class _Predictions:
    """Predictions with standard deviations, which final classes draw."""

    y_true: Floats
    y_pred: Floats
    y_std: Floats

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, *, ax: Any = None) -> Self:
        """Draw the predictions of a fitted regressor that has ``predict(X, return_std=True)``.

        Parameters
        ----------
        estimator : NystroemRegressor
            A fitted regressor of one target.
        X : array-like or data frame of shape (n, d)
            Rows, best those that were not in the fit.
        y : array-like of shape (n,)
            Their true values.
        ax : matplotlib axes or None
            Where to draw; None makes a figure.
        """
        if is_classifier(estimator):
            msg = f"{cls.__name__} draws a regressor; CalibrationDisplay is for classifiers."
            raise TypeError(msg)
        mean, std = estimator.predict(X, return_std=True)
        return cls.from_predictions(y, to_host(mean), to_host(std), ax=ax)

    @classmethod
    def from_predictions(
        cls, y_true: ArrayLike, y_pred: ArrayLike, y_std: ArrayLike, *, ax: Any = None
    ) -> Self:
        """Draw predictions with their standard deviations, all of shape (n,)."""
        given = [
            check_array(column_or_1d(values), ensure_2d=False, dtype=np.float64, input_name=name)
            for name, values in (("y_true", y_true), ("y_pred", y_pred), ("y_std", y_std))
        ]
        check_consistent_length(*given)
        if (given[2] < 0).any():
            raise ValueError("y_std has negative values, but standard deviations have none.")
        made: Self = cls(*given).plot(ax=ax)  # type: ignore[attr-defined]
        return made

    def _draw_diagonal(self, ax: Any, values: Floats, **how: Any) -> Any:
        """Return the axes, `ax` or those of a new figure, with the line of equal coordinates."""
        self.ax_, ends = _new_axes(1) if ax is None else ax, (values.min(), values.max())
        self.ax_.plot(ends, ends, "--", color="black", lw=1, zorder=3, **how)
        return self.ax_


class IntervalDisplay(_Predictions):
    """True values against predicted ones, each with an interval.

    Parameters
    ----------
    y_true, y_pred, y_std : array of shape (n,)
        True values, predictions, and standard deviations of an observation.

    Attributes
    ----------
    ax_ : matplotlib axes
        Where it is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from nysboost.plots import IntervalDisplay
    >>> y = np.arange(5.0)
    >>> shown = IntervalDisplay.from_predictions(y, y + 0.1, np.full(5, 0.2))
    >>> shown.ax_.get_title()
    '90 % intervals contain 100 % of 5 rows'
    """

    def plot(self, *, interval: float = 0.9, ax: Any = None) -> Self:
        """Draw intervals that claim to contain this share of the rows; `ax` None makes a figure."""
        require_fraction("interval", interval)
        reach = norm.ppf(0.5 + interval / 2) * self.y_std
        inside = np.abs(self.y_true - self.y_pred) <= reach
        ax = self._draw_diagonal(ax, np.concatenate([self.y_true, self.y_pred]))
        how = {"fmt": "o", "ms": 3, "elinewidth": 0.6, "alpha": 0.6}
        for rows, colour, label in ((inside, "C0", "inside"), (~inside, "C3", "outside")):
            x, y = self.y_pred[rows], self.y_true[rows]
            ax.errorbar(x, y, xerr=reach[rows], label=label, color=colour, **how)
        title = f"{interval:.0%} intervals contain {inside.mean():.0%} of {len(inside)} rows"
        ax.set(xlabel="predicted", ylabel="true", title=title.replace("%", " %"))
        ax.legend()
        return self


class CoverageDisplay(_Predictions):
    """The share of rows that intervals contain, against the share that they claim to.

    It has what `IntervalDisplay` has, and `covered_`, array of shape (11,): the shares found at
    claims of 10 to 99 %.
    """

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it; `ax` are matplotlib axes, None makes a figure."""
        missed = np.abs(self.y_true - self.y_pred)[:, None]
        reach = norm.ppf(0.5 + CLAIMED / 2) * self.y_std[:, None]
        self.covered_ = np.mean(missed <= reach, axis=0)
        ax = self._draw_diagonal(ax, np.array([0.0, 1.0]), label="perfectly calibrated")
        ax.plot(CLAIMED, self.covered_, "o-", label="intervals")
        ax.set(xlabel="share claimed", ylabel="share of rows inside", aspect="equal")
        ax.legend()
        return self


@dataclass
class ErrorPathDisplay:
    """Relative error against the number of learners, as in the paper's figures.

    Parameters
    ----------
    errors : dict of str to array of shape (p,)
        The errors with 1, 2, …, p learners, by the name of the method.

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
    def from_approximations(cls, *approximations: Any, ax: Any = None) -> Self:
        """Draw the errors of boosting and ensemble runs, one pass over G for each of them."""
        errors = {one.method: one.error_path() for one in approximations}
        return cls(errors).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> Self:
        """Draw it, ensembles dashed; `ax` are matplotlib axes, None makes a figure."""
        self.ax_ = _new_axes(1) if ax is None else ax
        for name, errors in self.errors.items():
            line = "--" if name.startswith("ensemble") else "-"
            self.ax_.semilogy(np.arange(1, len(errors) + 1), errors, line, label=name)
        self.ax_.set(xlabel="number of learners", ylabel="relative error")
        self.ax_.legend()
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
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sizes: Sequence[int] = (16, 32, 64, 128, 256),
        axes: Any = None,
    ) -> Self:
        """Fit a copy of the estimator with each number of landmarks, and draw errors and times.

        Parameters
        ----------
        estimator : transformer or learner
            Of a transformer the relative error of the kernel matrix is shown, of a learner the root
            mean squared error, or the log loss, on a held-out quarter of the rows.
        X, y : as in the estimator's fit
            Rows and targets.
        sizes : sequence of int
            Values of `n_components`.
        axes : pair of matplotlib axes or None
            Where to draw; None makes a figure.
        """
        learns = y is not None and hasattr(estimator, "predict")
        measure, rows, targets = "relative error of the kernel matrix", X, y
        if learns:
            measure = "log loss" if is_classifier(estimator) else "root mean squared error"
            score = get_scorer(f"neg_{measure.replace(' ', '_')}")
            rows, test, targets, truth = train_test_split(X, y, random_state=0)
        found = []
        for size in sizes:
            begun = time.perf_counter()
            fitted = clone(estimator).set_params(n_components=size).fit(rows, targets)
            seconds = time.perf_counter() - begun
            gram_error = None if learns else fitted.approximation_.relative_error()
            found.append((-score(fitted, test, truth) if learns else gram_error, seconds))
        errors, times = np.array(found).T
        return cls(np.asarray(sizes), errors, times, measure).plot(axes=axes)

    def plot(self, *, axes: Any = None) -> Self:
        """Draw it; `axes` are two matplotlib axes, None makes a figure."""
        from matplotlib.ticker import LogLocator, NullFormatter

        self.axes_ = axes = _new_axes(2, sharey=True, figsize=(9, 4)) if axes is None else axes
        along = (self.n_components, "landmarks"), (self.seconds, "seconds to fit")
        for ax, (values, label) in zip(axes, along, strict=True):
            ax.loglog(values, self.errors, "o-")
            ax.set(xlabel=label)
            ax.grid(alpha=0.3)
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter("{x:g}")
                axis.set_minor_formatter(NullFormatter())
        axes[0].set(ylabel=self.measure)
        return self
