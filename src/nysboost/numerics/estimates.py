"""Means of non-negative values that are drawn at random, with intervals that a few hide from.

A normal approximation alone is too sure of itself where most of a mean rests on a few values that
the sample may have missed. What L = log 1/δ says about these is added to the upper end: what makes
up a share ε of all rows is missing from s of them with probability e^(−sε), so that a share of more
than L/s would have been seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from nysboost.numerics.arrays import Floats


@dataclass(frozen=True)
class Risk:
    """The probability with which either end of an interval may be wrong."""

    delta: float

    @property
    def log(self) -> float:
        """L = log 1/δ: the expected number of draws of something that was never drawn."""
        return float(np.log(1 / self.delta))

    def deviations(self, size: int) -> float:
        """Return how many standard errors lie between the mean of `size` values and an end."""
        return float(stdtrit(max(1, size - 1), 1 - self.delta))


@dataclass(frozen=True)
class Estimate:
    """An estimate of something that is not negative.

    Parameters
    ----------
    value, error : float
        Estimated, and its standard error.
    unseen : float
        What values that were not drawn may add.
    """

    value: float
    error: float
    unseen: float

    def __add__(self, other: Estimate) -> Estimate:
        """Return the estimate of a sum; both may err in the same direction."""
        error, unseen = self.error + other.error, self.unseen + other.unseen
        return Estimate(self.value + other.value, error, unseen)

    def __mul__(self, factor: float) -> Estimate:
        """Return the estimate of a multiple."""
        return Estimate(self.value * factor, self.error * factor, self.unseen * factor)

    def interval(self, deviations: float) -> tuple[float, float]:
        """Return what lies within so many standard errors, and what may not have been seen."""
        margin = deviations * self.error
        return self.value - margin, self.value + margin + self.unseen


def apportioned(deviations: float, *parts: Estimate) -> list[float]:
    """Share out the deviations of a quotient among its independent parts.

    The relative error of a quotient is √(r² + s²), so each part keeps to its own share of it.
    """
    relative = np.array([part.error / part.value if part.value > 0 else 0.0 for part in parts])
    size = float(np.linalg.norm(relative))
    return [float(deviations * r / size) if size > 0 else deviations for r in relative]


def mean_of_rows(values: Floats, most: float, risk: Risk) -> Estimate:
    """Estimate the mean of what independent rows have.

    Parameters
    ----------
    values : array of shape (s,)
        Of the rows drawn.
    most : float
        What rows not drawn have at most.
    risk : Risk
        Of either end.
    """
    s, mean = len(values), float(values.mean())
    unseen = min(1.0, risk.log / s)
    return Estimate(mean, float(values.std(ddof=1)) / s**0.5, unseen * (most - mean))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Squares Y_ij = B_ij² of blocks B whose rows and columns were drawn independently.

    Parameters
    ----------
    left, right : arrays of shape (s/2,)
        The means of Y along the rows and along the columns of the blocks.
    variance : float
        Of all values Y.
    count : int
        N, how many.
    """

    left: Floats
    right: Floats
    variance: float
    count: int

    @classmethod
    def of(cls, blocks: list[Floats]) -> Pairs:
        """Summarise blocks B of one size."""
        squares = np.square(blocks)
        left, right = squares.mean(axis=2).ravel(), squares.mean(axis=1).ravel()
        return cls(left, right, float(squares.var()), squares.size)

    def mean(self, diagonal: Floats, most: float, risk: Risk) -> Estimate:
        """Estimate the mean of Y over independent pairs of rows.

        The variance is that of a two-sample U-statistic. What may have been missed is a share
        ε = L/s of the rows: with itself it adds up to (ε·most)², with the others to 2ε times what
        any row has on the average. Or it is pairs of rows almost alike, too few to be met in
        N pairs: their values are those of the diagonal.

        Parameters
        ----------
        diagonal : array
            Values of B_ii of the rows drawn.
        most : float
            The largest |B_ii| of rows not drawn.
        risk : Risk
            Of either end.
        """
        half = len(self.left)
        variance = (self.left.var(ddof=1) + self.right.var(ddof=1)) / half
        # a mean of a block's row carries the noise of its values, which thus counts twice
        variance = max(variance - self.variance / self.count, variance / 2)
        share = min(1.0, risk.log / (2 * half))
        of_few_rows = 2 * share * max(self.left.max(), self.right.max()) + (share * most) ** 2
        of_few_pairs = risk.log / self.count * np.mean(diagonal**2)
        unseen = float(max(of_few_rows, of_few_pairs))
        return Estimate(float(self.left.mean()), float(np.sqrt(variance)), unseen)
