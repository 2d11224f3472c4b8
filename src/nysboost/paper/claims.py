"""The paper's claims about its experiments, taken apart into "this mean is below that mean"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import filter as match
from itertools import product
from typing import Any

from nysboost.paper import read_toml
from nysboost.paper.replicate import METHODS

CHECKPOINTS = (5, 10, 15, 20)
MOST = 20
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The statement mean(left) < factor · mean(right); sides are (method, number of learners)."""

    preset: str
    left: tuple[str, int]
    right: tuple[str, int]
    factor: float = 1.0
    paired: bool = False

    def __str__(self) -> str:
        scale = "" if self.factor == 1 else f"{self.factor:.2f} × "
        (a, p), (b, q) = self.left, self.right
        return f"{self.preset}: {a} (p = {p}) < {scale}{b} (p = {q})"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, its gist in a few words, and the comparisons that it amounts to."""

    number: str
    gist: str
    statement: str
    comparisons: tuple[Comparison, ...]
    level: float = LEVEL
    at_replicates: int | None = None
    """With this many replicates, a comparison that is not significant counts against it."""


def _compare(
    table: Mapping[str, Any], smaller: Sequence[str], larger: Sequence[str]
) -> Iterator[Comparison]:
    """Compare every smaller with every larger method, as a table of ``claims.toml`` says."""
    how = {name: table[name] for name in ("factor", "paired") if name in table}
    lefts = [name for pattern in smaller for name in match(METHODS, pattern)]
    for preset, left, pattern in product(table["presets"], lefts, larger):
        for right in match(METHODS, pattern.replace("=", left.partition("-")[0])):
            for at in table.get("at", CHECKPOINTS):
                p, q = at if isinstance(at, list) else (at, at)
                yield Comparison(preset, (left, p), (right, q), **how)


def _read(table: Mapping[str, Any]) -> Claim:
    comparisons = [*_compare(table, table["smaller"], table["larger"])]
    comparisons += _compare(table, table.get("and_smaller", ()), table.get("and_larger", ()))
    plain = ("number", "gist", "statement", "level", "at_replicates")
    return Claim(
        comparisons=tuple(comparisons), **{name: table[name] for name in plain if name in table}
    )


CLAIMS = tuple(map(_read, read_toml("claims.toml")["claim"]))


def find_methods(preset: str) -> set[str]:
    """Return the methods that some claim compares in a preset."""
    sides = (c for claim in CLAIMS for c in claim.comparisons if c.preset == preset)
    return {method for c in sides for method, _ in (c.left, c.right)}
