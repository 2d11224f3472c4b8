"""The results of presets, what statistics say of them, and the ledger: which claims hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from scipy import stats

from nysboost.numerics.arrays import Floats
from nysboost.paper.claims import CLAIMS, Claim, Comparison
from nysboost.paper.presets import Preset
from nysboost.paper.replicate import BASELINE

TIE = 0.02
"""Two means are tied if they differ by less than this share: a fifth of what counts as close."""
HOW_DECIDED = (
    "A statement is taken apart into comparisons of two means, each a one-sided test. It holds if "
    "every comparison is significant at its level (5%, for statement 4 1%); it does not hold if "
    "one is significantly reversed (Holm-corrected), and statement 4, about p-values at 100 "
    f"replicates, if one is not significant then. Means that are shown to be within {TIE:.0%} of "
    "each other are tied: the statement holds or ties if all others hold, and fails only in size "
    "if none does. Otherwise it is undecided: it lacks replicates. Methods share the points "
    "of a replicate: where Welch's test finds no clear answer a paired one does, and the verdict "
    "says on which it rests."
)
Measured = tuple[Comparison, Any, Any]
"""A comparison, and the values of its left and its right side, of shape (replicates,)."""


@dataclass(frozen=True)
class Summary:
    """What is said of one method under one reading, at each number of learners.

    Arrays have shape (len(counts),). `p_value` is of the one-sided Welch test of "smaller than
    ensemble-ridge", `holm` corrects it over all methods and counts; NaN for that baseline.
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
        if values is None or n_learners not in self.counts:
            return None
        return values[:, self.counts.index(n_learners)]

    def summaries(self, reading: str) -> list[Summary]:
        """Return a summary of each method, in the order of the methods."""
        values = self.values[reading]
        base, p_values = values[BASELINE], np.full((len(self.methods), len(self.counts)), np.nan)
        for row, method in enumerate(self.methods):
            if method != BASELINE:
                p_values[row] = compare_means(values[method], base)[1]
        target = base[:, -1].mean() if self.preset.measure == "error" else -np.inf
        found = []
        for method, p_value, holm in zip(self.methods, p_values, correct(p_values), strict=True):
            n, mean = len(values[method]), values[method].mean(axis=0)
            spread = values[method].std(axis=0, ddof=1) if n > 1 else np.full_like(mean, np.nan)
            reached = np.flatnonzero(mean <= target)
            match = self.counts[reached[0]] if reached.size else None
            found.append(Summary(method, mean, spread / np.sqrt(n), p_value, holm, match))
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the summaries under every reading, a record for each number of learners."""
        return [
            {
                "preset": self.preset.name, "reading": reading, "method": s.method,
                "learners": count, "replicates": len(self.values[reading][s.method]),
                "mean": s.mean[i], "standard_error": s.standard_error[i],
                "p_value": s.p_value[i], "holm": s.holm[i],
            }
            for reading in self.preset.readings
            for s in self.summaries(reading)
            for i, count in enumerate(self.counts)
        ]  # fmt: skip


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


@dataclass(frozen=True)
class Decision:
    """What the records say of a claim under one reading of V.

    `not_run` are presets that it needs; `counts` says how many comparisons "hold", are "reversed",
    "tied" and "open"; `weakest` is the one furthest from holding, in words; `rests_on` is the test
    that decided, "Welch" or "paired".
    """

    claim: Claim
    reading: str
    verdict: str
    not_run: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    weakest: str = ""
    rests_on: str = ""

    def record(self) -> dict[str, Any]:
        """Return a row of ``ledger.csv``."""
        kinds = {"held": "hold", "reversed": "reversed", "tied": "tied", "open": "open"}
        return {
            "claim": self.claim.number, "statement": self.claim.statement,
            "reading": self.reading, "verdict": self.verdict,
            **{name: self.counts.get(kind, 0) for name, kind in kinds.items()},
            "rests on": self.rests_on, "weakest comparison": self.weakest,
            "presets not run": " ".join(self.not_run),
        }  # fmt: skip


def decide(claim: Claim, results: Mapping[str, Results], reading: str) -> Decision:
    """Decide a claim under one reading of V, from the results of the presets that were run."""
    measured: list[Measured] = []
    missing: dict[str, None] = {}
    for c in claim.comparisons:
        found = results.get(c.preset)
        samples = [found and found.sample(reading, *side) for side in (c.left, c.right)]
        if any(sample is None for sample in samples):
            missing[c.preset] = None
        else:
            measured.append((c, samples[0], samples[1]))
    if not measured:
        return Decision(claim, reading, "not run", tuple(missing))
    decision = _decide_by("Welch", claim, reading, measured, tuple(missing))
    if decision.verdict in ("holds", "does not hold") or missing:
        return decision
    return _decide_by("paired", claim, reading, measured, ())


def _decide_by(
    test: str, claim: Claim, reading: str, measured: Sequence[Measured], missing: tuple[str, ...]
) -> Decision:
    """Decide a claim by one of the tests: "Welch" or "paired"."""
    t, smaller, larger, tie = _test(measured, test == "paired")
    holds = smaller < claim.level
    against = (correct(larger) < claim.level) & ~holds
    tied = (tie < claim.level) & ~holds & ~against
    enough = claim.at_replicates is not None and all(
        len(left) >= claim.at_replicates for _, left, _ in measured
    )
    if against.any() or (enough and not holds.all()):
        verdict = "does not hold"
    elif missing or not (holds | tied).all():
        verdict = "undecided"
    elif holds.all():
        verdict = "holds"
    else:
        verdict = "holds or ties" if holds.any() else "fails only in size"
    kinds = {"hold": holds, "reversed": against, "tied": tied, "open": ~(holds | against | tied)}
    counts = {kind: int(found.sum()) for kind, found in kinds.items()}
    worst = int(np.argmax(t))
    c, left, right = measured[worst]
    p, opposite = smaller[worst], larger[worst]
    evidence = f"p-value {p:.2g}" if p <= opposite else f"p-value of the opposite {opposite:.2g}"
    weakest = f"{c}; means {left.mean():.3g} and {right.mean():.3g}, {evidence}"
    used = "paired" if all(c.paired for c, _, _ in measured) else test
    rests_on = "" if verdict == "undecided" else used
    return Decision(claim, reading, verdict, missing, counts, weakest, rests_on)


def _test(measured: Sequence[Measured], paired: bool) -> Floats:
    """Return t, and the p-values of smaller, of larger, and of a tie (Schuirmann 1987).

    Each has shape (comparisons,); those of as many replicates are tested at once.
    """
    found = np.empty((4, len(measured)))
    kinds = [(len(left), paired or c.paired) for c, left, _ in measured]
    for kind in set(kinds):
        mine = [i for i, other in enumerate(kinds) if other == kind]
        left = np.stack([measured[i][1] for i in mine], axis=1)
        right = np.stack([measured[i][0].factor * measured[i][2] for i in mine], axis=1)
        t, smaller = compare_means(left, right, kind[1])
        _, larger = compare_means(right, left, kind[1])
        _, below = compare_means(left, (1 + TIE) * right, kind[1])
        _, above = compare_means((1 - TIE) * right, left, kind[1])
        found[:, mine] = t, smaller, larger, np.maximum(below, above)
    return found


def decide_all(results: Mapping[str, Results]) -> list[Decision]:
    """Decide every claim under each reading of V that was run."""
    readings = dict.fromkeys(r for result in results.values() for r in result.values)
    return [decide(claim, results, reading) for claim in CLAIMS for reading in readings]


def group_by_claim(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    """Return the decisions under each claim's number, one for each reading."""
    return {n: list(mine) for n, mine in groupby(decisions, lambda d: d.claim.number)}
