"""Learning from many rows: a race of candidates on samples, then weights from every row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.moments import Moments, moments_of
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    block_bytes,
    dense,
    like,
    namespace,
    to_host,
)
from nysboost.numerics.memory import Budget
from nysboost.numerics.progress import Work
from nysboost.target.candidates import Candidate, Found, Sample, judged, moved
from nysboost.target.judged import Judged
from nysboost.target.linear import LinearModel, chosen, errors_along
from nysboost.target.plain import Plain
from nysboost.target.scale import Scale, Scaling

JUDGE_ROWS = 4096
"""Rows that judge, at most; a fifth of all where there are few."""

FIRST_ROWS, NEXT_ROWS, LAST_ROWS = (4096, 8), (8192, 16), (16384, 24)
"""Rows of each stage: at least the first number, and the second for each landmark."""

ON_DEVICE = 4
"""A GPU takes this many times the rows of the last stages in less time."""

FIRST_STEPS, NEXT_STEPS, LAST_STEPS, LAST_ON_DEVICE = 30, 50, 50, 80
"""Evaluations of each stage."""

PASS = 0.5
"""A row of the last pass takes this share of the time of one whose gradient is evaluated."""

TRACE = 0.03
"""τ with many rows. Test errors on split 5 with 256 landmarks, τ = 0.03, 0.1 and 0.3: protein .563,
.569 and .584, elevators .332, .331 and .332, pol .0645, .0651 and –; τ = 1 was far behind, and
τ = 0 overfits (elevators .359 after 200 steps, where 0.1 had .350)."""

SAMPLE_BYTES = 2**28
"""The rows of all stages take no more than this."""

WORSE = 1.002
"""A stage after which the judge's error is this many times the best ends the race."""

CLEAR = 0.9
"""Where the best has less than this share of the squared error that the simplest model had on the
last sample, all rows do not turn that round: on split 5 of the six large tables they lowered the
simplest model's by 0.7 % at most (kin40k, 256 landmarks)."""

