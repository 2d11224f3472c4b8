"""A trial: a candidate fitted without the held-out rows, and its predictions for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nysboost.features.feature_map import FeatureMap
from nysboost.features.linear import LinearModel, LinearPredictor, Moments
from nysboost.kernels.metric import Scale
from nysboost.kernels.radial import Radial
from nysboost.learn.search import tuning
from nysboost.learn.search.candidates import Candidate, Solution, linear_candidate
from nysboost.learn.search.data import Data, Split
from nysboost.learn.search.leaves import LeafTask, Leaves, map_block, narrow, predict_leaf
from nysboost.learn.search.model import HeldOutFeatures, Member, choose_gamma
from nysboost.numerics.arrays import Array, Floats, Indices, take, to_host
from nysboost.numerics.progress import Progress
from nysboost.numerics.tree import Tree

SMALLEST = 1e-300
"""Added to what may be zero, before it divides."""


class Prediction(NamedTuple):
    """Predictions of a model for held-out rows, shape (h, t), and its name in reports."""

    name: str
    mean: Floats


@dataclass(frozen=True, eq=False)
class Fold:
    """A candidate fitted to the training rows of one split of `Prepared.held_out_data`."""

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
    """A candidate with its coded data, and the scale of its coordinates.

    `base` is the model whose residuals are the targets of the data, if there is one.
    """

    candidate: Candidate
    data: Data
    scale: Scale
    base: LinearPredictor | None = None

    @classmethod
    def of(cls, candidate: Candidate, data: Data) -> Prepared:
        """Make codes and a linear model, if the candidate has any, and find the scale."""
        if candidate.codes:
            data = data.coded
        base = None
        if candidate.after_linear:
            base = _linear_model(data)
            data = data.after(base)
        return cls(candidate, data, candidate.scaling(data.X), base)

    def held_out_data(self) -> Data:
        """Return the data of fits without held-out rows: few rows in the search's coordinates.

        There may be far fewer coordinates than columns, and no fold keeps landmarks and a metric
        for raw rows. Scaled rows are not kept either: that would be a copy for each candidate.
        """
        if self.data.few:
            return self.data.scaled(self.scale)
        return self.data

    def held_out_features(self, solution: Solution) -> FeatureMap:
        """Return the features of a solution for the rows of `held_out_data`."""
        if self.data.few:
            return solution.features_of_scaled()
        return solution.features(self.scale)

    def fit(self, split: Split, c: int, steps: int, work: Progress) -> Solution:
        """Return the solution after so many steps on the training rows of a split."""
        rows = self.data.sample(split.train, self.scale)
        rng = np.random.default_rng(self.data.seed)
        start = self.candidate.start(rows, c, rng)
        return self.candidate.descend(start, rows, steps, work)

    def grow(
        self,
        found: Solution,
        c: int,
        split: Split,
        steps: int,
        work: Progress,
    ) -> Solution:
        """Return a solution that is continued with c landmarks on the rows of a split."""
        rows = self.data.sample(split.train, self.scale)
        rng = np.random.default_rng(self.data.seed)
        grown = self.candidate.grow(found, rows, c, rng)
        return self.candidate.descend(grown, rows, steps, work)


@dataclass(frozen=True, eq=False)
class CandidateTrial:
    """A candidate fitted without the held-out rows of each fold, and its predictions for them.

    `multiple` is γ of the weights over γ of the loss. `mean` (h, t) are held-out predictions by
    landmarks, and `leaves` those with leaves, if there are any.
    """

    prepared: Prepared
    folds: list[Fold]
    multiple: float
    mean: Floats
    leaves: LeafScore | None = None

    @classmethod
    def first_steps(
        cls,
        prepared: Prepared,
        most: int,
        c: int,
        steps: int,
        work: Progress,
    ) -> CandidateTrial:
        """Fit a candidate by a few steps, without the first held-out part.

        In large tables, only a limited number of rows is used.
        """
        data = prepared.data.first_split().pilot(most)
        few = replace(prepared, data=data)
        solution = few.fit(data.splits[0], c, steps, work)
        return cls.of(few, [solution])

    @classmethod
    def after(
        cls,
        first: Solution,
        prepared: Prepared,
        c: int,
        steps: int,
        work: Progress,
    ) -> CandidateTrial:
        """Fit a candidate from the solution of first steps, fitted without the first held-out part.

        With a single held-out part, the solution is continued for `steps` steps with c landmarks
        and more rows. With folds, it is the solution of the first fold, and the other folds take as
        many steps from the beginning.
        """
        first_split, *other_splits = prepared.data.splits

        # one held-out part: the long descent, with more landmarks and rows
        if not prepared.data.uses_folds and prepared.candidate.trained:
            first = prepared.grow(first, c, first_split, steps, work)

        # the other folds, if there are any
        others = [prepared.fit(split, c, steps, work) for split in other_splits]
        return cls.of(prepared, [first, *others])

    @classmethod
    def of(cls, prepared: Prepared, solutions: Sequence[Solution]) -> CandidateTrial:
        """Fit weights to the solution of each fold, and predict its held-out rows."""
        data = prepared.held_out_data()

        # features, and sums over the training rows of each fold
        parts = []
        for split, solution in zip(data.splits, solutions, strict=True):
            features = prepared.held_out_features(solution)
            part = _held_out_features(data, split, features, solution.gamma)
            parts.append(part)

        # γ of the weights is the one that held-out rows prefer
        multiple = choose_gamma(parts)
        models = [part.fit(multiple) for part in parts]
        folds = list(map(Fold, data.splits, solutions, models))

        # what they predict for the held-out rows
        means = []
        for model, part in zip(models, parts, strict=True):
            predicted = model.predict(part.F)
            means.append(to_host(predicted))
        return cls(prepared, folds, multiple, np.concatenate(means))

    @property
    def candidate(self) -> Candidate:
        """The candidate."""
        return self.prepared.candidate

    @property
    def data(self) -> Data:
        """The data, with the codes of the candidate."""
        return self.prepared.data

    @property
    def models(self) -> list[LinearModel]:
        """The model of each fold."""
        return [fold.model for fold in self.folds]

    @property
    def n_mapped(self) -> int:
        """Number of coordinates of the mapped rows."""
        width = int(self.folds[0].solution.Z.shape[1])
        return min(width, tuning.LEAF_WIDTH)

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

    def deviations_behind(self, other: CandidateTrial) -> float:
        """Return by how many standard deviations the squared error is larger than another's."""
        # after a linear model, the targets of a trial are residuals
        missed = (self.mean - self.data.truth) ** 2
        missed_by_other = (other.mean - other.data.truth) ** 2

        # the difference of each row, whose mean is known up to its deviation over √h
        behind = np.mean(missed - missed_by_other, axis=1)
        h = len(behind)
        deviation = np.std(behind) / h**0.5
        return float(np.mean(behind) / (deviation + SMALLEST))

    def score_leaves(self, most: int) -> LeafScore | None:
        """Return held-out predictions with leaves, or None if they would gain too little.

        Small leaves of the first fold choose ρ, and show whether leaves reduce the error.
        """
        few = min(most, tuning.SMALL_LEAF)
        data = self.prepared.held_out_data()
        small = HeldOutLeaves.of(data, self.folds[0], few)
        choice = small.choose_rho(self.mean)
        if small.tree.n_leaves > 1 and choice.gain < tuning.LEAF_GAIN:
            return None

        # corrections by leaves of the full size, for the held-out rows of each fold
        rhos = np.array([choice.rho])
        corrections = []
        for fold in self.folds:
            leaves = HeldOutLeaves.of(data, fold, most)
            correction, *_ = leaves.predict(rhos)
            corrections.append(correction)
        mean = self.mean + np.concatenate(corrections)
        return LeafScore(mean, choice.rho, most)

    def fit_to_all(self, shares: Floats, c: int, steps: int, work: Progress) -> Member:
        """Return the candidate's member, fitted to all rows; with zero shares, only its features.

        `shares` (1,) or (2,) are the mixture weights of `predictions`. A base is not fitted again:
        the candidate has learned its residuals.
        """
        data = self.data
        solution = self._descend_with_all(c, steps, work)
        features = solution.features(self.prepared.scale)

        # no weight: the features alone, for a logistic regression on them
        if not shares.any():
            mean = 0 * self.models[0].mean
            w = 0 * features.normalization[:1, :].T + mean
            return Member(LinearPredictor(features, mean, w), 0.0, data.codes)

        # the landmarks' weights from all rows, and leaves if they are in the mixture
        gamma = solution.gamma * self.multiple
        moments = data.moments(features)
        model = LinearModel.fit(features, moments, gamma)
        weight = float(shares.sum())
        base = self.prepared.base
        if self.leaves is None or shares[1] == 0:
            return Member(model, weight, data.codes, base=base)

        leaves = self._fit_leaves(self.leaves, model, solution.gamma)
        local_weight = float(shares[1])
        return Member(model, weight, data.codes, leaves, local_weight, base=base)

    def _descend_with_all(self, c: int, steps: int, work: Progress) -> Solution:
        """Return the solution with all rows; after folds, the first one extended to c landmarks."""
        first = self.folds[0].solution

        # with many rows, adding the held-out tenth would change little
        if not self.data.uses_folds:
            return first

        # with few rows, all matter
        every = np.arange(len(self.data.order))
        all_rows = Split(every, every)
        if not self.candidate.trained:
            return self.prepared.fit(all_rows, c, steps, work)
        return self.prepared.grow(first, c, all_rows, steps, work)

    def _fit_leaves(self, score: LeafScore, model: LinearModel, gamma: float) -> Leaves:
        """Return leaves of all rows."""
        data = self.data

        # the tree of the rows in memory
        kernel = leaf_kernel(data, model)
        U = map_block(kernel, data.X)
        tree = data.cut(U, score.most)

        # leaves without rows, with a metric if it is not the model's
        own = kernel
        if kernel is model.kernel:
            own = kernel.with_metric(None)
        rho = score.rho * gamma
        error = data.error(score.mean)
        empty = Leaves.of(own, tree, rho, U, data.n_outputs, error)
        del U

        # all rows are added
        grouping = LeafTask(kernel, model, tree, data.budget)
        task, *aligned = grouping.over(data.rows, data.Y, data.weights)
        return empty.add_rows(data.rows, task, *aligned)


