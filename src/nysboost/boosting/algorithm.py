"""Boosting Nyström, Algorithm 1 of Hamm, Lu, Ouyang and Zhang, and the ensemble."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

from nysboost.boosting.rules import Combination, Rule, checked
from nysboost.boosting.selectors import Selector, as_positions, choose
from nysboost.boosting.state import FeatureTable, Pool, State, Step, ValidationSet
from nysboost.features.feature_map import FeatureMap, Mixture, features_of, fit_learner
from nysboost.gram import Gram, take_sample
from nysboost.numerics.arrays import Indices
from nysboost.numerics.linalg import max_abs, norms
from nysboost.numerics.progress import track
from nysboost.numerics.tolerances import COARSE
from nysboost.settings import Settings, Sizes

ROWS_PER_COLUMN = 4
"""Fewest rows of a sample per column that a run uses, so that the last learners have a choice."""

LOOKED_BACK = 3
"""Number of learners over which the gain is averaged before boosting stops: sometimes one learner
gains nothing and the next one gains again."""

Sampling: TypeAlias = Callable[[Gram, int, Generator], Indices]
"""(gram, m, rng) ↦ the m columns of the first learner (step 1)."""

BoostingParts: TypeAlias = tuple[Rule, Selector] | None
"""The rule and the clustering of a boosting step; None for an ensemble."""


def uniform(gram: Gram, c: int, rng: Generator) -> Indices:
    """Choose c columns uniformly, as scikit-learn's Nystroem does."""
    return rng.choice(gram.n, size=c, replace=False)


def boost(
    gram: Gram,
    settings: Settings,
    rule: Rule,
    selector: Selector,
    final: Rule,
    rng: Generator,
    sampling: Sampling = uniform,
) -> Trajectory:
    """Run Algorithm 1: each learner is on columns that the mixture so far approximates badly.

    In "XYB-clustering", X is the `rule` of the boosting step, and `selector` is the clustering. Y
    is the `final` rule: `Trajectory.mixture` applies it, and here it decides when to stop if
    `n_learners` is "auto".
    """
    # Step 1. Standard Nyström on m columns, and the validation sets V1 and V2.
    if rule.needs_whole_columns:
        settings = replace(settings, residual_rows=None)
    sizes = settings.resolve(gram.n)
    state = start(gram, settings, sizes, rng, sampling)

    # Step 2. Boosting.
    errors: list[float] = []
    for i in track(range(1, state.p), "boosting step"):
        # if p is open, stop when the error of the strong approximation on V2 no longer falls
        if settings.n_learners == "auto":
            strong = strong_approximation(final, state, i)
            errors.append(state.error_on_V2(strong))
            if gains_little(errors, settings.min_gain):
                break
        watch = Stopwatch()

        # (a) combine the learners found so far with the mixture weights μ
        mixture = checked(rule, rule.mixture(state, i))
        watch.lap("a")

        # (b) resample s columns for V, among those never used
        probabilities = rule.candidate_weights(state, mixture)
        V = state.unused.sample(state.s, rng, probabilities)
        watch.lap("b")

        # (c) compute the residual on V
        e = state.residual(mixture, V)
        residual_norm = float(norms(e))
        watch.lap("c")

        # (d) cluster the columns of the residual into m groups: the centres are the new columns
        centres = choose(selector, e, state.m, rng)
        J = V[centres]
        watch.lap("d")

        # (e) compute the weak Nyström approximation on them
        state.add_learner(J)
        watch.lap("e")

        step = state.note(V, J, mixture, residual_norm, watch.seconds)
        if settings.callback is not None:
            settings.callback(step)

    # Step 3, the strong approximation, is `Trajectory.mixture`.
    return Trajectory(state)


def strong_approximation(rule: Rule, state: State, p: int) -> Combination:
    """Return Σ_i w_i G_i, the first p learners combined with the final weights w (step 3)."""
    return checked(rule, rule.strong(state, p))


def gains_little(errors: list[float], min_gain: float) -> bool:
    """Whether the last learners lowered the error on V2 by less than this share, on average."""
    if len(errors) <= LOOKED_BACK:
        return False
    before = errors[-1 - LOOKED_BACK]
    share_left = (1 - min_gain) ** LOOKED_BACK
    return errors[-1] >= before * share_left


def ensemble(gram: Gram, settings: Settings, rng: Generator) -> Trajectory:
    """Fit p learners on columns sampled uniformly without replacement."""
    settings = replace(settings, residual_rows=None)
    sizes = settings.resolve(gram.n, boosted=False)
    state = start(gram, settings, sizes, rng, uniform)
    for _ in range(1, state.p):
        J = state.unused.draw(state.m, rng)
        state.add_learner(J)
    return Trajectory(state)


def find_learners(
    gram: Gram,
    settings: Settings,
    parts: BoostingParts,
    final: Rule,
    rng: Generator,
    sampling: Sampling = uniform,
) -> Trajectory:
    """Run boosting with this rule and clustering, or an ensemble."""
    if parts is None:
        return ensemble(gram, settings, rng)

    rule, selector = parts
    return boost(gram, settings, rule, selector, final, rng, sampling)


