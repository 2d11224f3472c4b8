"""Target means for each value of a category, used as codes."""

from __future__ import annotations

import numpy as np

from nysboost.numerics.arrays import Floats
from nysboost.numerics.linalg import positive_or_one
from nysboost.tables.frames import Cells

FOLDS = 5
"""Number of folds; the target mean for a row comes from the other folds."""

MOST_TARGETS = 8
"""Largest number of targets whose means encode a category: the most frequent classes."""

LEAST_BETWEEN = 1e-3
"""Smallest share of the variance between values, so that means are never shrunk to a single one."""


def leading_targets(Y: Floats) -> Floats:
    """Return the at most `MOST_TARGETS` targets with the largest variance; one for two classes."""
    if Y.shape[1] == 2:
        of_rows = Y.sum(axis=1)
        if np.allclose(of_rows, of_rows[0]):  # indicators of two classes
            return Y[:, 1:]

    by_variance = np.argsort(-Y.var(axis=0), kind="stable")
    chosen = np.sort(by_variance[:MOST_TARGETS])
    return Y[:, chosen]


def target_means(positions: Cells, n_values: int, Y: Floats, weights: Floats | None) -> Floats:
    """Return the target means for each value, shrunk towards the overall mean.

    The mean of a value is (Σ w y + a ȳ) / (Σ w + a). By empirical Bayes, a is the variance within
    values divided by the variance between their means.

    Parameters
    ----------
    positions : ndarray of shape (n,)
        The value of each row: 0 to n_values − 1, −1 if missing, −2 if unknown.
    n_values : int
    Y : ndarray of shape (n, t)
    weights : ndarray of shape (n,) or None

    Returns
    -------
    ndarray of shape (n_values + 2, t)
        The last row is for a missing value, and the one before it for an unknown value.
    """
    tiny = np.finfo(float).tiny
    if weights is None:
        weights = np.ones(len(Y))
    w = weights[:, None]

    # ȳ over all rows, and the deviations from it
    total = max(float(w.sum()), tiny)
    mean = (w * Y).sum(axis=0) / total
    deviations = Y - mean

    # Σ w and Σ w (y − ȳ) over the rows of each value
    length = n_values + 2
    at = positions % length
    weight_of = np.bincount(at, weights, minlength=length)[:, None]
    weighted = w * deviations
    by_target = [np.bincount(at, of_target, minlength=length) for of_target in weighted.T]
    sums = np.stack(by_target, axis=1)
    raw_means = sums / np.maximum(weight_of, tiny)

    # variance among the means, less what noise alone gives to as many means
    variance = (w * deviations**2).sum(axis=0) / total
    between = (weight_of * raw_means**2).sum(axis=0) / total
    within = np.maximum(variance - between, 0.0)
    by_noise = within * np.count_nonzero(weight_of) / total
    among = np.maximum(between - by_noise, LEAST_BETWEEN * variance)

    # drawn towards ȳ as if a further rows had it
    a = within / positive_or_one(among)
    drawn = sums / np.maximum(weight_of + a, tiny)
    return np.asarray(mean + drawn)


def out_of_fold_means(positions: Cells, n_values: int, Y: Floats, weights: Floats | None) -> Floats:
    """Return for each row the target mean of its value in the other folds, shape (n, t)."""
    if weights is None:
        weights = np.ones(len(Y))

    # shuffled: values that come again every fifth row would all be in one fold
    shuffled = np.random.default_rng(0).permutation(len(Y))
    fold = shuffled % FOLDS

    found = np.empty_like(Y)
    for k in range(FOLDS):
        here = fold == k
        rest = ~here
        means = target_means(positions[rest], n_values, Y[rest], weights[rest])
        found[here] = means[positions[here]]
    return found
