"""Linear models on the features of landmarks, from sums over rows."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cached_property

from nysboost.features.feature_map import FeatureMap
from nysboost.features.feature_pass import FeaturePass
from nysboost.kernels.base import Mapped
from nysboost.numerics.arrays import Array, gather, identity, like, namespace, to_host
from nysboost.numerics.checks import DEFAULT_BUDGET, Budget
from nysboost.numerics.linalg import triangular_inverse
from nysboost.rows.rows import Rows

NOISELESS = 1e-6  # noise below this share of the variance of y is as much rounding as noise


@dataclass(frozen=True, eq=False)
class Moments:
    """Weighted sums over n rows with features F (n, r) and targets Y (n, t).

    `weight` is Σω; F (r,) and Y (t,) are Σωf and Σωy; FF (r, r), FY (r, t) and YY (t,) are Σωffᵀ,
    Σωfyᵀ and Σωy².
    """

    weight: Array
    F: Array
    Y: Array
    FF: Array
    FY: Array
    YY: Array

    @classmethod
    def of(cls, F: Array, Y: Array, weights: Array | None = None) -> Moments:
        """Return the moments of rows in memory."""
        xp = namespace(F)

        if weights is None:  # FᵀF of one and the same array costs BLAS half of a product
            weights = xp.ones_like(F[:, 0])
            weighted_F = F
            weighted_Y = Y
        else:
            weighted_F = F * weights[:, None]
            weighted_Y = Y * weights[:, None]

        return cls(
            weight=xp.sum(weights),
            F=xp.sum(weighted_F, axis=0),
            Y=xp.sum(weighted_Y, axis=0),
            FF=weighted_F.T @ F,
            FY=weighted_F.T @ Y,
            YY=xp.sum(weighted_Y * Y, axis=0),
        )

    def __add__(self, other: Moments) -> Moments:
        return Moments(*map(operator.add, self._sums, other._sums))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*map(operator.sub, self._sums, other._sums))

    @property
    def _sums(self) -> tuple[Array, ...]:
        return self.weight, self.F, self.Y, self.FF, self.FY, self.YY

    @property
    def mean(self) -> Array:
        """The mean target, shape (t,)."""
        return self.Y / self.weight


def moments_of(
    transform: FeatureMap,
    rows: Rows,
    Y: Array,
    *,
    weights: Array | None = None,
    budget: Budget = DEFAULT_BUDGET,
) -> Moments:
    """Return the moments of all rows in one pass, in float64; Y is (n, t), `weights` (n,)."""
    # FF and FY are all that is large
    r = transform.rank
    t = Y.shape[1]
    task = FeaturePass(
        transform,
        "moments",
        _moments,
        result_bytes=8 * r * (r + t),
        double=True,
        budget=budget,
    )

    aligned = [Y]
    if weights is not None:
        aligned.append(weights[:, None])
    found: Moments = rows.fold(task, operator.add, *aligned)
    return found


def _moments(_: None, F: Array, Y: Array, weights: Array | None = None) -> Moments:
    """Return the moments of a block of rows."""
    Y = like(Y, F)
    if weights is not None:
        weights = like(weights[:, 0], F)
    return Moments.of(F, Y, weights)


# Models


@dataclass(frozen=True, eq=False)
class LinearPredictor:
    """μ + F w with features F = k(x, Z) N, mean μ (t,) and weights w (r, t)."""

    features: FeatureMap
    mean: Array
    w: Array

    @cached_property
    def weighted_map(self) -> FeatureMap:
        """The map x ↦ F w, computed once."""
        return self.features.times(self.w)

    @property
    def kernel(self) -> Mapped:
        """The kernel with its metric."""
        kernel = self.features.kernel
        assert isinstance(kernel, Mapped)
        return kernel

    @property
    def landmarks(self) -> Array:
        """Z, shape (c, d)."""
        return self.features.landmarks.Z

    def predict(self, F: Array) -> Array:
        """Return the means at rows with features F, shape (n, t)."""
        return self.mean + F @ self.w

    def evaluate(self, rows: Rows, budget: Budget) -> Array:
        """Return the means of rows in any storage, shape (n, t)."""
        predictions = self.weighted_map.write(rows, budget=budget)
        centred = gather(predictions)
        mean = like(to_host(self.mean), centred)
        return centred + mean


@dataclass(frozen=True, eq=False)
class LinearModel(LinearPredictor):
    """y ≈ μ + F w with w = (FᵀF + γI)⁻¹ Fᵀ(y − μ): the mean of a Gaussian process.

    `moments` are those of all rows seen, and `noise` is s² (t,). `doubt` is the γ of the variances,
    for which the amplitude s²/γ of the kernel is the variance of y. `root` is R with R Rᵀ = (FᵀF +
    doubt · I)⁻¹.
    """

    gamma: float
    moments: Moments
    noise: Array
    doubt: float
    root: Array

    @classmethod
    def fit(cls, features: FeatureMap, moments: Moments, gamma: float) -> LinearModel:
        """Fit the model to the moments."""
        xp = namespace(moments.FF)
        mean = moments.mean

        # w = (FᵀF + γI)⁻¹ b with b = Fᵀ(y − μ)
        root = _inverse_root(moments.FF, gamma)
        F_mean = moments.F[:, None] * mean[None, :]
        b = moments.FY - F_mean
        projected = root.T @ b
        w = root @ projected

        # sums of squares: of y about its mean, and of what the model leaves of them
        total = moments.YY - moments.weight * mean**2
        explained = xp.sum(b * w, axis=0)
        missed = xp.clip(total - explained, min=0.0)
        noise = missed / moments.weight

        # doubt: the kernel's amplitude is then the variance of y
        doubt = gamma
        whole = float(xp.sum(total))
        left = float(xp.sum(missed))
        if whole > 0:
            doubt = _height(features) * left / whole
        doubt = max(doubt, min(gamma, NOISELESS))

        return cls(
            features,
            mean,
            w,
            gamma,
            moments,
            noise,
            doubt,
            root=_inverse_root(moments.FF, doubt),
        )

    def spread(self, F: Array, *, seen: bool = False) -> Array:
        """Return the variance of an observation at rows with features F, divided by s², (n,).

        It is 1 for the noise, f(FᵀF + γI)⁻¹fᵀ for the weights, and (k(x, x) − ‖f‖²)/γ for the part
        of the prior that no landmark explains. Here γ is `doubt`. For rows that were `seen` in
        training, the weights are those of a fit without them.
        """
        # f(FᵀF + γI)⁻¹fᵀ
        xp = namespace(F)
        projected = F @ self.root
        known = xp.sum(projected**2, axis=1)

        # h / (1 − h) for a row of leverage h, by the formula of Sherman and Morrison
        if seen:
            others = xp.clip(1 - known, min=NOISELESS)
            known = known / others

        # k(x, x) − ‖f‖²
        prior = _height(self.features)
        explained = xp.sum(F * F, axis=1)
        unknown = xp.clip(prior - explained, min=0.0)
        return 1 + known + unknown / self.doubt

    def outlying(self, F: Array, beyond: float) -> Array:
        """Return how far each row with features F is from all training rows, 0 to 1, shape (n,).

        Let u be the share of the prior variance that remains at x, and s its mean over the training
        rows times `beyond`. The result is (u − s)/(1 − s), clipped: 0 among the training rows, and
        1 far from all.
        """
        xp = namespace(F)
        height = _height(self.features)

        # the means of f(FᵀF + γI)⁻¹fᵀ and of k(x, x) − ‖f‖² over the rows seen
        FF = self.moments.FF
        n = self.moments.weight
        products = (FF @ self.root) * self.root
        mean_known = float(xp.sum(products) / n)
        mean_square = float(xp.linalg.trace(FF) / n)
        mean_unknown = height - mean_square

        # s: `beyond` times the mean share that the rows leave
        share = (self.doubt * mean_known + mean_unknown) / height
        s = min(beyond * share, 1 - 1 / beyond)

        # u: the share that they leave here
        variance = self.spread(F) - 1
        u = variance * self.doubt / height
        above = (u - s) / (1 - s)
        return xp.clip(above, min=0.0)


def _height(features: FeatureMap) -> float:
    """Return k(x, x), a constant: 1, or more for an ANOVA kernel."""
    one_point = features.landmarks.Z[:1, :]
    diagonal = features.kernel.diag(one_point)
    return float(diagonal[0])


def _inverse_root(FF: Array, gamma: float) -> Array:
    """Return R with R Rᵀ = (FᵀF + γI)⁻¹."""
    ridge = gamma * identity(FF.shape[0], FF)
    ridged = FF + ridge
    L = namespace(FF).linalg.cholesky(ridged)
    return triangular_inverse(L).T
