"""What regression and classification share: fitting, updating and evaluating a mixture."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from nysboost.approximation import Approximation
from nysboost.boosting.learner import Learner, Mixture
from nysboost.catalogue import RandomState, make_rng
from nysboost.data.dask_graph import is_dask
from nysboost.data.recognise import (
    as_rows,
    numbers_of,
    rows_of,
    stays_where_it_is,
    stream_of,
    table_of,
)
from nysboost.data.rows import Rows, Stream, spread_indices
from nysboost.engine.moments import moments_of
from nysboost.gram import KernelGram, Landmarks
from nysboost.learn.places import menu_of
from nysboost.learn.precision import InDouble, single_is_enough
from nysboost.learn.table import Table, is_frame
from nysboost.numerics.arrays import (
    Array,
    Floats,
    dense,
    is_sparse,
    like,
    namespace,
    to_host,
)
from nysboost.numerics.checks import require_count, unknown
from nysboost.numerics.memory import MAX_MEMORY, Budget, as_bytes
from nysboost.numerics.progress import Work
from nysboost.target.few import FEW
from nysboost.target.judged import Judged
from nysboost.target.method import learn
from nysboost.target.scale import SCALES

BUFFER_BYTES = 2**28
"""Of an iterator, as many rows as this are kept to find landmarks on; the rest give weights."""

PIECE = 2**25
"""Bytes of features that are held while variances are evaluated."""

SMALLEST = 1e-100
"""Weights below this, or above its inverse, have squares out of range."""

IMPORTANCE_ROWS = 4096
"""Rows whose spread says how far each feature goes."""


@dataclass(eq=False, repr=False, kw_only=True)
class BaseLearner(BaseEstimator):
    """Landmarks, a metric and weights, found together; final classes say for which target."""

    n_components: int | str = field(default=500, kw_only=False)
    kernel: Any = "auto"
    metric: str | None = "auto"
    landmarks: str = "target"
    scale: str | None = "auto"
    missing: str = "fill"
    max_memory: int | str = MAX_MEMORY
    verbose: int = 0
    random_state: RandomState = None

    # Fitting

    def _learn(self, X: Any, Y: Floats, weights: Floats | None, by: Any = learn) -> Judged:
        """Find the model on rows that are numbers, with targets of shape (n, t).

        What finds it is a function like `learn`.
        """
        rows = self._rows(X, reset=True)
        if is_dask(Y):
            Y = rows.aligned(Y) if rows.lazy else Y
            Y = Y if rows.lazy and rows.n > FEW else np.asarray(Y)
        _refuse_unequal(rows.n, Y.shape[0])
        judged: Judged = by(
            rows, Y, weights, menu_of(self.kernel, self.metric, self.landmarks, rows),
            self._asked(rows.n), make_rng(self.random_state),
            budget=Budget.of(self.max_memory),
            scaling=SCALES[self.scale],
            work=self._work(),
        )  # fmt: skip
        self._keep(judged, rows)
        return judged

    def _asked(self, n: int) -> int | None:
        """Return the number of landmarks that n rows allow; None where it is to be found."""
        return None if isinstance(self.n_components, str) else min(self.n_components, n)

    def _keep(self, judged: Judged, rows: Rows) -> None:
        self._models: list[Any] = list(judged.models)
        self.shares_ = judged.shares
        self.candidates_ = judged.notes
        self.n_components_ = max(int(model.basis.Z.shape[0]) for model in self._models)
        main = self._models[int(np.argmax(self.shares_))]
        self.kernel_ = main.basis.kernel
        self.components_ = main.basis.Z
        gram = KernelGram(rows, self.kernel_)
        gram.budget = Budget.of(self.max_memory)
        learner = Learner(Landmarks(None, main.basis.Z), main.basis.N)
        self.approximation_ = Approximation(gram, Mixture((learner,), np.ones(1)))
        self.feature_importances_ = self._importances(rows)
        error = np.sqrt(np.mean((judged.truth - judged.mean) ** 2, axis=0))
        self._single = single_is_enough(self._mixed, rows, error)

    def _importances(self, rows: Rows) -> Floats:
        """Return how much each column of the table moves the mapped points, sum 1."""
        d = rows.n_features
        some = to_host(dense(rows.take(spread_indices(rows.n, IMPORTANCE_ROWS))))
        warp = self.kernel_.metric.warp  # all parts have the same
        variance = (some if warp is None else warp(some)).astype(np.float64).var(axis=0)
        total = np.zeros(d)
        for share, model in zip(self.shares_, self._models, strict=True):
            A = model.basis.kernel.metric.map
            length = (A**2).sum(axis=1) if A.ndim == 2 else np.broadcast_to(A**2, (d,))
            moved = length * variance
            total += share * (moved / moved.sum() if moved.sum() > 0 else np.full(d, 1 / d))
        if self._table is not None:
            summed = np.bincount(self._table.origins, total, minlength=self.n_features_in_)
            return np.asarray(summed / summed.sum())
        return np.asarray(total / total.sum())

    def _update(self, X: Any, Y: Floats, weights: Floats | None) -> None:
        """Add rows to the weights."""
        rows = self._rows(X, reset=False)
        _refuse_unequal(rows.n, Y.shape[0])
        self._models = [
            model.updated(
                moments_of(
                    model.basis.through(),
                    rows,
                    Y,
                    weights=weights,
                    budget=Budget.of(self.max_memory),
                )
            )
            for model in self._models
        ]

    # Evaluating

    def _mean(self, X: Any) -> Array:
        """Return the mixture's prediction, shape (n, t)."""
        rows = self._rows(X, reset=False)
        single = getattr(self, "_single", False)  # files of earlier versions do not say
        return self._mixed(rows if single else InDouble(rows))

    def _mixed(self, rows: Any) -> Array:
        """Return the mixture's prediction in the precision of the rows, shape (n, t)."""
        budget = Budget.of(self.max_memory)
        weighted = (
            float(share) * (model.basis.through(model.w).write(rows, budget=budget) + model.mean)
            for share, model in zip(self.shares_, self._models, strict=True)
        )
        return reduce(add, weighted)

    def _variance(self, X: Any) -> tuple[Array, Array]:
        """Return the mixture's predictive variance, shape (n, t), and how strange rows are."""
        rows = InDouble(self._rows(X, reset=False))
        variances, strange = [], []
        for piece in rows.pieces(max(64, PIECE // (8 * (self.n_components_ + rows.n_features)))):
            x = piece if is_sparse(piece) else like(piece, rows.form)
            mixed = [
                (float(share) * model.spread(F)[:, None] * model.noise[None, :],
                 float(share) * model.strange(F))
                for share, model in zip(self.shares_, self._models, strict=True)
                for F in [model.basis(x)]
            ]  # fmt: skip
            variances.append(reduce(add, (variance for variance, _ in mixed)))
            strange.append(reduce(add, (far for _, far in mixed)))
        xp = namespace(*variances)
        return xp.concat(variances), xp.concat(strange)

    # Input

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Recognise rows as they come, and turn tables into numbers."""
        if stays_where_it_is(X):
            rows: Stream = as_rows(X) if reset else stream_of(X)
            if reset:
                self.n_features_in_, self._table = rows.n_features, None
                if hasattr(self, "feature_names_in_"):
                    del self.feature_names_in_
                if is_dask(X) and hasattr(X, "columns"):
                    self.feature_names_in_: Any = np.asarray(X.columns, dtype=object)
            elif rows.n_features != self.n_features_in_:
                msg = (
                    f"X has {rows.n_features} features, but {type(self).__name__} is expecting "
                    f"{self.n_features_in_} features as input."
                )
                raise ValueError(msg)
            return rows
        if is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not reset and X.shape[1] != self.n_features_in_:
                msg = f"X has {X.shape[1]} columns, but {self.n_features_in_} were fitted."
                raise ValueError(msg)
            if reset:
                self._table = Table.of(X, self.missing)
            return rows_of(self._table(X)) if self._table is not None else rows_of(np.asarray(X))
        how = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        finite: Any = True if self.missing == "raise" else "allow-nan"
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn adds all numbers up
            X = validate_data(self, table_of(X), reset=reset, ensure_all_finite=finite, **how)
        if reset:
            with np.errstate(over="ignore", invalid="ignore"):
                gaps = not is_sparse(X) and bool(np.isnan(X.sum()) and np.isnan(X).any())
            self._table = Table.of(X, self.missing) if gaps else None
        if self._table is not None:
            X = self._table(X)
        return as_rows(X) if reset else rows_of(X)  # a pass looks for NaN itself

    def _check_settings(self) -> None:
        if not isinstance(self.n_components, str):
            require_count("n_components", self.n_components)
        elif self.n_components != "auto":
            raise ValueError(unknown("number of landmarks", self.n_components, ("auto",)))
        as_bytes(self.max_memory)
        for name, known in (("scale", tuple(SCALES)), ("missing", ("fill", "raise"))):
            value = getattr(self, name)
            if not isinstance(value, str | None) or value not in known:
                raise ValueError(unknown(f"setting of {name}", value, map(str, known)))

    def _sample_weight(self, weights: Any, n: int) -> Floats | None:
        if weights is None:
            return None
        given, like_X = numbers_of(weights, "sample_weight"), np.empty((n, 1))
        if np.ndim(given) > 1:
            raise ValueError(f"Sample weights must be 1D array or scalar, not {given.ndim}D.")
        found = _check_sample_weight(given, like_X, dtype=np.float64, ensure_non_negative=True)
        largest = found.max()
        if largest > 0 and not SMALLEST < largest < 1 / SMALLEST:
            msg = (
                f"sample_weight has values up to {largest:.3g}, which count a row as often as no "
                "number can say: divide all of them by their mean."
            )
            raise ValueError(msg)
        if not found.sum() > 0:
            msg = "sample_weight is zero for every row: nothing is left to learn from."
            raise ValueError(msg)
        return np.asarray(found * (len(found) / found.sum())) if n > FEW else np.asarray(found)

    def _work(self) -> Work:
        """Return what prints lines of progress, if asked for."""
        begun = time.perf_counter()

        def say(line: str) -> None:
            print(f"[{type(self).__name__}] {time.perf_counter() - begun:6.1f} s  {line}")

        return Work(say) if self.verbose else Work()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "raise"
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "approximation_" in state:
            state = state | {"approximation_": state["approximation_"].detached()}
        return state


def _refuse_unequal(n: int | None, targets: int) -> None:
    if n is not None and n != targets:
        msg = f"X has {n} rows, but y has {targets}: give as many of one as of the other."
        raise ValueError(msg)


def buffered(blocks: Iterator[Any]) -> tuple[Floats, Any, Iterator[Any]]:
    """Return the first rows of an iterator of (X, y), joined, and the blocks that remain."""
    held: list[tuple[Any, Any]] = []
    size = 0
    for X, y in blocks:
        X, y = np.asarray(X), np.asarray(y)
        if X.shape[0] == 0:
            continue
        held.append((X, y))
        size += X.nbytes
        if size >= BUFFER_BYTES:
            break
    if not held:
        msg = "The iterator gave no block of rows: it should yield pairs (X, y)."
        raise ValueError(msg)
    return np.concatenate([X for X, _ in held]), np.concatenate([y for _, y in held]), blocks
