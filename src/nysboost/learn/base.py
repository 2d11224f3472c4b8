"""What regression and classification share: fitting, updating and evaluating a mixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from nysboost.approximation import Approximation
from nysboost.estimators.estimator import Estimator
from nysboost.estimators.fitting import fit_method
from nysboost.features.nystrom import Mixture
from nysboost.gram import KernelGram
from nysboost.learn import input as given
from nysboost.learn.search.data import uses_folds
from nysboost.learn.search.search import SearchResult, run_search
from nysboost.learn.search.tuning import LANDMARKS
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Indices, TableLike
from nysboost.numerics.budget import MAX_MEMORY
from nysboost.numerics.indices import spaced_indices
from nysboost.numerics.magnitudes import positive_or_one
from nysboost.numerics.progress import current
from nysboost.numerics.random_state import RandomState, make_rng
from nysboost.numerics.threads import limit_threads, threads_of_samples
from nysboost.rows.checks import refuse_unequal
from nysboost.rows.driver import BlockTask
from nysboost.rows.recognise import make_rows
from nysboost.rows.rows import Rows, RowsView
from nysboost.rows.sizes import PROBE_ROWS
from nysboost.tables.piecewise import with_codes
from nysboost.tables.rows import fit_rows, new_rows

PIECE = 2**25
"""Bytes of features that are held while variances are evaluated."""

NOTICED = 0.01
"""float32 may change predictions by this share of their error, and squared errors by 1e-4."""

SHOWN = 4
"""Candidates and columns that a summary names."""

PERMUTED, IN_ALL = 1000, 50_000
"""Importances: at most so many columns, and held-out rows for each, and rows in all. 1000 rows
estimate an error to about 3 %, and the 784 columns of MNIST take a second."""


@dataclass(eq=False, repr=False, kw_only=True)
class BaseLearner(Estimator):
    """Base class of the regressor and the classifier, which have `_fit(X, y, sample_weight)`."""

    n_components: int | str = field(default=LANDMARKS, kw_only=False)
    kernel: Any = "auto"
    metric: str | None = "auto"
    landmarks: str = "target"
    scale: str | None = "auto"
    local: bool | int | str = "auto"
    missing: str = "fill"
    max_memory: int | str = MAX_MEMORY
    n_jobs: int | None = None
    verbose: int | None = None
    random_state: RandomState = None
    _fit: ClassVar[Any]
    partial_fit: ClassVar[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "raise"
        tags.target_tags.required = True
        return tags

    # Fitting

    @fit_method
    def fit(
        self,
        X: TableLike | Iterator[tuple[TableLike, TableLike]],
        y: TableLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find landmarks, metric and weights, and calibrate intervals or probabilities.

        Parameters
        ----------
        X : array-like, DataFrame, CSR matrix, memory map, HDF5 or Zarr array, GPU array
            Training rows, shape (n, d); or an iterator of pairs (X, y), with y left out.
        y : array-like of shape (n,), or (n, t) for a regressor
            Targets, or labels of any type.
        sample_weight : array-like of shape (n,) or None
            How often each row counts.
        """
        given.check_settings(self)
        if not isinstance(X, Iterator):
            self._fit(X, y, sample_weight)
            return self
        if y is not None:
            raise ValueError("X is an iterator, whose blocks (X, y) have targets: leave y out.")
        first, rest = given.take_buffer(given.blocks_of(X, sample_weight))
        self._fit(*first)
        for block, targets, weights in rest:
            self.partial_fit(block, targets, sample_weight=weights)
        return self

    def _sample_weight(self, weights: Any, n: int, *, first: bool = True) -> Floats | None:
        """Return weights in the unit of the first fit, in which their scale does not matter."""
        if weights is None:
            return None
        found = given.check_weights(weights, n)
        if first:
            self._weight_unit = given.unit_of_weights(found)
        return np.asarray(found / getattr(self, "_weight_unit", 1.0))

    def _learn(
        self, X: Any, Y: Floats, weights: Floats | None, *, local: bool | int | str,
        after: Callable[[SearchResult], SearchResult] = lambda fitted: fitted,
    ) -> SearchResult:  # fmt: skip
        """Run the search with targets of shape (n, t), and keep its result after `after`."""
        rows = fit_rows(self, X, self.missing, Y, weights)
        refuse_unequal(rows.n, Y.shape[0])
        groups = given.candidates_for(self.kernel, self.metric, self.scale, self.landmarks, rows)
        budget, rng = self._budget(), make_rng(self.random_state)
        asked = LANDMARKS if isinstance(self.n_components, str) else self.n_components
        # few rows are too few for threads: 1,000 on two cores take 1.6 s, not 3; of more rows too
        # many threads wait for each other: kin40k on 16 cores 18 s, not 40, pol on two 20, not 26
        fewer = limit_threads(1) if uses_folds(rows.n) else threads_of_samples(budget)
        with limit_threads(budget.threads), fewer:
            fitted = run_search(
                rows, Y, weights, groups, min(asked, rows.n), rng,
                local=local, budget=budget, work=current(),
            )  # fmt: skip
            fitted = after(fitted)
            self._keep(fitted, rows)
        return fitted

    def _keep(self, fitted: SearchResult, rows: Rows) -> None:
        self._members = list(fitted.members)
        mixture = [member for member in self._members if member.weight > 0]
        self.mixture_weights_ = np.array([member.weight for member in mixture])
        self.candidates_ = fitted.notes
        self.n_components_ = max(len(m.model.features.landmarks) for m in mixture)
        best = mixture[int(np.argmax(self.mixture_weights_))]
        self.kernel_, self.components_ = best.model.kernel, best.model.landmarks
        gram = KernelGram(with_codes(rows, best.codes), self.kernel_, self._budget())
        mixture_of_one = Mixture((best.model.features,), np.ones(1))
        self.approximation_ = Approximation(gram, mixture_of_one)
        self.n_local_rows_ = max(
            0 if m.leaves is None else int(m.leaves.V.shape[0]) for m in mixture
        )
        missed = (fitted.truth - fitted.mean) ** 2
        error = np.sqrt(np.average(missed, axis=0, weights=fitted.weights))
        self.validation_error_ = float(np.sqrt(np.mean(error**2)))
        X: Any = fitted.X

        def predict(rows: Any) -> Array:  # without the logits of logistic regressions
            return self._predict_mixture(rows)[:, : len(error)]

        def predict_array(some: Array) -> Array:  # where the model is
            return predict(Float64Rows(make_rows(arrays.like(some, X))))

        self._single = float32_suffices(predict, rows, error)
        origins, width = self._table.origins, self.n_features_in_
        shares = permutation_importances(predict_array, X, fitted.truth, origins, width)
        self.feature_importances_ = shares

    def summary(self) -> None:
        """Print in ten lines what was tried, what was chosen and why."""
        check_is_fitted(self)
        print("\n".join(self._summary_lines()))

    def _summary_lines(self) -> list[str]:
        """Return at most ten lines: what was tried, what was chosen and why; none before a fit."""
        if not hasattr(self, "_members"):
            return []
        best = sorted(self.candidates_, key=lambda tried: tried[1])
        unit = "of class indicators" if hasattr(self, "classes_") else "in standard deviations of y"
        weights = ", ".join(f"{weight:.0%}" for weight in self.mixture_weights_)
        members, local = len(self.mixture_weights_), self.n_local_rows_
        chosen = "one model" if members == 1 else f"a mixture of {members}, weights {weights}"
        leaves = f"{local:,} training rows predict in leaves" if local else "no leaves"
        shares = self.feature_importances_
        names = getattr(self, "feature_names_in_", range(len(shares)))
        leading = np.argsort(-shares, kind="stable")[:SHOWN]
        return [
            f"{type(self).__name__}: {self.approximation_.shape[0]:,} rows, "
            f"{self.n_features_in_} columns",
            f"tried: {len(best)} candidates, held-out RMSE {best[0][1]:.3g} to {best[-1][1]:.3g} "
            f"({unit}); the best:",
            *(f"  {error:.3g}  {name}" for name, error in best[:SHOWN]),
            f"chosen by held-out rows: {chosen}; RMSE {self.validation_error_:.3g}",
            f"kernel: {self.kernel_}",
            f"landmarks: {self.n_components_}; {leaves}",
            "columns that matter most: "
            + ", ".join(f"{names[j]} {shares[j]:.0%}" for j in leading),
        ]

    def _update(self, X: Any, Y: Floats, weights: Floats | None) -> None:
        """Add rows to the weights and to the leaves."""
        X, Y, weights = given.drop_zero_weights(X, Y, weights)
        rows = new_rows(self, X, self.missing).count()
        refuse_unequal(rows.n, Y.shape[0])
        budget = self._budget()
        self._members = [member.add_rows(rows, Y, weights, budget) for member in self._members]

    # Evaluating

    def _evaluate(self, X: Any, of_rows: Callable[[Any, Any], Array]) -> Any:
        """Return of_rows(self, rows) of new rows, shape (n, w); of lazy ones block by block."""
        check_is_fitted(self)
        rows = new_rows(self, X, self.missing)
        if not rows.lazy:
            return of_rows(self, rows if self._single else Float64Rows(rows))
        width = int(_evaluate_block((self, of_rows), rows.template).shape[1])
        return rows.map(BlockTask("predict", _evaluate_block, (self, of_rows)), width)

    def _predict_mixture(self, rows: Any) -> Array:
        """Return the mixture's prediction in the precision of the rows, shape (n, t)."""
        budget = self._budget()
        return reduce(add, (member.predict(rows, budget) for member in self._members))

    def _variance(self, rows: Any) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return the mixture's predictive variance, (n, t), how outlying rows are, and gaps."""
        rows, found, gaps = Float64Rows(rows), [], []
        for piece in rows.pieces(max(64, PIECE // (8 * (self.n_components_ + rows.n_features)))):
            x = piece if arrays.is_sparse(piece) else arrays.like(piece, rows.template)
            parts = [member.variance(x) for member in self._members]
            found.append([reduce(add, part) for part in zip(*parts, strict=True)])
            gaps.append(self._find_gaps(x))
        variance, outlying = map(arrays.namespace(found[0][0]).concat, zip(*found, strict=True))
        return variance, outlying, np.concatenate(gaps)

    def _find_gaps(self, X: Any) -> NDArray[np.bool_]:
        """Return whether a value is missing in each of these rows as numbers, shape (n,)."""
        columns = self._table.gap_columns
        if len(columns) == 0:
            return np.zeros(X.shape[0], dtype=bool)
        return np.asarray(arrays.to_host(arrays.take(X, columns, axis=1)).any(axis=1))


def _evaluate_block(load: tuple[BaseLearner, Any], X: Array) -> Array:
    """Return what is asked of a block of rows, of Dask's on a worker."""
    (learner, of_rows), rows = load, make_rows(X)
    found: Array = of_rows(learner, rows if learner._single else Float64Rows(rows))
    return found


# Precision


class Float64Rows(RowsView):
    """Rows that are evaluated in float64, whatever they are stored in."""

    @property
    def template(self) -> Array:
        """One row in float64."""
        return arrays.in_float64(self.rows.template)


def float32_suffices(predict: Callable[[Any], Array], rows: Rows, error: Floats) -> bool:
    """Whether float32 moves no prediction by more than a hundredth of the error.

    It does where large terms nearly cancel, as in models with little noise. Some rows are predicted
    in each precision, and the difference is compared with the held-out error, shape (t,).
    """
    some = rows.take(spaced_indices(rows.n, PROBE_ROWS))
    with np.errstate(over="ignore", invalid="ignore"):
        xp = arrays.namespace(some)
        short = some.astype(np.float32) if arrays.is_numpy(some) else xp.astype(some, xp.float32)
        if not np.isfinite(arrays.to_host(arrays.entries(short))).all():
            return False  # numbers that float32 does not have
        single = make_rows(short)
        moved = arrays.to_host(predict(single)) - arrays.to_host(predict(Float64Rows(single)))
    return bool((np.abs(moved).max(axis=0) <= NOTICED * error).all())


def permutation_importances(
    predict: Callable[[Array], Array], X: Any, truth: Floats, origins: Indices, n_columns: int
) -> Floats:
    """Return how much the squared error of held-out rows grows as each column is shuffled, sum 1.

    X (n, d) are rows as numbers with targets (n, t); origins (d,) say of which column each is.
    Predictions are clipped to the range of the targets. Of very many columns those that vary most
    with the targets are shuffled, and others have 0.
    """
    rng, n = np.random.default_rng(0), min(PERMUTED, max(50, IN_ALL // n_columns))
    X, truth = arrays.to_host(X)[:n], truth[:n]
    least, most = truth.min(axis=0), truth.max(axis=0)

    def error(some: Array) -> float:
        predicted = np.clip(arrays.to_host(predict(some)), least, most)
        return float(np.mean((predicted - truth) ** 2))

    before, grown = error(X), np.zeros(n_columns)
    columns = np.unique(origins)
    if len(columns) > PERMUTED:
        x, y = X - X.mean(axis=0), truth - truth.mean(axis=0)
        along = np.abs(x.T @ y).max(axis=1) / positive_or_one(np.linalg.norm(x, axis=0))
        leading = np.argsort(-along, kind="stable")
        columns = columns[np.isin(columns, origins[leading[:PERMUTED]])]
    for j in columns:
        shuffled, of_column = X.copy(), origins == j
        shuffled[:, of_column] = X[rng.permutation(len(X))][:, of_column]
        grown[j] = error(shuffled) - before
    grown = np.maximum(grown, 0.0)
    total = grown.sum()
    return np.asarray(grown / total) if total > 0 else np.full(n_columns, 1 / n_columns)
