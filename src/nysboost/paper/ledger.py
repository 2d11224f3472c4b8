"""The results of presets, what statistics say of them, and the ledger: which statements hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from nysboost.numerics.arrays import Floats
from nysboost.paper import presets
from nysboost.paper.presets import Preset, Reading
from nysboost.paper.replicate import BASELINE
from nysboost.paper.statements import STATEMENTS, Bound, Comparison, Side, Statement

TIE = 0.02
"""Two means are tied if they differ by less than this share: a fifth of what counts as close."""

POWER = 0.8
"""The chance of a clear answer with the number of replicates that is said to decide."""

HOW_DECIDED = (
    "A statement is taken apart into comparisons of two means, each a one-sided test at 5 % "
    "(statement 7: 1 %). It holds if every comparison is significant; it does not hold if one is "
    "significantly reversed (Holm-corrected), and statement 7, about p-values at 100 replicates, "
    f"if one is not significant then. Means shown to be within {TIE:.0%} of each other are tied: "
    "the statement holds or ties if all others hold, and fails only in size if none does. Where "
    "the paper says “most”, more than half of the comparisons must hold; where it says “not "
    "necessarily”, one. Otherwise it is undecided, and the ledger says how many replicates would "
    "decide with a chance of 80 %. Where Welch's test finds no clear answer the paired one may: "
    "methods share the points of a replicate."
)


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
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of learners measured."""
        return self.preset.counts

    @property
    def has_paper_sizes(self) -> bool:
        """Whether the preset is one of the paper's, with all its points and learners."""
        name = self.preset.name
        return name in presets.ORDER and self.preset.settings() == presets.load(name).settings()

    def sample(self, reading: Reading, side: Side) -> Floats | None:
        """Return one value for each replicate, or None if it was not measured."""
        values = self.values.get(reading, {}).get(side.method)
        if values is None or side.n_learners not in self.counts:
            return None
        found: Floats = values[:, self.counts.index(side.n_learners)]
        return None if np.isnan(found).any() else found

    def summaries(self, reading: Reading) -> list[Summary]:
        """Return a summary of each method, in the order of the methods."""
        values = self.values[reading]
        base = values[BASELINE]

        p_values = np.full((len(values), len(self.counts)), np.nan)
        for row, method in enumerate(values):
            if method != BASELINE:
                p_values[row] = compare_means(values[method], base)[1]
                p_values[row, np.isnan(values[method]).any(axis=0)] = np.nan
        corrected = correct(p_values)

        target = base[:, -1].mean() if self.preset.measure == "error" else -np.inf
        found = []
        for row, (method, mine) in enumerate(values.items()):
            n = len(mine)
            mean = mine.mean(axis=0)
            deviation = mine.std(axis=0, ddof=1) if n > 1 else np.full_like(mean, np.nan)
            reached = np.flatnonzero(mean <= target)
            summary = Summary(
                method,
                mean,
                standard_error=deviation / np.sqrt(n),
                median=np.median(mine, axis=0),
                p_value=p_values[row],
                holm=corrected[row],
                to_match=self.counts[reached[0]] if reached.size else None,
            )
            found.append(summary)
        return found

    def records(self) -> list[dict[str, Any]]:
        """Return the summaries under every reading, a record for each number of learners."""
        return [
            {
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
            for reading in self.preset.readings
            for summary in self.summaries(reading)
            for i, count in enumerate(self.counts)
        ]


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
    known = int(np.sum(~np.isnan(p_values)))
    places = np.argsort(p_values, axis=None)[:known]  # NaN come last
    scaled = p_values.flat[places] * np.arange(known, 0, -1)
    adjusted.flat[places] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


@dataclass(frozen=True)
class Measured:
    """A comparison, and the values of both sides, of shape (replicates,); right has its factor."""

    part: Comparison | Bound
    left: Floats
    right: Floats

    @property
    def always_paired(self) -> bool:
        """Whether the sides are two numbers of learners of one run."""
        return isinstance(self.part, Comparison) and self.part.paired


@dataclass(frozen=True)
class Decision:
    """What the records say of a statement under one reading of the validation sets.

    `lacks` are presets that it needs; `counts` says how many comparisons "hold", are "reversed",
    "tied" and "open"; `weakest` is the one furthest from holding, in words; `rests_on` is the test
    that decided, "Welch" or "paired"; `would_decide` is the number of replicates that would.
    """

    statement: Statement
    reading: Reading
    verdict: str
    lacks: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    weakest: str = ""
    rests_on: str = ""
    would_decide: int | None = None

    def record(self) -> dict[str, Any]:
        """Return a row of ``ledger.csv``."""
        return {
            "statement": self.statement.number,
            "section": self.statement.section,
            "the paper says": self.statement.quote,
            "tested as": self.statement.tests,
            "reading": str(self.reading),
            "verdict": self.verdict,
            "held": self.counts.get("hold", 0),
            "reversed": self.counts.get("reversed", 0),
            "tied": self.counts.get("tied", 0),
            "open": self.counts.get("open", 0),
            "rests on": self.rests_on,
            "weakest comparison": self.weakest,
            "replicates that would decide": self.would_decide or "",
            "data missing": " ".join(self.lacks),
        }


LACKS = "data missing"


def decide(statement: Statement, results: Mapping[str, Results], reading: Reading) -> Decision:
    """Decide a statement under one reading, from the results of all presets that it needs."""
    measured: list[Measured] = []
    lacks: dict[str, None] = {}
    for part in statement.parts:
        found = _measure(part, results.get(part.preset), reading)
        if found is None:
            lacks[part.preset] = None
        else:
            measured.append(found)
    if lacks:
        return Decision(statement, reading, LACKS, tuple(lacks))

    decision = _decide_by("Welch", statement, reading, measured)
    if decision.verdict in ("holds", "does not hold"):
        return decision
    return _decide_by("paired", statement, reading, measured)


def _measure(
    part: Comparison | Bound, results: Results | None, reading: Reading
) -> Measured | None:
    """Return both sides of a comparison, or None if one of them was not measured."""
    if results is None:
        return None
    if isinstance(part, Bound):
        values = results.properties.get(part.property)
        return None if values is None else Measured(part, values, np.full(len(values), part.below))
    left = results.sample(reading, part.left)
    right = results.sample(reading, part.right)
    if left is None or right is None:
        return None
    return Measured(part, left, part.factor * right)


@dataclass(frozen=True)
class Tests:
    """Statistics of all comparisons of a statement, each of shape (comparisons,).

    `t` is of "left is smaller", negative where it is; `smaller`, `larger` and `tie` are p-values of
    three alternatives, the last by two one-sided tests (Schuirmann 1987), of which `t_tie` is the
    weaker statistic.
    """

    t: Floats
    smaller: Floats
    larger: Floats
    tie: Floats
    t_tie: Floats
    replicates: NDArray[np.int64]


def _test(measured: Sequence[Measured], test: str) -> Tests:
    """Test all comparisons, those of as many replicates at once."""
    size = len(measured)
    t, smaller, larger, tie, t_tie = np.empty((5, size))
    kinds = [(len(one.left), test == "paired" or one.always_paired) for one in measured]
    for kind in set(kinds):
        paired = kind[1]
        mine = [i for i, other in enumerate(kinds) if other == kind]
        left = np.stack([measured[i].left for i in mine], axis=1)
        right = np.stack([measured[i].right for i in mine], axis=1)

        t[mine], smaller[mine] = compare_means(left, right, paired)
        _, larger[mine] = compare_means(right, left, paired)
        t_below, below = compare_means(left, (1 + TIE) * right, paired)
        t_above, above = compare_means((1 - TIE) * right, left, paired)
        tie[mine] = np.maximum(below, above)
        t_tie[mine] = np.maximum(t_below, t_above)
    replicates = np.array([len(one.left) for one in measured])
    return Tests(t, smaller, larger, tie, t_tie, replicates)


def _decide_by(
    test: str, statement: Statement, reading: Reading, measured: Sequence[Measured]
) -> Decision:
    """Decide a statement by one of the tests: "Welch" or "paired"."""
    level = statement.level
    tests = _test(measured, test)

    # what is known of each comparison
    p_values = tests.smaller
    if statement.needs == "some":
        p_values = correct(p_values)
    holds = p_values < level
    against = (correct(tests.larger) < level) & ~holds
    tied = (tests.tie < level) & ~holds & ~against
    still_open = ~(holds | against | tied)

    verdict = _find_verdict(statement, tests.replicates, holds, against, tied)
    counts = {
        "hold": int(holds.sum()),
        "reversed": int(against.sum()),
        "tied": int(tied.sum()),
        "open": int(still_open.sum()),
    }
    if verdict == "undecided":
        more = _replicates_to_decide(statement, tests, holds, still_open)
        return Decision(
            statement, reading, verdict, (), counts, _say_weakest(measured, tests), "", more
        )
    rests_on = "paired" if all(one.always_paired for one in measured) else test
    return Decision(
        statement, reading, verdict, (), counts, _say_weakest(measured, tests), rests_on
    )


def _find_verdict(
    statement: Statement,
    replicates: NDArray[np.int64],
    holds: NDArray[np.bool_],
    against: NDArray[np.bool_],
    tied: NDArray[np.bool_],
) -> str:
    """Return what follows for a statement from its comparisons."""
    known = holds | against | tied
    if statement.needs == "most":
        half = len(holds) / 2
        if holds.sum() > half:
            return "holds"
        return "does not hold" if (against | tied).sum() >= half else "undecided"
    if statement.needs == "some":
        if holds.any():
            return "holds"
        return "does not hold" if known.all() else "undecided"

    has_all_replicates = (
        statement.at_replicates is not None and replicates.min() >= statement.at_replicates
    )
    if against.any() or (has_all_replicates and not holds.all()):
        return "does not hold"
    if not known.all():
        return "undecided"
    if holds.all():
        return "holds"
    return "holds or ties" if holds.any() else "fails only in size"


def _replicates_to_decide(
    statement: Statement, tests: Tests, holds: NDArray[np.bool_], still_open: NDArray[np.bool_]
) -> int:
    """Return how many replicates would likely decide, if means and deviations stay as they are.

    A statistic grows with the square root of the replicates. Each comparison is decided by what is
    clearest: that the means differ, or that they are tied.
    """
    needed_t = stats.norm.ppf(1 - statement.level) + stats.norm.ppf(POWER)
    clearest = np.maximum(np.maximum(np.abs(tests.t), -tests.t_tie), 1e-3)
    each = np.sort((tests.replicates * (needed_t / clearest) ** 2)[still_open])
    if statement.needs == "some":
        replicates = each[0]
    elif statement.needs == "most":
        wanted = len(holds) // 2 + 1 - int(holds.sum())
        replicates = each[min(wanted, len(each)) - 1]
    else:
        replicates = each[-1]
    if statement.at_replicates is not None:
        return statement.at_replicates
    return max(int(np.ceil(replicates)), int(tests.replicates.min()) + 1)


def _say_weakest(measured: Sequence[Measured], tests: Tests) -> str:
    """Return the comparison that is furthest from holding, with its evidence."""
    worst = int(np.argmax(tests.t))
    one = measured[worst]
    p = tests.smaller[worst]
    opposite = tests.larger[worst]
    evidence = f"p-value {p:.2g}" if p <= opposite else f"p-value of the opposite {opposite:.2g}"
    factor = one.part.factor if isinstance(one.part, Comparison) else 1.0
    right = one.right.mean() / factor
    return f"{one.part}; means {one.left.mean():.3g} and {right:.3g}, {evidence}"


def decide_all(results: Mapping[str, Results]) -> list[Decision]:
    """Decide every statement under each reading that was run; small versions decide nothing."""
    of_paper = {name: result for name, result in results.items() if result.has_paper_sizes}
    readings = dict.fromkeys(
        reading for result in of_paper.values() for reading in result.preset.readings
    )
    return [
        decide(statement, of_paper, reading) for statement in STATEMENTS for reading in readings
    ]


def group_by_statement(decisions: Iterable[Decision]) -> dict[int, list[Decision]]:
    """Return the decisions under each statement's number, one for each reading."""
    return {number: list(mine) for number, mine in groupby(decisions, lambda d: d.statement.number)}
