"""Means, standard errors and the paper's one-sided two-sample t-tests."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]


def mean(values: Floats) -> Floats:
    """Return the mean over replicates (the first axis)."""
    return np.asarray(values.mean(axis=0), dtype=np.float64)


def standard_error(values: Floats) -> Floats:
    """Return the standard error of the mean; NaN for a single replicate."""
    n = values.shape[0]
    if n < 2:
        return np.full(values.shape[1:], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(n), dtype=np.float64)


@dataclass(frozen=True)
class Difference:
    """A t statistic for "the first is smaller", with both one-sided p-values."""

    t: Floats
    p_smaller: Floats
    p_larger: Floats


def _difference(gap: Floats, spread: Floats, freedom: Floats) -> Difference:
    with np.errstate(divide="ignore", invalid="ignore"):
        # Equal constants have 0/0: no evidence either way. A gap without spread is certain.
        t = np.where(gap == 0, 0.0, gap / spread)
        freedom = np.where(np.isfinite(freedom), freedom, 1.0)
    return Difference(t=t, p_smaller=_tail(freedom, t), p_larger=_tail(freedom, -t))


def _tail(freedom: Floats, t: Floats) -> Floats:
    p = special.stdtr(freedom, t)
    return np.asarray(np.where(np.isinf(t), t > 0, p), dtype=np.float64)


def welch(first: Floats, second: Floats) -> Difference:
    """Test whether the first sample has the smaller mean, with unequal variances.

    Parameters
    ----------
    first, second : ndarray of shape (replicates, ...)
        The two samples; the test runs along the first axis.
    """
    if min(len(first), len(second)) < 2:
        return _unknown(first.shape[1:])
    a = standard_error(first) ** 2
    b = standard_error(second) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (a + b) ** 2 / (a**2 / (len(first) - 1) + b**2 / (len(second) - 1))
    return _difference(mean(first) - mean(second), np.sqrt(a + b), freedom)


def paired(first: Floats, second: Floats) -> Difference:
    """Test whether the first of two samples of the same replicates has the smaller mean."""
    gaps = first - second
    if len(gaps) < 2:
        return _unknown(gaps.shape[1:])
    freedom = np.full(gaps.shape[1:], float(len(gaps) - 1))
    return _difference(mean(gaps), standard_error(gaps), freedom)


def _unknown(shape: tuple[int, ...]) -> Difference:
    half = np.full(shape, 0.5)
    return Difference(t=np.zeros(shape), p_smaller=half, p_larger=half)


def holm(p_values: Floats) -> Floats:
    """Return Holm's step-down adjusted p-values, in the shape of the given ones."""
    flat = np.asarray(p_values, dtype=np.float64).ravel()
    order = np.argsort(flat)
    scaled = flat[order] * np.arange(flat.size, 0, -1)
    adjusted = np.empty_like(flat)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted.reshape(np.shape(p_values))


def learners_to_match(errors: Floats, counts: tuple[int, ...], target: float) -> int | None:
    """Return the least number of learners whose mean error is at most the target.

    Parameters
    ----------
    errors : ndarray of shape (replicates, len(counts))
        Errors at each number of learners.
    counts : tuple of int
        The numbers of learners, increasing.
    target : float
        The error to match: that of ensemble-ridge with the most learners.
    """
    reached = np.flatnonzero(mean(errors) <= target)
    return counts[int(reached[0])] if reached.size else None
