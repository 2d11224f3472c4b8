"""The results of a preset, and their statistics: means, tests, Holm's correction."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy import stats

from nysboost.numerics.arrays import Floats
from nysboost.paper import presets
from nysboost.paper.presets import Preset, Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.statements import Side


@dataclass(frozen=True)
class Summary:
    """The summary of one method under one reading, at each number of learners.

    Arrays have shape (len(counts),). `p_value` is that of the one-sided Welch test of "smaller than
    ensemble-ridge", and `holm` corrects it over all methods and counts; both are NaN for the
    baseline. `to_match` is the smallest number of learners that reaches the final error of
    ensemble-ridge.
    """

    method: str
    mean: Floats
    standard_error: Floats
    median: Floats
    p_value: Floats
    holm: Floats
    to_match: int | None


@dataclass(frozen=True)
class Results:
    """All values of a preset, by reading and method, as (replicates, counts) arrays.

    `properties` have shape (replicates,).
    """

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    values: Mapping[Reading, dict[str, Floats]]
    properties: Mapping[str, Floats] = field(default_factory=dict)
    made_with: tuple[str, ...] = ()

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured."""
        return self.preset.counts

    @property
    def has_paper_sizes(self) -> bool:
        """Whether this is a preset of the paper, with all its points and learners."""
        name = self.preset.name
        if name not in presets.ORDER:
            return False
        return self.preset.settings() == presets.load(name).settings()

    def sample(self, reading: Reading, side: Side) -> Floats | None:
        """Return a value for each replicate, or None if it was not measured."""
        of_reading = self.values.get(reading, {})
        values = of_reading.get(side.method)
        if values is None or side.n_learners not in self.counts:
            return None

        # it may not be measured at this number of learners
        column = self.counts.index(side.n_learners)
        found: Floats = values[:, column]
        if np.isnan(found).any():
            return None
        return found

    def summaries(self, reading: Reading) -> list[Summary]:
        """Return a summary of each method, in the order of the methods."""
        values = self.values[reading]
        base = values[BASELINE]

        # test "smaller than the baseline" where both were measured
        p_values = np.full((len(values), len(self.counts)), np.nan)
        for row, (method, mine) in enumerate(values.items()):
            if method != BASELINE:
                _, of_method = compare_means(mine, base)
                is_measured = ~np.isnan(mine).any(axis=0)
                p_values[row, is_measured] = of_method[is_measured]
        corrected = correct(p_values)

        return [
            Summary(
                method,
                mean=mine.mean(axis=0),
                standard_error=_standard_error(mine),
                median=np.median(mine, axis=0),
                p_value=p_values[row],
                holm=corrected[row],
                to_match=self._learners_to_match(mine, base),
            )
            for row, (method, mine) in enumerate(values.items())
        ]

    def _learners_to_match(self, mine: Floats, base: Floats) -> int | None:
        """Return the smallest number of learners that reaches the final error of the baseline."""
        if self.preset.measure != "error":
            return None
        target = base[:, -1].mean()
        errors = mine.mean(axis=0)
        for count, error in zip(self.counts, errors, strict=True):
            if error <= target:
                return count
        return None

    def records(self) -> list[dict[str, object]]:
        """Return the summaries under every reading, a record for each number of learners."""
        records = []
        for reading in self.preset.readings:
            for summary in self.summaries(reading):
                for i, count in enumerate(self.counts):
                    record = {
                        "preset": self.preset.name,
                        "reading": str(reading),
                        "method": summary.method,
                        "learners": count,
                        "replicates": self.preset.replicates,
                        "mean": summary.mean[i],
                        "standard_error": summary.standard_error[i],
                        "median": summary.median[i],
                        "p_value": summary.p_value[i],
                        "holm": summary.holm[i],
                    }
                    records.append(record)
        return records


ByPreset: TypeAlias = Mapping[str, Results]
"""The results of presets, by their names."""


def _standard_error(values: Floats) -> Floats:
    """Return the standard error over replicates, NaN if there is only one."""
    n = len(values)
    if n == 1:
        return np.full_like(values[0], np.nan)
    deviation = values.std(axis=0, ddof=1)
    return np.asarray(deviation / np.sqrt(n))


def compare_means(first: Floats, second: Floats, paired: bool = False) -> tuple[Floats, Floats]:
    """Return t and p-value of the one-sided test that the first sample has the smaller mean.

    Samples have shape (replicates, ...). Unless `paired`, the test is Welch's. Without evidence
    (one replicate, or constants that are equal), t is 0 and the p-value 1/2.
    """
    # SciPy warns of constants, and of one replicate
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if paired:
            found = stats.ttest_rel(first, second, alternative="less")
        else:
            found = stats.ttest_ind(first, second, equal_var=False, alternative="less")

    t = np.nan_to_num(found.statistic)
    p_value = np.nan_to_num(found.pvalue, nan=0.5)
    return t, p_value


def correct(p_values: Floats) -> Floats:
    """Return Holm's step-down adjusted p-values, in the shape of the given ones; NaN stays NaN."""
    # sort the known p-values; NaN come last
    known = int(np.sum(~np.isnan(p_values)))
    places = np.argsort(p_values, axis=None)[:known]

    # the i-th smallest of N is multiplied by N − i + 1, and none is below the one before it
    factors = np.arange(known, 0, -1)
    scaled = p_values.flat[places] * factors
    increasing = np.maximum.accumulate(scaled)

    adjusted = np.full_like(p_values, np.nan)
    adjusted.flat[places] = np.minimum(increasing, 1.0)
    return adjusted
