"""Means of non-negative values that are drawn at random, with what values not drawn may add.

A normal approximation alone gives intervals that are too narrow where most of a mean comes from a
few values that the sample may have missed. What makes up a share ε of all rows is missing from s of
them with probability e^(−sε): a share of L/s, with L = log 1/δ, is added to the upper end. Here δ
is the risk at either end of an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nysboost.numerics.arrays import Floats


def deviations(delta: float, size: int) -> float:
    """Return how many standard errors lie between the mean of `size` values and an end."""
    degrees = max(1, size - 1)
    return float(stdtrit(degrees, 1 - delta))


@dataclass(frozen=True)
class Estimate:
    """An estimate ≥ 0: its value, its standard `error`, and what values not drawn may add."""

    value: float
    error: float
    unseen: float

    def __add__(self, other: Estimate) -> Estimate:
        """Return the estimate of a sum; both may err in the same direction."""
        return Estimate(
            self.value + other.value,
            self.error + other.error,
            self.unseen + other.unseen,
        )

    def __mul__(self, factor: float) -> Estimate:
        """Return the estimate of a multiple."""
        return Estimate(self.value * factor, self.error * factor, self.unseen * factor)

    def interval(self, deviations: float) -> tuple[float, float]:
        """Return the ends at so many standard errors, the upper one with `unseen`."""
        margin = deviations * self.error
        return self.value - margin, self.value + margin + self.unseen


def exactly(value: float) -> Estimate:
    """Return the estimate of a value that is known."""
    return Estimate(value, 0.0, 0.0)


def mean_of_rows(values: Floats, most: float, delta: float) -> Estimate:
    """Estimate the mean of values of independent rows; those not drawn are at most `most`."""
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

    A share ε = L/s of the rows may be missed: it adds (ε·most)², and 2ε times the average row. Or
    it is pairs almost alike that are missed, with the values B_ii² of the diagonal.

    Parameters
    ----------
    blocks : list of arrays, all of one shape
        B, whose rows and columns were drawn independently.
    diagonal : array
        B_ii of the rows drawn.
    most : float
        The largest |B_ij|.
    delta : float
        Risk at either end of an interval.
    """
    squares = np.square(blocks)
    row_means = squares.mean(axis=2).ravel()
    column_means = squares.mean(axis=1).ravel()
    s = len(row_means)

    # a mean of a block's row carries the noise of its values, which thus counts twice
    variances = row_means.var(ddof=1) + column_means.var(ddof=1)
    of_rows = variances / s
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
