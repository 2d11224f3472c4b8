"""Gaussian process classification by Laplace's approximation, on the features of any method."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d

from nysboost.data.recognise import stream_of
from nysboost.estimators.base import KernelLike
from nysboost.learn.lazy import lazily
from nysboost.learn.on_features import Features, OnFeatures
from nysboost.numerics.arrays import Floats, TableLike, floats_on_host
from nysboost.numerics.checks import refuse_odd_labels, require_count, require_positive

CONVERGED = 1e-8
"""Newton's method ends when a step gains less than this share of the objective."""

NODES, MASSES = hermegauss(32)
"""Quadrature of the logistic function under a normal distribution: right to six digits."""


@dataclass(eq=False, repr=False, kw_only=True)
class GaussianProcessClassifier(ClassifierMixin, OnFeatures):
    """Gaussian process classification with K̂ as covariance (Williams and Barber 1998).

    With features φ the latent function is f(x) = φ(x)ᵀw under a standard normal prior on w.
    Laplace's approximation is then a normal distribution in r dimensions: its mean is the
    minimum of Σ log(1 + exp(−y f)) + ½‖w‖², found by Newton's method, and its precision the
    Hessian A = Fᵀ diag(π(1 − π)) F + I there. Of the prior variance of a new row, what the
    features do not see, k(x, x) − ‖φ(x)‖², is added to φᵀA⁻¹φ. With every row as a landmark
    this is exact Gaussian process classification. Several classes are one against the rest.

    Parameters
    ----------
    kernel, gamma, coef0, degree, kernel_params
        As in `Nystroem`; they are taken as given, not fitted.
    variance : float
        What the kernel is multiplied by: the prior variance of the latent function.
    max_iter : int
        Newton steps at most.
    method, n_landmarks, max_memory, n_jobs, random_state
        As in `KernelPCA`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels.
    coef_ : array of shape (n_problems, r)
        w of each problem, one against the rest; a single problem for two classes.
    covariance_ : array of shape (n_problems, r, r)
        A⁻¹ of each problem.
    n_iter_ : int
        Newton steps taken.

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

    def fit(self, X: TableLike, y: TableLike) -> GaussianProcessClassifier:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like, CSR matrix, memory map, HDF5 or Zarr array of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Labels, of any kind.
        """
        require_count("max_iter", self.max_iter)
        require_positive("variance", self.variance)
        if y is None:
            msg = f"{type(self).__name__} requires y to be passed, but the target y is None."
            raise ValueError(msg)
        refuse_odd_labels(y)
        labels = column_or_1d(check_array(y, ensure_2d=False, dtype=None), warn=True)
        check_classification_targets(labels)
        features = self._fit_features(X)
        if len(labels) != features.n:
            msg = f"X has {features.n} rows, but y has {len(labels)} labels: give one for each row."
            raise ValueError(msg)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            msg = f"y has one class alone, {self.classes_[0]!r}: a classifier needs two or more."
            raise ValueError(msg)
        problems = np.arange(len(self.classes_))[1 if len(self.classes_) == 2 else 0 :]
        signs = np.where(codes[:, None] == problems, 1.0, -1.0)
        self.coef_, self.covariance_, self.n_iter_ = laplace(
            features, signs, float(np.sqrt(self.variance)), self.max_iter
        )
        return self

    @lazily
    def predict_proba(self, X: TableLike) -> Floats:
        """Return the probability of each class, shape (n_samples, n_classes)."""
        check_is_fitted(self)
        F, columns = self._scaled(X), []
        unseen = self._unseen(X, F)
        for w, covariance in zip(self.coef_, self.covariance_, strict=True):
            deviation = np.sqrt(unseen + ((F @ covariance) * F).sum(axis=1))
            latent = (F @ w)[:, None] + deviation[:, None] * NODES
            columns.append(expit(latent) @ (MASSES / MASSES.sum()))
        probabilities = np.array(columns).T
        if len(self.classes_) == 2:
            return np.hstack([1 - probabilities, probabilities])
        normalised: Floats = probabilities / probabilities.sum(axis=1, keepdims=True)
        return normalised

    @lazily
    def predict(self, X: TableLike) -> NDArray[Any]:
        """Return the most probable class of each row."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def _scaled(self, X: Any) -> Floats:
        scaled: Floats = np.sqrt(self.variance) * floats_on_host(self.features_.transform(X))
        return scaled

    def _unseen(self, X: Any, F: Floats) -> Floats:
        """Return the prior variance of each row that the features do not see."""
        kernel = getattr(self.features_.approximation_.gram, "kernel", None)
        if kernel is None:
            return np.zeros(len(F))
        rows = stream_of(self.features_._validate(X, reset=False))
        diag = np.concatenate([floats_on_host(kernel.diag(x)) for x in rows.pieces(2**14)])
        unseen: Floats = np.maximum(self.variance * diag - (F * F).sum(axis=1), 0)
        return unseen


def laplace(
    features: Features, signs: Floats, scale: float, max_iter: int
) -> tuple[Floats, Floats, int]:
    """Return mean and covariance of w in Laplace's approximation, of each problem.

    Parameters
    ----------
    features : Features
        F.
    signs : array of shape (n, p)
        The labels of p problems, −1 or 1.
    scale : float
        What the features are multiplied by.
    max_iter : int
        Newton steps at most.

    Returns
    -------
    mean : array of shape (p, r)
    covariance : array of shape (p, r, r)
    n_iter : int
    """
    p, r = signs.shape[1], features.r
    w = np.zeros((p, r))
    loss, gradient, hessian = _newton_parts(features, signs, scale, w)
    for step in range(1, max_iter + 1):  # noqa: B007
        direction = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        length, before = np.ones(p), loss
        while True:
            moved = w - length[:, None] * direction
            loss, gradient, hessian = _newton_parts(features, signs, scale, moved)
            worse = loss > before + CONVERGED * np.abs(before)
            if not worse.any() or length.min() < CONVERGED:
                break
            length[worse] /= 2
        w = moved
        if np.all(before - loss <= CONVERGED * np.abs(before)):
            break
    return w, np.linalg.inv(hessian).astype(np.float64), step


def _newton_parts(
    features: Features, signs: Floats, scale: float, w: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the objective, its gradient and its Hessian at w, of each problem, in one pass."""
    loss, gradient, hessian = features.fold(_losses, _both, (w, scale), signs, task="newton-step")
    return (
        loss + 0.5 * (w * w).sum(axis=1),
        gradient + w,
        hessian + np.eye(w.shape[1]),
    )


def _losses(shared: tuple[Floats, float], F: Floats, signs: Floats) -> tuple[Floats, ...]:
    """Return the sums over a block of rows."""
    w, scale = shared
    F = scale * F
    margins = signs * (F @ w.T)
    wrong = expit(-margins)
    curved = wrong * (1 - wrong)
    hessian = np.array([(F * weights[:, None]).T @ F for weights in curved.T])
    return np.logaddexp(0, -margins).sum(axis=0), -(signs * wrong).T @ F, hessian


def _both(upper: tuple[Floats, ...], lower: tuple[Floats, ...]) -> tuple[Floats, ...]:
    return tuple(a + b for a, b in zip(upper, lower, strict=True))
