"""The search: candidates are fitted to training rows, scored on held-out rows, and mixed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TypeAlias

import numpy as np

from nysboost.features.linear import LinearModel, LinearPredictor
from nysboost.features.moments import Moments, moments_of
from nysboost.kernels.scaling import Scale
from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import Candidate, Groups, Solution, batch_rows
from nysboost.learn.search.data import Data
from nysboost.learn.search.leaves import Leaves, leaf_rows, map_block, predict_leaf, rows_per_leaf
from nysboost.learn.search.model import Member, choose_gamma, mixture_weights
from nysboost.numerics.arrays import Array, Floats, Indices, namespace, take, to_host
from nysboost.numerics.budget import Budget, keep_freed_memory
from nysboost.numerics.messages import format_bytes
from nysboost.numerics.progress import Progress
from nysboost.rows.rows import Rows
from nysboost.tables.piecewise import PiecewiseCodes, count_numeric

Notes: TypeAlias = list[tuple[str, float]]  # what was tried, with its held-out error


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A mixture of members fitted to all rows, and what h held-out rows say of it.

    truth and mean, of shape (h, t), are targets and predictions by members that had not seen these
    rows; weights (h,) or None say how often each row counts; X (h, d) are the rows, and `variance`
    returns their predictive variances, shape (h, t). `notes` are what was tried, with held-out
    errors, and `trials` what was selected, each with its weight in the mixture and a function that
    returns the member fitted to all rows.
    """

    members: Sequence[Member]
    truth: Floats
    mean: Floats
    weights: Floats | None
    notes: Notes
    X: Array | None = None
    variance: Callable[[], Floats] = lambda: np.ones((0, 1))
    trials: Sequence[tuple[Trial, float, Callable[[], Member]]] = ()


def run_search(
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
) -> SearchResult:
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
    needed = 8 * (6 * c * c + 2 * c * rows.n_features)
    if needed > budget.bytes:
        msg = (
            f"{c} landmarks need about {format_bytes(needed)} of working memory, but max_memory is "
            f"{format_bytes(budget.bytes)}: ask for fewer landmarks, or allow more memory."
        )
        raise ValueError(msg)
    work, t = work or Progress(), Y.shape[1]
    most = rows_per_leaf(local, rows, min(rows.n_features, tuning.WIDE) + t, budget)
    data = Data.draw(rows, Y, weights, rng, budget)
    if count_numeric(data.X) > tuning.WIDE:
        groups = [group for group in groups if not group[0].codes]
    folds = len(data.folds) > 1
    moving = c = min(c, len(np.unique(to_host(data.X), axis=0) if folds else data.order))
    if most:
        enough = 0 if folds else data.rows.n // tuning.ROWS_WITH_LEAVES
        moving = min(c, max(tuning.PILOT_LANDMARKS, enough))
    steps = tuning.FIRST_STEPS if folds else tuning.STEPS
    each = steps / tuning.FIRST_STEPS * len(data.folds) + folds + 1
    work.begin(len(groups) * each + sum(len(group) for group in groups if len(group) > 1))
    notes: Notes = []
    trials, width, rhos = [], 0, tuning.RHOS
    for group in groups:
        one = _select(group, data, c, most, notes, work)
        few = min(moving, 2 * tuning.PILOT_LANDMARKS) if folds else moving
        trials.append(_fit_without(one, data, c if one.place else few, steps, work))
    for i, trial in enumerate(trials):
        wider = width + trial.solutions[0].Z.shape[1] + t
        at_most = min(most, rows_per_leaf("auto", rows, wider, budget))
        if at_most and trial.candidate.place is None:
            trials[i] = _score_leaves(trial, rhos, at_most)
            width, rhos = wider, np.array([trials[i].rho])
        notes.extend((name, _rmse(data, mean)) for name, mean in trials[i].predictions)
        work.step(1, f"{notes[-1][0]}: held-out error {notes[-1][1]:.4g}")
    means = [mean for trial in trials for _, mean in trial.predictions]
    truth, mass = data.Y[data.held], data.mass[data.held]
    shares = mixture_weights(means, truth, mass)
    parts = np.split(shares, np.cumsum([len(trial.predictions) for trial in trials])[:-1])
    tried = [
        (
            trial,
            float(part.sum()),
            cache(partial(_fit_to_all, trial, part, c if trial.candidate.place else moving, work)),
        )
        for trial, part in zip(trials, parts, strict=True)
    ]
    members = [fit_to_all() for _, weight, fit_to_all in tried if weight > 0]
    X = take(data.X, np.concatenate([held for _, held in data.splits]))

    def variance() -> Floats:
        return np.asarray(sum(to_host(member.variance(X, seen=True)[0]) for member in members))

    mixed, counts = np.tensordot(shares, means, 1), None if data.weights is None else mass
    return SearchResult(members, truth, mixed, counts, notes, X, variance, tried)