def _linear_model(data: Data) -> LinearPredictor:
    """Return a linear model of the columns, fitted without the held-out rows."""
    n_train = len(data.splits[0].train)
    candidate = linear_candidate(n_train, data.rows.n_features)
    prepared = Prepared.of(candidate, data)
    assert candidate.n_landmarks is not None
    solution = prepared.fit(data.splits[0], candidate.n_landmarks, 0, Progress())
    trial = CandidateTrial.of(prepared, [solution])
    model = trial.models[0]
    return LinearPredictor(solution.features(prepared.scale), model.mean, model.w)


def leaf_kernel(data: Data, model: LinearPredictor) -> Radial:
    """Return the kernel for the leaves; for many rows, its metric has few coordinates."""
    kernel = model.kernel
    assert isinstance(kernel, Radial)
    if data.uses_folds:
        return kernel
    return narrow(kernel, data.X)


def _held_out_features(
    data: Data,
    split: Split,
    features: FeatureMap,
    gamma: float,
) -> HeldOutFeatures:
    """Return moments of all rows without the held-out ones, and the features of these."""
    held = data.held_out(split)
    F = features(held.X)

    # sums over all rows less those over the ones left out
    train = data.moments(features)
    if not data.trains_all(split):
        train = train - Moments.of(F, held.Y, held.weights)

    # the same map without the prepared landmarks of these passes, which take as much memory
    fresh = replace(features)
    return HeldOutFeatures(fresh, train, F, held, gamma)


