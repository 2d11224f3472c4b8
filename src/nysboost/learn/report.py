"""Reports of a fitted learner: importances of columns, and a summary."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np

from nysboost.numerics.arrays import Array, Floats, Indices, to_host
from nysboost.numerics.linalg import positive_or_one

if TYPE_CHECKING:
    from nysboost.learn.base import BaseLearner
    from nysboost.learn.search.loss import TrainingRows

SHOWN = 4
"""Number of candidates and of columns named in a summary."""

MOST_COLUMNS = 1000
"""At most this many columns are shuffled."""


def permutation_importances(
    predict: Callable[[Array], Array],
    rows: TrainingRows,
    origins: Indices,
    n_columns: int,
) -> Floats:
    """Return the increase of the squared error on held-out rows when each column is shuffled.

    Predictions are clipped to the range of the targets. If there are very many columns, only those
    with the largest covariance with the targets are shuffled, and the others have importance 0.

    Parameters
    ----------
    predict : callable
        Function that returns predictions (h, t) for rows (h, d).
    rows : TrainingRows
        Held-out rows and their targets.
    origins : array of shape (d,)
        The column of the table that each column of `rows` comes from.
    n_columns : int
        Number of columns of the table.

    Returns
    -------
    array of shape (n_columns,)
        Shares, which sum to 1.
    """
    rng = np.random.default_rng(0)
    as_they_are = predict(rows.X)
    unshuffled = _squared_error(as_they_are, rows.Y)
    growth = np.zeros(n_columns)
    for j in _columns_to_shuffle(rows.X, rows.Y, origins):
        # all features of a column move together
        order = rng.permutation(len(rows.X))
        shuffled = np.where(origins == j, rows.X[order], rows.X)

        error = _squared_error(predict(shuffled), rows.Y)
        growth[j] = max(error - unshuffled, 0.0)

    # if no column matters, all have the same share
    total = growth.sum()
    if total == 0:
        return np.full(n_columns, 1 / n_columns)
    return np.asarray(growth / total)


def _squared_error(predicted: Array, truth: Array) -> float:
    """Return the mean squared error of predictions, clipped to the range of the targets."""
    least = truth.min(axis=0)
    most = truth.max(axis=0)
    clipped = np.clip(to_host(predicted), least, most)
    return float(np.mean((clipped - truth) ** 2))


def _columns_to_shuffle(X: Array, truth: Array, origins: Indices) -> Indices:
    """Return all columns of the table, or those of the largest covariance with the targets."""
    columns = np.unique(origins)
    if len(columns) <= MOST_COLUMNS:
        return columns

    # the correlation of each with the targets, times the spread of these
    x = X - X.mean(axis=0)
    y = truth - truth.mean(axis=0)
    products = np.abs(x.T @ y)
    lengths = positive_or_one(np.linalg.norm(x, axis=0))
    strength = products.max(axis=1) / lengths

    order = np.argsort(-strength, kind="stable")
    leading = order[:MOST_COLUMNS]
    is_leading = np.isin(columns, origins[leading])
    return np.asarray(columns[is_leading])


# The summary


def describe(learner: BaseLearner) -> list[str]:
    """Return ten lines on the candidates, the choice and its reason."""
    n = learner.approximation_.shape[0]
    return [
        f"{type(learner).__name__}: {n:,} rows, {learner.n_features_in_} columns",
        *_describe_candidates(learner),
        _describe_choice(learner),
        f"kernel: {learner.kernel_}",
        _describe_size(learner),
        _describe_columns(learner),
    ]


def _describe_candidates(learner: BaseLearner) -> list[str]:
    best = sorted(learner.candidates_, key=itemgetter(1))
    least = best[0][1]
    most = best[-1][1]
    unit = "in standard deviations of y"
    if hasattr(learner, "classes_"):
        unit = "of class indicators"

    tried = f"tried: {len(best)} candidates"
    errors = f"held-out RMSE {least:.3g} to {most:.3g} ({unit})"
    lines = [f"{tried}, {errors}; the best:"]
    for name, error in best[:SHOWN]:
        lines.append(f"  {error:.3g}  {name}")
    return lines


def _describe_choice(learner: BaseLearner) -> str:
    chosen = "one model"
    if len(learner.mixture_weights_) > 1:
        weights = ", ".join(f"{weight:.0%}" for weight in learner.mixture_weights_)
        chosen = f"a mixture of {len(learner.mixture_weights_)}, weights {weights}"
    return f"chosen by held-out rows: {chosen}; RMSE {learner.validation_error_:.3g}"


def _describe_size(learner: BaseLearner) -> str:
    leaves = "no leaves"
    if learner.n_local_rows_ > 0:
        leaves = f"{learner.n_local_rows_:,} training rows predict in leaves"
    return f"landmarks: {learner.n_components_}; {leaves}"


def _describe_columns(learner: BaseLearner) -> str:
    shares = learner.feature_importances_
    names = getattr(learner, "feature_names_in_", range(len(shares)))
    leading = np.argsort(-shares, kind="stable")[:SHOWN]
    columns = ", ".join(f"{names[j]} {shares[j]:.0%}" for j in leading)
    return f"columns that matter most: {columns}"
