"""Gaussian process classification by Laplace's approximation, on the features of any method."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from nysboost.estimators.estimator import KernelLike, fit_method, with_usual_errors
from nysboost.estimators.transformers import FeatureBasedEstimator
from nysboost.learn.margins import Logistic, Objective, fit_margins
from nysboost.numerics.arrays import Array, Floats, TableLike, floats_on_host
from nysboost.numerics.checks import refuse_unequal, require_count, require_positive
from nysboost.rows.driver import BlockTask
from nysboost.rows.lazy import label_largest
from nysboost.rows.recognise import make_rows
from nysboost.tables.targets import Labels, check_labels, compute_class_weights, find_classes

CONVERGED = 1e-8
"""Newton's method stops when a step would lower the objective by less than this share."""

NODES, _MASSES = hermegauss(32)
WEIGHTS = _MASSES / _MASSES.sum()
"""Weights of a quadrature of the logistic function under a normal distribution, accurate to six
digits."""


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessClassifier(ClassifierMixin, FeatureBasedEstimator):
    """Gaussian process classification with K̂ as covariance (Williams and Barber 1998).

    With features φ the latent function is f(x) = φ(x)ᵀw under a standard normal prior on w.
    Laplace's approximation is then a normal distribution in r dimensions: its mean is the
    minimum of Σ log(1 + exp(−y f)) + ½‖w‖², found by Newton's method, and its precision the
    Hessian A = Fᵀ diag(π(1 − π)) F + I there. The part of a new row's prior variance that the
    features lack, k(x, x) − ‖φ(x)‖², is added to φᵀA⁻¹φ. With every row as a landmark
    this is exact Gaussian process classification. Several classes are one against the rest.

    A precomputed matrix does not contain k(x, x) of new rows, so nothing is added for it: where
    the features lack variance, probabilities of new rows are too close to 0 or 1, also with every
    row as a landmark. Pass the kernel as a function instead.

    .. versionadded:: 0.2

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params
        As in `Nystroem`; the kernel is used as given, not fitted.
    variance : float
        Factor of the kernel: the prior variance of the latent function.
    max_iter : int
        Largest number of Newton steps.
    class_weight : dict, "balanced" or None
        Factors of the odds of each class, for new rows in which the class frequencies differ from
        those in y by these factors (Bayes' rule). "balanced" is n / (classes · rows of the class).
    method, n_landmarks, max_memory, n_jobs, verbose, random_state
        As in `KernelPCA`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (n_problems, r)
        w of each one-against-rest problem; two classes have a single problem.
    covariance_ : array of shape (n_problems, r, r)
        A⁻¹ of each problem.
    class_weight_ : array of shape (n_classes,)
        The factors of the odds.
    n_iter_ : int
        Newton steps taken.

    See Also
    --------
    NystroemClassifier : also finds the kernel and the metric, and is faster.
    sklearn.gaussian_process.GaussianProcessClassifier : exact.

    References
    ----------
    .. [1] C. K. I. Williams and D. Barber (1998). Bayesian classification with Gaussian
          processes. IEEE PAMI 20.

    Examples
    --------
    >>> import nysboost as nb
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(300, noise=0.1, random_state=0)
    >>> model = nb.GaussianProcessClassifier(gamma=2.0, variance=10.0, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.98
    True
    """

    kernel: KernelLike = field(default="rbf", kw_only=False)
    variance: float = 1.0
    max_iter: int = 100
    class_weight: Mapping[Hashable, float] | str | None = None

    @fit_method
    def fit(self, X: TableLike, y: TableLike) -> GaussianProcessClassifier:
        """Fit the classifier to rows X, as in `Nystroem.fit`, with labels y of any type, (n,)."""
        require_count("max_iter", self.max_iter)
        require_positive("variance", self.variance)
        labels = check_labels(y, self)
        features = self._fit_features(X)
        refuse_unequal(features.shape[0], len(labels))
        self.classes_, codes = find_classes(labels)
        self.class_weight_ = compute_class_weights(self.class_weight, self.classes_, labels)

        # one problem a class against the rest; of two classes one is enough
        problems = np.arange(len(self.classes_))
        if len(self.classes_) == 2:
            problems = problems[1:]
        is_of_class = codes[:, None] == problems
        signs = np.where(is_of_class, 1.0, -1.0)

        # the mode: u = √variance · w minimises ½‖u‖² + variance · Σ log(1 + exp(−y f)), on
        # features without the factor √variance
        objective = Objective(
            Logistic(),
            self.variance,
            intercept=False,
            tolerance=CONVERGED,
            max_iter=self.max_iter,
        )
        minimum = fit_margins(features, signs, objective)
        u = floats_on_host(minimum.w).T
        self.n_iter_ = minimum.n_iter
        self.coef_ = u / np.sqrt(self.variance)

        # the covariance A⁻¹, with A = variance · Fᵀ diag(π(1 − π)) F + I
        hessian = features.fold(_hessian, u)
        identity = np.eye(features.shape[1])
        precision = self.variance * hessian + identity
        self.covariance_ = np.linalg.inv(precision)
        return self

    @with_usual_errors
    def predict_proba(self, X: TableLike) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        rows = self.features_._new_rows(X)
        task = BlockTask("predict-proba", _probabilities, self, finite=True)
        found: Floats = rows.map(task, len(self.classes_))
        return found

    @with_usual_errors
    def predict(self, X: TableLike) -> Labels:
        """Return the most probable class of each row."""
        probabilities = self.predict_proba(X)  # which refuses where nothing is fitted
        return label_largest(probabilities, self.classes_)


