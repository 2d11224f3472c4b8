"""The linear model on features, with the Gaussian process's view of it: mean and variance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nysboost.data.rows import ArrayRows
from nysboost.engine.feature_map import FeatureMap
from nysboost.engine.moments import Moments
from nysboost.gram import KernelGram, Landmarks
from nysboost.kernels import Kernel
from nysboost.numerics.arrays import Array, Floats, identity, like, namespace
from nysboost.numerics.linalg import triangular_inverse
from nysboost.numerics.tolerances import JITTER

STEPS = 10.0 ** np.arange(1.0, -3.1, -0.5)
"""γ is sought from ten times to a thousandth of what the loss found. Further down a penalty
that some rows prefer lets the prediction run away on far rows (keggundirected)."""

NOISELESS = 1e-6
"""Noise below this share of the variance of y is as much rounding as noise."""

BEYOND = 4.0
"""A row of which the landmarks know less than usual, by more than this factor, is strange."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Features F = k(x, Z) N. With N Nᵀ = W⁻¹ F Fᵀ is the Nyström approximation, at most k(x, x).

    Parameters
    ----------
    kernel : Kernel
        With its metric.
    Z : array of shape (c, d)
        Landmarks.
    N : array of shape (c, r)
        L⁻ᵀ with L Lᵀ = W = k(Z, Z), where no method has its own.
    """

    kernel: Any
    Z: Array
    N: Array

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, N: Array | None = None) -> Basis:
        """Return the basis on landmarks Z."""
        if N is not None:
            return cls(kernel, Z, N)
        xp = namespace(Z)
        W = kernel(Z, Z)
        W = (W + W.T) / 2 + JITTER * float(W[0, 0]) * identity(Z.shape[0], W)
        return cls(kernel, Z, triangular_inverse(xp.linalg.cholesky(W)).T)

    @property
    def height(self) -> float:
        """k(x, x), the same everywhere: 1, and of an ANOVA kernel more."""
        return float(self.kernel.diag(self.Z[:1, :])[0])

    def __call__(self, X: Array) -> Array:
        """Return the features of rows in memory, shape (n, r)."""
        features: Array = self.kernel(X, self.Z) @ self.N
        return features

    def through(self, matrix: Array | None = None) -> FeatureMap:
        """Return x ↦ F, or x ↦ F · matrix in one product, as a map of the engine."""
        gram = KernelGram(ArrayRows(self.Z), self.kernel)
        N = self.N if matrix is None else self.N @ like(matrix, self.N)
        return FeatureMap(gram, Landmarks(None, self.Z), (N,))


@dataclass(frozen=True, eq=False)
class Weighed:
    """μ + F w, whatever its weights minimise.

    Parameters
    ----------
    basis : Basis
        x ↦ F.
    mean : array of shape (t,)
        μ, to which predictions return far from all landmarks.
    w : array of shape (c, t)
        Weights.
    """

    basis: Basis
    mean: Array
    w: Array

    def predict(self, F: Array) -> Array:
        """Return the means at rows with features F, shape (n, t)."""
        return self.mean + F @ self.w


@dataclass(frozen=True, eq=False)
class LinearModel(Weighed):
    """y ≈ μ + F w with w = (FᵀF + γI)⁻¹ Fᵀ(y − μ): the mean of a Gaussian process.

    Parameters
    ----------
    basis, mean, w
        As for `Weighed`.
    gamma : float
        Ratio of the noise to the kernel's amplitude.
    moments : Moments
        Of all rows seen so far.
    noise : array of shape (t,)
        s².
    doubt : float
        γ of the variances, with which the kernel's amplitude s²/γ is the variance of y. The penalty
        that predicts best says little of it: it may be so small that the deviation between the
        rows is a hundred times that of y, or so large that it is small far from all rows.
    root : array of shape (c, c)
        R with R Rᵀ = (FᵀF + doubt · I)⁻¹.
    """

    gamma: float
    moments: Moments
    noise: Array
    doubt: float
    root: Array

    @classmethod
    def fit(cls, basis: Basis, moments: Moments, gamma: float) -> LinearModel:
        """Return the model that the moments determine."""
        xp, mean = namespace(moments.FF), moments.mean
        root = _inverse_root(moments.FF, gamma)
        b = moments.FY - moments.F[:, None] * mean[None, :]
        w = root @ (root.T @ b)
        total = moments.YY - moments.weight * mean**2
        missed = xp.clip(total - xp.sum(b * w, axis=0), min=0.0)
        whole = float(xp.sum(total))
        share = basis.height * float(xp.sum(missed)) / whole if whole > 0 else gamma
        doubt = max(share, min(gamma, NOISELESS))
        root = _inverse_root(moments.FF, doubt)
        return cls(basis, mean, w, gamma, moments, missed / moments.weight, doubt, root)

    def updated(self, moments: Moments) -> LinearModel:
        """Return the model after more rows."""
        return LinearModel.fit(self.basis, self.moments + moments, self.gamma)

    def without(self, moments: Moments) -> LinearModel:
        """Return the model as it would be without some of the rows."""
        return LinearModel.fit(self.basis, self.moments - moments, self.gamma)

    @property
    def variance(self) -> Array:
        """Variance of the targets seen, shape (t,)."""
        moments = self.moments
        return namespace(moments.YY).clip(moments.YY / moments.weight - self.mean**2, min=0.0)

    def spread(self, F: Array) -> Array:
        """Return the variance of an observation at rows with features F, over s², shape (n,).

        1 for the noise, f(FᵀF + γI)⁻¹fᵀ for the weights, and (k(x, x) − ‖f‖²)/γ for what no
        landmark knows, the kernel's amplitude, far from all of them; here γ is `doubt`.
        """
        xp = namespace(F)
        known = xp.sum((F @ self.root) ** 2, axis=1)
        unknown = xp.clip(self.basis.height - xp.sum(F * F, axis=1), min=0.0)
        return 1 + known + unknown / self.doubt

    def strange(self, F: Array) -> Array:
        """Return how far beyond all rows seen a row with features F is, from 0 to 1, shape (n,).

        With u = 1 − ‖f‖²/k(x, x), what no landmark knows, and s four times its mean over the rows
        seen, it is ((u − s)/(1 − s))²: nothing among these rows, and 1 far from all landmarks.
        """
        xp = namespace(F)
        known = xp.sum(F * F, axis=1) / self.basis.height
        of_rows = float(xp.linalg.trace(self.moments.FF) / self.moments.weight)
        usual = min(BEYOND * (1 - of_rows / self.basis.height), 1 - 1 / BEYOND)
        return xp.clip((1 - known - usual) / (1 - usual), min=0.0) ** 2


def _inverse_root(FF: Array, gamma: float) -> Array:
    """Return R with R Rᵀ = (FᵀF + γI)⁻¹."""
    xp = namespace(FF)
    return triangular_inverse(xp.linalg.cholesky(FF + gamma * identity(FF.shape[0], FF))).T


def predictions_along(train: Moments, F: Array, gammas: Floats) -> list[Array]:
    """Return the predictions at rows with features F for each γ, each of shape (n, t).

    A system for each γ: with a dozen of them no slower than one eigendecomposition, and on a
    GPU several times as fast.
    """
    xp = namespace(F)
    mean, eye = train.mean, identity(train.FF.shape[0], train.FF)
    b = train.FY - train.F[:, None] * mean[None, :]
    return [mean + F @ xp.linalg.solve(train.FF + float(g) * eye, b) for g in gammas]


def errors_along(
    train: Moments, F: Array, Y: Array, weights: Array | None, gammas: Floats
) -> Floats:
    """Return the mean squared error on held-out rows, as they count, for each γ, shape (g,)."""
    xp = namespace(F)
    counts = xp.ones_like(F[:, 0]) if weights is None or not bool(xp.any(weights > 0)) else weights
    shares = counts / xp.sum(counts)
    along = predictions_along(train, F, gammas)
    return np.array([float(shares @ xp.mean((Y - mean) ** 2, axis=1)) for mean in along])


def chosen(gammas: Floats, errors: Floats) -> int:
    """Return the position of the largest γ that is within a thousandth of the best error."""
    good = np.nan_to_num(errors, nan=np.inf) <= 1.001 * np.nanmin(errors)
    return int(np.flatnonzero(good)[np.argmax(gammas[good])])
