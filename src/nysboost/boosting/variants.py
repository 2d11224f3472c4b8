"""Names of the boosting variants ↔ their compositions (Table "Boosting Nyström methods")."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from nysboost.boosting.joint_rule import JointCore
from nysboost.boosting.rules import ExponentialWeights, RidgeWeights, Rule, UniformWeights
from nysboost.boosting.selectors import KMeansSelector, PAMSelector, ParkJunSelector, Selector
from nysboost.numerics.checks import unknown

RULES: dict[str, Rule] = {
    "U": UniformWeights(),
    "E": ExponentialWeights(),
    "R": RidgeWeights(),
    "J": JointCore(),
}
SELECTORS: dict[str, Selector] = {
    "mean": KMeansSelector(),
    "med": PAMSelector(),
    "SF": ParkJunSelector(),
}

VARIANTS: tuple[str, ...] = tuple(
    f"{x}{y}B-{clustering}" for clustering, x, y in product(SELECTORS, "UER", "UER")
)
"""The paper's 27 names, XYB-clustering, in the order of its table."""

JOINT_VARIANTS: tuple[str, ...] = tuple(
    f"{x}{y}B-{clustering}"
    for clustering, x, y in product(SELECTORS, RULES, RULES)
    if "J" in (x, y)
)
"""Their 21 siblings with J, the joint core, in one step or in both."""


@dataclass(frozen=True)
class Variant:
    """XYB-clustering: X weighs the boosting step, Y the strong approximation.

    Parameters
    ----------
    boosting, final : Rule
        X and Y.
    selector : Selector
        The clustering.
    """

    boosting: Rule
    final: Rule
    selector: Selector


def parse_variant(name: str, rules: dict[str, Rule] | None = None) -> Variant:
    """Return the composition that a name stands for.

    Parameters
    ----------
    name : str
        One of `VARIANTS` or `JOINT_VARIANTS`.
    rules : dict of str to Rule
        What U, E, R and J mean where it is not the default.
    """
    if name not in VARIANTS + JOINT_VARIANTS:
        raise ValueError(unknown("boosting variant", name, VARIANTS + JOINT_VARIANTS))
    meaning = RULES | (rules or {})
    weights, clustering = name.split("-")
    return Variant(meaning[weights[0]], meaning[weights[1]], SELECTORS[clustering])
