"""Trials: what candidates find without the held-out rows of each fold, and then with all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from nysboost.data.rows import ArrayRows, Rows
from nysboost.engine.factor import Moments
from nysboost.engine.feature_map import FeatureMap
from nysboost.numerics.arrays import (
    Array,
    Floats,
    Indices,
    dense,
    in_float64,
    like,
    namespace,
    take,
    to_host,
)
from nysboost.numerics.progress import Progress
from nysboost.search import tuning
from nysboost.search.candidates import Baseline, Candidate, Sample, Solution, in_folds
from nysboost.search.leaves import on_device, predict_leaf
from nysboost.search.model import errors_along, map_block
from nysboost.search.scaling import PiecewiseCodes, Scale, Scaling, with_codes

DISTINCT = 0.9
"""Share of distinct rows below which equal ones stay apart."""


@dataclass(frozen=True, eq=False)
class Data:
    """All rows, with targets (n, t) on the host and weights (n,), and some of them in memory.

    `order` says which those are, in random order; X are these rows; folds are numbers of rows,
    from the beginning of `order`, that are held out in turn.
    """

    rows: Any
    Y: Floats
    weights: Floats | None
    order: Indices
    X: Array
    folds: tuple[int, ...]

    @classmethod
    def draw(cls, rows: Rows, Y: Floats, weights: Floats | None, rng: np.random.Generator) -> Data:
        """Draw rows into memory; few rows are sorted first."""
        fifth, tenth, least, most = tuning.HELD_OUT
        folded = in_folds(rows.n)
        if folded:
            X, Y, weights = _sort_rows(in_float64(dense(rows.take(slice(None)))), Y, weights)
            rows = ArrayRows(X)
        n = rows.n
        room = max(1, tuning.SAMPLE_BYTES[on_device(rows.form)] // (8 * rows.n_features))
        held = min(max(n // tenth, least), n // fifth, most)
        order = rng.permutation(n)[: held + room]
        if weights is not None:
            order = order[weights[order] > 0]
            weights = weights * (np.count_nonzero(weights) / weights.sum())
        if not folded:
            folds: tuple[int, ...] = (min(held, len(order) // fifth),)
        else:
            count = min(fifth, -(-least // max(held, 1)))
            parts = [len(part) for part in np.array_split(order, fifth)[:count]]
            folds = tuple(part for part in parts if part) if len(order) > 1 else (0,)
        stored = dense(rows.take(np.sort(order)))
        X = in_float64(take(stored, np.argsort(np.argsort(order))))
        return cls(rows, Y, weights, order, X, folds)

    @property
    def distinct(self) -> int:
        """How many of few rows differ; of many as many as there are."""
        n = len(self.order)
        return n if len(self.folds) == 1 else len(np.unique(to_host(self.X), axis=0))

    @property
    def mass(self) -> Floats:
        """How often each row counts, shape (n,)."""
        return np.ones(self.rows.n) if self.weights is None else self.weights

    @cached_property
    def splits(self) -> list[tuple[Indices, Indices]]:
        """Positions in `order` of training and held-out rows of each fold."""
        ends, every = np.cumsum([0, *self.folds]), np.arange(len(self.order))
        if ends[-1] == 0:
            return [(every, every)]
        return [(np.r_[every[:a], every[b:]], every[a:b]) for a, b in pairwise(ends)]

    @cached_property
    def held(self) -> Indices:
        """Held-out rows of all folds, shape (h,)."""
        return np.asarray(self.order[np.concatenate([held for _, held in self.splits])])

    def with_codes(self, codes: PiecewiseCodes | None) -> Data:
        """Return the same with codes beside the features, and no more numbers in memory."""
        if codes is None:
            return self
        most = tuning.SAMPLE_BYTES[on_device(self.X)] // (8 * len(codes.origins))
        order = self.order[: sum(self.folds) + most]
        X = codes(self.X[: len(order), :])
        return replace(self, rows=with_codes(self.rows, codes), order=order, X=X)

    def sample(self) -> Sample:
        """Return the rows in memory."""
        weights = None if self.weights is None else like(self.weights[self.order], self.X)
        return Sample(self.X, like(self.Y[self.order], self.X), weights)


def _sort_rows(X: Any, Y: Floats, weights: Floats | None) -> tuple[Any, Floats, Floats | None]:
    """Return the rows sorted, those of no weight left out, and equal ones as one or side by side.

    So neither the order of the rows nor whether one is repeated or weighed twice matters. Where
    many are equal, as in a table of few categories, each is there as often as it counts: held out
    as one, all rows of a label would go, and those of another stay.
    """
    counts = np.ones(X.shape[0]) if weights is None else weights
    both = np.concatenate([to_host(X), Y], axis=1)[counts > 0]
    distinct, group = np.unique(both, axis=0, return_inverse=True)
    added = np.bincount(group.ravel(), counts[counts > 0], minlength=len(distinct))
    d, times = X.shape[1], np.round(added).astype(np.intp)
    times = times // np.gcd.reduce(times) if (times == added).all() else np.ones_like(times)
    if len(distinct) < DISTINCT * times.sum() and times.sum() <= np.prod(tuning.HELD_OUT[::2]):
        distinct = np.repeat(distinct, times, axis=0)
        return like(distinct[:, :d], X), distinct[:, d:], None
    alike = bool((added == added[0]).all())
    return like(distinct[:, :d], X), distinct[:, d:], None if alike else added.astype(np.float64)


@dataclass(frozen=True, eq=False)
class View:
    """Rows as a candidate sees them: with codes or without, and the coordinates of its search."""

    data: Data
    codes: PiecewiseCodes | None
    scale: Scale

    @classmethod
    def of(cls, data: Data, scaling: Scaling, *, codes: bool = False) -> View:
        """Choose edges of codes and coordinates by the rows in memory."""
        found = PiecewiseCodes.of(data.X[: tuning.HELD_OUT[-1], :]) if codes else None
        data = data.with_codes(found)
        return cls(data, found, scaling(data.X))

    def sample(self, rows: Any = slice(None)) -> Sample:
        """Return some of the rows in memory, in these coordinates."""
        some = self.data.sample()[rows]
        return replace(some, X=self.scale(some.X))


def select_candidate(
    candidates: Sequence[Candidate], data: Data, leaves: bool, seed: int, work: Progress
) -> tuple[Candidate, list[tuple[str, float]]]:
    """Return the candidate with the least held-out error after first steps, and what each had.

    Where leaves will predict, all rows of the first steps do: with their landmarks alone the
    rougher kernel is better on bike and kin40k, which the smoother one suits.
    """
    train, held = (part[: tuning.PILOT_ROWS] for part in data.splits[0])
    notes: list[tuple[str, float]] = []
    for candidate in candidates if len(candidates) > 1 else ():
        view = View.of(data, candidate.scaling)
        fit, score = view.sample(train), view.sample(held)
        found = _first_steps(candidate, fit, tuning.PILOT_LANDMARKS, seed)
        errors = _leaf_errors(found, fit, score) if leaves else _errors(found, fit, score)
        error = float(errors.mean()) ** 0.5
        notes.append((f"{found.name}, first steps", error))
        work.step(1, f"{notes[-1][0]}: held-out error {error:.4g}")
    best = int(np.argmin([error for _, error in notes])) if notes else 0
    return candidates[best], notes


def _first_steps(candidate: Candidate, fit: Sample, c: int, seed: int) -> Solution:
    c = min(c, fit.n)
    start = candidate.start(fit, c, np.random.default_rng(seed))
    return candidate.descend(start, fit, _trace(c, fit.n), fit.n, tuning.FIRST_STEPS)


def _trace(c: int, n: int) -> float:
    """Return τ: c/n, the guard against landmarks that fit few rows each, at most `TRACE`."""
    return min(tuning.TRACE, c / n)


def _errors(found: Solution, fit: Sample, score: Sample) -> Floats:
    """Return squared errors of held-out rows at the best γ, shape (h,)."""
    features = found.features()
    train = Moments.of(features(fit.X), fit.Y, fit.weights)
    along = found.gamma * found.grid
    errors = errors_along(train, features(score.X), score.Y, score.weights, along)
    return np.asarray(errors[np.argmin(errors.mean(axis=1))])


def _leaf_errors(found: Solution, fit: Sample, score: Sample) -> Floats:
    """Return the same of kernel ridge regression on all rows of the fit, at the best ρ."""
    xp, kernel = namespace(fit.X), found.features().gram.kernel  # type: ignore[attr-defined]
    U, H = map_block(kernel, fit.X), map_block(kernel, score.X)
    counts = xp.ones_like(U[:, 0]) if fit.weights is None else fit.weights
    table, mean = xp.concat([U, fit.centred, counts[:, None]], axis=1), fit.Y - fit.centred
    predicted = predict_leaf(found.kernel, tuning.RHOS * found.gamma, H, table)
    missed = np.mean((to_host(score.Y) - to_host(mean)[:1] - predicted) ** 2, axis=2)
    if score.weights is not None:
        missed = missed * to_host(score.weights / xp.mean(score.weights))
    return np.asarray(missed[np.argmin(missed.mean(axis=1))])


@dataclass(frozen=True, eq=False)
class Trial:
    """What was found without each fold, and how it is found with all rows."""

    name: str
    view: View
    solutions: list[Solution]
    finish: Callable[[], Solution]
    local: bool = True

    @cached_property
    def features(self) -> list[FeatureMap]:
        """Features of rows as they are."""
        return [found.features(self.view.scale) for found in self.solutions]


def fit_baseline(baseline: Baseline, data: Data, c: int, seed: int) -> Trial:
    """Return landmarks that do not move, at the bandwidth that held-out rows prefer."""
    view = View.of(data, baseline.scaling)
    most = max(tuning.PILOT_ROWS, tuning.ROWS_PER_LANDMARK * c)
    tried, errors = [], []
    for train, held in data.splits:
        fit, score = view.sample(train[:most]), view.sample(held[: tuning.PILOT_ROWS])
        tried.append(baseline.variants(fit, c, np.random.default_rng(seed)))
        errors.append([_errors(found, fit, score).mean() for found in tried[-1]])
    best = int(np.argmin(np.mean(errors, axis=0)))
    solutions = [found[best] for found in tried]

    def finish() -> Solution:
        if len(solutions) == 1:
            return solutions[0]
        return baseline.variants(view.sample(), c, np.random.default_rng(seed))[best]

    return Trial(baseline.name, view, solutions, finish, local=False)


def descend_in_folds(
    few: int, candidate: Candidate, view: View, c: int, seed: int, work: Progress
) -> Trial:
    """Return a candidate after first steps without each fold; with all rows it goes on from one.

    The first steps have `few` landmarks; then rows join them until there are c.
    """
    sample, solutions = view.sample(), []
    for train, _ in view.data.splits:
        solutions.append(_first_steps(candidate, sample[train], few, seed))
        work.step(1)

    def finish() -> Solution:
        work.step(1)
        trace = _trace(c, sample.n)
        best = min(solutions, key=lambda found: found.loss(sample, trace)).grow(sample, c, seed)
        batch = batch_rows(sample.X, c)
        return candidate.descend(best, sample, trace, batch, tuning.FIRST_STEPS)

    return Trial(candidate.name, view, solutions, finish)


def descend_long(candidate: Candidate, view: View, c: int, seed: int, work: Progress) -> Trial:
    """Return a candidate after the long descent, each step on other rows."""
    size, sample = long_work(view.data, c), view.sample(slice(view.data.folds[0], None))
    c = min(c, sample.n)
    batch = batch_rows(sample.X, c)
    start = candidate.start(sample, c, np.random.default_rng(seed))
    trace = _trace(c, sample.n)
    found = candidate.descend(
        start, sample, trace, batch, tuning.STEPS, lambda share: work.step(share * size)
    )
    return Trial(candidate.name, view, [found], lambda: found)


def batch_rows(X: Array, c: int) -> int:
    """Return the number of rows of a long step with c landmarks."""
    return max(tuning.BATCH_ROWS[on_device(X)], tuning.ROWS_PER_LANDMARK * c)


def long_work(data: Data, c: int) -> float:
    """Return how many first steps of a candidate a long descent is worth, for progress."""
    n = len(data.order)
    batch = batch_rows(data.X, c)
    first = tuning.FIRST_STEPS * min(tuning.PILOT_ROWS, n) * tuning.PILOT_LANDMARKS
    return tuning.STEPS * min(batch, n) * c / first