def _probabilities(model: GaussianProcessClassifier, X: Array) -> Floats:
    """Return the probabilities of a block of rows, shape (b, n_classes)."""
    transform = model.features_._transform
    rows = make_rows(X)
    features = transform.write(rows, budget=model._budget())
    F = np.sqrt(model.variance) * floats_on_host(features)
    unseen = _unseen_variance(model, X, F)

    # P(y = 1) = ∫ σ(f) N(f; φᵀw, φᵀA⁻¹φ + unseen) df of each problem, by quadrature
    columns = []
    for w, covariance in zip(model.coef_, model.covariance_, strict=True):
        products = (F @ covariance) * F
        seen = np.maximum(products.sum(axis=1), 0)
        deviation = np.sqrt(seen + unseen)
        mean = F @ w
        latent = mean[:, None] + deviation[:, None] * NODES
        columns.append(expit(latent) @ WEIGHTS)
    probabilities = np.column_stack(columns)

    # one problem stands for two classes
    if len(model.classes_) == 2:
        probabilities = np.hstack([1 - probabilities, probabilities])

    # Bayes' rule with the classes as frequent as `class_weight` says
    normalised = _normalise(probabilities)
    return _normalise(normalised * model.class_weight_)


def _normalise(probabilities: Floats) -> Floats:
    """Return rows that sum to one."""
    sums = probabilities.sum(axis=1, keepdims=True)
    return np.asarray(probabilities / sums)


def _unseen_variance(model: GaussianProcessClassifier, X: Array, F: Floats) -> Floats:
    """Return k(x, x) − ‖φ(x)‖² of a block, the prior variance that the features lack, (b,)."""
    kernel = model.features_.approximation_.kernel
    if kernel is None:  # a precomputed matrix says nothing of new rows with themselves
        return np.zeros(len(F))
    prior = model.variance * floats_on_host(kernel.diag(X))
    seen = (F * F).sum(axis=1)
    return np.asarray(np.maximum(prior - seen, 0))


def _hessian(w: Floats, F: Array) -> Floats:
    """Return Fᵀ diag(π(1 − π)) F of a block of rows for each problem, shape (p, r, r)."""
    F = floats_on_host(F)
    curvature = Logistic().curve(F @ w.T)
    hessians = []
    for of_problem in curvature.T:
        weighed = F * of_problem[:, None]
        hessians.append(weighed.T @ F)
    return np.array(hessians)
