"""The results of one preset: arrays, and what statistics say of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nysboost.paper.presets import Preset
from nysboost.paper.replicate import BASELINE

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Summary:
    """What is said of one method under one reading, at each number of learners.

    Arrays have shape (len(counts),). `p_value` is of the one-sided Welch test of "smaller than
    ensemble-ridge", `holm` corrects it over all methods and counts; NaN without that baseline.
    `to_match` is the least number of learners that reaches ensemble-ridge with the most.
    """

    method: str
    mean: Floats
    standard_error: Floats
    p_value: Floats
    holm: Floats
    to_match: int | None


@dataclass(frozen=True)
class Results:
    """All values of a preset, by reading and method, as (replicates, counts) arrays."""

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    values: dict[str, dict[str, Floats]]
    made_with: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured."""
        return self.preset.counts

    def sample(self, reading: str, method: str, n_learners: int) -> Floats | None:
        """Return one value for each replicate, or None if it was not measured."""
        values = self.values.get(reading, {}).get(method)
        if values is None or n_learners not in self.counts or values.size == 0:
            return None
        return values[:, self.counts.index(n_learners)]

    def summaries(self, reading: str) -> list[Summary]:
        """Return a summary of each method, in the order of the methods."""
        values = self.values[reading]
        p_values = np.full((len(self.methods), len(self.counts)), np.nan)
        target = -np.inf  # nothing is below it: without a baseline, or of seconds
        if BASELINE in values:
            for row, method in enumerate(self.methods):
                if method != BASELINE:
                    p_values[row] = compare_means(values[method], values[BASELINE])[1]
            if self.preset.measure == "error":
                target = float(values[BASELINE][:, -1].mean())
        corrected = correct(p_values)
        found = []
        for row, method in enumerate(self.methods):
            n, mean = len(values[method]), values[method].mean(axis=0)
            spread = values[method].std(axis=0, ddof=1) if n > 1 else np.full_like(mean, np.nan)
            matches = [p for p, error in zip(self.counts, mean, strict=True) if error <= target]
            numbers = (mean, spread / np.sqrt(n), p_values[row], corrected[row])
            found.append(Summary(method, *numbers, min(matches, default=None)))
        return found

    def rows(self, methods: Sequence[str], readings: Sequence[str]) -> Iterator[tuple[object, ...]]:
        """Return the summaries of some methods, one row for each number of learners."""
        for reading in readings:
            for s in self.summaries(reading):
                if s.method in methods:
                    n = len(self.values[reading][s.method])
                    numbers = zip(s.mean, s.standard_error, s.p_value, s.holm, strict=True)
                    for count, row in zip(self.counts, numbers, strict=True):
                        text = ("" if np.isnan(v) else repr(float(v)) for v in row)
                        yield (self.preset.name, reading, s.method, count, n, *text)


def compare_means(first: Floats, second: Floats, paired: bool = False) -> tuple[Floats, Floats]:
    """Return t and p-value of the one-sided test that the first sample has the smaller mean.

    Samples have shape (replicates, ...). Unless `paired`, the test is Welch's. Without evidence
    (one replicate, or constants that are equal), t is 0 and the p-value 1/2.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of constants, and of one replicate
        if paired:
            found = stats.ttest_rel(first, second, alternative="less")
        else:
            found = stats.ttest_ind(first, second, equal_var=False, alternative="less")
    return np.nan_to_num(found.statistic), np.nan_to_num(found.pvalue, nan=0.5)


def correct(p_values: Floats) -> Floats:
    """Return Holm's step-down adjusted p-values, in the shape of the given ones; NaN stays NaN."""
    adjusted = np.full_like(p_values, np.nan)
    places = np.argsort(p_values, axis=None)[: int(np.sum(~np.isnan(p_values)))]  # NaN come last
    scaled = p_values.flat[places] * np.arange(len(places), 0, -1)
    adjusted.flat[places] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted
