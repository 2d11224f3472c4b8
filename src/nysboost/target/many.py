"""Learning from many rows: a race of candidates on samples, then weights from every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from nysboost.target.candidates import Candidate, Found, Sample, judged, moved, settled
from nysboost.target.judged import Judged
from nysboost.target.linear import Basis, LinearModel, chosen, errors_along
from nysboost.target.plain import Plain
from nysboost.target.scale import Scale, Scaling
from nysboost.target.shares import shares_of

JUDGE_ROWS = 4096
"""Rows that judge, at most; a fifth of all where there are few."""

FIRST_ROWS, BATCH_ROWS, FIT_ROWS = (4096, 8), (4096, 8), (8192, 16)
"""Rows of the first steps, of each later step, and of the fits that the judge compares: at least
the first number, and the second for each landmark."""

ON_DEVICE, DEVICE_BATCH = 4, (65536, 32)
"""A GPU holds this many times the bytes of a sample, and takes these rows in a later step. MNIST
with 400 landmarks, steps of 16,384 rows and of all 46,000: .9829 and .9852 of the test labels
right; test errors with 1024 landmarks, 8192 and 32,768 rows (split 5): kin40k .0399 and .0367,
protein .511 and .503."""

FIRST_STEPS, LATER_STEPS = 30, 300
"""Evaluations of L-BFGS that every candidate takes, and steps of Adam that the best takes after
them. With 256 landmarks on all rows 150 and 300 steps left test errors of .0108 and .0006 on bike,
.089 and .072 on kin40k, .0583 and .0584 on pol, .334 and .332 on elevators (split 5)."""

PASS = 0.5
"""A row of the last pass takes this share of the time of one whose gradient is evaluated."""

SAMPLE_ROWS, SAMPLE_BYTES = 2**17, 2**28
"""The rows of all steps are no more than these, and take no more than these bytes."""

WORSE = 1.002
"""Steps after which the judge's error is this many times what it was are taken back."""

JOIN, JOINED = 0.05, 0.2
"""Where the judge's rows are at least the first share of all in memory they join, once they have
judged, for steps that are the second share of the later ones, in number and in length. Test errors
with 96 landmarks and 3100 rows, 620 of which judge, two draws each, as ratios to those without:
elevators 1.005 and .993, protein .994 and .996, pol .955 and .957, kin40k .979 and .974. First
steps of .4 and .8 of the length, half and twice as many of them, were no better on all."""

CLEAR = 0.9
"""Where the best has less than this share of the squared error that the simplest model had on the
last sample, all rows do not turn that round: on split 5 of the six large tables they lowered the
simplest model's by 0.7 % at most (kin40k, 256 landmarks)."""

TIES = 0.995
"""With the simplest model in it, a mixture has to be better than that alone by this factor."""


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
    2. The best goes on, each step on other rows of a large sample, and stays there unless the
       judge has lost. Where the judge has many of the rows they join for some last steps.
    3. One pass over all rows gives FᵀF and FᵀY. The judge chooses γ for weights that come from
       all other rows; then its rows join. The simplest model has such a pass too, unless it is
       clearly behind; the judge mixes the two.
    """
    race = _Race.of(rows, Y, weights, c, rng, scaling)
    work.begin(race.size(len(candidates), rows.n))
    # alone, the simplest model may look at more rows
    simple = plain.best(race.first if candidates else race.fit, race.judge, c, rng)
    notes = [(simple.name, simple.error**0.5)]
    best: Found | None = None
    for tried in race.heats(candidates, c, rng):
        notes.append((tried.name, tried.error**0.5))
        line = f"{tried.name}: held-out error {tried.error**0.5:.4g}"
        work.step(FIRST_STEPS * race.first.n, line)
        best = tried if best is None or tried.error < best.error else best
    last = simple
    if best is not None:
        best, last = race.settled(best, work)
        notes.append((f"{best.name}, settled", best.error**0.5))
        work.step(0, f"{best.name}, settled: held-out error {best.error**0.5:.4g}")
        simple = judged(simple, race.fit, race.judge)
    weighed = partial(race.finished, rows=rows, Y=Y, weights=weights, budget=budget, work=work)
    entrants = [weighed(simple if best is None else best, last)]
    if best is not None and entrants[0].error > CLEAR * simple.error:
        entrants.insert(0, weighed(simple, simple))
    work.step(0, "Weights from all rows")
    return race.verdict(entrants, notes)


@dataclass(frozen=True, eq=False)
class _Finished:
    """A model of all rows, one of all but the judge's, and these rows' features and error."""

    model: LinearModel
    held_out: LinearModel
    features: Array
    error: float

    @property
    def variance(self) -> Floats:
        """Variances that the second predicts for the judge's rows, shape (h, t)."""
        held = self.held_out
        return to_host(held.spread(self.features)[:, None] * held.noise[None, :])