def _select(
    group: Sequence[Candidate], data: Data, c: int, most: int, notes: Notes, work: Progress
) -> Candidate:
    """Return the candidate with the least held-out error after first steps on some rows.

    With leaves if the model will have leaves: without, bike and kin40k select the rougher kernel,
    although the smoother one is better.
    """
    errors = []
    for candidate in group if len(group) > 1 else ():
        count = c if candidate.place else min(c, tuning.PILOT_LANDMARKS)
        few = data.pilot(batch_rows(count))
        trial = _fit_without(candidate, few, count, tuning.FIRST_STEPS, Progress())
        if most and candidate.place is None:
            trial = _score_leaves(trial, tuning.RHOS, most)
        name, error = f"{candidate.name}, first steps", _rmse(few, trial.predictions[-1][1])
        errors.append(error)
        if candidate.place is None:
            notes.append((name, error))
        work.step(1, f"{name}: held-out error {error:.4g}")
    return group[int(np.argmin(errors))] if errors else group[0]


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


def _fit_without(candidate: Candidate, data: Data, c: int, steps: int, work: Progress) -> Trial:
    """Fit a candidate without the held-out rows of each fold, and predict these rows."""
    if candidate.codes:
        data = data.with_codes(PiecewiseCodes.of(data.X[: tuning.HELD_OUT[1], :], tuning.CODES))
    scale = candidate.scaling(data.X)
    solutions, maps, parts = [], [], []
    for train, held in data.splits:
        sample, part = data.sample(train, scale), data.sample(held)
        found = candidate.start(sample, c, np.random.default_rng(data.seed))
        found = candidate.descend(found, sample, steps, work)
        features = found.features(scale)
        F = features(part.X)
        sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=data.budget)
        if len(held) < len(data.order):
            sums = sums - Moments.of(F, part.Y, part.weights)
        solutions.append(found)
        maps.append(features)
        parts.append((sums, F, part, found.gamma))
    multiple, models, means = choose_gamma(parts), [], []
    for features, (sums, F, _, gamma) in zip(maps, parts, strict=True):
        models.append(LinearModel.fit(features, sums, gamma * multiple))
        means.append(to_host(models[-1].predict(F)))
    return Trial(candidate, data, scale, solutions, models, multiple, np.concatenate(means))


def _score_leaves(trial: Trial, rhos: Floats, most: int) -> Trial:
    """Add held-out predictions with leaves; some leaves of the first fold choose ρ."""
    data, found, end = trial.data, [], 0
    for (_, held), model, solution in zip(data.splits, trial.models, trial.solutions, strict=True):
        predict = partial(_predict_in_leaves, data, model, held, most)
        enough = tuning.HELD_OUT[0] // 2 if len(rhos) > 1 else len(held)
        tried, known = predict(solution.gamma * rhos, enough)
        start, end, there = end, end + len(held), data.order[held]
        missed = data.Y[there] - trial.mean[start:end] - tried
        squares = np.mean(missed[:, known] ** 2, axis=2) @ data.mass[there[known]]
        best = int(np.argmin(squares))
        rhos = rhos[best : best + 1]
        if len(known) < len(held):
            tried, best = predict(solution.gamma * rhos, len(held))[0], 0
        found.append(tried[best])
    local = trial.mean + np.concatenate(found)
    return replace(trial, local=local, rho=float(rhos[0]), most=most)


