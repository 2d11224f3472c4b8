"""What a learner found, in ten lines, and how much each column of its table matters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nysboost.numerics.arrays import Array, Floats, Indices, to_host

SHOWN = 4
"""Candidates and columns that a summary names."""

PERMUTED_ROWS, IN_ALL = 1000, 50_000
"""Held-out rows, at most, on which each column is shuffled, and all together: of 1000 rows errors
have errors of about 3 %, and 784 columns of mnist take a second."""


def summarise(learner: Any) -> list[str]:
    """Return at most ten lines: what was tried, what was chosen and why."""
    rows, columns = learner.approximation_.shape[0], learner.n_features_in_
    best = sorted(learner.candidates_, key=lambda tried: tried[1])
    unit = "of class indicators" if hasattr(learner, "classes_") else "in standard deviations of y"
    lines = [
        f"{type(learner).__name__}: {rows:,} rows, {columns} columns",
        f"tried: {len(best)} candidates, held-out RMSE {best[0][1]:.3g} to {best[-1][1]:.3g} "
        f"({unit}); the best:",
        *(f"  {error:.3g}  {name}" for name, error in best[:SHOWN]),
    ]
    weights = ", ".join(f"{weight:.0%}" for weight in learner.mixture_weights_)
    members = len(learner.mixture_weights_)
    chosen = "one model" if members == 1 else f"a mixture of {members}, weights {weights}"
    local = learner.n_local_rows_
    leaves = f"; {local:,} training rows predict in leaves" if local else "; no leaves"
    lines += [
        f"chosen by held-out rows: {chosen}; RMSE {learner.validation_error_:.3g}",
        f"kernel: {learner.kernel_}",
        f"landmarks: {learner.n_components_}{leaves}",
        f"columns that matter most: {_leading(learner)}",
    ]
    return lines


def _leading(learner: Any) -> str:
    names = getattr(learner, "feature_names_in_", None)
    shares = learner.feature_importances_
    order = np.argsort(-shares, kind="stable")[:SHOWN]
    return ", ".join(f"{names[j] if names is not None else j} {shares[j]:.0%}" for j in order)


def permutation_importances(
    predict: Callable[[Array], Array], X: Any, truth: Floats, origins: Indices, n_columns: int
) -> Floats:
    """Return how much the squared error of held-out rows grows as each column is shuffled, sum 1.

    X (n, d) are rows as numbers with targets (n, t); origins (d,) say of which column each is.
    """
    rng, n = np.random.default_rng(0), min(PERMUTED_ROWS, max(50, IN_ALL // n_columns))
    X, truth = to_host(X)[:n], truth[:n]
    before = np.mean((to_host(predict(X)) - truth) ** 2)
    grown = np.zeros(n_columns)
    for j in np.unique(origins):
        shuffled, of_column = X.copy(), origins == j
        shuffled[:, of_column] = X[rng.permutation(len(X))][:, of_column]
        grown[j] = np.mean((to_host(predict(shuffled)) - truth) ** 2) - before
    grown = np.maximum(grown, 0.0)
    total = grown.sum()
    return np.asarray(grown / total) if total > 0 else np.full(n_columns, 1 / n_columns)
