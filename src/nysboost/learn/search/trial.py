"""A trial: a candidate fitted without held-out rows, and what it predicts for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearModel, LinearPredictor, Moments, moments_of
from nysboost.kernels.scaling import Scale
from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import Candidate, Solution
from nysboost.learn.search.data import Data, Split
from nysboost.learn.search.leaves import Leaves, leaf_rows, map_block, predict_leaf
from nysboost.learn.search.model import HeldOutFeatures, Member, choose_gamma
from nysboost.numerics.arrays import Floats, Indices, take, to_host
from nysboost.numerics.progress import Progress
from nysboost.tables.piecewise import PiecewiseCodes


class Prediction(NamedTuple):
    """What a model predicts for held-out rows, shape (h, t), and its name in reports."""

    name: str
    mean: Floats


@dataclass(frozen=True, eq=False)
class Fold:
    """A candidate fitted to the training rows of one split."""

    split: Split
    solution: Solution
    model: LinearModel


@dataclass(frozen=True, eq=False)
class LeafScore:
    """Held-out predictions with leaves of at most `most` rows, shape (h, t).

    `rho` is ρ over γ of the loss.
    """

    mean: Floats
    rho: float
    most: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """A candidate with the data behind its codes, and the scale of its coordinates."""

    candidate: Candidate
    data: Data
    scale: Scale

    @classmethod
    def of(cls, candidate: Candidate, data: Data) -> Prepared:
        """Make codes, if the candidate has any, and find the scale."""
        if candidate.codes:
            some = data.X[: tuning.HELD_OUT[1], :]
            data = data.with_codes(PiecewiseCodes.of(some, tuning.CODES))
        return cls(candidate, data, candidate.scaling(data.X))


@dataclass(frozen=True, eq=False)
class CandidateTrial:
    """A candidate fitted without the held-out rows of each fold, and what it predicts for them.

    `multiple` is γ of the weights over the loss's; mean (h, t) are held-out predictions by
    landmarks, and `leaves` those with leaves, if there are any.
    """

    candidate: Candidate
    data: Data
    scale: Scale
    folds: list[Fold]
    multiple: float
    mean: Floats
    leaves: LeafScore | None = None

    @classmethod
    def first_steps(cls, prepared: Prepared, most: int, c: int, work: Progress) -> CandidateTrial:
        """Fit a candidate by few steps, without the first held-out part alone.

        Of many rows at most so many take part.
        """
        data = prepared.data.first_split().pilot(most)
        rows = data.sample(data.splits[0].train, prepared.scale)
        start = prepared.candidate.start(rows, c, np.random.default_rng(data.seed))
        solution = prepared.candidate.descend(start, rows, tuning.FIRST_STEPS, work)
        return cls.of(replace(prepared, data=data), [solution])

    @classmethod
    def after(cls, first: Solution, prepared: Prepared, c: int, work: Progress) -> CandidateTrial:
        """Fit a candidate whose first steps found a solution, which saw no row of the first fold.

        With one held-out part it is continued with c landmarks and more rows. With folds it is
        that of the first one, and the others begin anew.
        """
        candidate = prepared.candidate
        data = prepared.data
        rng = np.random.default_rng(data.seed)
        if not data.uses_folds and candidate.trained:
            rows = data.sample(data.splits[0].train, prepared.scale)
            first = candidate.grow(first, rows, c, rng)
            first = candidate.descend(first, rows, tuning.STEPS, work)

        solutions = [first]
        for split in data.splits[1:]:
            rows = data.sample(split.train, prepared.scale)
            start = candidate.start(rows, c, np.random.default_rng(data.seed))
            solutions.append(candidate.descend(start, rows, tuning.FIRST_STEPS, work))
        return cls.of(prepared, solutions)

    @classmethod
    def of(cls, prepared: Prepared, solutions: Sequence[Solution]) -> CandidateTrial:
        """Fit weights to the solution of each fold, and predict its held-out rows."""
        data = prepared.data
        scale = prepared.scale

        # weights of the landmarks, with the γ that held-out rows prefer
        maps = [solution.features(scale) for solution in solutions]
        parts = [
            _held_out_features(data, split, features, solution.gamma)
            for split, features, solution in zip(data.splits, maps, solutions, strict=True)
        ]
        multiple = choose_gamma(parts)
        folds = []
        means = []
        for split, features, solution, part in zip(
            data.splits, maps, solutions, parts, strict=True
        ):
            model = LinearModel.fit(features, part.train, solution.gamma * multiple)
            folds.append(Fold(split, solution, model))
            means.append(to_host(model.predict(part.F)))
        return cls(prepared.candidate, data, scale, folds, multiple, np.concatenate(means))

    @property
    def models(self) -> list[LinearModel]:
        """The model of each fold."""
        return [fold.model for fold in self.folds]

    @property
    def n_mapped(self) -> int:
        """Number of coordinates of the mapped rows."""
        return int(self.folds[0].solution.Z.shape[1])

    @property
    def predictions(self) -> list[Prediction]:
        """Held-out predictions of landmarks, and with leaves."""
        name = self.candidate.name
        found = [Prediction(name, self.mean)]
        if self.leaves is not None:
            found.append(Prediction(f"{name}, corrected in leaves", self.leaves.mean))
        return found

    @property
    def error(self) -> float:
        """Held-out error of the last prediction."""
        return self.data.error(self.predictions[-1].mean)

    def score_leaves(self, rhos: Floats, most: int) -> LeafScore:
        """Return held-out predictions with leaves; some leaves of the first fold choose ρ."""
        corrections = []
        start = 0
        for fold in self.folds:
            stop = start + len(fold.split.held)
            if len(rhos) > 1:
                rhos = self._choose_rho(fold, self.mean[start:stop], rhos, most)
            corrected = _predict_in_leaves(self.data, fold, most, rhos, len(fold.split.held))
            corrections.append(corrected.mean[0])
            start = stop
        mean = self.mean + np.concatenate(corrections)
        return LeafScore(mean, float(rhos[0]), most)

    def _choose_rho(self, fold: Fold, mean: Floats, rhos: Floats, most: int) -> Floats:
        """Return the ρ with the least error on held-out rows of some leaves, shape (1,)."""
        tried = _predict_in_leaves(self.data, fold, most, rhos, tuning.HELD_OUT[0] // 2)
        there = self.data.order[fold.split.held]
        missed = (self.data.Y[there] - mean - tried.mean)[:, tried.known]
        errors = np.mean(missed**2, axis=2) @ self.data.mass[there[tried.known]]
        best = int(np.argmin(errors))
        return rhos[best : best + 1]

    def fit_to_all(self, shares: Floats, c: int, work: Progress) -> Member:
        """Return the candidate's member, fitted to all rows; with zero shares, only its features.

        `shares` are weights in the mixture of the predictions of this trial.
        """
        data = self.data
        solution = self._descend_with_all(c, work)
        features = solution.features(self.scale)
        if not shares.any():
            mean = 0 * self.models[0].mean
            w = 0 * features.normalization[:1, :].T + mean
            return Member(LinearPredictor(features, mean, w), 0.0, data.codes)

        sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=data.budget)
        model = LinearModel.fit(features, sums, solution.gamma * self.multiple)
        weight = float(shares.sum())
        if self.leaves is None or shares[1] == 0:
            return Member(model, weight, data.codes)
        leaves = self._fit_leaves(self.leaves, model, solution.gamma)
        return Member(model, weight, data.codes, leaves, float(shares[1]))

    def _descend_with_all(self, c: int, work: Progress) -> Solution:
        """Return the solution with all rows; after folds, the first one extended to c landmarks."""
        data = self.data
        solution = self.folds[0].solution
        if not data.uses_folds:
            return solution
        rows = data.sample(scale=self.scale)
        rng = np.random.default_rng(data.seed)
        if not self.candidate.trained:
            return self.candidate.start(rows, c, rng)
        start = self.candidate.grow(solution, rows, c, rng)
        return self.candidate.descend(start, rows, tuning.FIRST_STEPS, work)

    def _fit_leaves(self, score: LeafScore, model: LinearModel, gamma: float) -> Leaves:
        """Return leaves of all rows."""
        data = self.data
        U = map_block(model.kernel, data.X)
        tree = data.cut(U, score.most)
        kernel = replace(model.kernel, metric=None)
        error = data.error(score.mean)
        leaves = Leaves.of(kernel, tree, score.rho * gamma, U, data.n_outputs, error)
        del U
        task, *aligned = leaf_rows(data.rows, data.Y, data.weights, model, tree, data.budget)
        return leaves.add_rows(data.rows, task, *aligned)


def _held_out_features(
    data: Data, split: Split, features: FeatureMap, gamma: float
) -> HeldOutFeatures:
    """Return moments of all rows without the held-out ones, and the features of these."""
    held = data.sample(split.held)
    F = features(held.X)
    sums = moments_of(features, data.rows, data.Y, weights=data.weights, budget=data.budget)
    if not data.overlaps(split):
        sums = sums - Moments.of(F, held.Y, held.weights)
    return HeldOutFeatures(sums, F, held, gamma)


class Corrections(NamedTuple):
    """What leaves add to held-out predictions, with each ρ (r, h, t), and for which rows."""

    mean: Floats
    known: Indices


def _predict_in_leaves(data: Data, fold: Fold, most: int, rhos: Floats, enough: int) -> Corrections:
    """Return corrections of held-out rows by leaves without them.

    Random leaves are used until they contain `enough` held-out rows.
    """
    held = fold.split.held
    weights = data.mass.copy()
    if not data.overlaps(fold.split):
        weights[data.order[held]] = 0.0

    # the leaf of each held-out row
    U = map_block(fold.model.kernel, data.X)
    tree = data.cut(U, most)
    H = take(U, held)
    leaf = tree(H)

    # leaves that are asked for
    counts = np.bincount(leaf, minlength=tree.n_leaves)
    drawn = np.random.default_rng(0).permutation(tree.n_leaves)
    n_asked = np.searchsorted(np.cumsum(counts[drawn]), enough) + 1
    asked = np.zeros(tree.n_leaves, dtype=bool)
    asked[drawn[:n_asked]] = True
    asked &= counts > 0

    places = [np.flatnonzero(leaf == j) for j in range(tree.n_leaves)]
    task, *aligned = leaf_rows(data.rows, data.Y, weights, fold.model, tree, data.budget, asked)
    predict = partial(predict_leaf, replace(fold.model.kernel, metric=None), rhos)
    values = data.rows.group(task, predict, [take(H, at) for at in places], *aligned)

    mean = np.zeros((len(rhos), len(held), data.n_outputs))
    for at, of_leaf in zip(places, values, strict=True):
        if of_leaf is not None:
            mean[:, at] = of_leaf
    return Corrections(mean, np.flatnonzero(asked[leaf]))
