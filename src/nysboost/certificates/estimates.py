"""Estimate means of non-negative values from a random sample, with an allowance for the rest.

A normal approximation alone gives intervals that are too narrow if most of a mean comes from a few
values that the sample may have missed. A sample of s rows misses a share ε of all rows with
probability e^(−sε). So the upper end allows for a missed share of L/s with L = log 1/δ, where δ is
the probability of a miss at either end of an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nysboost.numerics.arrays import Floats


def deviations(delta: float, size: int) -> float:
    """Return the number of standard errors from the mean of `size` values to an end."""
    degrees = max(1, size - 1)
    return float(stdtrit(degrees, 1 - delta))


@dataclass(frozen=True)
class Estimate:
    """An estimate ≥ 0: its value, its standard `error`, and what unseen values may add."""

    value: float
    error: float
    unseen: float

    def __add__(self, other: Estimate) -> Estimate:
        """Return the estimate of a sum; both errors may have the same sign."""
        return Estimate(
            self.value + other.value,
            self.error + other.error,
            self.unseen + other.unseen,
        )

    def __mul__(self, factor: float) -> Estimate:
        """Return the estimate of a multiple."""
        return Estimate(self.value * factor, self.error * factor, self.unseen * factor)

    def interval(self, deviations: float) -> tuple[float, float]:
        """Return the ends at this many standard errors; the upper one includes `unseen`."""
        margin = deviations * self.error
        return self.value - margin, self.value + margin + self.unseen


def exactly(value: float) -> Estimate:
    """Return an estimate without error, for a known value."""
    return Estimate(value, 0.0, 0.0)


def mean_of_rows(values: Floats, most: float, delta: float) -> Estimate:
    """Estimate the mean of values of independent rows; values not drawn are at most `most`."""
    s = len(values)
    mean = float(values.mean())
    deviation = float(values.std(ddof=1))
    error = deviation / s**0.5

    # the share of the rows that s draws may miss, all at their most
    draws = math.log(1 / delta)
    share = min(1.0, draws / s)
    return Estimate(mean, error, share * (most - mean))


def mean_of_pairs(
    blocks: list[Floats],
    diagonal: Floats,
    most: float,
    delta: float,
) -> Estimate:
    """Estimate the mean of B_ij² over independent pairs of rows, as a two-sample U-statistic.

    A share ε = L/s of the rows may be missed: it adds (ε·most)², and 2ε times the average row.
    Pairs of nearly equal rows may also be missed; they have the values B_ii² of the diagonal.

    Parameters
    ----------
    blocks : list of arrays, all of one shape
        B, with rows and columns drawn independently.
    diagonal : array
        B_ii of the drawn rows.
    most : float
        The largest |B_ij|.
    delta : float
        Probability of a miss at either end of an interval.
    """
    squares = np.square(blocks)
    row_means = squares.mean(axis=2).ravel()
    column_means = squares.mean(axis=1).ravel()
    s = len(row_means)

    # a mean of a block's row carries the noise of its values, which thus counts twice
    variance_of_row = row_means.var(ddof=1)
    variance_of_column = column_means.var(ddof=1)
    of_rows = (variance_of_row + variance_of_column) / s
    of_values = squares.var() / squares.size
    variance = max(of_rows - of_values, of_rows / 2)

    # what was never drawn: a few rows, or pairs almost alike
    draws = math.log(1 / delta)
    share = min(1.0, draws / (2 * s))
    largest_row = max(row_means.max(), column_means.max())
    few_rows = 2 * share * largest_row + (share * most) ** 2
    few_pairs = draws / squares.size * np.mean(diagonal**2)
    unseen = float(max(few_rows, few_pairs))

    mean = float(row_means.mean())
    error = float(np.sqrt(variance))
    return Estimate(mean, error, unseen)