@dataclass(frozen=True, eq=False)
class _Race:
    """The rows of a race, in random order, and those that judge."""

    scale: Scale
    raw: Array
    every: Sample
    judge: Sample
    sample: Sample
    first: Sample
    fit: Sample
    batch: int
    trace: float

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
        on_device = block_bytes(rows.form) > block_bytes(np.empty(0))
        steps, many = (DEVICE_BATCH, ON_DEVICE) if on_device else (BATCH_ROWS, 1)
        first, batch, fit = (max(m, e * c) for m, e in (FIRST_ROWS, steps, FIT_ROWS))
        n_judge = min(JUDGE_ROWS, rows.n // 5)
        room = max(2 * c, many * SAMPLE_BYTES // (8 * rows.n_features))
        size = n_judge + min(room, max(SAMPLE_ROWS, fit))
        order = drawn(rows.n, min(rows.n, size), rng)
        X, scale, every = taken(rows, Y, weights, order, scaling)
        judge, sample = every[slice(0, n_judge)], every[slice(n_judge, None)]
        return cls(
            scale, X[:n_judge, :], every, judge, sample,
            sample[slice(0, first)], sample[slice(0, fit)], batch, trace_of(c, sample.n),
        )  # fmt: skip

    def heats(
        self, candidates: tuple[Candidate, ...], c: int, rng: np.random.Generator
    ) -> Iterator[Found]:
        """Yield each candidate after its first steps; those of one metric share their start."""
        starts: dict[tuple[str, bool], Found] = {}
        for candidate in candidates:
            kind = candidate.shape, candidate.own_units
            if kind not in starts:
                starts[kind] = candidate.start(self.first, c, rng)
            found = replace(starts[kind], name=candidate.name, kernel=candidate.kernel)
            yield judged(moved(found, self.first, self.trace, FIRST_STEPS), self.first, self.judge)

    def settled(self, found: Found, work: Work) -> tuple[Found, Found]:
        """Return the candidate after its later steps, and after those with the judge's rows.

        The judge's word is on the first. It is as it was, and so is the second, where the judge
        has lost by the steps.
        """
        # the same rows give the weights before and after, so that only landmarks differ
        before = judged(found, self.fit, self.judge)
        # landmarks apart from the metric end in a better place without the first steps (MNIST, 120
        # landmarks, 8000 rows: .9672 of the labels right and .9668; Gaussian .9659 and .9652)
        begin = found.begun if found.apart and found.begun is not None else found.point
        after = settled(
            replace(found, point=begin), self.sample, self.trace, self.batch, LATER_STEPS, work.step
        )
        after = judged(after, self.fit, self.judge)
        if after.error > WORSE * before.error:
            return before, before
        if not self.joins:
            return after, after
        return after, settled(
            after, self.every, self.trace, self.batch, self.joins, work.step, JOINED
        )

    @property
    def joins(self) -> int:
        """Number of steps with the judge's rows."""
        return int(JOINED * LATER_STEPS) if self.judge.n >= JOIN * self.every.n else 0

    def size(self, candidates: int, n: int) -> float:
        """Return the size of the work, in rows whose loss and gradient are evaluated."""
        first = candidates * FIRST_STEPS * self.first.n
        later = (LATER_STEPS + self.joins) * min(self.batch, self.sample.n) if candidates else 0
        return first + later + PASS * n * (2 if candidates and self.joins else 1)

    def finished(
        self,
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

        basis = self.scale.undone(found)
        every, F = weighed(basis), basis(self.raw)
        train = every - Moments.of(F, self.judge.Y, self.judge.weights)
        errors = errors_along(train, F, self.judge.Y, self.judge.weights, found.gammas)
        at = chosen(found.gammas, errors)
        held_out = LinearModel.fit(basis, train, float(found.gammas[at]))
        if last is not found:
            basis = self.scale.undone(last)
            every = weighed(basis)
        model = LinearModel.fit(basis, every, float(last.gammas[at]))
        return _Finished(model, held_out, F, float(errors[at]))

    def verdict(self, entrants: list[_Finished], notes: list[tuple[str, float]]) -> Judged:
        """Return the models, mixed where there are two, with what the judge saw."""
        truth = to_host(self.judge.Y)
        weights = None if self.judge.weights is None else to_host(self.judge.weights)
        means = [to_host(one.held_out.predict(one.features)) for one in entrants]
        shares = shares_of(means, truth, weights, TIES)
        kept = np.flatnonzero(shares)
        mean = sum(shares[k] * means[k] for k in kept)
        variance = sum(shares[k] * entrants[k].variance for k in kept)
        models = [entrants[k].model for k in kept]
        return Judged(models, shares[kept], truth, mean, np.sqrt(variance), weights, notes)


def trace_of(c: int, n: int) -> float:
    """Return τ = c/n, the weight of the bound's trace for c landmarks and a sample of n rows.

    The trace guards against landmarks that fit few rows each. Test errors with τ = 0.003 and with
    c/n, 1024 landmarks: elevators .342 and .339 (splits 5 to 8), protein .490 and .481, kin40k
    .0347 and .0356 (5 and 6), keggundirected .1137 and .1146, pol .0586 and .0580 (5); 256
    landmarks: elevators .337 and .335 (5 to 7), kin40k .0731 and .0719, pol .058 and .063, protein
    .545 and .546 (5). MNIST, 1000 landmarks: .986 and .987 of the labels right. With fewer rows for
    each landmark it comes near the bound itself, τ = 1, which is far behind where there are many.
    """
    return c / n


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
    targets, of_rows = like(Y[order], X), None if weights is None else like(weights[order], X)
    scale = scaling(X, targets, of_rows)
    return X, scale, Sample(scale(X), targets, of_rows, scale.factor)
