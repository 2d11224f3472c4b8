"""The ledger, which decides which of the paper's statements hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import stats

from nysboost.numerics.arrays import Floats, Indices
from nysboost.paper.presets import Reading
from nysboost.paper.results import ByPreset, Results, compare_means, correct
from nysboost.paper.statements import STATEMENTS, Bound, Comparison, Statement
from nysboost.tables.values import Booleans

Test: TypeAlias = Literal["Welch", "paired"]

TIE = 0.02
"""Two means are tied if they differ by less than this share."""

POWER = 0.8
"""The probability of a clear answer with the recommended number of replicates."""

HOW_DECIDED = (
    "A statement is taken apart into comparisons of two means, each a one-sided test at 5 % "
    "(statement 7: 1 %). It holds if every comparison is significant; it does not hold if one is "
    "significantly reversed (Holm-corrected), and statement 7, about p-values at 100 replicates, "
    f"if one is not significant then. Means shown to be within {TIE:.0%} of each other are tied: "
    "the statement holds or ties if all others hold, and fails only in size if none does. Where "
    "the paper says “most”, more than half of the comparisons must hold; where it says “not "
    "necessarily”, one. Otherwise it is undecided, and the ledger says how many replicates would "
    "decide with a chance of 80 %. If Welch's test gives no clear answer, the paired test is used, "
    "because methods share the points of a replicate."
)


@dataclass(frozen=True)
class Sides:
    """A comparison with the values of both sides (replicates,), right times its factor."""

    part: Comparison | Bound
    left: Floats
    right: Floats

    @property
    def always_paired(self) -> bool:
        """Whether both sides come from the same run, with different numbers of learners."""
        return isinstance(self.part, Comparison) and self.part.paired


@dataclass(frozen=True)
class Decision:
    """The decision on a statement under one reading of the validation sets.

    `lacks` names missing presets. `counts` is the number of comparisons that "hold", are
    "reversed", "tied" and "open". `weakest` describes the comparison furthest from holding, and
    `rests_on` names the deciding test. `would_decide` is the number of replicates that would
    decide.
    """

    statement: Statement
    reading: Reading
    verdict: str
    lacks: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    weakest: str = ""
    rests_on: str = ""
    would_decide: int | None = None

    def record(self) -> dict[str, object]:
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


def decide(statement: Statement, results: ByPreset, reading: Reading) -> Decision:
    """Decide a statement under one reading, from the results of all presets that it needs."""
    # collect both sides of each comparison, or the presets that are missing
    measured: list[Sides] = []
    lacks: list[str] = []
    for part in statement.parts:
        found = None
        if part.preset in results:
            found = _measure(part, results[part.preset], reading)
        if found is not None:
            measured.append(found)
        elif part.preset not in lacks:
            lacks.append(part.preset)

    if lacks:
        return Decision(statement, reading, LACKS, tuple(lacks))

    # the paired test, if Welch's gives no clear answer
    decision = _decide_by("Welch", statement, reading, measured)
    if decision.verdict in ("holds", "does not hold"):
        return decision
    return _decide_by("paired", statement, reading, measured)


def _measure(part: Comparison | Bound, results: Results, reading: Reading) -> Sides | None:
    """Return both sides of a comparison, or None if one was not measured."""
    # compare a property with its bound
    if isinstance(part, Bound):
        values = results.properties.get(part.property)
        if values is None:
            return None
        bound = np.full(len(values), part.below)
        return Sides(part, values, bound)

    # compare two methods
    left = results.sample(reading, part.left)
    right = results.sample(reading, part.right)
    if left is None or right is None:
        return None
    return Sides(part, left, part.factor * right)


class Tests(NamedTuple):
    """Statistics of all comparisons of a statement, each of shape (comparisons,).

    `t` is negative if the left side is smaller. `smaller`, `larger` and `tie` are p-values of three
    alternatives. The last comes from two one-sided tests (Schuirmann 1987), and `t_tie` is the
    weaker of their statistics.
    """

    t: Floats
    smaller: Floats
    larger: Floats
    tie: Floats
    t_tie: Floats


def _test(measured: Sequence[Sides], test: Test) -> Tests:
    """Test all comparisons; those with equally many replicates are tested together."""
    groups: dict[tuple[int, bool], list[int]] = {}
    for i, one in enumerate(measured):
        paired = test == "paired" or one.always_paired
        kind = (len(one.left), paired)
        groups.setdefault(kind, []).append(i)

    tests = np.empty((len(Tests._fields), len(measured)))
    for (_, paired), mine in groups.items():
        left = np.column_stack([measured[i].left for i in mine])
        right = np.column_stack([measured[i].right for i in mine])
        tests[:, mine] = _test_alternatives(left, right, paired)
    return Tests(*tests)


def _test_alternatives(left: Floats, right: Floats, paired: bool) -> Tests:
    """Test comparisons whose sides have shape (replicates, comparisons)."""
    # left is smaller; left is larger
    t, smaller = compare_means(left, right, paired)
    _, larger = compare_means(right, left, paired)

    # they are tied: left is below (1 + TIE) right, and above (1 − TIE) right
    t_below, below = compare_means(left, (1 + TIE) * right, paired)
    t_above, above = compare_means((1 - TIE) * right, left, paired)
    return Tests(t, smaller, larger, np.maximum(below, above), np.maximum(t_below, t_above))


@dataclass(frozen=True)
class Evidence:
    """The outcomes of all comparisons, as masks of shape (comparisons,)."""

    holds: Booleans
    reversed: Booleans
    tied: Booleans

    @property
    def is_open(self) -> Booleans:
        """The comparisons that are not decided."""
        return ~(self.holds | self.reversed | self.tied)

    def counts(self) -> dict[str, int]:
        """Return the number of comparisons of each kind."""
        return {
            "hold": int(self.holds.sum()),
            "reversed": int(self.reversed.sum()),
            "tied": int(self.tied.sum()),
            "open": int(self.is_open.sum()),
        }


def _classify(statement: Statement, tests: Tests) -> Evidence:
    """Compare p-values with the level of the statement.

    "Reversed" is corrected by Holm, because one reversed comparison refutes a statement. "Holds" is
    corrected if one comparison is enough.
    """
    # p-values of "left is smaller"
    p_values = tests.smaller
    if statement.needs == "some":
        p_values = correct(p_values)
    holds = p_values < statement.level

    # give each comparison one outcome: it holds, or is reversed, or tied
    is_reversed = correct(tests.larger) < statement.level
    is_tied = tests.tie < statement.level
    reverse = is_reversed & ~holds
    tied = is_tied & ~holds & ~reverse
    return Evidence(holds, reverse, tied)


def _decide_by(
    test: Test,
    statement: Statement,
    reading: Reading,
    measured: Sequence[Sides],
) -> Decision:
    """Decide a statement by one of the tests."""
    # find the verdict
    tests = _test(measured, test)
    outcome = _classify(statement, tests)
    replicates = np.array([len(one.left) for one in measured])
    verdict = _find_verdict(statement, int(replicates.min()), outcome)
    decision = Decision(
        statement,
        reading,
        verdict,
        counts=outcome.counts(),
        weakest=_say_weakest(measured, tests),
    )

    # say how many replicates would decide, or which test did
    if verdict == "undecided":
        would_decide = _replicates_to_decide(statement, tests, outcome, replicates)
        return replace(decision, would_decide=would_decide)

    # two numbers of learners of one run are always paired
    if all(one.always_paired for one in measured):
        test = "paired"
    return replace(decision, rests_on=test)


def _find_verdict(statement: Statement, replicates: int, outcome: Evidence) -> str:
    """Return the verdict on a statement from its comparisons."""
    holds = outcome.holds
    is_open = outcome.is_open

    # most: more than half of them, or half of them against it
    if statement.needs == "most":
        half = len(holds) / 2
        against = outcome.reversed | outcome.tied
        if holds.sum() > half:
            return "holds"
        if against.sum() >= half:
            return "does not hold"
        return "undecided"

    # some: one of them
    if statement.needs == "some":
        if holds.any():
            return "holds"
        if is_open.any():
            return "undecided"
        return "does not hold"

    # all: one against it is enough
    enough = statement.at_replicates
    has_all_replicates = enough is not None and replicates >= enough
    is_refuted = has_all_replicates and not holds.all()
    if outcome.reversed.any() or is_refuted:
        return "does not hold"

    # all are decided: each holds or is tied
    if is_open.any():
        return "undecided"
    if holds.all():
        return "holds"
    if holds.any():
        return "holds or ties"
    return "fails only in size"


def _replicates_to_decide(
    statement: Statement, tests: Tests, outcome: Evidence, replicates: Indices
) -> int:
    """Return the number of replicates that would likely decide with these means and deviations.

    A statistic grows with the square root of the number of replicates. Each comparison is decided
    by its clearest alternative: the means differ, or they are tied.
    """
    if statement.at_replicates is not None:
        return statement.at_replicates

    # replicates that each open comparison needs, in increasing order
    significant = stats.norm.ppf(1 - statement.level)
    needed_t = significant + stats.norm.ppf(POWER)
    clearest = np.maximum(np.abs(tests.t), -tests.t_tie)
    growth = needed_t / np.maximum(clearest, 1e-3)
    needed = replicates * growth**2
    each = np.sort(needed[outcome.is_open])

    # the comparison whose answer decides the statement: the last of all, the first of some, or
    # that which makes a majority
    decisive = len(each) - 1
    if statement.needs == "some":
        decisive = 0
    if statement.needs == "most":
        majority = len(outcome.holds) // 2 + 1
        lacking = majority - int(outcome.holds.sum())
        decisive = min(lacking, len(each)) - 1
    would_decide = int(np.ceil(each[decisive]))
    more_than_now = int(replicates.min()) + 1
    return max(would_decide, more_than_now)


def _say_weakest(measured: Sequence[Sides], tests: Tests) -> str:
    """Describe the comparison that is furthest from holding, with its evidence."""
    worst = int(np.argmax(tests.t))
    one = measured[worst]

    # show the evidence for it, or against it if that is stronger
    p = tests.smaller[worst]
    opposite = tests.larger[worst]
    evidence = f"p-value {p:.2g}"
    if opposite < p:
        evidence = f"p-value of the opposite {opposite:.2g}"

    # show the means, the right one without the factor
    right = one.right.mean()
    if isinstance(one.part, Comparison):
        right /= one.part.factor
    return f"{one.part}; means {one.left.mean():.3g} and {right:.3g}, {evidence}"


def decide_all(results: ByPreset) -> list[Decision]:
    """Decide every statement under each reading; small versions decide nothing."""
    of_paper = {name: result for name, result in results.items() if result.has_paper_sizes}
    readings: dict[Reading, None] = {}
    for result in of_paper.values():
        readings |= dict.fromkeys(result.preset.readings)

    decisions = []
    for statement in STATEMENTS:
        decisions += [decide(statement, of_paper, reading) for reading in readings]
    return decisions


def group_by_statement(decisions: Iterable[Decision]) -> dict[int, list[Decision]]:
    """Group the decisions by the number of the statement, one for each reading."""
    groups: dict[int, list[Decision]] = {}
    for decision in decisions:
        groups.setdefault(decision.statement.number, []).append(decision)
    return groups
