"""The paper's statements, as comparisons of two means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import filter as match
from typing import Literal, NotRequired, TypedDict

from nysboost.paper import read_toml
from nysboost.paper.replicate import METHODS

CHECKPOINTS = (5, 10, 15, 20)
LEVEL = 0.05

Needs = Literal["all", "most", "some"]
"""How many of its comparisons must hold for a statement to hold."""


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a method with a number of learners."""

    method: str
    n_learners: int

    def __str__(self) -> str:
        return f"{self.method} (p = {self.n_learners})"


@dataclass(frozen=True)
class Comparison:
    """The statement mean(left) < factor · mean(right)."""

    preset: str
    left: Side
    right: Side
    factor: float = 1.0
    paired: bool = False

    def __str__(self) -> str:
        right = str(self.right)
        if self.factor != 1:
            right = f"{self.factor:.2f} × {right}"
        return f"{self.preset}: {self.left} < {right}"


@dataclass(frozen=True)
class Bound:
    """The statement mean(property) < below."""

    preset: str
    property: str
    below: float

    def __str__(self) -> str:
        return f"{self.preset}: {self.property} < {self.below:.3g}"


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, its summary, and the equivalent comparisons."""

    number: int
    section: str
    quote: str
    gist: str
    tests: str
    parts: tuple[Comparison | Bound, ...]
    needs: Needs = "all"
    level: float = LEVEL
    at_replicates: int | None = None
    """With this many replicates, a comparison that is not significant counts against it."""

    @property
    def presets(self) -> tuple[str, ...]:
        """The presets whose results decide it."""
        return tuple(dict.fromkeys(part.preset for part in self.parts))


class ComparisonTable(TypedDict):
    """Comparisons as the paper's table has them: methods by name, or by a pattern with stars.

    `at` has numbers of learners, for both sides or for each.
    """

    presets: list[str]
    smaller: list[str]
    larger: list[str]
    factor: NotRequired[float]
    paired: NotRequired[bool]
    at: NotRequired[list[int | tuple[int, int]]]


def _expand(table: ComparisonTable) -> Iterator[Comparison]:
    """Compare each method in `smaller` with each in `larger`, on each preset."""
    for preset in table["presets"]:
        for left in _match(table["smaller"]):
            # "=" stands for the weights of the method on the left
            weights = left.partition("-")[0]
            larger = [pattern.replace("=", weights) for pattern in table["larger"]]
            for right in _match(larger):
                yield from _compare(table, preset, left, right)


def _match(patterns: Sequence[str]) -> Iterator[str]:
    """Yield the methods that match some patterns with stars."""
    for pattern in patterns:
        yield from match(METHODS, pattern)


def _compare(table: ComparisonTable, preset: str, left: str, right: str) -> Iterator[Comparison]:
    """Compare two methods at the numbers of learners of a table."""
    factor = table.get("factor", 1.0)
    paired = table.get("paired", False)
    for at in table.get("at", CHECKPOINTS):
        # one number for both sides, or one for each
        if isinstance(at, int):
            at = (at, at)
        p, q = at
        yield Comparison(preset, Side(left, p), Side(right, q), factor, paired)


def _read_statements() -> Iterator[Statement]:
    """Yield the statements of the paper's table, with their comparisons and then their bounds."""
    for table in read_toml("statements.toml")["statement"]:
        parts: list[Comparison | Bound] = []
        for comparisons in table.pop("compare", []):
            parts += _expand(comparisons)
        for bound in table.pop("bound", []):
            parts.append(Bound(**bound))
        yield Statement(parts=tuple(parts), **table)


STATEMENTS = tuple(_read_statements())


def find_methods(preset: str) -> set[str]:
    """Return the methods that some statement compares in a preset."""
    found = set()
    for statement in STATEMENTS:
        for part in statement.parts:
            if isinstance(part, Comparison) and part.preset == preset:
                found |= {part.left.method, part.right.method}
    return found
