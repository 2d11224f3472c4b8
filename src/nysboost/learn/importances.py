"""Permutation importances: how much a squared error grows when a column is shuffled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    floats_on_host,
    positive_or_one,
    to_host,
)

MOST_ROWS, MOST_NUMBERS = 500, 50_000
"""Importances use at most this many held-out rows, and as many numbers in all. 500 rows estimate an
error to about 5 %."""

MOST_COLUMNS = 1000
"""At most this many columns are shuffled."""


@dataclass(frozen=True, eq=False)
class HeldOutRows:
    """Rows as numbers, shape (h, d), and their targets, shape (h, t), kept for importances."""

    X: Floats
    truth: Floats

    @classmethod
    def of(cls, X: Array, truth: Floats) -> HeldOutRows:
        """Return some of the held-out rows, on the host."""
        most = max(50, MOST_NUMBERS // X.shape[1])
        h = min(MOST_ROWS, most, len(truth))
        return cls(floats_on_host(X[:h, :]).copy(), truth[:h].copy())


def permutation_importances(
    predict: Callable[[Floats], Array], rows: HeldOutRows, origins: Indices, n_columns: int
) -> Floats:
    """Return by how much the squared error of held-out rows grows as each column is shuffled.

    Predictions are clipped to the range of the targets. Of very many columns, those that vary most
    with the targets are shuffled, and the others have importance 0.

    Parameters
    ----------
    predict : callable
        Predictions of shape (h, t) for rows of shape (h, d).
    rows : HeldOutRows
        The rows and their targets.
    origins : array of shape (d,)
        The column of the table that each column of `rows` comes from.
    n_columns : int
        Number of columns of the table.

    Returns
    -------
    array of shape (n_columns,)
        Shares, which sum to 1.
    """
    X, truth = rows.X, rows.truth
    rng = np.random.default_rng(0)
    least = truth.min(axis=0)
    most = truth.max(axis=0)

    def squared_error(x: Floats) -> float:
        predicted = np.clip(to_host(predict(x)), least, most)
        return float(np.mean((predicted - truth) ** 2))

    unshuffled = squared_error(X)
    growth = np.zeros(n_columns)
    for j in _columns_to_shuffle(X, truth, origins):
        of_column = origins == j
        shuffled = X.copy()
        shuffled[:, of_column] = X[rng.permutation(len(X))][:, of_column]
        growth[j] = max(squared_error(shuffled) - unshuffled, 0.0)

    total = growth.sum()
    if total == 0:
        return np.full(n_columns, 1 / n_columns)
    return np.asarray(growth / total)


def _columns_to_shuffle(X: Floats, truth: Floats, origins: Indices) -> Indices:
    """Return all columns of the table, or those of the largest covariance with the targets."""
    columns = np.unique(origins)
    if len(columns) <= MOST_COLUMNS:
        return columns
    x = X - X.mean(axis=0)
    y = truth - truth.mean(axis=0)
    covariance = np.abs(x.T @ y).max(axis=1) / positive_or_one(np.linalg.norm(x, axis=0))
    leading = np.argsort(-covariance, kind="stable")[:MOST_COLUMNS]
    return np.asarray(columns[np.isin(columns, origins[leading])])