TIES = 0.995
"""What knows y has to be better than the simplest model by this factor."""


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
    2. The best goes on, on larger samples of fresh rows, as long as the judge gains.
    3. One pass over all rows gives FᵀF and FᵀY. The judge chooses γ for weights that come from
       all other rows; then its rows join. The simplest model has such a pass too, unless it is
       clearly behind.
    """
    race = _Race.of(rows, Y, weights, c, rng, scaling)
    work.begin(race.size(len(candidates), rows.n))
    # alone, the simplest model may look at more rows
    simple = plain.best(race.first if candidates else race.stages[-1][0], race.judge, c, rng)
    notes = [(simple.name, simple.error**0.5)]
    best: Found | None = None
    for candidate in candidates:
        tried = moved(candidate.start(race.first, c, rng), race.first, TRACE, FIRST_STEPS)
        tried = judged(tried, race.first, race.judge)
        notes.append((tried.name, tried.error**0.5))
        size = FIRST_STEPS * race.first.n
        work.step(size, f"{tried.name}: held-out error {tried.error**0.5:.4g}")
        best = tried if best is None or tried.error < best.error else best
    if best is not None:
        best = _continued(best, race, notes, work)
        simple = judged(simple, race.stages[-1][0], race.judge)
    weighed = partial(race.finished, rows=rows, Y=Y, weights=weights, budget=budget, work=work)
    winner = weighed(simple if best is None else best)
    if best is not None and winner.error > CLEAR * simple.error:
        plainest = weighed(simple)
        winner = winner if winner.error <= TIES * plainest.error else plainest
    work.step(0, "Weights from all rows")
    return race.verdict(winner, notes)


def _continued(best: Found, race: _Race, notes: list[tuple[str, float]], work: Work) -> Found:
    """Return the candidate after the stages on larger samples, as long as they help."""
    latest = best
    for stage, (sample, steps) in enumerate(race.stages):
        # the same rows give the weights before and after, so that only landmarks differ
        before = judged(latest, sample, race.judge)
        latest = judged(moved(latest, sample, TRACE, steps), sample, race.judge)
        notes.append((f"{latest.name}, stage {stage + 2}", latest.error**0.5))
        line = f"Stage {stage + 2}: held-out error {latest.error**0.5:.4g}"
        work.step(steps * sample.n, line)
        if not latest.error <= WORSE * before.error:
            return before
    return latest


@dataclass(frozen=True, eq=False)
class _Finished:
    model: LinearModel
    held_out: LinearModel
    features: Array
    error: float


@dataclass(frozen=True, eq=False)
class _Race:
    """The rows of each stage, and those that judge."""

    scale: Scale
    raw: Array
    judge: Sample
    first: Sample
    stages: list[tuple[Sample, int]]

    @classmethod
    def of(
        cls,
        rows: Rows,
        Y: Array,
        weights: Floats | None,
        c: int,
        rng: np.random.Generator,
        scaling: Scaling,
    ) -> _Race:
        many = ON_DEVICE if block_bytes(rows.form) > block_bytes(np.empty(0)) else 1
        sizes = [max(least, each * c) for least, each in (FIRST_ROWS, NEXT_ROWS, LAST_ROWS)]
        sizes = [sizes[0], sizes[1] * many, sizes[2] * many]
        n_judge = min(JUDGE_ROWS, rows.n // 5)
        most = max(2 * c, SAMPLE_BYTES // (8 * rows.n_features)) + n_judge
        order = drawn(rows.n, min(rows.n, most, n_judge + sum(sizes)), rng)
        X, scale, sample = taken(rows, Y, weights, order, scaling)
        judge, rest = sample[slice(0, n_judge)], sample[slice(n_judge, None)]
        first, stages = rest[slice(0, sizes[0])], []
        last = LAST_STEPS if many == 1 else LAST_ON_DEVICE
        for size, steps in zip(sizes[1:], (NEXT_STEPS, last), strict=True):
            stages.append((rest[slice(max(0, rest.n - size), None)], steps))
        middle = rest[slice(sizes[0], sizes[0] + sizes[1])]
        if middle.n == sizes[1]:  # enough rows for every stage to have its own
            stages[0] = (middle, NEXT_STEPS)
        return cls(scale, X[:n_judge, :], judge, first, stages)

    def size(self, candidates: int, n: int) -> float:
        """Return the size of the work, in rows whose loss and gradient are evaluated."""
        first = candidates * FIRST_STEPS * self.first.n
        later = sum(steps * sample.n for sample, steps in self.stages) if candidates else 0
        return first + later + PASS * n

    def finished(
        self,
        found: Found,
        rows: Rows,
        Y: Array,
        weights: Floats | None,
        budget: Budget,
        work: Work,
    ) -> _Finished:
        """Return the model with weights from all rows, and from all but those that judge."""
        basis = self.scale.undone(found)
        every = moments_of(
            basis.through(), rows, Y,
            weights=weights, budget=budget, after=lambda done: work.step(PASS * done),
        )  # fmt: skip
        F = basis(self.raw)
        judging = Moments.of(F, self.judge.Y, self.judge.weights)
        train = every - judging
        errors = errors_along(train, F, self.judge.Y, found.gammas)
        at = chosen(found.gammas, errors)
        model = LinearModel.fit(basis, every, float(found.gammas[at]))
        return _Finished(model, model.without(judging), F, float(errors[at]))

    def verdict(self, finished: _Finished, notes: list[tuple[str, float]]) -> Judged:
        """Return the model with what the judge saw."""
        held, F = finished.held_out, finished.features
        spread = namespace(F).sqrt(held.spread(F)[:, None] * held.noise[None, :])
        weights = None if self.judge.weights is None else to_host(self.judge.weights)
        truth, mean = to_host(self.judge.Y), to_host(held.predict(F))
        model = finished.model
        return Judged([model], np.ones(1), truth, mean, to_host(spread), weights, notes)


def drawn(n: int, size: int, rng: np.random.Generator) -> Indices:
    """Return `size` of n rows, each at most once, in random order."""
    return rng.permutation(n)[:size] if size > n // 4 else rng.choice(n, size, replace=False)


def taken(
    rows: Rows, Y: Array, weights: Floats | None, order: Indices, scaling: Scaling
) -> tuple[Array, Scale, Sample]:
    """Return rows in the order drawn, read from where they are in the order they are stored."""
    place = np.argsort(order)
    back = np.argsort(place)
    stored = dense(rows.take(order[place]))
    xp = namespace(stored)
    X = xp.astype(xp.take(stored, like(back, stored, xp.int64), axis=0), xp.float64)
    scale = scaling(X)
    of_rows = None if weights is None else like(weights[order], X)
    return X, scale, Sample(scale(X), like(Y[order], X), of_rows, scale.factor)