# Step 1


def start(
    gram: Gram,
    settings: Settings,
    sizes: Sizes,
    rng: Generator,
    sampling: Sampling,
) -> State:
    """Fit the first learner, and draw V1 and V2 among the other columns (step 1).

    With more than `row_cap` rows, all columns come from a uniform sample of the rows.
    """
    # all rows, or a sample of them
    p, m, k, s, v1, v2 = sizes
    n_columns = p * m + v1 + v2
    n_rows = max(settings.row_cap, ROWS_PER_COLUMN * n_columns)
    sample = take_sample(gram, n_rows, rng)
    G = sample.gram

    # the m columns of the first learner, and those of V1 and V2
    unused = Pool(G.n)
    drawn = sampling(G, m, rng)
    first = as_positions(drawn, m, G.n, "A sampling", sampling)
    unused.remove(first)
    of_V1 = unused.draw(v1, rng)
    of_V2 = unused.draw(v2, rng)

    # the rows on which columns are evaluated; some of them choose columns and weights only, for
    # which float32 may be enough
    rows = _choose_rows(G.n, settings, rng)
    observed = G
    if len(rows) < G.n:
        learner = fit_learner(G, G.landmarks(first), k)
        observed = _choose_precision(G, learner, of_V2, rows)

    # the learners' features on the rows of V, V1 and V2
    seen = [of_V1, of_V2]
    square = settings.residual_shape == "square"
    square_sets = settings.validation_shape == "square"
    if not (square and square_sets):
        seen.append(rows)
    table = FeatureTable(observed, np.concatenate(seen))

    # V1 and V2
    if square_sets:
        V1 = ValidationSet(table, of_V1, of_V1)
        V2 = ValidationSet(table, of_V2, of_V2)
    else:
        # each row stands for several of all n
        rows_for_each = gram.n / len(rows)
        weight = float(np.sqrt(rows_for_each))
        V1 = ValidationSet(table, rows, of_V1, weight)
        V2 = ValidationSet(table, rows, of_V2, weight)

    state = State(
        p=p,
        m=m,
        k=k,
        s=s,
        sample=sample,
        rows=rows,
        unused=unused,
        V1=V1,
        V2=V2,
        table=table,
        square=square,
    )
    state.add_learner(first)
    return state


def _choose_rows(n: int, settings: Settings, rng: Generator) -> Indices:
    """Return the rows on which columns are evaluated: `residual_rows` of n, or up to `row_cap`."""
    # from numbers of their own, so that steps draw the same whatever rows are observed
    (rng_of_rows,) = rng.spawn(1)
    most = settings.row_cap
    if settings.residual_rows is not None:
        most = min(most, settings.residual_rows)
    return sample_rows(np.arange(n), most, rng_of_rows)


def sample_rows(rows: Indices, at_most: int, rng: Generator) -> Indices:
    """Return all rows or, if there are too many, a uniform sample in their order."""
    if len(rows) <= at_most:
        return rows
    chosen = rng.choice(len(rows), size=at_most, replace=False)
    return rows[np.sort(chosen)]


def _choose_precision(gram: Gram, learner: FeatureMap, cols: Indices, rows: Indices) -> Gram:
    """Return G in float32 if that is precise enough for the error of the first learner, else G."""
    G = gram.block(cols, rows)
    left = features_of(gram, learner, cols)
    right = features_of(gram, learner, rows)
    missed = G - left @ right.T
    if max_abs(missed) > COARSE * max_abs(G):
        return gram.in_float32()
    return gram


# What is found


class Stopwatch:
    """The seconds of each part of a step, by its letter."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun = time.perf_counter()

    def lap(self, letter: str) -> None:
        """Record the seconds since the last lap."""
        now = time.perf_counter()
        self.seconds[letter] = now - self._begun
        self._begun = now


@dataclass(frozen=True, eq=False)
class Trajectory:
    """The learners of a run, not yet combined. The first p equal those of a run with p learners."""

    state: State

    @property
    def learners(self) -> tuple[FeatureMap, ...]:
        """The learners in the order found, with row numbers of the whole matrix."""
        return self._lift_to_rows(self.state.learners)

    @property
    def steps(self) -> tuple[Step, ...]:
        """The record of each boosting step."""
        return tuple(self.state.steps)

    def __len__(self) -> int:
        return len(self.state.learners)

    def mixture(self, rule: Rule, p: int | None = None) -> Mixture:
        """Return the final mixture of the first p learners under a rule (step 3)."""
        if p is None:
            p = len(self)
        if not 1 <= p <= len(self):
            raise ValueError(f"This run has {len(self)} learners; a prefix of {p} was asked for.")
        strong = strong_approximation(rule, self.state, p)
        learners = self._lift_to_rows(strong.learners)
        return replace(strong, learners=learners)

    def _lift_to_rows(self, learners: tuple[FeatureMap, ...]) -> tuple[FeatureMap, ...]:
        sample = self.state.sample
        return tuple(learner.lift(sample) for learner in learners)
