"""The base class of regression and classification: fit, update and evaluate a mixture."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from nysboost.approximation import Approximation
from nysboost.estimators.estimator import Estimator, KernelLike
from nysboost.features.feature_map import Mixture
from nysboost.gram import KernelGram
from nysboost.learn.input import (
    SAID_OF_GROUPS,
    TrainingTable,
    candidates_for,
    check_settings,
    check_weights,
    groups_of_splits,
    read_blocks,
    take_buffer,
    unit_of_weights,
    warn_if_unsorted,
)
from nysboost.learn.report import describe, permutation_importances
from nysboost.learn.search.data import read_validation, uses_folds
from nysboost.learn.search.loss import TrainingRows
from nysboost.learn.search.model import Member
from nysboost.learn.search.search import SearchResult, run_search
from nysboost.learn.search.tuning import LANDMARKS
from nysboost.numerics import arrays
from nysboost.numerics.arrays import Array, Floats, Numbers, TableLike, spaced_indices
from nysboost.numerics.checks import MAX_MEMORY, Budget, RandomState, make_rng, refuse_unequal
from nysboost.numerics.progress import current
from nysboost.numerics.threads import limit_threads, threads_of_samples
from nysboost.rows.driver import BlockTask
from nysboost.rows.recognise import make_rows
from nysboost.rows.rows import Rows, RowsView
from nysboost.rows.sizes import PROBE_ROWS
from nysboost.tables.codes import with_codes
from nysboost.tables.rows import fit_rows, new_rows
from nysboost.tables.schema import Schema
from nysboost.tables.values import Booleans

VARIANCE_BYTES = 2**25
"""Memory in bytes for features while variances are computed."""

NEGLIGIBLE_CHANGE = 0.01
"""float32 may change predictions by this share of their error, and squared errors by 1e-4."""

IMPORTANCE_ROWS = 500
IMPORTANCE_NUMBERS = 50_000
"""Importances use at most this many held-out rows, and as many numbers in all. 500 rows estimate an
error to about 5 %."""

A = TypeVar("A", bound=Numbers)
Learner = TypeVar("Learner", bound="BaseLearner")


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
    cv: Sequence[tuple[ArrayLike, ArrayLike]] | str | None = None
    max_time: float | None = None
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

    def _fit_any(
        self,
        X: TableLike | Iterator[object],
        y: TableLike | None,
        sample_weight: ArrayLike | None,
        groups: ArrayLike | str | None,
        validation: tuple[object, ...] | None,
    ) -> Self:
        """Fit to a table, or to the first blocks of an iterator, and then add its other blocks."""
        check_settings(self)
        choices = {"groups": groups, "validation": validation, "cv": self.cv}
        given = [name for name, value in choices.items() if value is not None]
        if len(given) > 1:
            raise ValueError(
                f"Held-out rows are given by {given[0]}, and also by {given[1]}: leave one of them "
                "out."
            )
        if self.cv is not None:
            groups = groups_of_splits(self.cv)

        if not isinstance(X, Iterator):
            table = TrainingTable.of(X, y, sample_weight, groups, validation)
            self._fit(table)
            return self

        # an iterator brings its own targets, and cannot be divided by groups
        if y is not None:
            raise ValueError(
                "X is an iterator of pairs (X, y), which contain targets: leave y out."
            )
        if groups is not None or validation is not None:
            raise ValueError(
                "groups, splits in cv, or validation need all rows at once, but X is an iterator: "
                "pass a table, or leave them out."
            )

        blocks = read_blocks(X, sample_weight)
        first = take_buffer(blocks)
        self._fit(first)
        for block in blocks:
            self._add(block)
        return self

    def _fit(self, table: TrainingTable) -> None:
        """Fit to a table."""
        raise NotImplementedError

    def _in_units_of_fit(self, table: TrainingTable) -> TrainingTable:
        """Return another table with targets (n, t) and weights in the units of the first fit."""
        raise NotImplementedError

    def _sample_weight(self, weights: ArrayLike | None, n: int) -> Floats | None:
        """Return the weights of a first fit, scaled so that their unit does not matter."""
        self._weight_unit = 1.0
        if weights is None:
            return None
        checked = check_weights(weights, n)
        self._weight_unit = unit_of_weights(checked)
        return checked / self._weight_unit

    def _added_weight(self, weights: ArrayLike | None, n: int) -> Floats | None:
        """Return the weights of later rows, in the unit of the first rows."""
        if weights is not None:
            return check_weights(weights, n) / self._weight_unit
        if self._weight_unit == 1:
            return None
        return np.full(n, 1 / self._weight_unit)

    def _learn(self, table: TrainingTable, *, local: bool | int | str) -> SearchResult:
        """Run the search with targets of shape (n, t), and keep its result."""
        # the table as numbers
        rows: Rows = fit_rows(self, table.X, self.missing, table.y, table.weights)
        refuse_unequal(rows.n, len(table.y))
        if table.groups is not None:
            refuse_unequal(rows.n, len(table.groups), SAID_OF_GROUPS)

        # splits have become groups, so a name is left: "time"
        cv = None
        if isinstance(self.cv, str):
            cv = self.cv
            warn_if_unsorted(table.X, self.schema_)

        # hints on which rows to hold out are for those who have not chosen them
        choices = (cv, table.groups, table.validation)
        if any(choice is not None for choice in choices):
            self.schema_: Schema = self.schema_.without_notes()

        # the candidates, and their number of landmarks
        candidates = candidates_for(
            self.kernel,
            self.metric,
            self.scale,
            self.landmarks,
            rows,
        )
        c = LANDMARKS
        if not isinstance(self.n_components, str):
            c = self.n_components
        if isinstance(local, np.bool):  # out of an array of settings
            local = bool(local)

        budget = self._budget()

        # few rows are too few for threads: 1,000 on two cores take 1.6 s, not 3; of more rows too
        # many threads wait for each other: kin40k on 16 cores 18 s, not 40, pol on two 20, not 26
        fewer: AbstractContextManager[None] = threads_of_samples(budget)
        if uses_folds(rows.n):
            fewer = limit_threads(1)
        with limit_threads(budget.threads), fewer:
            fitted = run_search(
                rows,
                table.y,
                table.weights,
                candidates,
                min(c, rows.n),
                make_rng(self.random_state),
                local=local,
                budget=budget,
                work=current(),
                row_groups=table.groups,
                cv=cv,
                validation=self._validation_rows(table.validation, budget),
                max_time=self.max_time,
            )
            fitted = self._finish(fitted)
            self._set_fitted(fitted, rows)
        return fitted

    def _validation_rows(self, table: TrainingTable | None, budget: Budget) -> TrainingRows | None:
        """Return the rows of a table for validation, encoded like the training rows."""
        if table is None:
            return None
        try:
            table = self._in_units_of_fit(table).counting()
            rows = new_rows(self, table.X, self.missing).count()
            refuse_unequal(rows.n, len(table.y))
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"In validation: {error}") from error
        return read_validation(rows, table.y, table.weights, budget)

    def _finish(self, fitted: SearchResult) -> SearchResult:
        """Return the result of the search after the last step of a fit."""
        return fitted

    def _set_fitted(self, fitted: SearchResult, rows: Rows) -> None:
        """Set the fitted attributes."""
        self._members: list[Member] = list(fitted.members)
        self.candidates_ = fitted.notes
        self._describe_mixture(rows)

        # the held-out error, and whether predictions in float32 are precise enough for it
        mse = self._set_error(fitted, fitted.mean)
        self._single = float32_suffices(self._predict_targets, rows, np.sqrt(mse))

        # importances are computed when first asked for, from some held-out rows
        self._held_out: TrainingRows | None = _some_held_out(fitted, rows.n_features)
        self._importances: Floats | None = None

    def _set_error(self, fitted: SearchResult, predicted: Floats) -> Floats:
        """Set the held-out error of predictions (h, t); return the squared one of each target."""
        squared = (fitted.truth - predicted) ** 2
        mse = np.average(squared, axis=0, weights=fitted.weights)
        self.validation_error_ = float(np.sqrt(mse.mean()))
        return np.asarray(mse)

    def _describe_mixture(self, rows: Rows) -> None:
        """Set the attributes of the mixture, and those of its largest member."""
        # members with logistic regressions alone do not count
        mixture = [member for member in self._members if member.weight > 0]
        weights = [member.weight for member in mixture]
        self.mixture_weights_ = np.array(weights)

        n_landmarks = []
        n_local = [0]
        for member in mixture:
            landmarks = member.model.features.landmarks
            n_landmarks.append(len(landmarks))
            if member.leaves is not None:
                n_local.append(len(member.leaves.V))
        self.n_components_ = max(n_landmarks)
        self.n_local_rows_ = max(n_local)

        # the member with the largest weight
        best = mixture[int(np.argmax(weights))]
        self.kernel_ = best.model.kernel
        self.components_ = best.model.landmarks
        self.approximation_ = _approximation_of(best, rows, self._budget())

    # Reports

    @property
    def feature_importances_(self) -> Floats:
        """The share of each column in the increase in error when columns are shuffled, (d,)."""
        check_is_fitted(self)
        importances = self._importances
        if importances is None:
            assert self._held_out is not None
            importances = permutation_importances(
                self._predict_array,
                self._held_out,
                self._table.origins,
                self.n_features_in_,
            )
            self._importances = importances
        return importances

    def _predict_array(self, X: Array) -> Array:
        """Return predictions for numerical rows, on the host and in float64."""
        on_device = arrays.like(X, self.components_)
        rows = make_rows(on_device)
        return self._predict_targets(Float64Rows(rows))

    def _saved_attributes(self) -> dict[str, object]:
        """Return the attributes with importances in place of the held-out rows."""
        attributes = super()._saved_attributes()
        if attributes.get("_held_out") is None:
            return attributes
        return attributes | {"_importances": self.feature_importances_, "_held_out": None}

    def _without_rows(self) -> Self:
        """Return a copy without training data that can predict, to send to a worker."""
        copied = copy.copy(self)
        copied._held_out = None
        return copied

    def summary(self) -> None:
        """Print the candidates, the choice and its reason in ten lines."""
        check_is_fitted(self)
        print("\n".join(self._summary_lines()))

    def _summary_lines(self) -> list[str]:
        """Return at most ten lines on the candidates and the choice; no lines before a fit."""
        if not hasattr(self, "_members"):
            return []
        return describe(self)

    # Adding rows

    def _add(self, table: TrainingTable) -> None:
        """Add the rows of a table to the weights and to the leaves."""
        table = self._in_units_of_fit(table).counting()
        rows = new_rows(self, table.X, self.missing).count()
        refuse_unequal(rows.n, len(table.y))

        budget = self._budget()
        members = []
        for member in self._members:
            updated = member.add_rows(rows, table.y, table.weights, budget)
            members.append(updated)
        self._members = members

        # importances of the updated model are computed when asked for
        if self._held_out is not None:
            self._importances = None

    # Evaluating

    def _evaluate(self, X: TableLike, answer: Callable[[Self, Rows], A]) -> A:
        """Return answer(self, rows) for new rows, shape (n, w); for lazy rows, block by block."""
        check_is_fitted(self)
        rows: Rows = new_rows(self, X, self.missing)
        if not rows.lazy:
            return answer(self, self._in_precision(rows))

        # the width of the result, from one row
        load = (self._without_rows(), answer)
        example = _evaluate_block(load, rows.template)
        width = int(example.shape[1])
        task = BlockTask("predict", _evaluate_block, load)
        return cast("A", rows.map(task, width))

    def _in_precision(self, rows: Rows) -> Rows:
        """Return rows in the precision that predictions need."""
        if self._single:
            return rows
        return Float64Rows(rows)

    def _predict_mixture(self, rows: Rows) -> Array:
        """Return the mixture's prediction in the precision of the rows, (n, t), and any logits."""
        budget = self._budget()
        of_members = [member.predict(rows, budget) for member in self._members]
        return reduce(add, of_members)

    def _predict_targets(self, rows: Rows) -> Array:
        """Return the mixture's prediction without the logits of logistic regressions, (n, t)."""
        t = len(self._members[0].model.mean)
        found = self._predict_mixture(rows)
        return found[:, :t]

    def _variance(self, rows: Rows) -> tuple[Array, Array, Booleans]:
        """Return variances (n, t), distances from the data (n,), and which rows have gaps."""
        rows = Float64Rows(rows)
        size = VARIANCE_BYTES // (8 * (self.n_components_ + rows.n_features))
        variances = []
        outlying = []
        gaps = []
        for piece in rows.pieces(max(64, size)):
            # sparse rows stay sparse, others move to the model's device
            x = piece
            if not arrays.is_sparse(piece):
                x = arrays.like(piece, rows.template)

            # sums over the members
            of_members = [member.variance(x) for member in self._members]
            of_model, of_distance = zip(*of_members, strict=True)
            variances.append(reduce(add, of_model))
            outlying.append(reduce(add, of_distance))
            gaps.append(self._find_gaps(x))

        concat = arrays.namespace(variances[0]).concat
        return concat(variances), concat(outlying), np.concatenate(gaps)

    def _find_gaps(self, X: Array) -> Booleans:
        """Return whether each of these numerical rows has a missing value, shape (n,)."""
        columns = self._table.gap_columns
        if len(columns) == 0:
            return np.zeros(X.shape[0], dtype=bool)
        indicators = arrays.take(X, columns, axis=1)
        on_host = arrays.to_host(indicators)
        return np.asarray(on_host.any(axis=1))


