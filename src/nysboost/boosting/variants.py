"""Names of the variants, XYB-clustering. Only here, names are turned into rules and selectors.

X is the rule of the boosting step, and Y that of the final mixture.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias, TypeVar

from numpy.random import Generator

from nysboost.approximation import Approximation
from nysboost.boosting.algorithm import BoostingParts, Sampling, find_learners, uniform
from nysboost.boosting.rules import (
    ExponentialWeights,
    FunctionOfSets,
    RidgeWeights,
    Rule,
    UniformWeights,
)
from nysboost.boosting.selectors import Selector, kmeans_columns, pam_columns, park_jun_columns
from nysboost.boosting.state import ValidationSet
from nysboost.gram import Gram
from nysboost.numerics.arrays import Floats
from nysboost.numerics.messages import unknown
from nysboost.settings import Settings

RuleLike: TypeAlias = Rule | Callable[[ValidationSet, ValidationSet, int], Floats] | str
"""A rule, a function (V1, V2, p) ↦ weights, or a letter."""

SelectorLike: TypeAlias = Selector | str
"""A selector, a function of that form, or a name."""

RULES: dict[str, Rule] = {
    "U": UniformWeights(),
    "E": ExponentialWeights(),
    "R": RidgeWeights(),
}
SELECTORS: dict[str, Selector] = {
    "mean": kmeans_columns,
    "med": pam_columns,
    "SF": park_jun_columns,
}

SAMPLINGS: dict[str, Sampling] = {"uniform": uniform}
"""Functions that draw the columns of the first learner, by name."""

VARIANTS: tuple[str, ...] = tuple(
    f"{x}{y}B-{clustering}" for clustering, x, y in product(SELECTORS, RULES, RULES)
)
"""The paper's 27 names, XYB-clustering, in the order of its table."""

ENSEMBLES = {"ensemble-uniform": "U", "ensemble-exponential": "E", "ensemble-ridge": "R"}
"""The names of ensembles, with the letter of their weight rule."""

Part = TypeVar("Part")


def register_rule(letter: str, rule: RuleLike) -> None:
    """Register a rule under a letter, which can then be used in names such as URB-mean.

    .. versionadded:: 0.4

    Parameters
    ----------
    letter : str
        One capital letter that no other rule uses.
    rule : Rule or function
        A `Rule`, or a function (V1, V2, p) ↦ weights of shape (p,).

    See Also
    --------
    register_selector : the same for a clustering.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> def newest(V1, V2, p):
    ...     return np.eye(p)[-1]
    >>> nb.register_rule("N", newest)
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> nb.approximate(X, "UNB-mean", n_learners=3, n_columns=9, random_state=0).weights
    array([0., 0., 1.])
    """
    is_letter = isinstance(letter, str) and len(letter) == 1
    if not is_letter or not letter.isupper():
        raise ValueError(f"The name of a rule is one capital letter, but {letter!r} was given.")

    made = as_rule(rule, letter, Settings())
    _register(made, letter, RULES)


def register_selector(name: str, selector: Selector) -> None:
    """Register a clustering under a name, which can then be used in names such as URB-mean.

    .. versionadded:: 0.4

    Parameters
    ----------
    name : str
        A word of letters and digits that no other selector uses.
    selector : Selector
        A function (residual, m, rng) ↦ m distinct column positions.

    See Also
    --------
    register_rule : the same for a rule.

    Examples
    --------
    >>> import numpy as np, nysboost as nb
    >>> def longest(residual, m, rng):
    ...     return np.argsort(-np.linalg.norm(residual, axis=0))[:m]
    >>> nb.register_selector("long", longest)
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> nb.approximate(X, "URB-long", n_learners=3, n_columns=9, random_state=0).rank
    27
    """
    if not (isinstance(name, str) and name.isalnum()):
        msg = f"The name of a selector consists of letters and digits, but {name!r} was given."
        raise ValueError(msg)
    _register(as_selector(selector, name), name, SELECTORS)


def _register(part: Part, name: str, known: dict[str, Part]) -> None:
    """Add a part of Algorithm 1 to the known ones, or raise if another has its name."""
    if known.get(name, part) != part:
        raise ValueError(f"{known[name]!r} already has the name {name!r}: choose another.")
    known[name] = part


