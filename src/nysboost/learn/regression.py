"""Regression in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted

from nysboost.data.dask_graph import is_dask
from nysboost.data.recognise import numbers_of
from nysboost.learn.base import SMALLEST, BaseLearner, buffered
from nysboost.learn.lazy import (
    lazily,
    lazy_targets,
    location_and_scale,
    refuse_gaps,
    rounded,
)
from nysboost.numerics.arrays import Array, Floats, TableLike, is_sparse, like, namespace, to_host
from nysboost.target.few import FEW
from nysboost.target.judged import Judged

CENTRAL, NORMAL = 0.95, 1.959963984540054
"""The share of held-out rows that an interval of ±1.96 standard deviations is made to cover."""


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemRegressor(MultiOutputMixin, RegressorMixin, BaseLearner):
    """Regression on landmarks, with a metric, that know the target.

    Kernel, metric, landmarks, noise and penalty are found together, on a sample whose size does
    not grow with n; the weights then come from all rows in one pass. Candidates are judged on rows
    that took no part. With few rows they are mixed instead, by their out-of-fold predictions.

    Parameters
    ----------
    n_components : int or "auto"
        Number of landmarks, of each part of a mixture. "auto" tries 32, 64, … 1024 of them, at
        most half of the rows, with short fits on a sample of 10 240 rows at most, until the
        squared error of rows held out of it falls by no more than its standard error. A sample
        sees no gain that only all rows together would show.
    kernel : "auto", str or Kernel
        "auto" tries Matérn 1/2 and 3/2, with few rows also Laplacian, of many features Gaussian;
        else "gaussian", "matern" or a kernel, whose bandwidth the metric replaces. Of `Anova` only
        a bandwidth is found; its landmarks are those of "rpcholesky", which do not know y.
    metric : "auto", "one", "each", "full" or None
        Shape of the metric: one scale, one for each feature, or a matrix. None leaves the kernel
        as it is given, as ``Gaussian(gamma="scale")``, on the rows as they are: landmarks that know
        y then take a few steps under it, which is much faster.
    landmarks : str
        "target" are landmarks that know y. For comparison, those that do not: "uniform",
        "joint", "kmeans", "rpcholesky" and every other method of `nysboost.METHODS` that stands
        on landmarks, with a bandwidth that held-out rows choose and no metric.
    scale : "auto", "standard", "quantile" or None
        How features are made alike before the search: each at unit spread; each replaced by its
        normal quantile, which no rising function of it changes and which suits heavy tails; or
        not at all, all with one factor. "auto" is the second where held-out rows of small
        searches clearly prefer it, else the first. It is part of `kernel_`, which takes rows
        as they are.
    missing : "fill" or "raise"
        Missing values become the median with an indicator beside them, or an error.
    max_memory : int or str
        Working memory of passes over the rows, in bytes or as "500MB".
    verbose : int
        Whether to print what comes of each step, and about how long the rest will take.
    random_state : int, RandomState, Generator or None
        Seed.

    Attributes
    ----------
    n_components_ : int
        How many landmarks there are, given or found.
    kernel_ : Kernel
        The kernel with its metric, of the part with the largest share.
    components_ : array of shape (c, d)
        Its landmarks.
    approximation_ : Approximation
        Its Nyström approximation of the kernel matrix.
    shares_ : array of shape (m,)
        What each part contributes to the prediction; a single 1 where one was chosen.
    candidates_ : list of (str, float)
        Everything that was tried, with its held-out root mean squared error.
    feature_importances_ : array of shape (d,)
        How much each feature moves the mapped points, sum 1.

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

    def fit(
        self,
        X: TableLike | Iterator[tuple[TableLike, TableLike]],
        y: TableLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NystroemRegressor:
        """Find landmarks, metric and weights.

        Parameters
        ----------
        X : array-like, DataFrame, CSR matrix, memory map, HDF5 or Zarr array, GPU array
            Training rows, shape (n, d); or an iterator of pairs (X, y), with y left out.
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like of shape (n,) or None
            How often each row counts.
        """
        self._check_settings()
        if isinstance(X, Iterator):
            first, targets, rest = buffered(X)
            self.fit(first, targets)
            for block, values in rest:
                self.partial_fit(block, values)
            return self
        Y = self._targets(y, X)
        weights = self._sample_weight(sample_weight, Y.shape[0])
        if is_dask(Y) and Y.shape[0] <= FEW:
            Y = np.asarray(Y)
            refuse_gaps(Y)
        if is_dask(Y):
            self._centre, self._unit = location_and_scale(Y)
        else:
            self._centre, self._unit = _location_and_scale(Y, weights)
        judged = self._learn(X, (Y - self._centre) / self._unit, weights)
        self._interval = _interval(judged)
        return self

    def partial_fit(
        self, X: TableLike, y: TableLike, sample_weight: ArrayLike | None = None
    ) -> NystroemRegressor:
        """Add rows to the weights; landmarks, metric and noise stay. The first call fits."""
        if not hasattr(self, "_models"):
            return self.fit(X, y, sample_weight)
        Y = self._targets(y, X)
        if Y.shape[1] != len(self._unit):
            msg = f"y has {Y.shape[1]} columns, but the model was fitted with {len(self._unit)}."
            raise ValueError(msg)
        scaled = (Y - self._centre) / self._unit
        if is_dask(Y):
            refuse_gaps(Y)
        elif abs(scaled).max() > 1 / SMALLEST:
            msg = (
                f"y has values up to {float(abs(Y).max()):.3g}, so far from those of the first "
                "rows that their squares are out of range: fit all rows at once."
            )
            raise ValueError(msg)
        self._update(X, scaled, self._sample_weight(sample_weight, len(Y)))
        return self

    @overload
    def predict(self, X: TableLike, return_std: Literal[False] = False) -> Array: ...
    @overload
    def predict(self, X: TableLike, return_std: Literal[True]) -> tuple[Array, Array]: ...
    @overload
    def predict(self, X: TableLike, return_std: bool) -> Array | tuple[Array, Array]: ...
    @lazily
    def predict(self, X: TableLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return predictions, and if asked the standard deviation of an observation at X.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, from anywhere; far from all landmarks the prediction is the mean of y.
        return_std : bool
            Whether to return standard deviations too: the Gaussian process's, scaled so that
            ±1.96 of them covered 95 % of the rows held out in fitting.

        Returns
        -------
        mean : array of shape (n,) or (n, t)
        std : array of the same shape, if asked for
        """
        check_is_fitted(self)
        mean = self._mean(X)
        mean = mean * like(self._unit, mean) + like(self._centre, mean)
        mean = mean[:, 0] if self._flat else mean
        if not return_std:
            return mean
        variance, strange = self._variance(X)
        xp, variance = namespace(variance), variance * like(self._interval**2, variance)
        # what was scaled to cover held-out rows says little far from all of them: there it is y's
        missing = xp.clip(self._models[0].variance - variance, min=0.0)
        variance = variance + strange[:, None] * missing
        std = xp.sqrt(variance) * like(self._unit, variance)
        return mean, std[:, 0] if self._flat else std

    def _targets(self, y: Any, X: Any) -> Any:
        """Return y as numbers, shape (n, t)."""
        if y is None:
            msg = (
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give as many targets as X has rows."
            )
            raise ValueError(msg)
        if is_dask(y):
            self._flat = y.ndim == 1
            return lazy_targets(y)
        host = to_host(y) if hasattr(y, "device") and not isinstance(y, np.ndarray) else y
        host = host if is_sparse(host) else numbers_of(host, name="y")
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up
            checked = check_array(
                host, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self
            )
        if checked.ndim == 2 and checked.shape[1] == 1 and hasattr(X, "shape"):
            checked = column_or_1d(checked, warn=True)
        self._flat = checked.ndim == 1
        return np.asarray(checked.reshape(len(checked), -1))


def _location_and_scale(Y: Floats, weights: Floats | None) -> tuple[Floats, Floats]:
    # in units of a power of two, which changes no digit, so that no square is out of range
    unit = np.exp2(np.frexp(np.abs(Y).max(axis=0))[1] - 1.0)
    centre = np.average(Y / unit, axis=0, weights=weights)
    spread = np.sqrt(np.average((Y / unit - centre) ** 2, axis=0, weights=weights)) * unit
    centre = centre * unit
    few = len(Y) <= FEW  # which are brought here, wherever they are
    return (centre, np.where(spread > 0, spread, 1.0)) if few else rounded(centre, spread)


def _interval(judged: Judged) -> Floats:
    """Return the factor by which standard deviations cover 95 % of new rows, shape (t,).

    Folds, with fewer rows and landmarks, miss more than the models will; landmarks that have seen
    the rows let them miss less. On splits 5 to 8 of five tables intervals by the first covered 95
    to 99.7 % of test rows, by the second 90 to 95 %, by the geometric mean of both 92 to 97 %.
    The share is that of conformal prediction: a new row is one among n + 1.
    """
    safe = np.where(judged.spread > 0, judged.spread, 1.0)
    counts = np.ones(len(safe)) if judged.weights is None else judged.weights
    share = min(CENTRAL * (1 + 1 / counts.sum()), 1.0)
    factors = [
        [_quantile(column, counts, share) for column in (np.abs(missed) / safe).T]
        for missed in judged.missed
    ]
    return np.asarray(np.prod(factors, axis=0) ** (1 / len(factors)) / NORMAL)


def _quantile(values: Floats, counts: Floats, share: float) -> float:
    """Return the least value that, as rows count, at least this share of them does not exceed."""
    order = np.argsort(values)
    covered = np.cumsum(counts[order]) / counts.sum()
    return float(values[order[min(int(np.searchsorted(covered, share)), len(order) - 1)]])


__all__ = ["NystroemRegressor"]
