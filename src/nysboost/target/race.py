"""The race of candidates on samples, before rows that took no part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from nysboost.data.rows import Rows
from nysboost.numerics.arrays import Array, Floats, Indices, block_bytes, dense, like, namespace
from nysboost.numerics.progress import Work
from nysboost.target.candidates import Candidate, Found, Sample, judged, loss_of, moved, settled
from nysboost.target.scale import Scale, Scaling

JUDGE_ROWS, JUDGE_LEAST = 4096, 1024
"""Rows that judge, at most, and at least: a tenth of all between them, and a fifth where the least
would be more. Means of the test errors on splits 5 to 8 of elevators, of which a tenth is 1494
rows, with 1024 landmarks: Matérn 1/2 .3385 with a fifth and .3370 with a tenth, Matérn 3/2 .3406
and .3389."""

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
elevators 1.005 and .993, protein .994 and .996, pol .955 and .957, kin40k .979 and .974. Steps two
and four times as long, or half as many of them, were not better. Where the loss rises by them they
are taken back: on bike with 1024 landmarks they left the valley, and .0014 instead of .0003."""

FEW_EACH = 16
"""With fewer rows for each landmark the candidates are those of few rows, all go on, and the judge
mixes them. Who is best after the first steps need not stay so: on bike it is a scale per feature,
which ends at ten times the error of a full metric. Means of the test errors of elevators with 1024
landmarks, splits 5 to 8: Matérn 1/2 and a full metric alone .3369, with Matérn 3/2 .3368, with a
scale per feature besides .3351; pol, the best kernel and both: .0568 and .0546 (5 and 6). With more
rows, which take more time, less is gained: protein .4808 and .4793 (5 and 6), kin40k .0383 and
.0392 (5)."""


@dataclass(frozen=True, eq=False)
class Race:
    """The rows of a race, in random order, and those that judge.

    Parameters
    ----------
    scale : Scale
        From rows as they come to the coordinates of the race.
    raw : array of shape (h, d)
        Rows that judge, as they come.
    every, judge, sample : Sample
        All rows in memory: first those that judge, then those of the later steps.
    first, fit : Sample
        Rows of the first steps, and of the weights that the judge compares: parts of `sample`.
    batch : int
        Rows of a later step.
    c : int
        Number of landmarks.
    narrow : bool
        Whether all rows are few for each landmark.
    """

    scale: Scale
    raw: Array
    every: Sample
    judge: Sample
    sample: Sample
    first: Sample
    fit: Sample
    batch: int
    c: int
    narrow: bool

    @classmethod
    def of(
        cls,
        rows: Rows,
        Y: Array,
        weights: Floats | None,
        c: int,
        rng: np.random.Generator,
        scaling: Scaling,
    ) -> Race:
        """Draw the rows, and standardise them."""
        on_device = block_bytes(rows.form) > block_bytes(np.empty(0))
        steps, many = (DEVICE_BATCH, ON_DEVICE) if on_device else (BATCH_ROWS, 1)
        first, batch, fit = (max(m, e * c) for m, e in (FIRST_ROWS, steps, FIT_ROWS))
        n_judge = min(JUDGE_ROWS, max(rows.n // 10, min(rows.n // 5, JUDGE_LEAST)))
        room = max(2 * c, many * SAMPLE_BYTES // (8 * rows.n_features))
        size = n_judge + min(room, max(SAMPLE_ROWS, fit))
        order = drawn(rows.n, min(rows.n, size), rng)
        X, scale, every = taken(rows, Y, weights, order, scaling)
        judge, sample = every[slice(0, n_judge)], every[slice(n_judge, None)]
        return cls(
            scale, X[:n_judge, :], every, judge, sample,
            sample[slice(0, first)], sample[slice(0, fit)], batch, c, narrow(rows.n, c),
        )  # fmt: skip

    @property
    def trace(self) -> float:
        """τ of the loss."""
        return trace_of(self.c, self.sample.n)

    @property
    def joins(self) -> int:
        """Number of steps with the judge's rows."""
        return int(JOINED * LATER_STEPS) if self.judge.n >= JOIN * self.every.n else 0

    def heats(self, candidates: tuple[Candidate, ...], rng: np.random.Generator) -> Iterator[Found]:
        """Yield each candidate after its first steps; those of one metric share their start."""
        starts: dict[tuple[str, bool], Found] = {}
        for candidate in candidates:
            kind = candidate.shape, candidate.own_units
            if kind not in starts:
                starts[kind] = candidate.start(self.first, self.c, rng)
            found = replace(starts[kind], name=candidate.name, kernel=candidate.kernel)
            yield judged(moved(found, self.first, self.trace, FIRST_STEPS), self.first, self.judge)

    def leaders(self, heats: list[Found]) -> list[Found]:
        """Return who goes on, the best first: that one, or all where rows are few."""
        order = sorted(heats, key=lambda found: found.error)
        return order if self.narrow else order[:1]

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
        last = settled(after, self.every, self.trace, self.batch, self.joins, work.step, JOINED)
        some = self.every[slice(0, self.fit.n)]  # whose loss rises where steps leave a valley
        return after, min(last, after, key=lambda end: loss_of(end, some, self.trace))

    def size(self, candidates: int, n: int) -> float:
        """Return the size of the work, in rows whose loss and gradient are evaluated."""
        first = candidates * FIRST_STEPS * self.first.n
        going_on = candidates if self.narrow else min(candidates, 1)
        later = going_on * (LATER_STEPS + self.joins) * min(self.batch, self.sample.n)
        passes = going_on * (2 if self.joins else 1)
        return first + later + PASS * n * max(passes, 1)


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


def narrow(n: int, c: int) -> bool:
    """Whether n rows are few for each of c landmarks."""
    return n < FEW_EACH * c


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
