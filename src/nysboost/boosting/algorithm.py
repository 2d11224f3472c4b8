"""Boosting Nyström, Algorithm 1 of Hamm, Lu, Ouyang and Zhang, its variants, and the ensemble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import numpy as np

from nysboost.boosting import rules, selectors
from nysboost.boosting.rules import Rule
from nysboost.boosting.selectors import Selector
from nysboost.boosting.trajectory import Trajectory, start
from nysboost.boosting.validation import ResidualColumns
from nysboost.gram import Gram
from nysboost.numerics.progress import track
from nysboost.settings import Settings


def boost(
    gram: Gram, settings: Settings, rule: Rule, selector: Selector, rng: np.random.Generator
) -> Trajectory:
    """Find learners in sequence, each on columns of G that the mixture of the others misses.

    X of "XYB-clustering" is the `rule` of the boosting step, `selector` the clustering. The strong
    approximation, step 3, is the trajectory's `mixture(rule)`.
    """
    sizes, candidates = settings.resolve(gram.n), []

    # Step 1. Standard Nyström on m uniformly sampled columns; V1 and V2.
    pool, found = start(gram, settings, sizes, rng, whole=rule.needs_whole_columns)

    # Step 2. Boosting, until there are p learners.
    square = settings.residual_shape == "square"
    residual = ResidualColumns(found, None if square else found.residual_rows)
    for i in track(range(1, sizes.n_learners), "boosting step"):
        # (a) combine the learners found so far
        current = rule.mixture(found, i)
        # (b) resample the columns of V among those never used
        V = pool.sample(sizes.n_candidates, rng, rule.missing(found, current))
        candidates.append(len(V))
        # (c, d) cluster the residual's columns into m groups: the centres are the new columns
        columns = V[selector(residual(current, V), sizes.n_columns, rng)]
        pool.remove(columns)
        # (e) the weak approximation on them
        found.add_learner(columns, sizes.rank)

    return Trajectory(found, tuple(candidates))


def ensemble(gram: Gram, settings: Settings, rng: np.random.Generator) -> Trajectory:
    """Fit p learners on columns sampled uniformly without replacement."""
    sizes = settings.resolve(gram.n, boosted=False)
    pool, found = start(gram, replace(settings, residual_rows=settings.row_cap), sizes, rng)
    for _ in range(1, sizes.n_learners):
        found.add_learner(pool.draw(sizes.n_columns, rng), sizes.rank)
    return Trajectory(found)


# Names of the variants, XYB-clustering: X weighs the boosting step, Y the strong approximation

RULES: dict[str, Callable[[Settings], Rule]] = {
    "U": lambda _: rules.UniformWeights(),
    "E": lambda settings: rules.ExponentialWeights(settings.eta),
    "R": lambda settings: rules.RidgeWeights(settings.nonnegative, tuple(settings.lambdas)),
    "J": lambda _: rules.JointCore(),
}
SELECTORS: dict[str, Selector] = {
    "mean": selectors.kmeans_columns,
    "med": selectors.pam_columns,
    "SF": selectors.park_jun_columns,
}

_NAMES = [f"{x}{y}B-{clustering}" for clustering, x, y in product(SELECTORS, RULES, RULES)]

VARIANTS: tuple[str, ...] = tuple(name for name in _NAMES if "J" not in name)
"""The paper's 27 names, XYB-clustering, in the order of its table."""

JOINT_VARIANTS: tuple[str, ...] = tuple(name for name in _NAMES if "J" in name)
"""The 21 names with J, the joint core, in one step or in both."""

ENSEMBLES = {"ensemble-uniform": "U", "ensemble-exponential": "E", "ensemble-ridge": "R"}
"""The names of ensembles, with the letter of the rule that weighs their learners."""

Steps: TypeAlias = tuple[Rule, Selector] | None
"""How learners are found: the rule and the clustering of boosting steps; None for an ensemble."""


def parse_method(name: str, settings: Settings) -> tuple[Steps, Rule]:
    """Return how a variant or an ensemble finds its learners, and the rule that combines them."""
    letters = {letter: make(settings) for letter, make in RULES.items()}
    if name in ENSEMBLES:
        return None, letters[ENSEMBLES[name]]
    weights, clustering = name.split("-")
    return (letters[weights[0]], SELECTORS[clustering]), letters[weights[1]]


def find_learners(
    gram: Gram, settings: Settings, steps: Steps, rng: np.random.Generator
) -> Trajectory:
    """Run boosting with these steps, or an ensemble."""
    return boost(gram, settings, *steps, rng) if steps else ensemble(gram, settings, rng)
