"""Classification with landmarks, and with all training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from nysboost.estimators.estimator import all_or_nothing, fit_method, with_usual_errors
from nysboost.learn.base import BaseLearner
from nysboost.learn.calibration import calibrate
from nysboost.learn.input import TrainingTable
from nysboost.learn.linear_classifiers import (
    STRENGTHS,
    USUAL,
    fit_beside_squares,
    fit_in_place_of_squares,
)
from nysboost.learn.margins import LOSSES as MARGIN_LOSSES
from nysboost.learn.search.model import Member
from nysboost.learn.search.search import SearchResult
from nysboost.numerics.arrays import Floats, TableLike, to_host
from nysboost.numerics.checks import require_positive, to_numbers
from nysboost.numerics.messages import unknown
from nysboost.numerics.progress import current
from nysboost.rows.lazy import label_largest
from nysboost.rows.rows import Rows
from nysboost.tables.targets import (
    Labels,
    check_labels,
    compute_class_weights,
    find_classes,
)

LOSSES = ("squared", *MARGIN_LOSSES)

MOST_CLASSES = 10
"""Logistic regressions, one for each class, are fitted for at most this many classes. With more,
they would take as long as the rest of a fit."""


def _adds_rows(classifier: NystroemClassifier) -> bool:
    """Whether rows can be added: the log and hinge losses need all rows at once."""
    if classifier.loss != "squared":
        raise AttributeError(
            'partial_fit is available with loss="squared" only, but the loss is '
            f"{classifier.loss!r}: fit all rows at once."
        )
    return True


@dataclass(eq=False, repr=False, kw_only=True)
class NystroemClassifier(ClassifierMixin, BaseLearner):
    """Classification with landmarks and a metric trained on the labels.

    A regression on the indicators of the classes, as in `NystroemRegressor`, gives scores. A
    softmax, calibrated on held-out rows, turns them into probabilities. With up to ten classes,
    logistic regressions on the same landmarks are added to the logits.

    .. versionadded:: 0.2

    Parameters
    ----------
    n_components, kernel, metric, landmarks, scale, local, missing, ids
        As in `NystroemRegressor`.
    cv, max_time, max_memory
        As in `NystroemRegressor`.
    n_jobs, verbose, random_state
        As in `nysboost.approximate`.
    loss : "squared", "log" or "hinge"
        The loss that the weights minimise: squared errors, or the loss of logistic regression
        ("log") or of a support vector machine ("hinge"). The landmarks are always found with
        squared errors.
    C : float or None
        Factor of the "log" or "hinge" loss, which is added to ½‖w‖², as in scikit-learn's `SVC`.
        None chooses among 0.3, 3, 30 and 300 on held-out rows.
    class_weight : dict, "balanced" or None
        Weight of the rows of each class, multiplied by `sample_weight`; "balanced" is n / (classes
        · rows of the class). Probabilities then refer to the weighted rows.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels.
    n_components_, kernel_, components_, approximation_, mixture_weights_, candidates_
        As in `NystroemRegressor`.
    validation_error_, feature_importances_
        As in `NystroemRegressor`, for the class indicators.

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

    @fit_method
    def fit(
        self,
        X: TableLike | Iterator[tuple[TableLike, TableLike]],
        y: TableLike | None = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | str | None = None,
        validation: tuple[object, ...] | None = None,
    ) -> NystroemClassifier:
        """Find landmarks, metric and weights, and calibrate probabilities.

        Parameters
        ----------
        X, sample_weight, groups, validation
            As in `NystroemRegressor.fit`.
        y : array-like of shape (n,)
            Labels of any type.

        Examples
        --------
        >>> import numpy as np, pandas as pd, nysboost as nb
        >>> rng = np.random.default_rng(0)
        >>> visits = pd.DataFrame({"dose": rng.uniform(size=200), "patient": np.arange(200) // 5})
        >>> better = visits["dose"] > 0.5
        >>> model = nb.NystroemClassifier(10, random_state=0).fit(visits, better, groups="patient")
        >>> list(model.feature_names_in_)
        ['dose']
        """
        return self._fit_any(X, y, sample_weight, groups, validation)

    def _fit(self, table: TrainingTable) -> None:
        if self.loss not in LOSSES:
            raise ValueError(unknown("loss", self.loss, LOSSES))
        if self.C is not None:
            require_positive("C", self.C)

        # labels and weights, without rows of weight 0
        labels = check_labels(table.y, self)
        counts = self._times_class_weight(table.weights, labels)
        weights = self._sample_weight(counts, len(labels))
        table = replace(table, y=labels, weights=weights)
        table = table.counting()

        # the indicator of each class, (n, k)
        self.classes_, codes = find_classes(table.y)
        indicators = np.eye(len(self.classes_))[codes]
        table = replace(table, y=indicators)
        if self.loss == "squared":
            self._learn(table, local=self.local)
            return

        # leaves minimise squared errors, so there are none
        fitted = self._learn(table, local=False)

        # scores are not near the indicators, but probabilities are
        logits = self._calibration.logits(fitted.mean)
        shares = softmax(logits, axis=1)
        self._set_error(fitted, shares)

    def _finish(self, fitted: SearchResult) -> SearchResult:
        """Calibrate the mixture; for log and hinge losses, replace it by linear classifiers."""
        if self.loss == "squared":
            return self._add_logistic(fitted)
        return self._replace_by_classifiers(fitted)

    def _add_logistic(self, fitted: SearchResult) -> SearchResult:
        """Calibrate the mixture with logistic regressions on the features of each trial."""
        # held-out rows give each logistic regression a share of the logits
        trials = fitted.trials
        many_classes = len(self.classes_) > MOST_CLASSES
        if many_classes or not current().has_time():
            trials = ()
        classifiers = [fit_beside_squares(one.trial) for one in trials]
        beside = [classifier.scores for classifier in classifiers]
        self._calibration, shares = calibrate(fitted, beside, shares=True)
        if not shares.any():
            return fitted

        # members have the weights of theirs as further columns
        members = []
        for one, classifier, share in zip(trials, classifiers, shares.tolist(), strict=True):
            if one.weight == 0 and share == 0:
                continue

            # a member without a share adds no logits
            member = one.fit_to_all()
            logistic = 0 * member.model.w
            if share > 0:
                of_all = classifier.fit_to_all(member.model.features)
                logistic = share * of_all.w
            members.append(replace(member, logistic=logistic))
        return replace(fitted, members=members)

    def _replace_by_classifiers(self, fitted: SearchResult) -> SearchResult:
        """Fit linear classifiers on the features of each member, and calibrate their mixture."""
        strengths: Sequence[float] = STRENGTHS
        if not current().has_time():
            strengths = STRENGTHS[USUAL : USUAL + 1]
        if self.C is not None:
            strengths = [self.C]

        # the mixture of the scores has the weights of the squared errors
        mean = np.zeros_like(fitted.mean)
        members = []
        for one in fitted.trials:
            if one.weight == 0:
                continue
            classifiers = fit_in_place_of_squares(self.loss, strengths, one.trial)
            mean += one.weight * classifiers.scores
            features = one.fit_to_all().model.features
            model = classifiers.fit_to_all(features)
            member = Member(model, one.weight, one.trial.data.codes)
            members.append(member)

        fitted = replace(fitted, members=members, mean=mean)
        self._calibration, _ = calibrate(fitted, shares=False)
        return fitted

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

        Everything else stays as it was fitted to the first rows: landmarks, metric, calibration,
        and the logistic regressions, which need all rows at once. Begin with as many rows as fit in
        memory, and fit again when there are many times as many.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`; a label that was not in the first call is an error.
        classes : array-like or None
            All labels, as scikit-learn's interface asks; they must occur in the first y.
        """
        if hasattr(self, "_members"):
            if classes is not None:
                self._refuse_new_labels(classes, "classes")
            self._add(TrainingTable(X, y, sample_weight))
            return self

        if classes is None:
            return self.fit(X, y, sample_weight)

        # a class that the first rows lack has no indicator, and later rows could not add one
        labels = set(check_labels(y, self).tolist())
        expected = np.asarray(classes).ravel().tolist()
        missing = [label for label in expected if label not in labels]
        if missing:
            raise ValueError(
                f"classes has the label {missing[0]!r}, but the first y does not: begin with rows "
                "of every class."
            )
        other = sorted(labels - set(expected))
        if other:
            raise ValueError(f"y has the label {other[0]!r}, which is not in classes: add it.")
        return self.fit(X, y, sample_weight)

    def _add(self, table: TrainingTable) -> None:
        _adds_rows(self)
        if isinstance(self.class_weight, str):
            msg = 'class_weight="balanced" needs all rows: for partial_fit, give a dict.'
            raise ValueError(msg)
        super()._add(table)

    def _in_units_of_fit(self, table: TrainingTable) -> TrainingTable:
        labels = check_labels(table.y, self)
        self._refuse_new_labels(labels)
        counts = self._times_class_weight(table.weights, labels)
        weights = self._added_weight(counts, len(labels))
        codes = np.searchsorted(self.classes_, labels)
        indicators = np.eye(len(self.classes_))[codes]
        return replace(table, y=indicators, weights=weights)

    def _refuse_new_labels(self, labels: ArrayLike, name: str = "y") -> None:
        """Raise if there are labels that the model was not fitted to."""
        given = np.asarray(labels)
        if len(given) == 0:
            return
        is_known = np.isin(given, self.classes_)
        new = given[~is_known].tolist()
        if new:
            raise ValueError(
                f"{name} has the label {new[0]!r}, which the rows of the fit do not have: leave "
                "its rows out, or fit to rows of every label."
            )

    def _times_class_weight(
        self, sample_weight: ArrayLike | None, labels: Labels
    ) -> ArrayLike | None:
        """Return the product of each row's own weight and that of its class."""
        if self.class_weight is None:
            return sample_weight
        classes, codes = np.unique(labels, return_inverse=True)
        of_classes = compute_class_weights(self.class_weight, classes, labels)

        of_rows = of_classes[codes]
        if sample_weight is None:
            return of_rows
        own = to_numbers(sample_weight, "sample_weight")
        return np.asarray(of_rows * own)

    # Predictions

    @with_usual_errors
    def decision_function(self, X: TableLike) -> Floats:
        """Return log-odds of the second of two classes, (n,), or of each of k classes, (n, k)."""
        logits = self._evaluate(X, _logits)
        if len(self.classes_) == 2:
            return logits[:, 1] - logits[:, 0]
        return logits

    @with_usual_errors
    def predict_proba(self, X: TableLike) -> Floats:
        """Return the probability of each class, shape (n, k), in the order of `classes_`."""
        return self._evaluate(X, _probabilities)

    @with_usual_errors
    def predict_log_proba(self, X: TableLike) -> Floats:
        """Return the logarithms of the probabilities, shape (n, k)."""
        return self._evaluate(X, _log_probabilities)

    @with_usual_errors
    def predict(self, X: TableLike) -> Labels:
        """Return the most probable label of each row, shape (n,)."""
        logits = self._evaluate(X, _logits)
        return label_largest(logits, self.classes_)


def _logits(learner: NystroemClassifier, rows: Rows) -> Floats:
    """Return the logits of all classes, shape (n, k)."""
    found: Floats = to_host(learner._predict_mixture(rows))
    k = len(learner.classes_)
    logits = learner._calibration.logits(found[:, :k])
    if found.shape[1] > k:  # with logistic regressions
        logits = logits + found[:, k:]
    return logits


def _probabilities(learner: NystroemClassifier, rows: Rows) -> Floats:
    logits = _logits(learner, rows)
    return np.asarray(softmax(logits, axis=1))


def _log_probabilities(learner: NystroemClassifier, rows: Rows) -> Floats:
    logits = _logits(learner, rows)
    return np.asarray(log_softmax(logits, axis=1))