def _look_up(role: str, given: Part | str, known: Mapping[str, Part], form: str) -> Part:
    """Return the part of Algorithm 1 with this name, or a user's function unchanged."""
    if isinstance(given, str):
        if given not in known:
            raise ValueError(unknown(role, given, known))
        return known[given]
    if not callable(given):
        raise TypeError(
            f"A {role} is {form}, or one of the names {', '.join(known)}, but {given!r} was given."
        )
    return given


def as_rule(given: RuleLike | None, letter: str, settings: Settings) -> Rule:
    """Return a given rule, function or letter as a rule; None is the rule with `letter`."""
    if isinstance(given, Rule):
        return given
    if isinstance(given, type):
        raise TypeError(f"A rule is an object, but the class {given.__name__} was given.")
    if callable(given):
        return FunctionOfSets(given)
    if given is None:
        given = letter
    form = "a nysboost.Rule, a function (V1, V2, p) ↦ weights"
    return _look_up("rule", given, RULES, form).with_settings(settings)


def as_selector(given: SelectorLike | None, name: str) -> Selector:
    """Return a given function or name as a selector; None is the selector with `name`."""
    if given is None:
        given = name
    return _look_up("selector", given, SELECTORS, "a function (residual, m, rng) ↦ m positions")


def is_variant(name: str) -> bool:
    """Whether a name has the form XYB-clustering, with existing rules and selector."""
    weights, _, clustering = name.partition("-")
    if len(weights) != 3 or clustering not in SELECTORS:
        return False

    x, y, boosting = tuple(weights)
    return x in RULES and y in RULES and boosting == "B"


def parse_method(name: str, settings: Settings) -> tuple[BoostingParts, Rule]:
    """Return the parts with which a variant or ensemble finds learners, and the final rule.

    The settings `rule` and `selector` replace the letters and the clustering in the name.
    """
    # a pair of rules for X and Y, or one rule for both
    given = settings.rule
    if not isinstance(given, tuple):
        given = (given, given)
    if len(given) != 2:
        raise ValueError(f"rule is one rule or a pair, for X and Y, but {given!r} was given.")
    given_x, given_y = given

    # an ensemble has a final rule alone
    if name in ENSEMBLES:
        return None, as_rule(given_y, ENSEMBLES[name], settings)

    # XYB-clustering
    letters, clustering = name.split("-")
    x = as_rule(given_x, letters[0], settings)
    y = as_rule(given_y, letters[1], settings)
    selector = as_selector(settings.selector, clustering)
    return (x, selector), y


# The method of such a name

OF_MIXTURES = frozenset(
    (
        "n_components", "n_learners", "n_columns", "rank", "n_fit", "n_tune", "validation_shape",
        "row_cap", "rule",
    )
)  # fmt: skip
OF_STEPS = frozenset(
    (
        "n_candidates", "candidates_per_column", "residual_shape", "residual_rows", "selector",
        "sampling", "min_gain", "callback",
    )
)  # fmt: skip
OF_RULES = {"E": frozenset(("eta",)), "R": frozenset(("nonnegative", "lambdas"))}
"""The settings that all mixtures read, that boosting steps read, and rules by their letters."""


@dataclass(frozen=True)
class MixtureOfLearners:
    """Σ μ_i G_i over the learners of an ensemble or of Algorithm 1."""

    name: str

    def uses(self, named: Collection[str]) -> frozenset[str]:
        """Return the settings that have an effect; a user's rule may use those of every rule."""
        uses = OF_MIXTURES
        if self.name not in ENSEMBLES:
            uses |= OF_STEPS

        letters = ENSEMBLES.get(self.name, self.name[:2])
        for letter, of_rule in OF_RULES.items():
            if letter in letters or "rule" in named:
                uses |= of_rule
        return uses

    def find(self, gram: Gram, settings: Settings, rng: Generator) -> Approximation:
        """Find the learners, and combine them."""
        # with a joint core boosting looks at a sample, as in Settings.fast
        if "J" in self.name[:2]:
            settings = settings.with_sampling()
        parts, final = parse_method(self.name, settings)
        form = "a function (gram, m, rng) ↦ m row numbers"
        sampling = _look_up("sampling", settings.sampling, SAMPLINGS, form)

        # the learners, and step 3
        trajectory = find_learners(gram, settings, parts, final, rng, sampling)
        mixture = trajectory.mixture(final)
        return Approximation(gram, mixture, trajectory, final)
