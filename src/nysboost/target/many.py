"""Learning from many rows: a race of candidates on samples, then weights from every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.moments import Moments, moments_of
from nysboost.numerics.arrays import Array, Floats, to_host
from nysboost.numerics.memory import Budget
from nysboost.numerics.progress import Work
from nysboost.target.candidates import Candidate, Found, judged
from nysboost.target.judged import Judged
from nysboost.target.linear import Basis, LinearModel, chosen, errors_along
from nysboost.target.plain import Plain
from nysboost.target.race import FIRST_STEPS, PASS, Race
from nysboost.target.scale import Scaling
from nysboost.target.shares import shares_of

CLEAR = 0.9
"""Where the best has less than this share of the squared error that the simplest model had on the
last sample, all rows do not turn that round: on split 5 of the six large tables they lowered the
simplest model's by 0.7 % at most (kin40k, 256 landmarks)."""

TIES = 0.995
"""A mixture has to be better by this factor than its first alone, the simplest or the best."""


def learn_many(
    rows: Rows,
    Y: Array,
    weights: Floats | None,
    plain: Plain,
    candidates: tuple[Candidate, ...],
    c: int,
    rng: np.random.Generator,
    *,
    scaling: Scaling,
    budget: Budget,
    work: Work,
) -> Judged:
    """Return the model that the judge prefers, with weights from all rows.

    1. Every candidate takes its first steps on a small sample. The judge, rows that took no
       part, decides which goes on; the simplest model, with a tuned bandwidth, is among them.
    2. The best goes on, or all where rows are few for each landmark, each step on other rows of a
       large sample, and stays there unless the judge has lost. Where the judge has many of the
       rows they join for some last steps.
    3. One pass over all rows gives FᵀF and FᵀY. The judge chooses γ for weights that come from
       all other rows; then its rows join. The simplest model has such a pass too, unless it is
       clearly behind; the judge mixes what there is.
    """
    race = Race.of(rows, Y, weights, c, rng, scaling)
    work.begin(race.size(len(candidates), rows.n))
    # alone, the simplest model may look at more rows
    simple = plain.best(race.first if candidates else race.fit, race.judge, c, rng)
    heats = []
    for tried in race.heats(candidates, rng):
        line = f"{tried.name}: held-out error {tried.error**0.5:.4g}"
        work.step(FIRST_STEPS * race.first.n, line)
        heats.append(tried)
    notes = [(found.name, found.error**0.5) for found in (simple, *heats)]
    ends = []
    for leader in race.leaders(heats):
        found, last = race.settled(leader, work)
        ends.append((found, last))
        notes.append((f"{found.name}, settled", found.error**0.5))
        work.step(0, f"{found.name}, settled: held-out error {found.error**0.5:.4g}")
    weighed = partial(_finished, race, rows=rows, Y=Y, weights=weights, budget=budget, work=work)
    entrants = [weighed(*end) for end in _field(race, simple, ends)]
    work.step(0, "Weights from all rows")
    return _verdict(race, entrants, notes)


@dataclass(frozen=True, eq=False)
class _Finished:
    """A model of all rows, one of all but the judge's, and these rows' features."""

    model: LinearModel
    held_out: LinearModel
    features: Array

    @property
    def variance(self) -> Floats:
        """Variances that the second predicts for the judge's rows, shape (h, t)."""
        held = self.held_out
        return to_host(held.spread(self.features)[:, None] * held.noise[None, :])


def _field(race: Race, simple: Found, ends: list[tuple[Found, Found]]) -> list[tuple[Found, Found]]:
    """Return what is weighed on all rows: none that is clearly behind, the simplest first."""
    if not ends:
        return [(simple, simple)]
    simple = judged(simple, race.fit, race.judge)
    ends = sorted(ends, key=lambda end: end[0].error)
    best = ends[0][0].error
    return [end for end in [(simple, simple), *ends] if best > CLEAR * end[0].error]


def _finished(
    race: Race,
    found: Found,
    last: Found,
    rows: Rows,
    Y: Array,
    weights: Floats | None,
    budget: Budget,
    work: Work,
) -> _Finished:
    """Return the model with weights from all rows, and from all but those that judge.

    These choose γ on the landmarks of `found`, which they have not moved; the model has those
    of `last`, and the γ that is there what the chosen one is here.
    """

    def weighed(basis: Basis) -> Moments:
        return moments_of(
            basis.through(), rows, Y,
            weights=weights, budget=budget, after=lambda done: work.step(PASS * done),
        )  # fmt: skip

    basis = race.scale.undone(found)
    every, F = weighed(basis), basis(race.raw)
    train = every - Moments.of(F, race.judge.Y, race.judge.weights)
    errors = errors_along(train, F, race.judge.Y, race.judge.weights, found.gammas)
    at = chosen(found.gammas, errors)
    held_out = LinearModel.fit(basis, train, float(found.gammas[at]))
    if last is not found:
        basis = race.scale.undone(last)
        every = weighed(basis)
    model = LinearModel.fit(basis, every, float(last.gammas[at]))
    return _Finished(model, held_out, F)


def _verdict(race: Race, entrants: list[_Finished], notes: list[tuple[str, float]]) -> Judged:
    """Return the models, mixed where there are several, with what the judge saw."""
    truth = to_host(race.judge.Y)
    weights = None if race.judge.weights is None else to_host(race.judge.weights)
    means = [to_host(one.held_out.predict(one.features)) for one in entrants]
    shares = shares_of(means, truth, weights, TIES)
    kept = np.flatnonzero(shares)
    mean = sum(shares[k] * means[k] for k in kept)
    variance = sum(shares[k] * entrants[k].variance for k in kept)
    models = [entrants[k].model for k in kept]
    return Judged(models, shares[kept], truth, mean, np.sqrt(variance), weights, notes)
