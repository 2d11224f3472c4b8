"""The ledger: which of the paper's claims hold in what was run.

Each comparison of a claim is a one-sided test of two means: Welch's, the paper's own, and where
that cannot decide the paired one, since methods share the points of a replicate. A comparison

- *holds* if it is significant at the claim's level (all must, so no correction is due),
- is *reversed* if the opposite is, Holm-corrected over the claim's comparisons,
- is *tied* if it is neither and the means are shown to differ by less than `TIE`, both ways,
- is *open* otherwise: only more replicates could say.

A claim holds if all of its comparisons do, and does not if one is reversed. Without a reversal
it "holds or ties" if all that do not hold are tied, and "fails only in size" if all are. What is
left, with something open, is undecided at this number of replicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nysboost.experiments import statistics
from nysboost.experiments.claims import CLAIMS, Claim, Comparison
from nysboost.experiments.results import Results

Verdict = Literal[
    "holds", "holds or ties", "fails only in size", "does not hold", "undecided", "not run"
]
TIE = 0.02
"""Two means are tied if they differ by less than this share: a fifth of what counts as close."""
Samples = tuple[statistics.Floats, statistics.Floats]
Measured = tuple[Comparison, statistics.Floats, statistics.Floats]


@dataclass(frozen=True)
class Decision:
    """What the records say of a claim under one reading of V.

    Attributes
    ----------
    held, reversed_, tied, open_ : int
        How many comparisons hold, are significantly reversed, are tied, and are none of these.
    weakest : str
        The comparison furthest from holding, in words, with its numbers.
    not_run : tuple of str
        The presets that the claim needs and that were not run.
    rests_on : str
        The test that decided: "Welch" or "paired"; empty where none could.
    """

    claim: Claim
    reading: str
    verdict: Verdict
    held: int
    reversed_: int
    tied: int
    open_: int
    weakest: str
    not_run: tuple[str, ...]
    rests_on: str = ""


TESTS = {"Welch": statistics.welch, "paired": statistics.paired}
"""Tried in this order: the paper's own, and the one that knows of shared points."""


def decide(claim: Claim, results: Mapping[str, Results], reading: str) -> Decision:
    """Decide a claim from the results of the presets that were run.

    Parameters
    ----------
    claim : Claim
        The claim.
    results : mapping from preset name to Results
        What was run.
    reading : {"columns", "square"}
        The reading of V.
    """
    measured = [(c, *sides) for c in claim.comparisons if (sides := _samples(c, results, reading))]
    missing = tuple(
        dict.fromkeys(c.preset for c in claim.comparisons if _samples(c, results, reading) is None)
    )
    if not measured:
        return Decision(claim, reading, "not run", 0, 0, 0, 0, "", missing)
    decision = _decided(claim, reading, measured, missing, "Welch")
    if decision.verdict in ("holds", "does not hold") or missing:
        return decision
    return _decided(claim, reading, measured, missing, "paired")


def _decided(
    claim: Claim,
    reading: str,
    measured: list[Measured],
    missing: tuple[str, ...],
    test: str,
) -> Decision:
    """Decide a claim by one of the tests."""
    tests = [_test(*m, test) for m in measured]
    smaller = np.array([float(t.p_smaller) for t in tests])
    larger = np.array([float(t.p_larger) for t in tests])
    holds = smaller < claim.level
    against = (statistics.holm(larger) < claim.level) & ~holds
    tied = np.array([_tied(*m, test, claim.level) for m in measured]) & ~holds & ~against
    enough = claim.at_replicates is not None and all(
        len(left) >= claim.at_replicates for _, left, _ in measured
    )
    verdict: Verdict
    if against.any() or (enough and not holds.all()):
        verdict = "does not hold"
    elif missing or not (holds | tied).all():
        verdict = "undecided"
    elif holds.all():
        verdict = "holds"
    else:
        verdict = "holds or ties" if holds.any() else "fails only in size"
    held, reversed_, ties = (int(kind.sum()) for kind in (holds, against, tied))
    open_ = len(tests) - held - reversed_ - ties
    worst = int(np.argmax([float(t.t) for t in tests]))
    weakest = _words(measured[worst], tests[worst])
    used = "paired" if all(c.paired for c, _, _ in measured) else test
    rests_on = "" if verdict == "undecided" else used
    counts = (held, reversed_, ties, open_)
    return Decision(claim, reading, verdict, *counts, weakest, missing, rests_on)


def ledger(results: Mapping[str, Results]) -> list[Decision]:
    """Decide every claim under each reading of V that was run."""
    readings = dict.fromkeys(r for result in results.values() for r in result.values)
    return [decide(claim, results, reading) for claim in CLAIMS for reading in readings]


def by_claim(decisions: Iterable[Decision]) -> dict[str, list[Decision]]:
    """Return the decisions under each claim's number, one for each reading."""
    grouped: dict[str, list[Decision]] = {}
    for decision in decisions:
        grouped.setdefault(decision.claim.number, []).append(decision)
    return grouped


def _samples(c: Comparison, results: Mapping[str, Results], reading: str) -> Samples | None:
    if c.preset not in results:
        return None
    left = results[c.preset].sample(reading, *c.left)
    right = results[c.preset].sample(reading, *c.right)
    return None if left is None or right is None else (left, right)


def _test(
    c: Comparison,
    left: statistics.Floats,
    right: statistics.Floats,
    test: str,
    stretch: float = 1.0,
) -> statistics.Difference:
    return TESTS["paired" if c.paired else test](left, stretch * c.factor * right)


def _tied(
    c: Comparison, left: statistics.Floats, right: statistics.Floats, test: str, level: float
) -> bool:
    """Whether both one-sided tests show a difference smaller than `TIE` (Schuirmann 1987)."""
    below = _test(c, left, right, test, 1 + TIE).p_smaller
    above = _test(c, left, right, test, 1 - TIE).p_larger
    return bool(below < level and above < level)


def _words(measured: Measured, test: statistics.Difference) -> str:
    comparison, left, right = measured
    p, opposite = float(test.p_smaller), float(test.p_larger)
    evidence = f"p-value {p:.2g}" if p <= opposite else f"p-value of the opposite {opposite:.2g}"
    return f"{comparison}; means {left.mean():.3g} and {right.mean():.3g}, {evidence}"
