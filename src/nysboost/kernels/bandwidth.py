"""Bandwidths: numbers, or rules that read a number off the data."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from nysboost.kernels.base import Kernel, Mapped
from nysboost.numerics.arrays import Array, Floats, dense, floats_on_host, spaced_indices, to_host
from nysboost.numerics.checks import require_positive
from nysboost.numerics.linalg import unit_of
from nysboost.rows.driver import BlockTask, scan_size
from nysboost.rows.rows import Rows
from nysboost.rows.sizes import MEDIAN_ROWS

Bandwidth: TypeAlias = float | Literal["median", "scale"] | None
"""A positive number, or a rule that reads it off the data; None is the kernel's default."""

RULES = ("median", "scale")

RANGES = {"sigma": (1e-150, 1e150), "gamma": (1e-300, 1e300)}
"""Beyond these the squares of distances in units of σ leave the range of floating point."""


class Scaled(Mapped):
    """A kernel with a bandwidth σ or γ, of which at most one is given, and a metric.

    With neither, γ = 1/d or, where a metric sets the scale, σ = 1. With `power` q the kernel is a
    function of γ·distance^q, and γ = 1 / (q·σ^q).
    """

    power: ClassVar[int] = 2
    sigma: Bandwidth
    gamma: Bandwidth

    def __post_init__(self) -> None:
        require_bandwidth("sigma", self.sigma)
        require_bandwidth("gamma", self.gamma)
        if self.sigma is not None and self.gamma is not None:
            given = f"sigma={self.sigma!r} and gamma={self.gamma!r}"
            raise ValueError(f"Give sigma or gamma, not both: {given} were given.")
        super().__post_init__()

        # "scale" is about the features, and a metric maps them to something else
        if self.metric is not None and "scale" in (self.sigma, self.gamma):
            raise ValueError('Beside a metric the bandwidth is a number or "median", not "scale".')

    def resolve(self, rows: Rows) -> Self:
        """Return the kernel with γ as a number."""
        return self._with(sigma=None, gamma=self._gamma_on(rows))

    def _gamma_on(self, rows: Rows) -> float:
        """Return γ: the number that was given, or the one that a rule reads off the data."""
        rule = self.sigma or self.gamma
        if rule == "median":
            return self._gamma_of_spread(self._median_distance(rows))

        # scikit-learn's defaults, 1/d and 1/(d · var X)
        default = 1 / rows.n_features
        if rule == "scale":
            sigma = standard_deviation(rows) * self._sigma_of(default)
            return self._gamma_of_spread(sigma)
        if rule is None and self.metric is None:
            return default
        return self._gamma()

    def _gamma(self) -> float:
        """Return γ, which must be known by now."""
        if self.gamma is not None:
            return number(self, "gamma")
        if self.sigma is None and self.metric is not None:
            return self._gamma_of(1.0)
        return self._gamma_of(number(self, "sigma"))

    def _rate(self) -> float:
        """Return by what the distances, or their squares, are multiplied: γ unless said."""
        return self._gamma()

    def _gamma_of(self, sigma: float) -> float:
        return 1 / (self.power * sigma**self.power)

    def _sigma_of(self, gamma: float) -> float:
        sigma_to_the_power = 1 / (self.power * gamma)
        return float(sigma_to_the_power ** (1 / self.power))

    def _gamma_of_spread(self, sigma: float) -> float:
        """Return γ for a σ found in the data; where all points are equal any bandwidth will do."""
        sigma = sigma or 1.0
        require_bandwidth("sigma", sigma)
        return self._gamma_of(sigma)

    def _median_distance(self, rows: Rows) -> float:
        """Return the median distance between mapped points of a few rows, spread evenly."""
        sample = rows.take(spaced_indices(rows.n, MEDIAN_ROWS))
        points = self.mapping(rows.template)(sample)

        # in units in which their squares are in range
        unit = unit_of(points)
        points = points / unit
        distances = to_host(self._distances(points, points))

        pairs = distances[np.triu_indices(len(distances), 1)]
        if pairs.size == 0:
            return 0.0
        return unit * float(np.median(pairs))

    @abstractmethod
    def _distances(self, X: Array, Y: Array) -> Array:
        """Return the distances of which σ is the unit, for all pairs of mapped points."""


def require_bandwidth(name: str, value: Bandwidth) -> None:
    """Raise unless the value is a positive number, a rule or None."""
    if value is None:
        return
    if isinstance(value, str):
        if value not in RULES:
            msg = f'{name} is a positive number, "median" or "scale", but {value!r} was given.'
            raise ValueError(msg)
        return

    require_positive(name, value)
    smallest, largest = RANGES[name]
    if not smallest < float(value) < largest:
        msg = f"{name}={value!r} leaves no digits of a distance: scale the data instead."
        raise ValueError(msg)


def number(kernel: Kernel, name: str) -> float:
    """Return a parameter that must be a number by now."""
    value: Any = getattr(kernel, name)

    if isinstance(value, str):
        raise ValueError(
            f'{name}="{value}" of {kernel} needs data: pass a number, or fit an estimator, which '
            "reads it off its data."
        )
    if value is None:
        raise ValueError(
            f"{kernel} has no {name}, and its default depends on the data: pass a number, or fit "
            "an estimator, which reads it off its data."
        )
    return float(value)


@dataclass(frozen=True)
class _Scale:
    """A unit and a shift, in which sums of squares neither overflow nor cancel."""

    unit: float
    shift: float


def standard_deviation(rows: Rows) -> float:
    """Return the standard deviation of all entries, in one pass over the rows."""
    # about the mean of one row, in units of the largest entry of a few
    sample = rows.take(spaced_indices(rows.n, MEDIAN_ROWS))
    unit = unit_of(sample)
    first_row = floats_on_host(dense(sample[:1]))
    scale = _Scale(unit, float(first_row.mean()) / unit)

    task = BlockTask("moments", _moments, scale, scan_size(rows))
    sums = rows.fold(task, np.add)
    n_entries = rows.n * rows.n_features
    mean, mean_square = sums / n_entries
    variance = max(0.0, mean_square - mean**2)
    return unit * float(np.sqrt(variance))


def _moments(scale: _Scale, block: Array) -> Floats:
    """Return the sums of the scaled entries of a block, and of their squares."""
    entries = floats_on_host(dense(block)) / scale.unit - scale.shift
    squares = entries * entries
    return np.array([entries.sum(), squares.sum()])
