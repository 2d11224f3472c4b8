"""Classification in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from nysboost.estimators.fitting import all_or_nothing, with_usual_errors
from nysboost.learn.base import BaseLearner
from nysboost.learn.input import drop_zero_weights
from nysboost.learn.margins import LOSSES as MARGIN_LOSSES
from nysboost.learn.margins import STRENGTHS, USUAL, fit_classifiers
from nysboost.learn.search.model import Member
from nysboost.learn.search.search import SearchResult
from nysboost.numerics.arrays import Floats, TableLike, to_host
from nysboost.numerics.messages import unknown
from nysboost.numerics.parameters import require_positive
from nysboost.rows.lazy import label_largest
from nysboost.rows.recognise import to_numbers
from nysboost.tables.targets import check_labels, compute_class_weights, find_classes

LOSSES = ("squared", *MARGIN_LOSSES)

PRIOR = 0.25
"""Quadratic penalty on the calibration: on biases, weights, power and log(slope / 4), beside the
summed log loss. Log losses with 0.1 and 1 are within 1 % on 12 tables."""

FLOOR = 0.01
"""Smallest score whose logarithm is taken. Log loss with the power over that without, on eight
tables: .93 to 1.03, geometric mean .99; floors of .003 and .03 are within 1 % of that."""

MOST_CLASSES, MOST_ROWS = 10, 2**16
"""Logistic regressions, one for each class, are fitted for at most so many classes, beyond which
they take as long as the rest of a fit, and to at most so many rows."""


def _adds_rows(classifier: Any) -> bool:
    """Whether rows can be added: losses of margins need all rows at once."""
    if classifier.loss != "squared":
        loss = classifier.loss
        msg = f"partial_fit adds rows to squared errors alone, not to loss={loss!r}: fit."
        raise AttributeError(msg)
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemClassifier(ClassifierMixin, BaseLearner):
    """Classification on landmarks, with a metric, that are trained on the labels.

    The indicator of each class is regressed as in `NystroemRegressor`. A softmax, calibrated on
    held-out rows, turns these scores into probabilities; with up to ten classes, logistic
    regressions on the same landmarks are added to its logits.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_components, kernel, metric, landmarks, scale, local, missing, max_memory
        As in `NystroemRegressor`.
    n_jobs, verbose, random_state
        As in `nysboost.approximate`.
    loss : "squared", "log" or "hinge"
        What the weights minimise: squared errors, or the loss of logistic regression or of support
        vector machines, on the landmarks that squared errors found.
    C : float or None
        Weight of the losses of margins beside ½‖w‖², as in scikit-learn's `SVC`; None has held-out
        rows choose among 0.3, 3, 30 and 300.
    class_weight : dict, "balanced" or None
        How often rows of each class count, times `sample_weight`; "balanced" is
        n / (classes · rows of the class). Probabilities are those of the weighted rows.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels.
    n_components_, kernel_, components_, approximation_, mixture_weights_, candidates_
        As in `NystroemRegressor`.
    validation_error_, feature_importances_
        As in `NystroemRegressor`, of the indicators of classes.

    See Also
    --------
    NystroemRegressor : the same for numbers.
    GaussianProcessClassifier : Laplace's approximation on landmarks.
    Nystroem : features for any linear model.

    References
    ----------
    .. [1] M. Titsias (2009). Variational learning of inducing variables in sparse Gaussian
          processes. AISTATS.
    .. [2] J. Platt (1999). Probabilistic outputs for support vector machines. MIT Press.

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
    class_weight: Mapping[Any, float] | str | None = None

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.loss not in LOSSES:
            raise ValueError(unknown("loss", self.loss, LOSSES))
        if self.C is not None:
            require_positive("C", self.C)
        labels = check_labels(y, self)
        weights = self._weights(sample_weight, labels)
        X, labels, weights = drop_zero_weights(X, labels, weights)
        self.classes_, codes = find_classes(labels)
        indicators, squared = np.eye(len(self.classes_))[codes], self.loss == "squared"
        local = self.local if squared else False  # leaves minimise squared errors
        fitted = self._learn(X, indicators, weights, local=local, after=self._finish)
        if not squared:  # scores are not near the indicators, but probabilities are
            missed = fitted.truth - softmax(self._calibrated(fitted.mean), axis=1)
            mean = np.average(missed**2, axis=0, weights=fitted.weights)
            self.validation_error_ = float(np.sqrt(mean.mean()))

    def _finish(self, fitted: SearchResult) -> SearchResult:
        """Calibrate the mixture, or linear classifiers in its place if the loss is of margins."""
        if self.loss == "squared":
            return self._add_logistic(fitted)
        tried = [one for one in fitted.trials if one[1] > 0]
        strengths = STRENGTHS if self.C is None else (self.C,)
        made = [fit_classifiers(self.loss, strengths, trial, final) for trial, _, final in tried]
        mean = np.tensordot([weight for _, weight, _ in tried], [scores for scores, _ in made], 1)
        members = [
            Member(refit(), weight, trial.data.codes)
            for (trial, weight, _), (_, refit) in zip(tried, made, strict=True)
        ]
        fitted = replace(fitted, members=members, mean=mean)
        self._slope, self._power, self._bias, _ = calibrate(fitted, shares=False)
        return fitted

    def _add_logistic(self, fitted: SearchResult) -> SearchResult:
        """Calibrate the mixture with logistic regressions on the features of each trial."""
        tried = fitted.trials if len(self.classes_) <= MOST_CLASSES else ()
        fit = partial(fit_classifiers, "log", STRENGTHS[USUAL : USUAL + 1], most=MOST_ROWS)
        made = [fit(trial, final) for trial, _, final in tried]
        found = calibrate(fitted, [scores for scores, _ in made], shares=True)
        self._slope, self._power, self._bias, shares = found
        if not shares.any():
            return fitted
        members = []
        for (_, weight, final), (_, refit), share in zip(tried, made, shares, strict=True):
            if weight > 0 or share > 0:
                logistic = share * refit().w if share > 0 else 0 * final().model.w
                members.append(replace(final(), logistic=logistic))
        return replace(fitted, members=members)

    @available_if(_adds_rows)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(
        self,
        X: TableLike,
        y: TableLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> NystroemClassifier:
        """Add rows to the weights and the leaves. The first call fits.

        All else stays as the first rows have it: landmarks, metric, the calibration, and logistic
        regressions, which need all rows at once. Begin with as many rows as memory holds, and fit
        again when there are many times as many.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; labels that were not there in the first call are refused.
        classes : array-like or None
            The labels to expect, for scikit-learn's interface; they must be in the first y.
        """
        if not hasattr(self, "_members"):
            if classes is not None and not np.isin(classes, np.asarray(y)).all():
                missing = np.setdiff1d(classes, np.asarray(y)).tolist()[0]
                raise ValueError(
                    f"classes has the label {missing!r}, which the first y does not have, so that "
                    "nothing can be learned about it: begin with rows of every class."
                )
            return self.fit(X, y, sample_weight)
        labels = check_labels(y, self)
        for given in (labels, np.asarray(labels[:0] if classes is None else classes)):
            if new := given[~np.isin(given, self.classes_)].tolist():
                msg = f"y has the label {new[0]!r}, which the first rows did not have: fit again."
                raise ValueError(msg)
        weights = self._weights(sample_weight, labels, first=False)
        self._update(X, np.eye(len(self.classes_))[np.searchsorted(self.classes_, labels)], weights)
        return self

    @with_usual_errors
    def decision_function(self, X: TableLike) -> Floats:
        """Return log-odds: of the second class, shape (n,), or of each, shape (n, k)."""
        logits: Floats = self._evaluate(X, _logits)
        return logits[:, 1] - logits[:, 0] if len(self.classes_) == 2 else logits

    @with_usual_errors
    def predict_proba(self, X: TableLike) -> Floats:
        """Return the probability of each class, shape (n, k), in the order of `classes_`."""
        answers: Floats = self._evaluate(X, partial(_map_logits, softmax))
        return answers

    @with_usual_errors
    def predict_log_proba(self, X: TableLike) -> Floats:
        """Return the logarithms of the probabilities, shape (n, k)."""
        answers: Floats = self._evaluate(X, partial(_map_logits, log_softmax))
        return answers

    @with_usual_errors
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,)."""
        return label_largest(self._evaluate(X, _logits), self.classes_)

    def _weights(self, sample_weight: Any, labels: Any, *, first: bool = True) -> Floats | None:
        """Return how often each row counts, by itself and by its class."""
        if self.class_weight is None:
            return self._sample_weight(sample_weight, len(labels), first=first)
        if not first and isinstance(self.class_weight, str):
            raise ValueError('class_weight="balanced" needs all rows: give a dict to partial_fit.')
        classes, codes = np.unique(labels, return_inverse=True)
        of_class = compute_class_weights(self.class_weight, classes, labels)[codes]
        if sample_weight is not None:
            of_class = of_class * to_numbers(sample_weight, "sample_weight")
        return self._sample_weight(of_class, len(labels), first=first)

    def _calibrated(self, scores: Floats) -> Floats:
        return logits_of(scores, self._slope, self._power, self._bias)


def _logits(learner: Any, rows: Any) -> Floats:
    found, k = to_host(learner._predict_mixture(rows)), len(learner.classes_)
    logits: Floats = learner._calibrated(found[:, :k])
    return logits + found[:, k:] if found.shape[1] > k else logits


def _map_logits(function: Callable[..., Floats], learner: Any, rows: Any) -> Floats:
    return np.asarray(function(_logits(learner, rows), axis=1))


# From scores to probabilities, by held-out rows


def logits_of(scores: Floats, slope: float, power: float, bias: Floats) -> Floats:
    """Return slope · s + power · log s + bias, shape (n, k).

    Scores of squared errors estimate probabilities, whose logarithms are logits; of well separated
    classes they are 0 and 1 with some noise, for which a slope is better.
    """
    logarithm = np.log(np.maximum(scores, FLOOR)) if power else 0.0
    return np.asarray(slope * scores + power * logarithm + bias)


def calibrate(
    fitted: SearchResult, beside: Sequence[Floats] = (), *, shares: bool
) -> tuple[float, float, Floats, Floats]:
    """Return slope, power, biases and weights with which softmax(logits) fits held-out labels.

    They minimise the log loss of the h held-out rows with a small penalty on the distance from a
    slope of 4 and zeros; labels are smoothed by half a row of each class (Jeffreys). The weights,
    0 or more, are those of further logits `beside` the scores, each of shape (h, k).

    `shares` says that scores estimate probabilities. Where they do not the power is 0, and for two
    classes so are the biases, because a linear classifier has an intercept. For several classes a
    hinge against the rest may never predict one of them (Lee, Lin and Wahba 2004), which biases
    correct.
    """
    scores, (h, k), q = fitted.mean, fitted.mean.shape, 2 + len(beside)
    truth = (h * fitted.truth + 0.5) / (h + k / 2)
    weights = np.ones(h) if fitted.weights is None else fitted.weights
    weights = weights / weights.sum()
    terms = [scores, np.log(np.maximum(scores, FLOOR)) * shares, *beside]
    start, biased = np.r_[np.log(4.0), np.zeros(q - 1 + k)], shares or k > 2

    def objective(x: Floats) -> tuple[float, Floats]:
        c, pull = np.r_[np.exp(x[0]), x[1:q]], x - start
        logits = sum(map(np.multiply, c, terms)) + x[q:]
        loss = -float(weights @ np.sum(truth * log_softmax(logits, axis=1), axis=1))
        gap = weights[:, None] * (softmax(logits, axis=1) - truth)
        along = [np.sum(gap * term) for term in terms]
        gradient = np.r_[c[0] * along[0], along[1:], biased * gap.sum(axis=0)]
        return loss + PRIOR / h * float(pull @ pull), gradient + 2 * PRIOR / h * pull

    free = (None, None)
    bounds = [free, *[(0, None)] * (q - 1), *[free] * k]  # a larger score is more probable
    x = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(np.exp(x[0])), float(x[1]), x[q:], x[2:q]