def _some_held_out(fitted: SearchResult, d: int) -> TrainingRows:
    """Return copies of the held-out rows of d features that importances use."""
    assert fitted.X is not None
    most = max(50, IMPORTANCE_NUMBERS // d)
    h = min(IMPORTANCE_ROWS, most, len(fitted.truth))
    X = arrays.floats_on_host(fitted.X[:h, :])
    Y = fitted.truth[:h]
    return TrainingRows(X.copy(), Y.copy())


def _approximation_of(member: Member, rows: Rows, budget: Budget) -> Approximation:
    """Return the Nyström approximation of a member."""
    coded = with_codes(rows, member.codes)
    gram = KernelGram(coded, member.model.kernel, budget)
    mixture = Mixture((member.model.features,), np.ones(1))
    return Approximation(gram, mixture)


def _evaluate_block(load: tuple[Learner, Callable[[Learner, Rows], A]], X: Array) -> A:
    """Evaluate a block of rows; blocks of Dask are evaluated on a worker."""
    learner, answer = load
    rows = learner._in_precision(make_rows(X))
    return answer(learner, rows)


# Precision of predictions


class Float64Rows(RowsView):
    """Rows that are converted to float64, whatever their dtype."""

    @property
    def template(self) -> Array:
        """One row in float64."""
        return arrays.in_float64(self.rows.template)


def float32_suffices(predict: Callable[[Rows], Array], rows: Rows, error: Floats) -> bool:
    """Whether float32 moves no prediction by more than a hundredth of the error.

    It does if large terms nearly cancel, as in models with little noise. Some rows are predicted in
    both precisions, and the difference is compared with the held-out error, shape (t,).
    """
    probed = rows.take(spaced_indices(rows.n, PROBE_ROWS))
    with np.errstate(over="ignore", invalid="ignore"):
        short = _in_float32(probed)
        numbers = arrays.to_host(arrays.entries(short))
        if not np.isfinite(numbers).all():  # beyond the range of float32
            return False

        # the same rows, evaluated in each precision
        single = make_rows(short)
        in_single = arrays.to_host(predict(single))
        in_double = arrays.to_host(predict(Float64Rows(single)))

    moved = np.abs(in_single - in_double).max(axis=0)
    return bool((moved <= NEGLIGIBLE_CHANGE * error).all())


def _in_float32(X: Array) -> Array:
    if arrays.is_numpy(X):  # or sparse
        return X.astype(np.float32)
    xp = arrays.namespace(X)
    return xp.astype(X, xp.float32)
