"""Members of a mixture, landmarks with leaves, and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.optimize import nnls

from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearModel, LinearPredictor, Moments, moments_of
from nysboost.kernels.base import Mapped
from nysboost.learn.search import tuning
from nysboost.learn.search.leaves import LeafTask, Leaves, map_block
from nysboost.learn.search.loss import TrainingRows
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, namespace, row_blocks
from nysboost.numerics.checks import Budget
from nysboost.numerics.linalg import triangular_factor
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.rows import Rows
from nysboost.tables.codes import PiecewiseCodes, with_codes


@dataclass(frozen=True, eq=False)
class HeldOutFeatures:
    """The part of a fold needed to choose γ: moments of training rows, features of held-out rows.

    F (h, r) are `features` of the rows `held`, and `gamma` is the loss's γ.
    """

    features: FeatureMap
    train: Moments
    F: Array
    held: TrainingRows
    gamma: float

    def squared_error(self, multiple: float) -> float:
        """Return the summed squared error of held-out rows with a multiple of γ."""
        xp = namespace(self.F)
        train = self.train
        mean = train.mean

        # w = (FᵀF + γI)⁻¹ Fᵀ(Y − μ)
        of_mean = train.F[:, None] * mean[None, :]
        b = train.FY - of_mean
        gamma = self.gamma * multiple
        ridge = gamma * arrays.identity(b.shape[0], b)
        w = xp.linalg.solve(train.FF + ridge, b)

        # Σ ω (y − μ − f(x)ᵀw)², as a mean over the outputs
        missed = self.held.Y - mean - self.F @ w
        squares = self.held.weighted(missed**2)
        n_outputs = int(missed.shape[1])
        return float(xp.sum(squares)) / n_outputs

    def fit(self, multiple: float) -> LinearModel:
        """Return the model of the training rows with a multiple of γ."""
        return LinearModel.fit(self.features, self.train, self.gamma * multiple)


def choose_gamma(folds: Sequence[HeldOutFeatures]) -> float:
    """Return the multiple of γ with the smallest held-out error; of near ties, the largest."""
    errors = []
    for multiple in tuning.GAMMAS.tolist():
        of_folds = [fold.squared_error(multiple) for fold in folds]
        errors.append(sum(of_folds))

    # an error that is not a number is never the smallest
    known = np.nan_to_num(errors, nan=np.inf)
    good = known <= (1 + tuning.NEAR_TIE) * known.min()
    largest = np.argmax(good)
    return float(tuning.GAMMAS[largest])


def mixture_weights(means: Sequence[Floats], truth: Floats, counts: Floats) -> Floats:
    """Return weights ≥ 0 of sum 1, shape (m,), with the least squared error on held-out rows.

    They minimise ‖Σ w_i r_i‖² + λ s² ‖w − 1/m‖², where r_i are the residuals of prediction i, and s
    is the smallest of the norms ‖r_i‖.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([[-1.0], [0.0], [1.0]])
    >>> mixture_weights([0 * y, y - 0.1, y + 0.1], y, np.ones(3)).round(2)
    array([0. , 0.5, 0.5])
    """
    m = len(means)
    R = _residual_factor(means, truth, counts)
    norms = np.sqrt(np.sum(R**2, axis=0))
    least_norm = 1e-12 * norms.max()
    scale = max(norms.min(), least_norm)
    if scale == 0:
        scale = 1.0

    # rows of λ s² ‖w − 1/m‖², and a heavy one for Σ w_i = 1, which holds to 1e-6
    pull = np.sqrt(tuning.SHRINKAGE) * scale
    to_equal = pull * np.eye(m)
    to_one = np.full((1, m), 1e3 * scale)

    # equal weights solve the rows below R
    rows = np.vstack([R, to_equal, to_one])
    met = np.vstack([0 * R, to_equal, to_one])
    equal = np.full(m, 1 / m)
    weights, _ = nnls(rows, met @ equal)

    # members that hardly count are left out
    least = tuning.NEGLIGIBLE * weights.sum()
    weights[weights < least] = 0.0
    return np.asarray(weights / weights.sum())


def _residual_factor(means: Sequence[Floats], truth: Floats, counts: Floats) -> Floats:
    """Return R (m, m) with ‖Rw‖ = ‖Σ w_i r_i‖ for the residuals of m predictions, (h, t) each.

    It is computed from blocks of rows, so that thousands of classes take no more memory.
    """
    m = len(means)
    shares = counts / counts.sum()
    root = np.sqrt(shares)[:, None]
    row_bytes = 8 * m * truth.shape[1]

    R = np.zeros((m, m))
    for at in row_blocks(len(truth), row_bytes):
        predicted = np.stack([mean[at] for mean in means])
        residuals = (predicted - truth[at]) * root[at]
        columns = residuals.reshape(m, -1).T
        R = triangular_factor(R, columns)
    return R


@dataclass(frozen=True, eq=False)
class Member:
    """weight · g(x) + local_weight · (correction of the model g in the leaf of x), after codes.

    `logistic` (r, k) holds the weights of a logistic regression on the features of g, times its own
    weight, if there is one. `corrected` is the model whose residuals the leaves hold. It differs
    from g if `partial_fit` has changed g, so that the corrections remain valid. If there is a
    `base`, g and the leaves are fitted to its residuals, and weight · base(x) is added.
    """

    model: LinearPredictor
    weight: float
    codes: PiecewiseCodes | None = None
    leaves: Leaves | None = None
    local_weight: float = 0.0
    logistic: Array | None = None
    corrected: LinearPredictor | None = None
    base: LinearPredictor | None = None

    @cached_property
    def predictor(self) -> LinearPredictor:
        """Weight · g and the logits of the logistic regression, as columns of one predictor."""
        mean = self.weight * self.model.mean
        w = self.weight * self.model.w

        # the leaves hold corrections of the first model
        if self.corrected is not None:
            back_in_mean = self.corrected.mean - self.model.mean
            back_in_w = self.corrected.w - self.model.w
            mean = mean + self.local_weight * back_in_mean
            w = w + self.local_weight * back_in_w

        # logits, without a mean
        if self.logistic is not None:
            xp = namespace(w)
            zeros = 0 * self.logistic[0, :]
            mean = xp.concat([mean, zeros])
            w = xp.concat([w, self.logistic], axis=1)
        return LinearPredictor(self.model.features, mean, w)

    @property
    def leaf_kernel(self) -> Mapped:
        """The kernel whose metric maps rows for the leaves: that of the leaves, or of the model."""
        if self.leaves is None or self.leaves.kernel.metric is None:
            kernel: Mapped = self.model.kernel
            return kernel
        return self.leaves.kernel

    def predict(self, rows: Rows, budget: Budget) -> Array:
        """Return the member's part of predictions (n, t), or of these and logits (n, t + k)."""
        rows = with_codes(rows, self.codes)
        found = self.predictor.evaluate(rows, budget)

        # the first t columns are predictions, and the others logits
        t = len(self.model.mean)
        if self.base is not None:
            of_base = self.base.evaluate(rows, budget)
            found[:, :t] += self.weight * of_base
        if self.leaves is None:
            return found

        # what the leaf of each mapped row adds
        mapping = BlockTask("metric", map_block, self.leaf_kernel, scan_size(rows))
        U = rows.map(mapping, 0)
        local = self.leaves(U, budget)

        found = namespace(found).astype(found, local.dtype, copy=False)
        found[:, :t] += self.local_weight * local
        return found

    def variance(self, X: Array, *, seen: bool = False) -> tuple[Array, Array]:
        """Return the variance at rows (n, t) and how outlying they are (n,), each times the weight.

        Rows that were `seen` in training count as new. Leaves have their own variance.
        """
        model = self._linear_model
        coded = X
        if self.codes is not None:
            coded = self.codes(X)
        F = model.features(coded)
        outlying = self.weight * model.outlying(F, tuning.BEYOND)

        # g may ignore a column that the base uses: rows outside its range are outlying too
        if self.base is not None and self.codes is not None:
            outside = self.weight * self.codes.outside(X)
            outlying = namespace(outlying).maximum(outlying, outside)

        # the share of the model alone
        spread = model.spread(F, seen=seen)
        of_model = spread[:, None] * model.noise
        found = (self.weight - self.local_weight) * of_model
        if self.leaves is None:
            return found, outlying

        # and that of the leaves
        U = map_block(self.leaf_kernel, coded)
        of_leaves = self.leaves.variance(U, seen=seen)
        return found + self.local_weight * of_leaves, outlying

    def add_rows(
        self,
        rows: Rows,
        Y: Array,
        weights: Array | None,
        budget: Budget,
    ) -> Member:
        """Return the member with more rows; landmarks, metric, base and mixture weight stay."""
        if self.weight == 0:  # a logistic regression alone, which stays
            return self

        # the targets of g are the residuals of the base
        rows = with_codes(rows, self.codes)
        if self.base is not None:
            known = self.base.evaluate(rows, budget)
            Y = Y - arrays.to_host(known)

        # sums over rows add up
        before = self._linear_model
        added = moments_of(before.features, rows, Y, weights=weights, budget=budget)
        moments = before.moments + added
        model = LinearModel.fit(before.features, moments, before.gamma)
        if self.leaves is None:
            return replace(self, model=model)

        # the leaves go on to hold residuals of the first model
        corrected = self.corrected
        if corrected is None:
            corrected = LinearPredictor(before.features, before.mean, before.w)
        grouping = LeafTask(self.leaf_kernel, corrected, self.leaves.tree, budget)
        task, *aligned = grouping.over(rows, Y, weights)
        leaves = self.leaves.add_rows(rows, task, *aligned)
        return replace(self, model=model, leaves=leaves, corrected=corrected)

    @property
    def _linear_model(self) -> LinearModel:
        """The model with the sums over rows that variances and updates need."""
        assert isinstance(self.model, LinearModel)
        return self.model
