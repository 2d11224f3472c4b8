"""The search: candidates are fitted to training rows, scored on held-out rows, and mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.factor import Moments, moments_of
from nysboost.numerics.arrays import Array, Floats, Indices, take, to_host
from nysboost.numerics.progress import Progress
from nysboost.numerics.resources import Budget, format_bytes, keep_freed_memory
from nysboost.search import tuning
from nysboost.search.candidates import Candidate, Groups, Solution, batch_rows
from nysboost.search.data import Data
from nysboost.search.leaves import Leaves, Tree, predict_leaf, rows_per_leaf
from nysboost.search.model import (
    LinearModel,
    Member,
    choose_gamma,
    leaf_rows,
    map_block,
    mixture_weights,
)
from nysboost.search.scaling import PiecewiseCodes, Scale, n_numeric

Notes = list[tuple[str, float]]
"""What was tried, each with its held-out root mean squared error."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture of members fitted to all rows, and what h held-out rows say of it.

    truth and mean, of shape (h, t), are targets and predictions by members that had not seen these
    rows; weights (h,) or None say how often each row counts, notes what was tried with its held-out
    root mean squared error, X (h, d) or None are the rows, of `data`, and `variance` returns their
    predictive variances, of shape (h, t).
    """

    members: Sequence[Member]
    truth: Floats
    mean: Floats
    weights: Floats | None
    notes: Notes
    X: Array | None = None
    data: Data | None = None
    variance: Callable[[], Floats] = lambda: np.ones((0, 1))


def learn(
    rows: Rows,
    Y: Floats,
    weights: Floats | None,
    groups: Groups,
    c: int,
    rng: np.random.Generator,
    *,
    local: bool | int | str = False,
    budget: Budget,
    work: Progress | None = None,
) -> Fitted:
    """Return the mixture of candidates that held-out rows prefer.

    1. Of each group of candidates first steps, with few landmarks and rows, select one.
    2. Its landmarks and metric descend the loss without the rows of each fold, or without the one
       part that is held out.
    3. Weights of the landmarks, and kernel ridge regressions in leaves, come from all rows but
       the held-out ones; these choose penalties and mix.
    4. What is in the mixture is fitted to all rows.

    Y (n, t) are targets on the host, of weights (n,) only ratios matter, and c is the number of
    landmarks. `local` says whether all rows predict in leaves, or with how many rows at most;
    "auto" does where memory holds them.
    """
    keep_freed_memory()
    work = work or Progress()
    _refuse_too_many(c, rows, budget)
    t, few = Y.shape[1], tuning.PILOT_LANDMARKS
    most = rows_per_leaf(local, rows, min(rows.n_features, tuning.WIDE) + t, budget)
    data = Data.draw(rows, Y, weights, rng, budget)
    seed, c, folds = int(rng.integers(2**31)), min(c, data.distinct), len(data.folds) > 1
    if most:
        c = min(c, few if folds else max(few, data.rows.n // tuning.ROWS_WITH_LEAVES))
    if n_numeric(data.X) > tuning.WIDE:
        groups = [group for group in groups if not group[0].codes]
    each = len(data.folds) + 1 if folds else tuning.STEPS / tuning.FIRST_STEPS
    work.begin(sum(len(group) * (len(group) > 1) + each + 2 for group in groups))
    notes: Notes = []
    trials = []
    for group in groups:
        candidate = _select(group, data, c, seed, notes, work)
        trials.append(_fit_without(candidate, data, c, seed, budget, work))
    width, rhos = 0, tuning.RHOS
    for i, trial in enumerate(trials):
        wider = width + trial.solutions[0].Z.shape[1] + t
        at_most = min(most, rows_per_leaf("auto", rows, wider, budget))
        if at_most and trial.candidate.place is None:
            trials[i] = _score_leaves(trial, rhos, at_most, budget)
            width, rhos = wider, np.array([trials[i].rho])
        for name, mean in trials[i].predictions:
            notes.append((name, _rmse(data, mean)))
        work.step(1, f"{notes[-1][0]}: held-out error {notes[-1][1]:.4g}")
    means = [mean for trial in trials for _, mean in trial.predictions]
    truth, mass = data.Y[data.held], data.mass[data.held]
    shares = mixture_weights(means, truth, mass)
    members, left = [], list(shares)
    for trial in trials:
        own = [float(left.pop(0)) for _ in trial.predictions]
        if sum(own) > 0:
            members.append(_fit_to_all(trial, own, c, seed, budget, work))
        work.step(1)
    mixed, counts = np.tensordot(shares, means, 1), None if data.weights is None else mass
    X = take(data.X, np.concatenate([held for _, held in data.splits]))

    def variance() -> Floats:
        return np.asarray(sum(to_host(member.variance(X, seen=True)[0]) for member in members))

    return Fitted(members, truth, mixed, counts, notes, X, data, variance)


def _refuse_too_many(c: int, rows: Rows, budget: Budget) -> None:
    """Raise before any work where memory does not hold the sums of so many landmarks."""
    needed = 8 * (6 * c * c + 2 * c * rows.n_features)
    if needed > budget.bytes:
        msg = (
            f"{c} landmarks need about {format_bytes(needed)} of working memory, but max_memory is "
            f"{format_bytes(budget.bytes)}: ask for fewer landmarks, or allow more memory."
        )
        raise ValueError(msg)


def _select(
    group: Sequence[Candidate], data: Data, c: int, seed: int, notes: Notes, work: Progress
) -> Candidate:
    """Return the candidate with the least held-out error after first steps on some rows."""
    errors = np.zeros(len(group))
    for i, candidate in enumerate(group if len(group) > 1 else ()):
        count = min(c, tuning.PILOT_LANDMARKS) if candidate.place is None else c
        scale, trained = candidate.scaling(data.X), []
        for split in data.splits:
            fit, held = (data.sample(part[: batch_rows(count)], scale) for part in split)
            found = candidate.start(fit, count, np.random.default_rng(seed))
            found = candidate.descend(found, fit, tuning.FIRST_STEPS)
            features = found.features()
            train = Moments.of(features(fit.X), fit.Y, fit.weights)
            trained.append((train, features(held.X), held, found.gamma))
        errors[i] = (choose_gamma(trained)[1] / sum(held.n for _, _, held, _ in trained)) ** 0.5
        if candidate.place is None:
            notes.append((f"{candidate.name}, first steps", errors[i]))
        work.step(1, f"{candidate.name}, first steps: held-out error {errors[i]:.4g}")
    return group[int(np.argmin(errors))]


@dataclass(frozen=True, eq=False)
class Trial:
    """A candidate fitted without the held-out rows of each fold, and what it predicts for them.

    `multiple` is γ of the weights in units of the loss's; mean (h, t) are held-out predictions by
    landmarks, and `local` those with leaves of at most `most` rows, with ρ in the same units.
    """

    candidate: Candidate
    data: Data
    scale: Scale
    solutions: list[Solution]
    models: list[LinearModel]
    multiple: float
    mean: Floats
    local: Floats | None = None
    rho: float = 0.0
    most: int = 0

    @property
    def predictions(self) -> list[tuple[str, Floats]]:
        """Names and held-out predictions, shape (h, t), of landmarks and with leaves."""
        name = self.candidate.name
        both = (name, self.mean), (f"{name}, corrected in leaves", self.local)
        return [(name, mean) for name, mean in both if mean is not None]


def _fit_without(
    candidate: Candidate, data: Data, c: int, seed: int, budget: Budget, work: Progress
) -> Trial:
    """Return what a candidate finds without the held-out rows of each fold, and its predictions."""
    if candidate.codes:
        data = data.with_codes(PiecewiseCodes.of(data.X[: tuning.HELD_OUT[1], :]))
    scale, folds = candidate.scaling(data.X), len(data.folds) > 1
    few, steps = (2 * tuning.PILOT_LANDMARKS, tuning.FIRST_STEPS) if folds else (c, tuning.STEPS)
    solutions, trained, maps = [], [], []
    for train, held in data.splits:
        sample, part = data.sample(train, scale), data.sample(held)
        found = candidate.start(sample, min(few, c), np.random.default_rng(seed))
        found = candidate.descend(found, sample, steps, work.step)
        features = found.features(scale)
        sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=budget)
        F = features(part.X)
        if len(held) < len(data.order):
            sums = sums - Moments.of(F, part.Y, part.weights)
        solutions.append(found)
        maps.append(features)
        trained.append((sums, F, part, found.gamma))
    multiple, _ = choose_gamma(trained)
    models = [
        LinearModel.fit(features, sums, gamma * multiple)
        for features, (sums, _, _, gamma) in zip(maps, trained, strict=True)
    ]
    means = [to_host(m.predict(F)) for m, (_, F, _, _) in zip(models, trained, strict=True)]
    return Trial(candidate, data, scale, solutions, models, multiple, np.concatenate(means))


def _score_leaves(trial: Trial, rhos: Floats, most: int, budget: Budget) -> Trial:
    """Return the same with held-out predictions in leaves; some of them choose ρ.

    What the first fold chooses serves the others.
    """
    data, parts, at = trial.data, [], 0
    for (_, held), model, found in zip(data.splits, trial.models, trial.solutions, strict=True):
        predict = partial(_predict_in_leaves, data, model, held, most, budget)
        there, end = data.order[held], at + len(held)
        enough = tuning.SCORED_ROWS if len(rhos) > 1 else len(held)
        tried, known = predict(rhos * found.gamma, enough)
        missed, at = data.Y[there] - trial.mean[at:end] - tried, end
        squares = np.mean(missed[:, known] ** 2, axis=2) @ data.mass[there[known]]
        best = int(np.argmin(squares))
        rhos = rhos[best : best + 1]
        if len(known) < len(held):
            tried, best = predict(rhos * found.gamma, len(held))[0], 0
        parts.append(tried[best])
    local = trial.mean + np.concatenate(parts)
    return replace(trial, local=local, rho=float(rhos[0]), most=most)


def _predict_in_leaves(
    data: Data,
    model: LinearModel,
    held: Indices,
    most: int,
    budget: Budget,
    rhos: Floats,
    enough: int,
) -> tuple[Floats, Indices]:
    """Return what leaves without the held-out rows add to these with each ρ, shape (r, h, t).

    Leaves are taken at random until they have enough of the rows; the second value says of which.
    """
    weights, U = data.mass.copy(), map_block(model.kernel, data.X)
    weights[data.order[held]] *= len(held) == len(data.order)
    tree, H = _cut(data, U, most), take(U, held)
    leaf = tree(H)
    counts = np.bincount(leaf, minlength=tree.n_leaves)
    turn = np.random.default_rng(0).permutation(tree.n_leaves)
    asked = np.zeros(tree.n_leaves, dtype=bool)
    asked[turn[: np.searchsorted(np.cumsum(counts[turn]), enough) + 1]] = True
    asked &= counts > 0
    places = [np.flatnonzero(leaf == j) for j in range(tree.n_leaves)]
    task, *beside = leaf_rows(data.rows, data.Y, weights, model, tree, budget, asked)
    predict = partial(predict_leaf, replace(model.kernel, metric=None), rhos)
    of_leaves = data.rows.group(task, predict, [take(H, at) for at in places], *beside)
    found = np.zeros((len(rhos), len(held), data.Y.shape[1]))
    for at, values in zip(places, of_leaves, strict=True):
        if values is not None:
            found[:, at] = values
    return found, np.flatnonzero(asked[leaf])


def _cut(data: Data, U: Array, most: int) -> Tree:
    """Return the tree of the rows in memory, mapped to U, in their own order, whatever the seed."""
    return Tree.of(take(U, np.argsort(data.order)), most, int(np.count_nonzero(data.mass)))


def _fit_to_all(
    trial: Trial, shares: list[float], c: int, seed: int, budget: Budget, work: Progress
) -> Member:
    """Return the member that a candidate becomes with all rows; after folds its descent goes on."""
    candidate, data, found = trial.candidate, trial.data, trial.solutions[0]
    if len(data.folds) > 1:
        sample = data.sample(scale=trial.scale)
        if candidate.place is None:
            found = candidate.descend(
                found.grow(sample, c, seed), sample, tuning.FIRST_STEPS, work.step
            )
        else:
            found = candidate.start(sample, c, np.random.default_rng(seed))
    features = found.features(trial.scale)
    sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=budget)
    model = LinearModel.fit(features, sums, found.gamma * trial.multiple)
    if trial.local is None or shares[1] == 0:
        return Member(model, sum(shares), data.codes)
    U = map_block(model.kernel, data.X)
    kernel, tree = replace(model.kernel, metric=None), _cut(data, U, trial.most)
    error, rho = _rmse(data, trial.local), trial.rho * found.gamma
    leaves = Leaves.of(kernel, tree, rho, U, data.Y.shape[1], error)
    del U
    task, *beside = leaf_rows(data.rows, data.Y, data.weights, model, tree, budget)
    leaves = leaves.add_rows(data.rows, task, *beside)
    return Member(model, sum(shares), data.codes, leaves, shares[1])


def _rmse(data: Data, mean: Floats) -> float:
    """Return the root mean squared error of held-out predictions, shape (h, t)."""
    squares = np.mean((data.Y[data.held] - mean) ** 2, axis=1)
    return float(np.sqrt(np.average(squares, weights=data.mass[data.held])))
