"""What regression and classification share: fitting, updating and evaluating a mixture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nysboost.approximation import Approximation
from nysboost.estimators.estimator import Estimator, KernelLike
from nysboost.estimators.fitting import fit_method
from nysboost.features.nystrom import Mixture
from nysboost.gram import KernelGram
from nysboost.learn.importances import HeldOutRows, permutation_importances
from nysboost.learn.input import (
    blocks_of,
    candidates_for,
    check_settings,
    check_weights,
    drop_zero_weights,
    take_buffer,
    unit_of_weights,
)
from nysboost.learn.precision import Float64Rows, float32_suffices
from nysboost.learn.search.data import uses_folds
from nysboost.learn.search.model import Member
from nysboost.learn.search.search import SearchResult, run_search
from nysboost.learn.search.tuning import LANDMARKS
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, TableLike
from nysboost.numerics.budget import MAX_MEMORY
from nysboost.numerics.parameters import RandomState, make_rng
from nysboost.numerics.progress import current
from nysboost.numerics.threads import limit_threads, threads_of_samples
from nysboost.rows.checks import refuse_unequal
from nysboost.rows.driver import BlockTask
from nysboost.rows.recognise import make_rows
from nysboost.rows.rows import Rows
from nysboost.tables.piecewise import with_codes
from nysboost.tables.rows import fit_rows, new_rows

VARIANCE_BYTES = 2**25
"""Bytes of features that are held while variances are evaluated."""

SHOWN = 4
"""Candidates and columns that a summary names."""

A = TypeVar("A", bound=NDArray[Any])

Answer: TypeAlias = Callable[[Any, Rows], A]
"""A function of a learner and rows as numbers that returns an array of shape (n, w)."""


@dataclass(eq=False, repr=False, kw_only=True)
class BaseLearner(Estimator):
    """Base class of the regressor and the classifier."""

    n_components: int | str = field(default=LANDMARKS, kw_only=False)
    kernel: KernelLike = "auto"
    metric: str | None = "auto"
    landmarks: str = "target"
    scale: str | None = "auto"
    local: bool | int | str = "auto"
    missing: str = "fill"
    ids: str = "drop"
    max_memory: int | str = MAX_MEMORY
    n_jobs: int | None = None
    verbose: int | None = None
    random_state: RandomState = None

    def __sklearn_tags__(self) -> Tags:
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
        check_settings(self)
        if not isinstance(X, Iterator):
            self._fit(X, y, sample_weight)
            return self
        if y is not None:
            raise ValueError("X is an iterator, whose blocks (X, y) have targets: leave y out.")

        first, rest = take_buffer(blocks_of(X, sample_weight))
        self._fit(*first)
        for block, targets, weights in rest:
            self._add(block, targets, weights)
        return self

    def _fit(self, X: TableLike, y: TableLike | None, sample_weight: ArrayLike | None) -> None:
        """Fit to a table."""
        raise NotImplementedError

    def _add(self, X: TableLike, y: TableLike, sample_weight: ArrayLike | None) -> None:
        """Add the rows of a table to the fitted model."""
        raise NotImplementedError

    def _sample_weight(self, weights: ArrayLike | None, n: int) -> Floats | None:
        """Return the weights of a first fit in a unit in which their scale does not matter."""
        self._weight_unit = 1.0
        if weights is None:
            return None
        found = check_weights(weights, n)
        self._weight_unit = unit_of_weights(found)
        return np.asarray(found / self._weight_unit)

    def _added_weight(self, weights: ArrayLike | None, n: int) -> Floats | None:
        """Return weights of rows that come later in the unit of the first ones."""
        if weights is not None:
            return np.asarray(check_weights(weights, n) / self._weight_unit)
        if self._weight_unit == 1:
            return None
        return np.full(n, 1 / self._weight_unit)

    def _learn(
        self,
        X: TableLike,
        Y: Floats,
        weights: Floats | None,
        *,
        local: bool | int | str,
    ) -> SearchResult:
        """Run the search with targets of shape (n, t), and keep its result."""
        rows: Rows = fit_rows(self, X, self.missing, Y, weights)
        refuse_unequal(rows.n, Y.shape[0])
        groups = candidates_for(self.kernel, self.metric, self.scale, self.landmarks, rows)
        budget = self._budget()
        rng = make_rng(self.random_state)
        c = LANDMARKS if isinstance(self.n_components, str) else self.n_components

        # few rows are too few for threads: 1,000 on two cores take 1.6 s, not 3; of more rows too
        # many threads wait for each other: kin40k on 16 cores 18 s, not 40, pol on two 20, not 26
        fewer = limit_threads(1) if uses_folds(rows.n) else threads_of_samples(budget)
        with limit_threads(budget.threads), fewer:
            fitted = run_search(
                rows,
                Y,
                weights,
                groups,
                min(c, rows.n),
                rng,
                local=local,
                budget=budget,
                work=current(),
            )
            fitted = self._finish(fitted)
            self._keep(fitted, rows)
        return fitted

    def _finish(self, fitted: SearchResult) -> SearchResult:
        """Return what is made of the search's result before it is kept."""
        return fitted

    def _keep(self, fitted: SearchResult, rows: Rows) -> None:
        """Set the fitted attributes."""
        self._members: list[Member] = list(fitted.members)
        mixture = [member for member in self._members if member.weight > 0]
        leaves = [member.leaves for member in mixture if member.leaves is not None]
        self.mixture_weights_ = np.array([member.weight for member in mixture])
        self.candidates_ = fitted.notes
        self.n_components_ = max(len(member.model.features.landmarks) for member in mixture)
        self.n_local_rows_ = max((int(one.V.shape[0]) for one in leaves), default=0)

        # the member with the largest weight
        best = mixture[int(np.argmax(self.mixture_weights_))]
        self.kernel_ = best.model.kernel
        self.components_ = best.model.landmarks
        gram = KernelGram(with_codes(rows, best.codes), self.kernel_, self._budget())
        mixture_of_one = Mixture((best.model.features,), np.ones(1))
        self.approximation_ = Approximation(gram, mixture_of_one)

        # what held-out rows say
        squared = (fitted.truth - fitted.mean) ** 2
        error = np.sqrt(np.average(squared, axis=0, weights=fitted.weights))
        self.validation_error_ = float(np.sqrt(np.mean(error**2)))
        self._single = float32_suffices(self._predict_targets, rows, error)
        assert fitted.X is not None
        self._held_out: HeldOutRows | None = HeldOutRows.of(fitted.X, fitted.truth)
        self._importances: Floats | None = None

    # Reports

    @property
    def feature_importances_(self) -> Floats:
        """How much each column matters, shape (d,): computed when first asked for."""
        check_is_fitted(self)
        importances = self._importances
        if importances is None:
            assert self._held_out is not None
            importances = permutation_importances(
                self._predict_array, self._held_out, self._table.origins, self.n_features_in_
            )
            self._importances = importances
        return importances

    def _saved_attributes(self) -> dict[str, Any]:
        """Return the attributes with importances in place of the held-out rows."""
        attributes = super()._saved_attributes()
        if attributes.get("_held_out") is None:
            return attributes
        return attributes | {"_importances": self.feature_importances_, "_held_out": None}

    def _without_rows(self) -> Self:
        """Return a copy that predicts, to be sent to a worker."""
        copied = copy.copy(self)
        copied._held_out = None
        return copied

    def _predict_array(self, X: Floats) -> Array:
        """Return predictions of rows as numbers on the host, in float64."""
        rows = make_rows(arrays.like(X, self.components_))
        return self._predict_targets(Float64Rows(rows))

    def summary(self) -> None:
        """Print in ten lines what was tried, what was chosen and why."""
        check_is_fitted(self)
        print("\n".join(self._summary_lines()))

    def _summary_lines(self) -> list[str]:
        """Return at most ten lines: what was tried, what was chosen and why; none before a fit."""
        if not hasattr(self, "_members"):
            return []
        return [
            f"{type(self).__name__}: {self.approximation_.shape[0]:,} rows, "
            f"{self.n_features_in_} columns",
            *self._describe_candidates(),
            self._describe_choice(),
            f"kernel: {self.kernel_}",
            self._describe_size(),
            self._describe_columns(),
        ]

    def _describe_candidates(self) -> list[str]:
        best = sorted(self.candidates_, key=lambda candidate: candidate[1])
        unit = "of class indicators" if hasattr(self, "classes_") else "in standard deviations of y"
        least = best[0][1]
        most = best[-1][1]
        title = f"tried: {len(best)} candidates, held-out RMSE {least:.3g} to {most:.3g} ({unit})"
        return [f"{title}; the best:", *(f"  {error:.3g}  {name}" for name, error in best[:SHOWN])]

    def _describe_choice(self) -> str:
        chosen = "one model"
        if len(self.mixture_weights_) > 1:
            weights = ", ".join(f"{weight:.0%}" for weight in self.mixture_weights_)
            chosen = f"a mixture of {len(self.mixture_weights_)}, weights {weights}"
        return f"chosen by held-out rows: {chosen}; RMSE {self.validation_error_:.3g}"

    def _describe_size(self) -> str:
        leaves = "no leaves"
        if self.n_local_rows_ > 0:
            leaves = f"{self.n_local_rows_:,} training rows predict in leaves"
        return f"landmarks: {self.n_components_}; {leaves}"

    def _describe_columns(self) -> str:
        shares = self.feature_importances_
        names = getattr(self, "feature_names_in_", range(len(shares)))
        leading = np.argsort(-shares, kind="stable")[:SHOWN]
        return "columns that matter most: " + ", ".join(
            f"{names[j]} {shares[j]:.0%}" for j in leading
        )

    # Adding rows

    def _update(self, X: TableLike, Y: Floats, weights: Floats | None) -> None:
        """Add rows to the weights and to the leaves."""
        X, Y, weights = drop_zero_weights(X, Y, weights)
        rows = new_rows(self, X, self.missing).count()
        refuse_unequal(rows.n, Y.shape[0])
        budget = self._budget()
        self._members = [member.add_rows(rows, Y, weights, budget) for member in self._members]
        if self._held_out is not None:
            self._importances = None

    # Evaluating

    def _evaluate(self, X: TableLike, answer: Answer[A]) -> A:
        """Return answer(self, rows) of new rows, shape (n, w); of lazy ones block by block."""
        check_is_fitted(self)
        rows: Rows = new_rows(self, X, self.missing)
        if not rows.lazy:
            return answer(self, rows if self._single else Float64Rows(rows))
        load = (self._without_rows(), answer)
        width = int(_evaluate_block(load, rows.template).shape[1])
        task = BlockTask("predict", _evaluate_block, load)
        return cast("A", rows.map(task, width))

    def _predict_mixture(self, rows: Rows) -> Array:
        """Return the mixture's prediction in the precision of the rows, (n, t), and any logits."""
        budget = self._budget()
        return reduce(add, (member.predict(rows, budget) for member in self._members))

    def _predict_targets(self, rows: Rows) -> Array:
        """Return the mixture's prediction without the logits of logistic regressions, (n, t)."""
        t = int(self._members[0].model.mean.shape[0])
        return self._predict_mixture(rows)[:, :t]

    def _variance(self, rows: Rows) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return predictive variances (n, t), how outlying rows are (n,), and which have gaps."""
        rows = Float64Rows(rows)
        size = VARIANCE_BYTES // (8 * (self.n_components_ + rows.n_features))
        variances = []
        outlying = []
        gaps = []
        for piece in rows.pieces(max(64, size)):
            x = piece if arrays.is_sparse(piece) else arrays.like(piece, rows.template)
            of_members = [member.variance(x) for member in self._members]
            variances.append(reduce(add, (variance for variance, _ in of_members)))
            outlying.append(reduce(add, (far for _, far in of_members)))
            gaps.append(self._find_gaps(x))
        concat = arrays.namespace(variances[0]).concat
        return concat(variances), concat(outlying), np.concatenate(gaps)

    def _find_gaps(self, X: Array) -> NDArray[np.bool_]:
        """Return whether a value is missing in each of these rows as numbers, shape (n,)."""
        columns = self._table.gap_columns
        if len(columns) == 0:
            return np.zeros(X.shape[0], dtype=bool)
        indicators = arrays.to_host(arrays.take(X, columns, axis=1))
        return np.asarray(indicators.any(axis=1))


def _evaluate_block(load: tuple[BaseLearner, Answer[A]], X: Array) -> A:
    """Return what is asked of a block of rows, of Dask's on a worker."""
    learner, answer = load
    rows = make_rows(X)
    return answer(learner, rows if learner._single else Float64Rows(rows))
