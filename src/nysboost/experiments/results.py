"""The results of one preset: arrays, summaries and CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from nysboost.experiments import statistics
from nysboost.experiments.csv_table import write_table
from nysboost.experiments.presets import Preset
from nysboost.experiments.replicate import BASELINE
from nysboost.experiments.statistics import Floats
from nysboost.experiments.store import Record


@dataclass(frozen=True)
class Summary:
    """What is said of one method under one reading, at each number of learners.

    Attributes
    ----------
    mean, standard_error : ndarray of shape (len(counts),)
        Over replicates.
    p_value, holm : ndarray of shape (len(counts),)
        One-sided Welch test of "smaller than ensemble-ridge", and Holm's correction over all
        methods and numbers of learners; NaN for ensemble-ridge itself or without it.
    to_match : int or None
        The least number of learners that reaches the error of ensemble-ridge with the most.
    """

    method: str
    mean: Floats
    standard_error: Floats
    p_value: Floats
    holm: Floats
    to_match: int | None


@dataclass(frozen=True)
class Results:
    """All values of a preset, by reading and method, as (replicates, counts) arrays.

    Attributes
    ----------
    made_with : tuple of str
        Version and commit of the code that made the records, each once.
    libraries : mapping from name to version
        What that code ran on.
    """

    preset: Preset
    methods: tuple[str, ...]
    seed: int
    values: dict[str, dict[str, Floats]]
    made_with: tuple[str, ...] = ()
    libraries: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_records(
        cls,
        preset: Preset,
        methods: Sequence[str],
        seed: int,
        records: Iterable[Record],
        libraries: Mapping[str, str],
    ) -> Results:
        """Gather the records of the replicates that the preset asks for."""
        kept = [r for r in records if r["replicate"] < preset.replicates]
        values = {
            reading: {
                m: np.array([r["values"][m] for r in kept if r["reading"] == reading])
                for m in methods
            }
            for reading in preset.readings
        }
        made_with = tuple(dict.fromkeys(r["made_with"] for r in kept))
        return cls(preset, tuple(methods), seed, values, made_with, libraries)

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
        baseline = values.get(BASELINE)
        p_values = {
            m: np.full(len(self.counts), np.nan)
            if baseline is None or m == BASELINE
            else statistics.welch(values[m], baseline).p_smaller
            for m in self.methods
        }
        tested = [m for m in self.methods if not np.isnan(p_values[m]).any()]
        corrected = dict(p_values)
        if tested:
            table = statistics.holm(np.stack([p_values[m] for m in tested]))
            corrected |= dict(zip(tested, table, strict=True))
        target = None
        if baseline is not None and self.preset.measure == "error":
            target = float(baseline[:, -1].mean())
        return [
            Summary(
                m,
                statistics.mean(values[m]),
                statistics.standard_error(values[m]),
                p_values[m],
                corrected[m],
                None
                if target is None
                else statistics.learners_to_match(values[m], self.counts, target),
            )
            for m in self.methods
        ]


COLUMNS = ("preset", "reading", "method", "learners", "replicates")
NUMBERS = ("mean", "standard_error", "p_value", "holm")


def write_csv(
    results: Results, path: Path, methods: Sequence[str], readings: Sequence[str]
) -> None:
    """Write the summaries of some methods, one row for each number of learners."""
    rows = (
        row
        for reading in readings
        for summary in results.summaries(reading)
        if summary.method in methods
        for row in _rows(results, reading, summary)
    )
    write_table(path, (*COLUMNS, *NUMBERS), rows)


def _rows(results: Results, reading: str, summary: Summary) -> Iterable[tuple[object, ...]]:
    n = len(results.values[reading][summary.method])
    for i, count in enumerate(results.counts):
        numbers = (float(getattr(summary, name)[i]) for name in NUMBERS)
        text = ("" if np.isnan(v) else repr(v) for v in numbers)
        yield (results.preset.name, reading, summary.method, count, n, *text)