class RhoChoice(NamedTuple):
    """The best ρ over γ, and the share of squared errors that leaves take away with it."""

    rho: float
    gain: float


@dataclass(frozen=True, eq=False)
class HeldOutLeaves:
    """Leaves without the held-out rows of a fold, and the leaf of each held-out row.

    H (h, q) are the held-out rows, mapped, and leaf (h,) their leaves.
    """

    data: Data
    fold: Fold
    kernel: Radial
    tree: Tree
    H: Array
    leaf: Indices

    @classmethod
    def of(cls, data: Data, fold: Fold, most: int) -> HeldOutLeaves:
        """Cut mapped rows into leaves of at most so many."""
        kernel = leaf_kernel(data, fold.model)
        U = map_block(kernel, data.X)
        tree = data.cut(U, most)
        H = map_block(kernel, data.held_out(fold.split).X)
        return cls(data, fold, kernel, tree, H, tree(H))

    def draw(self, enough: int) -> NDArray[np.bool_]:
        """Return a mask of random leaves that contain `enough` held-out rows."""
        # leaves in random order, as many as contain enough
        counts = self._counts
        drawn = np.random.default_rng(0).permutation(len(counts))
        so_far = np.cumsum(counts[drawn])
        n_asked = np.searchsorted(so_far, enough) + 1

        asked = np.zeros(len(counts), dtype=bool)
        asked[drawn[:n_asked]] = True
        return asked

    @property
    def _counts(self) -> Indices:
        """How many held-out rows each leaf has."""
        return np.bincount(self.leaf, minlength=self.tree.n_leaves)

    def choose_rho(self, mean: Floats) -> RhoChoice:
        """Return the best ρ, measured on random leaves.

        `mean` (h, t) are predictions without leaves. A mixture may add a share of the corrections
        to them, so each ρ is measured with its best share.
        """
        data = self.data
        asked = self.draw(tuning.HELD_OUT[0] // 2)
        corrections = self.predict(tuning.RHOS, asked)

        # held-out rows in these leaves: residuals r and corrections c, times √ω
        known = np.flatnonzero(asked[self.leaf])
        root = data.held_mass[known, None] ** 0.5
        r = root * (data.truth[known] - mean[known])
        c = root * corrections[:, known]

        # ‖r‖² − ‖r − s c‖² with the best share s of the corrections, for each ρ
        along = np.sum(r * c, axis=(1, 2))
        squares = np.sum(c * c, axis=(1, 2)) + SMALLEST
        shares = np.clip(along / squares, 0.0, 1.0)
        gains = 2 * shares * along - shares**2 * squares

        best = np.argmax(gains)
        before = np.sum(r * r) + SMALLEST
        gain = gains[best] / before
        return RhoChoice(float(tuning.RHOS[best]), float(gain))

    def predict(
        self,
        rhos: Floats,
        asked: NDArray[np.bool_] | None = None,
    ) -> Floats:
        """Return corrections (r, h, t) with each ρ over γ.

        They are 0 for rows of leaves that have no training rows or that are not in the mask
        `asked` (leaves,).
        """
        data = self.data
        shape = len(rhos), len(self.leaf), data.n_outputs
        mean = np.zeros(shape)

        # leaves that have held-out rows
        has_rows = self._counts > 0
        if asked is None:
            asked = has_rows
        asked = asked & has_rows

        # rows are grouped by leaf, without the held-out ones
        mass = data.mass_without(self.fold.split)
        model = self.fold.model
        grouping = LeafTask(self.kernel, model, self.tree, data.budget, asked)
        task, *aligned = grouping.over(data.rows, data.Y, mass)

        # each leaf predicts its held-out rows
        leaves = range(self.tree.n_leaves)
        places = [np.flatnonzero(self.leaf == j) for j in leaves]
        held = [take(self.H, at) for at in places]
        of_mapped = self.kernel.with_metric(None)
        scaled = rhos * self.fold.solution.gamma
        predict = partial(predict_leaf, of_mapped, scaled)
        values = data.rows.group(task, predict, held, *aligned)

        for at, of_leaf in zip(places, values, strict=True):
            if of_leaf is not None:
                mean[:, at] = of_leaf
        return mean
