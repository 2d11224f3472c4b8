"""Candidates are fitted to training rows, scored on held-out rows, and kept or mixed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from nysboost.data.rows import Rows
from nysboost.engine.factor import Moments, moments_of
from nysboost.numerics.arrays import Array, Floats, Indices, take, to_host
from nysboost.numerics.progress import Progress
from nysboost.numerics.resources import Budget, format_bytes, keep_freed_memory
from nysboost.search import tuning
from nysboost.search.candidates import Options
from nysboost.search.leaves import (
    Leaves,
    Tree,
    decide_leaves,
    nearest_variance,
    predict_leaf,
    rows_per_leaf,
)
from nysboost.search.model import (
    LinearModel,
    Member,
    choose_gamma,
    errors_along,
    leaf_rows,
    map_block,
    mixture_weights,
)
from nysboost.search.scaling import n_numeric
from nysboost.search.trials import (
    Data,
    Trial,
    View,
    descend_in_folds,
    descend_long,
    fit_baseline,
    long_work,
    select_candidate,
)

LEAST_ROWS, LAST = 40, 0.2
"""With fewer rows only the baseline is fitted; the share of a fit's time for weights and leaves."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A mixture of members fitted to all rows, and what h held-out rows say of it.

    truth and mean, of shape (h, t), are targets and predictions by members that had not seen these
    rows; weights (h,) or None say how often each row counts, notes what was tried with its held-out
    root mean squared error, X (h, d) or None are the rows, and `variance` returns their predictive
    variances, of shape (h, t).
    """

    members: Sequence[Member]
    truth: Floats
    mean: Floats
    weights: Floats | None
    notes: list[tuple[str, float]]
    X: Array | None = None
    variance: Callable[[], Floats] = lambda: np.ones((0, 1))


def learn(
    rows: Rows,
    Y: Floats,
    weights: Floats | None,
    options: Options,
    c: int,
    rng: np.random.Generator,
    *,
    local: bool | int | str = False,
    budget: Budget,
    work: Progress | None = None,
) -> Fitted:
    """Return the mixture of candidates that held-out rows prefer.

    1. Folds: all candidates take first steps without each fold, and go on with all rows.
    2. One held-out part: of several candidates first steps, with few landmarks, select one; it
       takes the long descent, with all landmarks, and so does the one with codes.
    3. Weights of the landmarks, and kernel ridge regressions in leaves, come from all rows but
       the held-out ones; these choose penalties and mix. Then they join.

    Y (n, t) are targets on the host, of weights (n,) only ratios matter, and c is the number of
    landmarks. `local` says whether all rows predict in leaves, or with how many rows at most;
    "auto" does where memory holds them.
    """
    keep_freed_memory()
    work = work or Progress()
    _refuse_too_many(c, rows, budget)
    width = min(rows.n_features, tuning.WIDE) + Y.shape[1]
    leaves = decide_leaves(local, rows, width, budget)
    data = Data.draw(rows, Y, weights, rng)
    c = min(c, data.distinct)
    seed = int(rng.integers(2**31))
    trials = [fit_baseline(options.baseline, data, c, seed)]
    constant = not bool((data.Y[:1] != data.Y).any())
    if constant or len(data.order) < LEAST_ROWS or not options.candidates:
        return _mix(data, trials, [], False, budget, work)
    folds, candidates = len(data.folds) > 1, options.candidates
    coded = options.coded if n_numeric(data.X) <= tuning.WIDE else ()
    few = min(c, tuning.PILOT_LANDMARKS if leaves else 2 * tuning.PILOT_LANDMARKS)
    moving = c
    if leaves:
        moving = few if folds else max(few, min(c, data.rows.n // tuning.ROWS_WITH_LEAVES))
    first = 0 if folds else len(candidates)
    each = len(data.folds) + 1 if folds else long_work(data, moving)
    rest = ((len(candidates) if folds else 1) + len(coded)) * each
    work.begin((first + rest) / (1 - LAST))
    notes: list[tuple[str, float]] = []
    if not folds:
        best, notes = select_candidate(candidates, data, bool(leaves), seed, work)
        candidates = (best,)
    descend = partial(descend_in_folds, few) if folds else descend_long
    views: dict[str, View] = {}
    for one in (*candidates, *coded):
        if one.space not in views:
            views[one.space] = View.of(data, one.scaling, codes=one.codes)
        view = views[one.space]
        wide = 2 * width + view.data.rows.n_features
        fits = not one.codes or bool(decide_leaves("auto", rows, wide, budget))
        trials.append(replace(descend(one, view, moving, seed, work), local=fits))
    return _mix(data, trials, notes, leaves, budget, work)


@dataclass(frozen=True, eq=False)
class _Scored:
    """Held-out predictions of a trial by landmarks, and by leaves where there are any.

    `at` is the place of γ in the grid, `every` are the moments of all rows, and `models` do not
    know the held-out rows of their fold.
    """

    trial: Trial
    at: int
    every: Moments
    models: list[LinearModel]
    mean: Floats
    local: Floats | None = None
    rho: float = 0.0
    correcting: bool = False

    @property
    def predictions(self) -> list[tuple[str, Floats]]:
        """Names and held-out predictions, shape (h, t), of landmarks and of leaves."""
        how = "corrected" if self.correcting else "replaced"
        both = [(self.trial.name, self.mean), (f"{self.trial.name}, {how} in leaves", self.local)]
        return [(name, mean) for name, mean in both if mean is not None]


def _mix(
    data: Data,
    trials: Sequence[Trial],
    notes: list[tuple[str, float]],
    local: bool | int,
    budget: Budget,
    work: Progress,
) -> Fitted:
    """Score trials on held-out rows, mix them, and fit what is kept to all rows."""
    part = LAST * work.total / (2 * len(trials))
    truth, mass = data.Y[data.held], data.mass[data.held]
    scored = [_score(trial, budget) for trial in trials]
    used = mixture_weights([one.mean for one in scored], truth, mass) > 0
    rhos = tuning.RHOS
    for i, one in enumerate(scored):
        if local and one.trial.local and (used[i] or len(data.folds) > 1):
            scored[i] = _score_leaves(one, rhos, local, budget)
            rhos = np.array([scored[i].rho])
        tried = scored[i].predictions
        notes = [*notes, *((name, _rmse(truth - mean, mass)) for name, mean in tried)]
        work.step(part, f"{notes[-1][0]}: held-out error {notes[-1][1]:.4g}")
    means = [mean for one in scored for _, mean in one.predictions]
    known = np.all([np.isfinite(mean[:, 0]) for mean in means], axis=0)
    means, truth, mass = [mean[known] for mean in means], truth[known], mass[known]
    weights = mixture_weights(means, truth, mass)
    kept: list[tuple[Data, Member]] = []
    left = list(weights)
    for one in scored:
        share = left.pop(0)
        local_share = left.pop(0) if one.local is not None else 0.0
        if share + local_share > 0:
            member = _finish(one, float(share), float(local_share), local, budget)
            kept.append((one.trial.view.data, member))
        work.step(part)
    mean, counts = np.tensordot(weights, means, 1), None if data.weights is None else mass
    X = take(data.X, np.concatenate([held for _, held in data.splits])[known])

    def variance() -> Floats:
        parts = (_held_out_variance(*pair, local, budget) for pair in kept)
        return np.asarray(sum(parts, np.zeros(1))[known])

    return Fitted([member for _, member in kept], truth, mean, counts, notes, X, variance)


def _score(trial: Trial, budget: Budget) -> _Scored:
    """Return held-out predictions of a trial by its landmarks, γ chosen on them."""
    data, totals, sums = trial.view.data, np.zeros(len(trial.solutions[0].grid)), []
    sample = data.sample()
    for (_, held), found, features in zip(
        data.splits, trial.solutions, trial.features, strict=True
    ):
        every = moments_of(features, data.rows, data.Y, weights=data.weights, budget=budget)
        part = sample[held]
        F = features(part.X)
        train = every
        if len(held) < len(data.order):
            train = every - Moments.of(F, part.Y, part.weights)
        along = found.gamma * found.grid
        totals += errors_along(train, F, part.Y, part.weights, along).sum(axis=1)
        sums.append((every, train, F))
    at = choose_gamma(trial.solutions[0].grid, totals)
    models = [
        LinearModel.fit(features, train, found.gamma * float(found.grid[at]))
        for found, features, (_, train, _) in zip(
            trial.solutions, trial.features, sums, strict=True
        )
    ]
    means = [to_host(model.predict(F)) for model, (_, _, F) in zip(models, sums, strict=True)]
    return _Scored(trial, at, sums[0][0], models, np.concatenate(means))


def _score_leaves(scored: _Scored, rhos: Floats, local: bool | int, budget: Budget) -> _Scored:
    """Return the same with held-out predictions by leaves, ρ chosen on them."""
    trial, data, at = scored.trial, scored.trial.view.data, 0
    most, parts = rows_per_leaf(local, data.rows.form, budget), []
    for (_, held), found, model in zip(data.splits, trial.solutions, scored.models, strict=True):
        mean = scored.mean[at : at + len(held)]
        tried, best = _leaf_predictions(data, model, held, mean, rhos * found.gamma, most, budget)
        rhos = rhos[best : best + 1]  # the first part chooses; what it chose serves the others
        parts.append(tried)
        at += len(held)
    replaced, corrected = np.concatenate(parts, axis=1)
    truth, mass = data.Y[data.held], data.mass[data.held]
    correcting = _rmse(truth - corrected, mass) < _rmse(truth - replaced, mass)
    local_mean = corrected if correcting else replaced
    return replace(scored, local=local_mean, rho=float(rhos[0]), correcting=correcting)


def _leaf_predictions(
    data: Data, model: LinearModel, held: Indices, mean: Floats, rhos: Floats, most: int,
    budget: Budget,
) -> tuple[Floats, int]:  # fmt: skip
    """Return predictions of leaves without the held-out rows, shape (2, h, t), and the place of ρ.

    They replace the landmarks' prediction, or correct it; NaN where a leaf has no other rows. Some
    leaves, drawn at random, choose ρ, all others are solved once.
    """
    there, t, leaves = data.order[held], data.Y.shape[1], _HeldOut.of(data, model, held, most)

    def predict(asked: Any, rhos: Floats) -> Floats:
        found = np.full((len(rhos), len(held), 2 * t), np.nan)
        work = partial(predict_leaf, leaves.kernel, rhos)
        for at, values in leaves.visit(work, budget, False, True, asked=asked):
            found[:, at] = values
        return np.stack([to_host(model.mean) + found[..., :t], mean + found[..., t:]], axis=1)

    counts = np.array([len(at) for at in leaves.places])
    turn = np.random.default_rng(0).permutation(len(counts))
    enough = tuning.SCORED_ROWS if len(rhos) > 1 else len(held)
    first = turn[: np.searchsorted(np.cumsum(counts[turn]), enough) + 1]
    some = np.isin(np.arange(len(counts)), first) & (counts > 0)
    others = ~some & (counts > 0)
    tried = predict(some, rhos)
    best = _best(tried, data.Y[there], data.mass[there])
    if not others.any():
        return tried[best], best
    rest = predict(others, rhos[best : best + 1])[0]
    return np.where(np.isnan(rest), tried[best], rest), best


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """The leaves of all rows, and for each of them the places of held-out rows and these rows."""

    data: Data
    model: LinearModel
    tree: Tree
    weights: Floats
    places: list[Indices]
    mapped: list[Array]

    @classmethod
    def of(cls, data: Data, model: LinearModel, held: Indices, most: int) -> _HeldOut:
        weights = data.mass.copy()
        weights[data.order[held]] *= len(held) == len(data.order)
        U = map_block(model.kernel, data.X)
        tree, H = _cut_sample(data, U, most), take(U, held)
        leaf = tree(H)
        places = [np.flatnonzero(leaf == j) for j in range(tree.n_leaves)]
        return cls(data, model, tree, weights, places, [take(H, at) for at in places])

    @property
    def kernel(self) -> Any:
        """The kernel of mapped rows."""
        return replace(self.model.kernel, metric=None)

    def visit(
        self, work: Callable[[Array, Array], Any], budget: Budget, *correcting: bool,
        asked: Any = True,
    ) -> Iterator[tuple[Indices, Any]]:  # fmt: skip
        """Yield places of held-out rows, and work(them, rows of their leaf) where it has any."""
        which, rows = (self.model, self.tree, correcting), self.data.rows
        task, *beside = leaf_rows(rows, self.data.Y, self.weights, *which, budget, asked)
        found = rows.group(task, work, self.mapped, *beside)
        return (pair for pair in zip(self.places, found, strict=True) if pair[1] is not None)


def _cut_sample(data: Data, U: Array, most: int) -> Tree:
    """Return the tree of the rows in memory, mapped to U, in their own order, whatever the seed."""
    return Tree.of(take(U, np.argsort(data.order)), most, int(np.count_nonzero(data.mass)))


def _best(tried: Floats, truth: Floats, mass: Floats) -> int:
    """Return the place of the ρ whose better kind of prediction misses least."""
    return int(np.argmin([min(_rmse(truth - mean, mass) for mean in of) for of in tried]))


def _finish(
    scored: _Scored, share: float, local_share: float, local: bool | int, budget: Budget
) -> Member:
    """Return a member fitted to all rows."""
    trial, data, every = scored.trial, scored.trial.view.data, scored.every
    found, features = trial.finish(), trial.features[0]
    if found is not trial.solutions[0]:
        features = found.features(trial.view.scale)
        every = moments_of(features, data.rows, data.Y, weights=data.weights, budget=budget)
    model = LinearModel.fit(features, every, found.gamma * float(found.grid[scored.at]))
    if scored.local is None or local_share == 0:
        return Member(model, share, trial.view.codes)
    U = map_block(model.kernel, data.X)
    tree = _cut_sample(data, U, rows_per_leaf(local, data.rows.form, budget))
    error = _rmse(data.Y[data.held] - scored.local, data.mass[data.held])
    kernel, rho = replace(model.kernel, metric=None), scored.rho * found.gamma
    leaves = Leaves.of(kernel, tree, rho, U, data.Y.shape[1], error)
    del U
    which = model, tree, (scored.correcting,)
    leaves = leaves.add_rows(data.rows, *leaf_rows(data.rows, data.Y, data.weights, *which, budget))
    return Member(model, share, trial.view.codes, leaves, local_share, scored.correcting)


def _held_out_variance(data: Data, member: Member, local: bool | int, budget: Budget) -> Floats:
    """Return variances that a member predicts for held-out rows without them, shape (h, t)."""
    most, sample, variances = rows_per_leaf(local, data.rows.form, budget), data.sample(), []
    for _, held in data.splits:
        part, rest = sample[held], member.model
        F = rest.features(part.X)
        if len(held) < len(data.order):
            rest = rest.without(Moments.of(F, part.Y, part.weights))
        variance = member.share * to_host(rest.spread(F)[:, None] * rest.noise)
        if member.leaves is not None:
            leaves, rho = _HeldOut.of(data, member.model, held, most), member.leaves.rho
            near, work = (
                np.full((len(held), 1), 1.0 + rho),
                partial(nearest_variance, leaves.kernel, rho),
            )
            for at, values in leaves.visit(work, budget, False):
                near[at, 0] = to_host(values)
            variance = variance + member.local_share * near * to_host(member.leaves.amplitude)
        variances.append(variance)
    return np.concatenate(variances)


def _rmse(missed: Floats, counts: Floats) -> float:
    """Return the root of the mean squared miss of rows that have a prediction."""
    squares = np.mean(missed**2, axis=1)
    known = np.isfinite(squares)
    if not known.any():
        return np.inf
    return float(np.sqrt(np.average(squares[known], weights=counts[known])))


def _refuse_too_many(c: int, rows: Any, budget: Budget) -> None:
    """Raise before any work where memory does not hold the sums of so many landmarks."""
    needed = 8 * (6 * c * c + 2 * c * rows.n_features)
    if needed > budget.bytes:
        msg = (
            f"{c} landmarks need about {format_bytes(needed)} of working memory, but max_memory is "
            f"{format_bytes(budget.bytes)}: ask for fewer landmarks, or allow more memory."
        )
        raise ValueError(msg)
