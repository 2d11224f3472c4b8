"""Outcomes by family: the best of each first, so that sixty methods stay readable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import nysboost as nb
from nysboost.experiments.compare import Outcome

FEW = 12
"""Up to this many methods are printed one by one; of more, the best of each family."""


@dataclass(frozen=True)
class Family:
    """The outcomes of related methods, smallest error first."""

    name: str
    outcomes: tuple[Outcome, ...]

    @property
    def best(self) -> Outcome:
        """The one with the smallest error."""
        return self.outcomes[0]


def by_family(outcomes: Iterable[Outcome]) -> list[Family]:
    """Group outcomes by the families of the catalogue, the family with the best one first."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in sorted(outcomes, key=lambda o: o.error):
        groups.setdefault(family_of(outcome.method), []).append(outcome)
    return [Family(name, tuple(group)) for name, group in groups.items()]


def family_of(method: str) -> str:
    """Return the family that a method belongs to."""
    return next(name for name, methods in nb.FAMILIES.items() if method in methods)


def leading(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes to show at once: all of a few, else the best of each family."""
    families = by_family(outcomes)
    if len(outcomes) <= FEW:
        return [outcome for family in families for outcome in family.outcomes]
    return [family.best for family in families]
