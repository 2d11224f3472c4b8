"""Classification in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _assert_all_finite, check_is_fitted

from nysboost.data.dask_graph import is_dask
from nysboost.learn import margin_losses
from nysboost.learn.base import BaseLearner, buffered
from nysboost.learn.calibration import by_margins, calibrated, logits_of
from nysboost.learn.lazy import lazily, lazy_indicators
from nysboost.learn.margin_weights import MarginLearner
from nysboost.numerics.arrays import Array, Floats, Indices, TableLike, to_host
from nysboost.numerics.checks import refuse_odd_labels, require_positive, unknown
from nysboost.target.judged import Judged
from nysboost.target.method import learn

LOSSES = ("squared", *margin_losses.LOSSES)


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemClassifier(ClassifierMixin, BaseLearner):
    """Classification on landmarks, with a metric, that know the labels.

    Each class is an indicator that is regressed on landmarks, as in `NystroemRegressor`. What
    comes out is turned into probabilities by a logistic map that rows held out of the fit
    calibrate.

    Parameters
    ----------
    n_components, kernel, metric, landmarks, scale, missing, max_memory, verbose, random_state
        As in `NystroemRegressor`.
    loss : "squared", "log" or "hinge"
        What the weights minimise: squared errors, or a loss of margins, that of logistic
        regression or of support vector machines, on the landmarks that squared errors found.
    C : float or None
        Weight of the losses of margins beside ½‖w‖², as in scikit-learn's `SVC`; None has held-out
        rows choose among 0.3, 3, 30 and 300.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels.
    n_components_, kernel_, components_, approximation_, shares_, candidates_, feature_importances_
        As in `NystroemRegressor`.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2))
    >>> y = np.where(np.hypot(*X.T) < 1.1, "inside", "outside")
    >>> model = nb.NystroemClassifier(n_components=20, random_state=0).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.9
    True
    >>> bool(model.predict_proba([[0.0, 0.0]])[0, 0] > 0.9)
    True
    """

    loss: str = "squared"
    C: float | None = None

    def fit(
        self,
        X: TableLike | Iterator[tuple[TableLike, TableLike]],
        y: TableLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NystroemClassifier:
        """Find landmarks, metric, weights and the calibration of probabilities.

        Parameters
        ----------
        X : array-like, DataFrame, CSR matrix, memory map, HDF5 or Zarr array, GPU array
            Training rows, shape (n, d); or an iterator of pairs (X, y), with y left out.
        y : array-like of shape (n,)
            Labels of any type.
        sample_weight : array-like of shape (n,) or None
            How often each row counts.
        """
        self._check_settings()
        if self.loss not in LOSSES:
            raise ValueError(unknown("loss", self.loss, LOSSES))
        if self.C is not None:
            require_positive("C", self.C)
        if isinstance(X, Iterator):
            first, labels, rest = buffered(X)
            self.fit(first, labels)
            for block, values in rest:
                self.partial_fit(block, values)
            return self
        if is_dask(y):
            if sample_weight is not None or self.loss != "squared":
                what = "sample_weight" if sample_weight is not None else f"loss={self.loss!r}"
                msg = f"{what} and labels in Dask do not go together: pass y.compute()."
                raise ValueError(msg)
            self.classes_, indicators = lazy_indicators(y)
            self._refuse_one_class(self.classes_)
            self._calibrate(self._learn(X, indicators, None))
            return self
        labels = self._labels(y)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        weights = self._sample_weight(sample_weight, len(codes))
        present = np.unique(codes if weights is None else codes[weights > 0])
        self._refuse_one_class(self.classes_[present])
        by = learn if self.loss == "squared" else MarginLearner(self.loss, self.C)
        self._calibrate(self._learn(X, self._indicators(codes), weights, by))
        return self

    def partial_fit(
        self,
        X: TableLike,
        y: TableLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NystroemClassifier:
        """Add rows to the weights; landmarks, metric and calibration stay. The first call fits.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; labels that were not there in the first call are refused.
        classes : array-like or None
            The labels to expect, for scikit-learn's interface; they must be in the first y.
        """
        if not hasattr(self, "_models"):
            return self._first(classes, y).fit(X, y, sample_weight)
        if self.loss != "squared":
            msg = f"partial_fit adds rows to squared errors alone, not to loss={self.loss!r}: fit."
            raise ValueError(msg)
        labels = self._labels(y)
        codes = np.searchsorted(self.classes_, labels)
        codes = np.minimum(codes, len(self.classes_) - 1)
        strange = self.classes_[codes] != labels
        if np.any(strange) or (classes is not None and not np.isin(classes, self.classes_).all()):
            what = labels[strange].tolist()[0] if np.any(strange) else classes
            msg = f"y has the label {what!r}, which the first rows did not have: fit again."
            raise ValueError(msg)
        self._update(X, self._indicators(codes), self._sample_weight(sample_weight, len(codes)))
        return self

    @lazily
    def decision_function(self, X: TableLike) -> Array:
        """Return log-odds: of the second class, shape (n,), or of each, shape (n, k)."""
        logits = self._logits(X)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    @lazily
    def predict_proba(self, X: TableLike) -> Floats:
        """Return the probability of each class, shape (n, k), in the order of `classes_`."""
        return np.asarray(softmax(self._logits(X), axis=1))

    @lazily
    def predict_log_proba(self, X: TableLike) -> Floats:
        """Return the logarithms of the probabilities, shape (n, k)."""
        return np.asarray(log_softmax(self._logits(X), axis=1))

    @lazily
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,)."""
        logits = self._logits(X)
        labels: NDArray[Any] = self.classes_[np.argmax(logits, axis=1)]
        return labels

    def _first(self, classes: ArrayLike | None, y: Any) -> NystroemClassifier:
        """Refuse classes that the first rows do not have: what was never seen has no weights."""
        seen = y if classes is None else np.asarray(y)
        if classes is not None and not np.isin(classes, seen).all():
            missing = np.setdiff1d(classes, seen).tolist()[0]
            msg = (
                f"classes has the label {missing!r}, which the first y does not have, so that "
                "nothing can be learned about it: begin with rows of every class."
            )
            raise ValueError(msg)
        return self

    def _refuse_one_class(self, classes: Any) -> None:
        if len(classes) == 1:
            msg = (
                f"{type(self).__name__} needs at least two classes, but y has one class, "
                f"{classes.tolist()[0]!r}: there is nothing to tell apart."
            )
            raise ValueError(msg)

    def _logits(self, X: Any) -> Floats:
        check_is_fitted(self)
        power = getattr(self, "_power", 0.0)  # files of earlier versions have none
        return logits_of(to_host(self._mean(X)), self._slope, power, self._bias)

    def _calibrate(self, judged: Judged) -> None:
        found = calibrated(judged, shares=True) if self.loss == "squared" else by_margins(judged)
        self._slope, self._power, self._bias = found

    def _indicators(self, codes: Indices) -> Floats:
        return np.eye(len(self.classes_))[codes]

    def _labels(self, y: Any) -> Any:
        if y is None:
            msg = (
                f"{type(self).__name__} requires y to be passed, but the target y is None: "
                "give as many labels as X has rows."
            )
            raise ValueError(msg)
        host = to_host(y) if hasattr(y, "device") and not isinstance(y, np.ndarray) else y
        refuse_odd_labels(host)
        labels = column_or_1d(host, warn=True)
        if labels.dtype.kind == "f":
            _assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        return labels
