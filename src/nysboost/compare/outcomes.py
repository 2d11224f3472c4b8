"""Measure candidates in rounds, which are seeds or folds, and collect the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from nysboost.numerics.arrays import Floats
from nysboost.numerics.progress import current

Measures: TypeAlias = dict[str, float]
"""The measurements of one run by name: error, seconds and others."""

Round: TypeAlias = Mapping[str, Callable[[], Measures]]
"""What measures each candidate once, by name."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a candidate: each measure in each round, and the row losses of one round."""

    name: str
    measured: Mapping[str, Sequence[float]]
    losses: Floats | None = field(default=None, compare=False)

    def mean(self, measure: str) -> float:
        """Return the mean over the rounds."""
        return float(np.mean(self.measured[measure]))

    @property
    def error(self) -> float:
        """The mean error."""
        return self.mean("error")

    @property
    def seconds(self) -> float:
        """The mean time of a fit."""
        return self.mean("seconds")

    @property
    def standard_error(self) -> float:
        """The standard error of the mean error; NaN for a single round."""
        errors = np.asarray(self.measured["error"])
        if len(errors) == 1:
            return np.nan
        return standard_error(errors)


def standard_error(values: Floats) -> float:
    """Return the standard error of the mean of two values or more, shape (n,)."""
    deviation = np.std(values, ddof=1)
    return float(deviation / np.sqrt(len(values)))


def run_rounds(
    rounds: Iterable[Round],
    n_rounds: int,
    may_fail: Callable[[str, Exception], bool],
    note: Callable[[str], None],
) -> list[Outcome]:
    """Measure all candidates in one round before the next begins; smallest error first.

    Ctrl-C keeps the measurements so far. A candidate that fails is left out of all rounds if it
    `may_fail`. In both cases, `note` receives a sentence.
    """
    found: dict[str, list[Measures]] = {}
    failed: set[str] = set()
    work = current()

    try:
        for candidates in rounds:
            if not work.total:
                work.begin(n_rounds * len(candidates))

            # what a candidate gave before it failed does not count
            for name, measure in candidates.items():
                if name not in failed:
                    try:
                        measures = measure()
                        found.setdefault(name, []).append(measures)
                    except Exception as error:  # another library's learner may raise anything
                        if not may_fail(name, error):
                            raise
                        failed.add(name)
                        found.pop(name, None)
                        note(_say_failed(name, error))
                work.step()
    except KeyboardInterrupt:
        if not found:
            raise
        made = sum(map(len, found.values()))
        note(f"Stopped by Ctrl-C: the results are from {made} of {work.total:g} fits.")

    outcomes = [Outcome(name, _by_measure(runs)) for name, runs in found.items()]
    return sorted(outcomes, key=lambda outcome: outcome.error)


def _say_failed(name: str, error: Exception) -> str:
    """Return the note about a candidate that is left out."""
    first_line, _, _ = str(error).partition("\n")
    said = first_line[:300].rstrip(". ")
    return f"{name} was left out, because it failed ({type(error).__name__}: {said})."


def _by_measure(runs: Sequence[Measures]) -> dict[str, list[float]]:
    """Return the values of each measure over some runs, in order."""
    return {measure: [run[measure] for run in runs] for measure in runs[0]}