def _predict_in_leaves(
    data: Data, model: LinearModel, held: Indices, most: int, rhos: Floats, enough: int
) -> tuple[Floats, Indices]:
    """Return corrections of held-out rows by leaves without them, with each ρ: (r, h, t).

    Random leaves are used until they contain `enough` held-out rows, which the second value lists.
    """
    weights, U = data.mass.copy(), map_block(model.kernel, data.X)
    weights[data.order[held]] *= len(held) == len(data.order)
    tree, H = data.cut(U, most), take(U, held)
    leaf = tree(H)
    counts = np.bincount(leaf, minlength=tree.n_leaves)
    order = np.random.default_rng(0).permutation(tree.n_leaves)
    asked = np.zeros(tree.n_leaves, dtype=bool)
    asked[order[: np.searchsorted(np.cumsum(counts[order]), enough) + 1]] = True
    asked &= counts > 0
    places = [np.flatnonzero(leaf == j) for j in range(tree.n_leaves)]
    task, *aligned = leaf_rows(data.rows, data.Y, weights, model, tree, data.budget, asked)
    work = partial(predict_leaf, replace(model.kernel, metric=None), rhos)
    found = np.zeros((len(rhos), len(held), data.Y.shape[1]))
    values = data.rows.group(task, work, [take(H, at) for at in places], *aligned)
    for at, of_leaf in zip(places, values, strict=True):
        if of_leaf is not None:
            found[:, at] = of_leaf
    return found, np.flatnonzero(asked[leaf])


def _descend_with_all(trial: Trial, c: int, work: Progress) -> Solution:
    """Return the solution with all rows; after folds, the first one extended to c landmarks."""
    candidate, data, found = trial.candidate, trial.data, trial.solutions[0]
    if len(data.folds) == 1:
        return found
    sample = data.sample(scale=trial.scale)
    if candidate.place is not None:
        return candidate.start(sample, c, np.random.default_rng(data.seed))
    more = np.random.default_rng(data.seed).permutation(sample.n)[: c - found.Z.shape[0]]
    found = replace(found, Z=namespace(found.Z).concat([found.Z, take(sample.X, more)]))
    return candidate.descend(found, sample, tuning.FIRST_STEPS, work)


def _fit_to_all(trial: Trial, shares: Floats, c: int, work: Progress) -> Member:
    """Return a candidate's member, fitted to all rows; with zero shares, only its features."""
    data, found = trial.data, _descend_with_all(trial, c, work)
    features = found.features(trial.scale)
    if not shares.any():
        mean, w = (0 * part for part in (trial.models[0].mean, features.normalization))
        return Member(LinearPredictor(features, mean, w[:1, :].T + mean), 0.0, data.codes)
    sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=data.budget)
    model = LinearModel.fit(features, sums, found.gamma * trial.multiple)
    if trial.local is None or shares[1] == 0:
        return Member(model, float(shares.sum()), data.codes)
    U = map_block(model.kernel, data.X)
    kernel, tree = replace(model.kernel, metric=None), data.cut(U, trial.most)
    error, rho = _rmse(data, trial.local), trial.rho * found.gamma
    leaves = Leaves.of(kernel, tree, rho, U, data.Y.shape[1], error)
    del U
    task, *aligned = leaf_rows(data.rows, data.Y, data.weights, model, tree, data.budget)
    leaves = leaves.add_rows(data.rows, task, *aligned)
    return Member(model, float(shares.sum()), data.codes, leaves, float(shares[1]))


def _rmse(data: Data, mean: Floats) -> float:
    """Return the root mean squared error of held-out predictions, shape (h, t)."""
    squares = np.mean((data.Y[data.held] - mean) ** 2, axis=1)
    return float(np.sqrt(np.average(squares, weights=data.mass[data.held])))
